"""Boundaries of windows: nights of clock changes, zones with odd offsets, lengths that fit no day."""

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventide_core.action.windows.calendar import WindowCalendar
from eventide_core.errors import ConfigError

HOUR_MS = 3_600_000
BERLIN = ZoneInfo("Europe/Berlin")


def ms(text: str, zone: ZoneInfo | None = None) -> int:
    moment = datetime.fromisoformat(text)
    return int((moment if moment.tzinfo is not None else moment.replace(tzinfo=zone)).timestamp()) * 1000


@pytest.mark.parametrize(("day", "hours"), [("2026-03-29", 23), ("2026-10-25", 25), ("2026-07-01", 24)])
def test_a_day_begins_and_ends_at_midnight_of_its_zone(day: str, hours: int) -> None:
    calendar = WindowCalendar(86_400, BERLIN)
    begin = ms(f"{day}T00:00", BERLIN)
    assert calendar.begin_of(begin + 5 * HOUR_MS) == begin
    assert calendar.end_of(begin) == begin + hours * HOUR_MS


@pytest.mark.parametrize("day", ["2026-03-29", "2026-10-25"])
def test_hours_are_absolute_in_the_nights_of_the_clock_changes(day: str) -> None:
    calendar = WindowCalendar(3600, BERLIN)
    at, end = ms(f"{day}T00:00", BERLIN), WindowCalendar(86_400, BERLIN).end_of(ms(f"{day}T00:00", BERLIN))
    while at < end:
        assert calendar.end_of(at) == at + HOUR_MS
        at = calendar.end_of(at)
    assert at == end


@given(
    moment=st.integers(min_value=-1_000_000_000_000, max_value=4_000_000_000_000),
    seconds=st.sampled_from([30, 900, 1800, 3600, 7200, 21_600, 86_400]),
    zone=st.sampled_from(
        ["UTC", "Europe/Berlin", "Asia/Kolkata", "Australia/Lord_Howe", "America/St_Johns", "Pacific/Apia"]
    ),
)
def test_every_moment_is_in_one_window_and_windows_follow_one_another(moment: int, seconds: int, zone: str) -> None:
    calendar = WindowCalendar(seconds, ZoneInfo(zone))
    begin = calendar.begin_of(moment)
    end = calendar.end_of(begin)
    assert begin <= moment < end
    assert calendar.begin_of(begin) == begin
    assert calendar.begin_of(end - 1) == begin
    assert calendar.begin_of(end) == end


def test_a_length_that_divides_no_day_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"^windows: 7h divides neither an hour nor a day"):
        WindowCalendar(7 * 3600)


def test_windows_are_counted_from_midnight() -> None:
    assert WindowCalendar(6 * 3600).begin_of(ms("2026-11-21T17:59:59Z")) == ms("2026-11-21T12:00Z")
