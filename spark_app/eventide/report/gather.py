"""Gathers the content of a report at one moment, at low cost, and freezes it.

A log file that write stats or block headers describe is opened only to count late records. Of base files, only the footers
are read, and only for the slices that are shown one by one: first the slices that hold the watermark back, then those with
the earliest uncompacted event times.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from eventide.bootstrap import Application
from eventide.report.coverage import CoverageReader, SliceCoverage
from eventide.results.plan import offending_json
from eventide.results.show import TableDescription, describe
from eventide_core.action.compaction.backlog import Backlog, backlog
from eventide_core.action.compaction.slice_selection import SliceFacts
from eventide_core.action.freshness.arrival import with_arrival
from eventide_core.action.freshness.freshness import COMPLETE, Freshness, freshness
from eventide_core.action.query.offending_log_files import offending_log_files
from eventide_core.service.common.facts.compaction_history import PastCompaction, compaction_history, kept_bytes
from eventide_core.service.query.offending_records import OffendingRecords
from eventide_core.service.rollback.savepoint import Tag

SLICES_SHOWN = 60  # few enough for a quick layout in the browser and for scrolling


@dataclass(frozen=True, slots=True)
class Report:
    """A table at the moment `now_ms`. Times are in epoch milliseconds, sizes in bytes.

    If a log file's event times are unknown, `freshness` is None and `partitions` is empty: `table.problems` states why.
    `partitions` has the freshness of each partition by its path. `slices` are those shown one by one, and `slices_left_out`
    counts the others. `late` are all slices that hold the watermark below the cut, sorted by their earliest event time.
    `offending` are records that seem to be from the future.

    `backlog` sums up the log files of the latest slices, and `pinned_bytes` those among them that cleaning can't free
    because they are left-overs. `history` are the compactions of eventide on the active timeline, by completion. `tags` are
    the savepoints that have a tag, by name.
    """

    table: TableDescription
    now_ms: int
    freshness: Freshness | None
    partitions: Mapping[str, Freshness]
    backlog: Backlog
    pinned_bytes: int
    slices: tuple[SliceCoverage, ...]
    slices_left_out: int
    late: tuple[SliceCoverage, ...]
    history: tuple[PastCompaction, ...]
    offending: tuple[OffendingRecords, ...]
    tags: tuple[Tag, ...]

    def __repr__(self) -> str:
        fresh = "freshness unknown" if self.freshness is None else str(self.freshness)
        return f"<Report of {self.table.uri}: {fresh}>"

    @property
    def lag_ms(self) -> int | None:
        """How far the watermark lags behind the clock; None without a watermark."""
        if self.freshness is None or self.freshness.watermark_ms is None:
            return None
        return self.now_ms - self.freshness.watermark_ms

    def to_json(self) -> dict[str, Any]:
        """The report as plain values."""
        about = self.table.to_json()
        return {
            "table": about["table"],
            "now_ms": self.now_ms,
            "freshness": None if self.freshness is None else asdict(self.freshness),
            "lag_ms": self.lag_ms,
            "by_partition": {partition: asdict(fresh) for partition, fresh in self.partitions.items()},
            "backlog": asdict(self.backlog),
            "pinned_bytes": self.pinned_bytes,
            "held_back_by": [coverage.to_json() for coverage in self.late],
            "slices": [coverage.to_json() for coverage in self.slices],
            "slices_left_out": self.slices_left_out,
            "compactions": [asdict(past) for past in self.history],
            "pending": about["pending"],
            "offending": [offending_json(records) for records in self.offending],
            "tags": [{"tag": tag.name, "instant": tag.instant, "comment": tag.savepoint.remarks} for tag in self.tags],
        }


def gather(application: Application) -> Report:
    """The report on the current table. Raises the errors of opening a table, and CorruptTimelineError."""
    table = describe(application)
    state = table.state
    reader = _reader(application, table)
    logs = [(file_slice, reader.of_logs(file_slice)) for file_slice in table.file_slices]
    late = sorted((coverage for _, coverage in logs if coverage.late), key=_earliest)
    shown = [file_slice for file_slice, _ in sorted(logs, key=lambda pair: _urgency(pair[1]))][:SLICES_SHOWN]
    partitions = {} if table.problems else application.freshness.by_partition(state)
    sources = () if table.problems else application.arrival.progress(state)
    history = compaction_history(state, application.storage, application.clock)
    offending = offending_log_files(_slice_facts(table), state.cut_ms, application.clock.now_ms())
    return Report(
        table=table,
        now_ms=application.clock.now_ms(),
        freshness=None if table.problems else with_arrival(_whole(table, partitions), sources),
        partitions={name: with_arrival(own, sources) for name, own in partitions.items()},
        backlog=backlog(table.file_slices, table.facts),
        pinned_bytes=kept_bytes(state, history).linked,
        slices=tuple(map(reader.of, shown)),
        slices_left_out=len(logs) - len(shown),
        late=tuple(late),
        history=history,
        offending=application.offending.read(offending),
        tags=application.savepoints.tags(),
    )


def coverage(application: Application, *, merged: frozenset[str]) -> tuple[SliceCoverage, ...]:
    """The files of every slice; `merged` are the paths of log files that a plan merges."""
    table = describe(application)
    reader = replace(_reader(application, table), merged=merged)
    return tuple(reader.of(file_slice) for file_slice in table.file_slices)


def _reader(application: Application, table: TableDescription) -> CoverageReader:
    state = table.state
    field = None if state.known_schema is None else table.event_time_field
    shape = None if field is None else state.shape(field)
    return CoverageReader(application.bases, shape, state.cut_ms, table.facts, table.problems)


def _whole(table: TableDescription, partitions: Mapping[str, Freshness]) -> Freshness:
    """The whole table's freshness, with the sum of the late records of its partitions."""
    if table.state.config.is_copy_on_write:
        return COMPLETE
    late_records = sum(fresh.late_records for fresh in partitions.values())
    return freshness(table.state.cut_ms, (fact.uncompacted for fact in table.facts.values()), late_records)


def _slice_facts(table: TableDescription) -> Iterator[SliceFacts]:
    """The facts of the slices' log files, if known."""
    for file_slice in table.file_slices:
        facts = (table.facts[log.path] for log in file_slice.log_files if log.path in table.facts)
        yield SliceFacts(file_slice, tuple(facts))


def _earliest(coverage: SliceCoverage) -> tuple[int, str, str]:
    assert coverage.uncompacted_from_ms is not None  # a late record has an event time
    return (coverage.uncompacted_from_ms, coverage.partition, coverage.file_id)


def _urgency(coverage: SliceCoverage) -> tuple[bool, int, str, str]:
    """A sort key. Late slices come first, because their uncompacted event times are before the cut."""
    since = coverage.uncompacted_from_ms
    return (since is None, since or 0, coverage.partition, coverage.file_id)
