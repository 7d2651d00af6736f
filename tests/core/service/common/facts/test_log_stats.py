"""What write stats state of log files: nothing of a file that holds more, or other records, than a stat describes."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from eventide_core.service.common.facts.log_stats import from_stats
from eventide_core.table.files.file_name import LogFileName
from eventide_core.table.files.file_slice import LogFile
from eventide_core.table.records.event_time import EventTimeRange
from eventide_core.table.timeline.contents.commit_metadata import EVENT_TIMES_KEY, CommitMetadata, WriteStat
from eventide_core.table.timeline.layout import layout_of

WRITE = "20260101000000001"
FIRST, SECOND = (LogFile(LogFileName("f", WRITE, n, "0-1-1"), f"p/log.{n}", 300) for n in (1, 2))


def stat_of(log: LogFile) -> WriteStat:
    return WriteStat(
        "f",
        log.path,
        "p",
        num_writes=3,
        total_write_bytes=log.size,
        file_size_bytes=log.size,
        min_event_time_ms=10,
        max_event_time_ms=20,
        log_version=log.name.version,
    )


def told(*stats: WriteStat, version: int = 9, extra: dict[str, str] | None = None) -> dict[str, EventTimeRange]:
    state: Any = SimpleNamespace(
        commits={WRITE: CommitMetadata({"p": stats}, extra or {}, "UPSERT")},
        publications={},
        config=SimpleNamespace(layout=layout_of(version)),
    )
    known = from_stats(state, [FIRST, SECOND], "ts", are_stats_proof=True)
    return {path: facts.event_times for path, facts in known.items()}


@pytest.mark.parametrize("version", [6, 9])
def test_a_stat_states_the_range_of_a_log_file_that_its_write_made(version: int) -> None:
    assert told(stat_of(FIRST), version=version) == {FIRST.path: EventTimeRange(10, 20)}


@pytest.mark.parametrize("extra", [{}, {EVENT_TIMES_KEY: "ts"}], ids=["hudi", "eventide"])
def test_a_stat_states_nothing_of_a_log_file_that_its_write_appended_to(extra: dict[str, str]) -> None:
    """The write that began the file may be archived, or rolled back by a block in the file."""
    assert told(stat_of(FIRST)._replace(total_write_bytes=200), version=6, extra=extra) == {}


def test_hudis_stats_say_nothing_about_log_files_that_a_write_filled_in_turn() -> None:
    """Hudi's second stat lacks the records that waited in memory when the first file was full."""
    assert told(stat_of(FIRST), stat_of(SECOND)) == {}
    elsewhere = replace(SECOND, path="q/log.2")
    apart = stat_of(elsewhere)._replace(partition="q", max_event_time_ms=30)
    assert told(stat_of(FIRST), apart) == {FIRST.path: EventTimeRange(10, 20)}


def test_a_stat_of_eventide_states_each_of_several_log_files() -> None:
    assert len(told(stat_of(FIRST), stat_of(SECOND), extra={EVENT_TIMES_KEY: "ts"})) == 2


def test_stats_of_upstream_commits_are_not_believed() -> None:
    """Such a writer gives each stat the same range, whatever the file holds."""
    elsewhere = replace(SECOND, path="q/log.2")
    assert told(stat_of(FIRST), stat_of(elsewhere)._replace(partition="q", file_id="g")) == {}
    extra = {"hoodie.write.track.event.time.propagate.from.upstream": "true"}
    assert told(stat_of(FIRST), extra=extra) == {}
