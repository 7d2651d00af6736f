"""Texts of event times in the zone and the form that a table's settings name, held to Python's own parser and zones."""

import datetime as dt
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventide_adapters.format.encoding.columns.event_times import event_times_ms
from eventide_adapters.format.encoding.columns.time_patterns import event_time_texts
from eventide_core.config import Options
from eventide_core.errors import ConfigError
from eventide_core.table.records.event_time_texts import FORMAT_KEY, ZONE_KEY, EventTimeTexts

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_ZONES = [
    "UTC",
    "America/New_York",
    "America/St_Johns",
    "America/Sao_Paulo",
    "Australia/Lord_Howe",
    "Africa/Casablanca",
]
_NEW_YORK = EventTimeTexts("America/New_York")


def times(texts: list[str | None], how: EventTimeTexts, kind: Any = None) -> list[int | None]:
    return event_times_ms(pa.array(texts, kind or pa.string()), how).to_pylist()


def expected(moment: dt.datetime, zone: str) -> int:
    return (moment.replace(tzinfo=ZoneInfo(zone)) - _EPOCH) // dt.timedelta(milliseconds=1)


@given(st.lists(st.datetimes(), max_size=20), st.sampled_from(_ZONES))
def test_a_text_without_a_zone_is_a_time_of_the_tables_zone(moments: list[dt.datetime], zone: str) -> None:
    for form in (lambda moment: moment.isoformat(" "), dt.datetime.isoformat):
        texts: list[str | None] = [None, *map(form, moments)]
        assert times(texts, EventTimeTexts(zone)) == [None, *(expected(moment, zone) for moment in moments)]


@given(
    st.lists(
        st.datetimes(dt.datetime.fromisoformat("1960-01-01"), dt.datetime.fromisoformat("2060-01-01")), max_size=20
    ),
    st.sampled_from(_ZONES),
)
def test_a_text_of_the_tables_form_is_a_time(moments: list[dt.datetime], zone: str) -> None:
    how = EventTimeTexts(zone, "MM/dd/yyyy 'at' HH:mm:ss.SSS")
    texts: list[str | None] = [f"{at:%m/%d/%Y at %H:%M:%S.}{at.microsecond // 1000:03d}" for at in moments]
    assert times(texts, how) == [expected(at, zone) for at in moments]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()], ids=str)
@pytest.mark.parametrize(
    ("text", "utc"),
    [
        ("2026-03-08 01:59:59", "2026-03-08T06:59:59Z"),
        ("2026-03-08 02:30:00", "2026-03-08T07:00:00Z"),  # does not occur: the moment of the change
        ("2026-03-08 03:00:00", "2026-03-08T07:00:00Z"),
        ("2026-11-01 00:30", "2026-11-01T04:30:00Z"),
        ("2026-11-01T01:30:00", "2026-11-01T05:30:00Z"),  # occurs twice: the first one
        ("2026-11-01 02:00:00.5", "2026-11-01T07:00:00.500Z"),
        ("2026-11-20", "2026-11-20T05:00:00Z"),
        ("20261120T030000", "2026-11-20T08:00:00Z"),
        ("2026-11-20T03:00:00+02:00", "2026-11-20T01:00:00Z"),
        ("1700000000", "2023-11-14T22:13:20Z"),
        ("2026-02-30 00:00:00", None),
        ("2026-11-20 24:30:00", None),
        ("never", None),
        ("", None),
    ],
)
def test_local_times_at_the_edges_of_a_zone(text: str, utc: str | None, kind: Any) -> None:
    parsed = times([text], _NEW_YORK, kind)
    assert parsed == [
        None if utc is None else (dt.datetime.fromisoformat(utc) - _EPOCH) // dt.timedelta(milliseconds=1)
    ]


