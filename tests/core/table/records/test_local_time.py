"""When a local time was: around the changes of clocks, in zones that move by an hour, by half of one, and by a day."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from eventide_adapters.format.encoding.columns.local_times import epoch_ms_of_local
from eventide_core.table.records.event_time import iso_to_epoch_ms
from eventide_core.table.records.local_time import DAY_MS, local_to_epoch_ms

ZONES = (
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "Pacific/Apia",
    "America/Havana",
    "Asia/Kolkata",
)


def _ms(text: str) -> int:
    moment = datetime.fromisoformat(text)
    return (moment.replace(tzinfo=moment.tzinfo or UTC) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


@pytest.mark.parametrize(
    ("zone", "local", "moment"),
    [
        ("Europe/Berlin", "2026-03-03T00:30", "2026-03-02T23:30Z"),
        ("Europe/Berlin", "2026-07-03T00:30", "2026-07-02T22:30Z"),
        ("Europe/Berlin", "2026-03-29T01:59:59.999", "2026-03-29T00:59:59.999Z"),
        # Clocks skip from 02:00 to 03:00.
        ("Europe/Berlin", "2026-03-29T02:00", "2026-03-29T01:00Z"),
        ("Europe/Berlin", "2026-03-29T02:30:00.500", "2026-03-29T01:00Z"),
        ("Europe/Berlin", "2026-03-29T03:00", "2026-03-29T01:00Z"),
        # They go back from 03:00 to 02:00.
        ("Europe/Berlin", "2026-10-25T02:30", "2026-10-25T00:30Z"),
        ("Europe/Berlin", "2026-10-25T02:59:59.999", "2026-10-25T00:59:59.999Z"),
        ("Europe/Berlin", "2026-10-25T03:00", "2026-10-25T02:00Z"),
        # The whole 30th of December 2011 is skipped.
        ("Pacific/Apia", "2011-12-29T23:59", "2011-12-30T09:59Z"),
        ("Pacific/Apia", "2011-12-30T12:00", "2011-12-30T10:00Z"),
        ("Pacific/Apia", "2011-12-31T00:00", "2011-12-30T10:00Z"),
        # Clocks change at midnight.
        ("America/Havana", "2026-03-08T00:30", "2026-03-08T05:00Z"),
        ("America/Havana", "2026-11-01T00:30", "2026-11-01T04:30Z"),
        ("Australia/Lord_Howe", "2026-10-04T02:10", "2026-10-03T15:30Z"),
    ],
)
def test_a_local_time_is_the_first_that_it_may_be(zone: str, local: str, moment: str) -> None:
    assert local_to_epoch_ms(_ms(local), ZoneInfo(zone)) == _ms(moment)
    assert iso_to_epoch_ms(local, ZoneInfo(zone)) == _ms(moment)
    assert epoch_ms_of_local(np.array([_ms(local)]), ZoneInfo(zone)).tolist() == [_ms(moment)]


@pytest.mark.parametrize("zone", ZONES)
def test_a_later_local_time_is_never_earlier_nor_later_than_python_has_it(zone: str) -> None:
    """Every 10 minutes and 7 seconds of the years 2011 and 2026. Python reads by `fold`, of which 0 is the earlier one."""
    for year in (2011, 2026):
        begin = _ms(f"{year}-01-01T00:00")
        local = np.arange(begin, begin + 366 * DAY_MS, 607_123)
        found = epoch_ms_of_local(local, ZoneInfo(zone)).tolist()
        assert found == sorted(found)
        assert found == [local_to_epoch_ms(one, ZoneInfo(zone)) for one in local.tolist()]
        pairs = list(zip(found, _by_python(local.tolist(), ZoneInfo(zone)), strict=True))
        assert all(ours <= python for ours, python in pairs)
        assert sum(ours != python for ours, python in pairs) <= 150  # only in gaps: a day and an hour in Apia


def _by_python(local: Sequence[int], zone: tzinfo) -> list[int]:
    moments = (datetime(1970, 1, 1, tzinfo=zone) + timedelta(milliseconds=one) for one in local)
    return [
        (moment.astimezone(UTC) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1) for moment in moments
    ]


@pytest.mark.parametrize(
    "local_ms", [-(1 << 63), -(10**17), _ms("0001-01-01T00:00"), _ms("9999-12-31T23:59"), (1 << 63) - 1]
)
def test_times_beyond_the_years_of_a_datetime_stay_where_they_are_but_for_a_day(local_ms: int) -> None:
    (found,) = epoch_ms_of_local(np.array([local_ms]), ZoneInfo("Europe/Berlin")).tolist()
    assert abs(found - local_ms) <= 3 * DAY_MS
