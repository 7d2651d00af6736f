"""Which files of a timeline don't count, by the archive beside it."""

import pytest

from eventide_core.table.timeline.instant import Instant
from eventide_core.table.timeline.strays import Evidence, timeline_of

WRITES = [f"2026092114132{number:04}" for number in range(6)]


def _files(time: str, *states: str) -> list[str]:
    return [f"{time}{state}" for state in states]


def _whole(time: str) -> list[str]:
    return _files(time, ".deltacommit.requested", ".deltacommit.inflight", ".deltacommit")


def _strays(names: list[str], archived: list[str]) -> set[str]:
    evidence = Evidence(
        lambda completed: max((time for time in archived if time not in completed), default=None),
        lambda time: time in archived,
        lambda: frozenset(),
        lambda _: False,
    )
    timeline = timeline_of([found for name in names if (found := Instant.parse(name))], evidence)
    return {stray.file_name for stray in timeline.strays}


@pytest.mark.parametrize("late", [".deltacommit.inflight", ".deltacommit"])
def test_a_late_file_before_archived_writes_does_not_count(late: str) -> None:
    assert _strays([f"{WRITES[0]}{late}", *_whole(WRITES[4])], WRITES[:4]) == {f"{WRITES[0]}{late}"}


def test_a_late_inflight_file_of_the_last_archived_compaction_does_not_count() -> None:
    late = f"{WRITES[3]}.compaction.inflight"
    assert _strays([late, *_whole(WRITES[4])], WRITES[:4]) == {late}


def test_writes_that_were_archived_since_the_listing_count_in_either_place() -> None:
    first = _files(WRITES[0], ".deltacommit")  # the archival has removed two of its files
    listed = [*first, *(name for time in WRITES[1:4] for name in _whole(time))]
    assert _strays(listed, WRITES[:2]) == set()
