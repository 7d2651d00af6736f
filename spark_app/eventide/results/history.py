"""The history of a table: the instants of its timeline, newest first."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

from eventide_core.errors import format_timestamp
from eventide_core.service.common.state.table import TableState
from eventide_core.table.records.event_time import datetime_of
from eventide_core.table.timeline.instant import Action


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """One action. `completion_time` is None while it is pending, and on table version 6.

    `action` and `state` are the words of Hudi's file names, such as deltacommit and inflight. `operation` is the operation
    that the commit names, such as UPSERT or compact. `records` and `bytes` are of the files that it wrote. They are
    None for an action that is not a completed write. `cut_ms` is the T that a compaction published.
    """

    instant: str
    action: str
    state: str
    completion_time: str | None
    operation: str | None = None
    records: int | None = None
    bytes: int | None = None
    cut_ms: int | None = None

    @property
    def cut_time(self) -> datetime | None:
        """`cut_ms` as a datetime in UTC. Raises InvalidThresholdError beyond the years 1 to 9999."""
        return datetime_of(self.cut_ms, "cut")

    def __str__(self) -> str:
        what = f"{self.instant} {self.action} {self.state}".lower()
        if self.records is not None:
            what += f", {self.operation or 'write'}: {self.records:,} records"
        return what if self.cut_ms is None else f"{what}, everything before {format_timestamp(self.cut_ms)}"


def history(state: TableState, limit: int | None) -> tuple[HistoryEntry, ...]:
    """The instants of the active timeline, newest first, at most `limit`."""
    return tuple(islice(_entries(state), limit))


def _entries(state: TableState) -> Iterator[HistoryEntry]:
    writes = {write.requested_time for write in state.timeline.writes}
    published = state.publications
    for instant in reversed(state.timeline.instants):
        entry = (instant.requested_time, str(instant.action), str(instant.state), instant.completion_time)
        if not instant.is_completed or instant.requested_time not in writes or instant.action is Action.SAVEPOINT:
            yield HistoryEntry(*entry)
            continue
        commit = state.commit(instant)
        publication = published.get(instant.requested_time)
        yield HistoryEntry(
            *entry,
            operation=commit.operation_type or None,
            records=sum(stat.num_writes for stat in commit.stats),
            bytes=sum(stat.file_size_bytes for stat in commit.stats),
            cut_ms=publication.cut_ms if publication is not None and publication.has_cut else None,
        )
