"""The time zone of a table's instants, as the modification times of its timeline's files tell it."""

import pytest

from eventide_core.table.timeline.instant import instant_time
from eventide_core.table.timeline.observed_offset import ObservedOffset, observed_offset

NOW = 1_795_240_873_021
HOUR = 3_600_000
LOS_ANGELES, KATHMANDU = -8 * HOUR, 5 * HOUR + 45 * 60_000


def requested(age_ms: int, offset_ms: int, action: str = "deltacommit", delay_ms: int = 40) -> tuple[str, int]:
    """A requested file, and its modification time, of so long ago, by a clock of that offset."""
    return f"{instant_time(NOW - age_ms + offset_ms)}.{action}.requested", NOW - age_ms + delay_ms


def completed(age_ms: int, offset_ms: int, requested_before_ms: int = 90_000) -> tuple[str, int]:
    begun, ended = (instant_time(NOW - age_ms + offset_ms - before) for before in (requested_before_ms, 0))
    return f"{begun}_{ended}.commit", NOW - age_ms


@pytest.mark.parametrize("offset_ms", [0, LOS_ANGELES, KATHMANDU, 14 * HOUR])
def test_a_file_is_put_just_after_its_time_was_taken(offset_ms: int) -> None:
    seen = observed_offset([requested(1000, offset_ms), ("hoodie.properties", NOW), ("20261121.x", NOW)])
    assert seen == ObservedOffset(offset_ms, NOW - 960)
    assert observed_offset([completed(1000, offset_ms)]) == ObservedOffset(offset_ms, NOW - 1000)


def test_back_dated_compactions_and_completed_files_of_version_6_show_no_offset() -> None:
    late = f"{instant_time(NOW - 4 * HOUR)}.deltacommit", NOW
    saved = f"{instant_time(NOW - 4 * HOUR)}.savepoint.inflight", NOW
    assert observed_offset([requested(0, -3 * HOUR, "compaction"), late, saved]) is None


def test_files_that_were_copied_tell_nothing() -> None:
    copied = [(name, NOW) for name, _ in (requested(days * 24 * HOUR, 0) for days in (1, 2, 400))]
    assert observed_offset([*copied, (copied[0][0], NOW - 24 * HOUR + 7 * 60_000)]) is None


def test_an_engine_ahead_of_the_writers_is_not_followed() -> None:
    writes = [requested(60_000 * minute, LOS_ANGELES) for minute in range(3, 6)]
    assert observed_offset([*writes, requested(60_000, 0)]) == ObservedOffset(LOS_ANGELES, NOW - 180_000 + 40)


def test_a_zone_that_writers_left_is_forgotten() -> None:
    moved = [requested(60_000 * minute, 0) for minute in range(8)]
    assert observed_offset([*moved, requested(HOUR, LOS_ANGELES)]) == ObservedOffset(0, NOW + 40)
