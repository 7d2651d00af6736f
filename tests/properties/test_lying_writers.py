"""A writer that states wrong figures about its files: each lie that would promise too much is found by `verify --deep`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from eventide.testing.crash_enumeration import Bench, Moment
from eventide_core.config import LinkChoice
from eventide_core.ports import NoProgress
from eventide_core.table.timeline.commit_metadata import EVENT_TIMES_KEY, CommitMetadata, WriteStat
from support.damages import Damaged, table_to_damage

Lie = Callable[[WriteStat], WriteStat]


def _restated(commit: CommitMetadata, lie: Lie) -> CommitMetadata:
    stats = {partition: tuple(map(lie, of_partition)) for partition, of_partition in commit.write_stats.items()}
    return replace(commit, write_stats=stats, extra_metadata={**commit.extra_metadata, EVENT_TIMES_KEY: "ms"})


def _failed(bench: Bench, moment: Moment, table: Damaged, lie: Lie) -> set[str]:
    told = replace(table, files=dict(moment.files))
    told.set_commit(told.late, lambda commit: _restated(commit, lie))
    bench.load(Moment(told.files, moment.time_ms))
    return {check.name for check in bench.process().verifier.verify(is_deep=True, progress=NoProgress()).failed}


@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize(
    "lie",
    [
        lambda stat: stat._replace(min_event_time_ms=1_900_000_000_000, max_event_time_ms=1_900_000_000_000),
    ],
    ids=["event times"],
)
def test_a_lie_of_a_write_stat_is_found(version: int, lie: Lie) -> None:
    bench, moment, table = table_to_damage(version, LinkChoice.COPY)
    assert _failed(bench, moment, table, lambda stat: stat) == set()
    assert "event-times" in _failed(bench, moment, table, lie)