@pytest.mark.parametrize(
    ("pattern", "text", "utc"),
    [
        ("MM/dd/yyyy HH:mm", "11/20/2026 03:00", "2026-11-20T03:00:00Z"),
        ("MM/dd/yyyy HH:mm", "1/2/2026 03:00", None),
        ("M/d/yyyy H:mm", "1/2/2026 3:00", "2026-01-02T03:00:00Z"),
        ("M/d/yyyy hh:mm a", "11/20/2026 12:15 AM", "2026-11-20T00:15:00Z"),
        ("M/d/yyyy h:mm a", "11/20/2026 3:15 pm", "2026-11-20T15:15:00Z"),
        ("M/d/yyyy hh:mm a", "11/20/2026 13:15 pm", None),
        ("yyyyMMddHH", "2026112003", "2026-11-20T03:00:00Z"),  # not ten digits of seconds
        ("yyyyMMdd", "2026112003", None),
        ("dd.MM.yyyy", "20.11.2026", "2026-11-20T00:00:00Z"),
        ("dd.MM.yyyy", "31.11.2026", None),
        ("dd.MM.yyyy", "20.11.2026 ", None),
        ("dd.MM.yyyy", "2026-11-20T03:00:00+01:00", "2026-11-20T02:00:00Z"),
        ("dd.MM.yyyy", "2026-11-20 03:00:00", None),
        ("dd.MM.yyyy", "00.00.0000", None),
        ("yyyy-MM-dd HH:mm:ss.SSSSSS", "2026-11-20 03:00:00.123999", "2026-11-20T03:00:00.123Z"),
    ],
)
def test_the_forms_of_texts(pattern: str, text: str, utc: str | None) -> None:
    parsed = times([text, None], EventTimeTexts("UTC", pattern))
    wanted = None if utc is None else (dt.datetime.fromisoformat(utc) - _EPOCH) // dt.timedelta(milliseconds=1)
    assert parsed == [wanted, None]


def test_a_form_may_have_a_zone_of_its_own() -> None:
    how = EventTimeTexts(None, "MM/dd/yyyy HH:mm XXX")
    texts = ["11/20/2026 03:00 +02:00", "11/20/2026 03:00 -05:30", "11/20/2026 03:00 Z", "11/20/2026 03:00 +99:00"]
    at = expected(dt.datetime.fromisoformat("2026-11-20T03:00"), "UTC")
    assert times([*texts], how) == [at - 2 * 3_600_000, at + 11 * 1_800_000, at, None]


@pytest.mark.parametrize(
    ("zone", "pattern", "wrong"),
    [
        ("Mars/Olympus", None, ZONE_KEY),
        ("../../etc/passwd", None, ZONE_KEY),
        (None, "MM/dd/yyyy", ZONE_KEY),
        ("UTC", "yyyy-MM-dd XXX", ZONE_KEY),
        ("UTC", "HH:mm", FORMAT_KEY),
        ("UTC", "yy-MM-dd", FORMAT_KEY),
        ("UTC", "yyyy-MM-dd hh:mm", FORMAT_KEY),
        ("UTC", "yyyy-MM-dd yyyy", FORMAT_KEY),
        ("UTC", "yyyy-MM-dd 'T", FORMAT_KEY),
        ("UTC", 'yyyy-MM-dd"', FORMAT_KEY),
        ("UTC", "%Y-%m-%d", FORMAT_KEY),
    ],
)
def test_a_zone_or_form_that_cannot_be_used_is_refused(zone: str | None, pattern: str | None, wrong: str) -> None:
    given = {key: value for key, value in ((ZONE_KEY, zone), (FORMAT_KEY, pattern)) if value is not None}
    with pytest.raises(ConfigError, match=wrong):
        event_time_texts(Options(given))


@given(
    st.lists(st.text(max_size=30), max_size=5), st.sampled_from(["MM/dd/yyyy HH:mm", "yyyy-MM-dd HH:mm:ss.SSS", None])
)
def test_no_text_makes_it_fail(texts: list[str], pattern: str | None) -> None:
    encodable: list[str | None] = [
        text for text in texts if text.isascii() or text.encode(errors="ignore").decode() == text
    ]
    assert len(times(encodable, EventTimeTexts("Europe/Berlin", pattern))) == len(encodable)
