"""Texts without a zone and of other forms are event times once the table says how: in writes, plans, gates and cuts."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from eventide import Table
from eventide.rows.given import CutName
from eventide_core.config import BUCKETS, EVENT_TIME_FORMAT, EVENT_TIME_ZONE
from eventide_core.errors import ConfigError, InvalidRecordError, format_timestamp
from eventide_core.service.write.settings import write_shape
from support.run.command_line import run, run_json

COLUMNS: "list[pa.Field[Any]]" = [pa.field("id", pa.string()), pa.field("at", pa.string()), pa.field("seq", pa.int64())]
SCHEMA = pa.schema(COLUMNS)
T = "2026-11-21T05:00Z"  # midnight in New York
FORM = "MM/dd/yyyy HH:mm"
NEW_YORK = {str(EVENT_TIME_ZONE): "America/New_York"}
WAYS: list[tuple[dict[str, str], dict[str, str]]] = [
    (NEW_YORK, {"early": "2026-11-20 23:30:00", "late": "2026-11-21 00:30:00", "next": "2026-11-22 00:00:00"}),
    (
        {**NEW_YORK, EVENT_TIME_FORMAT: FORM},
        {"early": "11/20/2026 23:30", "late": "11/21/2026 00:30", "next": "11/22/2026 00:00"},
    ),
]


def _create(path: Path, version: int, options: dict[str, str]) -> Table:
    options = {BUCKETS: "1", **options}
    return Table.create(
        str(path), schema=SCHEMA, record_key="id", ordering="seq", event_time="at", version=version, options=options
    )


def _rows(*rows: tuple[str, str | None, int]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], schema=SCHEMA)


def _view(table: Table) -> dict[str, int]:
    return {row["id"]: row["seq"] for row in table.read_optimized().to_arrow(["id", "seq"]).to_pylist()}


@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize(("said", "texts"), WAYS, ids=["zone", "format"])
@pytest.mark.parametrize("cut", ["file", "exact"])
def test_they_are_times_everywhere(
    tmp_path: Path, version: int, said: dict[str, str], texts: dict[str, str], cut: CutName
) -> None:
    table = _create(tmp_path / "t", version, said)
    table.upsert(_rows(("a", texts["early"], 1), ("b", None, 1)))
    table.upsert(_rows(("c", texts["early"], 1), ("d", texts["late"], 1)))
    table.upsert(_rows(("e", texts["next"], 1)))
    opened = Table.open(table.uri)  # by another process, without these options
    assert opened.freshness().unreadable_event_time_records == 0
    assert run("freshness", table.uri, "--require", T).exit_code == 1
    opened.compact(before=T, cut=cut)
    assert set(_view(table)) == ({"a", "b", "c", "d"} if cut == "file" else {"a", "b", "c"})
    assert run("freshness", table.uri, "--require", T).exit_code == 0
    assert run("verify", table.uri, "--deep").exit_code == 0
    about = run_json("show", table.uri)["table"]
    assert about["event_time_texts"] == said
    assert "eventide.event.time.zone=America/New_York" in " ".join(run("show", table.uri).stdout.split())


@pytest.mark.parametrize(("said", "texts"), WAYS, ids=["zone", "format"])
def test_a_write_still_refuses_what_is_no_such_text(
    tmp_path: Path, said: dict[str, str], texts: dict[str, str]
) -> None:
    table = _create(tmp_path / "t", 9, said)
    with pytest.raises(InvalidRecordError, match=r"row 1: the event time 'soon' .*eventide.event.time.zone=America"):
        table.upsert(_rows(("a", texts["early"], 1), ("b", "soon", 1)))


@pytest.mark.parametrize("version", [6, 9])
def test_a_table_of_another_engine_is_told_by_an_option(
    tmp_path: Path, version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its writer checks nothing. What one reading of the column found is not believed under another."""

    def shape(*args: Any) -> Any:
        found: Any = write_shape(*args)
        object.__setattr__(found, "refuses_unreadable_times", False)
        return found

    with monkeypatch.context() as patched:
        patched.setattr("eventide_core.service.write.append.write_shape", shape)
        table = _create(tmp_path / "t", version, {})
        table.upsert(_rows(("z", None, 1)))
        table.upsert(_rows(("a", "2026-11-20 23:30:00", 1), ("b", "2026-11-22 00:00:00", 1)))
        table.upsert(_rows(("c", "2026-11-22 00:00:00", 1)))
    assert table.freshness().unreadable_event_time_records == 3
    told = Table.open(table.uri, NEW_YORK)
    assert told.freshness().unreadable_event_time_records == 0
    told.compact(before=T)
    found = told.freshness()
    assert format_timestamp(found.watermark_ms) == format_timestamp(found.cut_ms)
    berlin = Table.open(table.uri, {str(EVENT_TIME_ZONE): "Europe/Berlin"}).freshness()
    assert berlin.earliest_log_event_time_ms == (found.earliest_log_event_time_ms or 0) - 6 * 3_600_000
    assert table.freshness().watermark_ms is None


def test_an_option_that_contradicts_the_table_is_refused(tmp_path: Path) -> None:
    table = _create(tmp_path / "t", 9, NEW_YORK)
    assert Table.open(table.uri, NEW_YORK).freshness().watermark_ms is None
    with pytest.raises(ConfigError, match=r"eventide.event.time.zone='UTC'.*America/New_York.*omit the option"):
        Table.open(table.uri, {str(EVENT_TIME_ZONE): "UTC"}).freshness()


@pytest.mark.parametrize(
    ("said", "message"),
    [
        (
            {str(EVENT_TIME_ZONE): "New York"},
            "eventide.event.time.zone='New York' is not a known time zone: use a name such as",
        ),
        ({str(EVENT_TIME_ZONE): "GMT+8:00"}, "is not a known time zone: it is an offset; use a name such as"),
        ({str(EVENT_TIME_FORMAT): FORM}, "has no zone: set eventide.event.time.zone"),
        ({**NEW_YORK, EVENT_TIME_FORMAT: "%m/%d/%Y"}, "eventide.event.time.format='%m/%d/%Y' isn't a pattern"),
    ],
)
def test_create_refuses_what_cannot_be_used(tmp_path: Path, said: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        _create(tmp_path / "t", 9, said)
    assert not (tmp_path / "t").exists()


def test_create_refuses_a_zone_for_a_column_without_texts(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match="the event-time field 'seq' has neither texts nor times without a zone: omit"
    ):
        Table.create(str(tmp_path / "t"), schema=SCHEMA, record_key="id", event_time="seq", options=NEW_YORK)


def test_ingest_creates_the_table_with_them(tmp_path: Path) -> None:
    source = tmp_path / "rows.csv"
    source.write_text("id,at,seq\na,11/20/2026 23:30,1\n")
    table = str(tmp_path / "t")
    options = ["--option", f"{EVENT_TIME_ZONE}=America/New_York", "--option", f"{EVENT_TIME_FORMAT}={FORM}"]
    words = ["--create", "--record-key", "id", "--ordering", "seq", "--event-time", "at"]
    assert run("ingest", table, str(source), *words, *options).exit_code == 0
    assert run("ingest", table, str(source)).exit_code == 0
    assert Table.open(table).freshness().earliest_log_event_time_ms == 1_795_235_400_000
