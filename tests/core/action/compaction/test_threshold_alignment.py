"""T floored to days and hours, as the clock on the wall shows them."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from eventide_core.action.compaction.request import CompactionRequest
from eventide_core.action.compaction.threshold_alignment import Alignment
from eventide_core.action.freshness.freshness import not_below_cut
from eventide_core.config import LinkChoice
from eventide_core.errors import ConfigError

HOUR, DAY = 3600, 86_400
BERLIN = ZoneInfo("Europe/Berlin")


def ms(text: str) -> int:
    moment = datetime.fromisoformat(text)
    assert moment.tzinfo is not None
    return round(moment.timestamp() * 1000)


def floored(seconds: int, zone: str, text: str) -> str:
    floor_ms = Alignment(seconds, ZoneInfo(zone)).floor(ms(text))
    return datetime.fromtimestamp(floor_ms / 1000, UTC).isoformat()


@pytest.mark.parametrize(
    ("seconds", "text", "boundary"),
    [
        (DAY, "2026-11-21T13:07:09.123Z", "2026-11-21T00:00:00+00:00"),
        (DAY, "2026-11-21T00:00Z", "2026-11-21T00:00:00+00:00"),
        (DAY, "1969-12-31T23:59:59.999Z", "1969-12-31T00:00:00+00:00"),
        (6 * HOUR, "2026-11-21T13:07Z", "2026-11-21T12:00:00+00:00"),
        (HOUR, "2026-11-21T13:59:59.999Z", "2026-11-21T13:00:00+00:00"),
        (900, "2026-11-21T13:59Z", "2026-11-21T13:45:00+00:00"),
    ],
)
def test_t_is_floored_to_the_last_boundary(seconds: int, text: str, boundary: str) -> None:
    assert floored(seconds, "UTC", text) == boundary


@pytest.mark.parametrize(
    ("zone", "text", "boundary"),
    [
        ("Europe/Berlin", "2026-11-21T22:30Z", "2026-11-20T23:00:00+00:00"),
        ("Europe/Berlin", "2026-11-21T23:00Z", "2026-11-21T23:00:00+00:00"),
        ("Europe/Berlin", "2026-03-29T12:00+02:00", "2026-03-28T23:00:00+00:00"),  # a day of 23 hours
        ("Europe/Berlin", "2026-10-25T12:00+01:00", "2026-10-24T22:00:00+00:00"),  # a day of 25 hours
        ("Asia/Kathmandu", "2026-11-21T00:00Z", "2026-11-20T18:15:00+00:00"),
        ("Asia/Beirut", "2024-03-31T12:00+03:00", "2024-03-30T22:00:00+00:00"),  # a day that begins at one o'clock
        ("America/Havana", "2024-11-03T00:30-05:00", "2024-11-03T04:00:00+00:00"),  # midnight is shown twice
        ("America/Havana", "2024-11-03T12:00-05:00", "2024-11-03T04:00:00+00:00"),
    ],
)
def test_days_begin_at_midnight_where_the_user_lives(zone: str, text: str, boundary: str) -> None:
    assert floored(DAY, zone, text) == boundary


@pytest.mark.parametrize("seconds", [900, HOUR, 2 * HOUR, DAY])
def test_boundaries_stay_and_never_fall_while_clocks_change(seconds: int) -> None:
    for change in ("2026-03-29T01:00Z", "2026-10-25T01:00Z"):
        alignment, last = Alignment(seconds, BERLIN), 0
        for minute in range(-2000, 2000, 7):
            time = ms(change) + minute * 60_000
            boundary = alignment.floor(time)
            assert last <= boundary <= time
            assert alignment.floor(boundary) == boundary
            last = boundary


@pytest.mark.parametrize("seconds", [0, 7, 5 * HOUR, 7 * DAY, 90 * 60])
def test_a_length_that_would_drift_from_day_to_day_is_refused(seconds: int) -> None:
    with pytest.raises(ConfigError, match="neither an hour nor a day"):
        Alignment(seconds)


def test_a_t_beyond_all_calendars_is_refused() -> None:
    with pytest.raises(ConfigError, match="calendar"):
        Alignment(DAY).floor(10**15 - 1)


def aligned(threshold_ms: int) -> CompactionRequest:
    return CompactionRequest(threshold_ms, None, LinkChoice.AUTO, alignment=Alignment(DAY))


def test_t_is_the_start_of_its_day() -> None:
    assert aligned(ms("2026-11-21T13:07Z")).threshold_at(0) == ms("2026-11-21T00:00Z")
    threshold_ms = aligned(ms("2026-11-21T13:07Z")).threshold_at(0)
    assert not_below_cut(threshold_ms, ms("2026-11-20T00:00Z")) == threshold_ms


def test_before_the_next_boundary_the_published_cut_is_what_stays_to_reach() -> None:
    published = ms("2026-11-21T12:00Z")
    assert not_below_cut(aligned(ms("2026-11-21T13:07Z")).threshold_at(0), published) == published


def test_asking_for_less_than_the_published_cut_compacts_up_to_that_cut() -> None:
    published = ms("2026-11-21T12:00Z")
    assert not_below_cut(aligned(ms("2026-11-21T11:00Z")).threshold_at(0), published) == published
