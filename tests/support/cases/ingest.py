"""One write of one table, with checks that hold at any moment, however it is interrupted.

The write updates a key, adds one to a bucket that exists and one to a partition that is not, and deletes one.
"""

import itertools
from dataclasses import dataclass, field

from eventide.bootstrap import Application
from eventide.rows.writer import arrow_records
from eventide.testing.crash_enumeration import Bench, Moment, Protocol, start_of
from eventide.testing.histories import EPOCH_MS, Commit, History, Layout, delete, put, records, write_history
from eventide.testing.inspection.checks import check_snapshot, check_time_travel
from eventide.testing.inspection.observation import BlockInstants, Observer
from eventide.testing.invariants import Inspection, check_invariants
from eventide.testing.oracle import Change, Oracle
from eventide_core.ports import NoProgress
from eventide_core.table.settings.write_shape import WriteOperation

HEARTBEAT_EXPIRY_MS = 121_000
BEGINNING = History(
    "beginning",
    ((put("k0", 1, "base"), put("k1", 2, "base"), put("k2", 3, "base")), (put("k0", 5, "log"), delete("k2"))),
    cut_ms=10,
)
WRITTEN = (put("k0", 9, "written"), put("k4", 4, "new"), put("k5", 4, "elsewhere", partition="b"), delete("k1", 8))


def ingest(changes: Commit) -> Protocol:
    def run(application: Application) -> None:
        incoming = arrow_records(application, *records(changes))
        application.append.write(WriteOperation.UPSERT, incoming, NoProgress())

    return run


@dataclass(slots=True)
class IngestCase:
    """The table before the write, and what the oracle says of it."""

    layout: Layout
    start: Moment
    oracle: Oracle
    bench: Bench
    observer: Observer = field(default_factory=Observer)
    blocks: BlockInstants = field(default_factory=BlockInstants)

    def check(self, moment: Moment, *possible: Commit, is_alone: bool = True) -> tuple[Commit, ...]:
        """Holds the table to what its completed writes promise; answers which of the possible ones they are."""
        self.bench.load(moment)
        application = self.bench.process()
        state = application.state()
        written = [time for time in sorted(state.commits) if not state.commits[time].is_compacted]
        new = [time for time in written if time not in self.oracle.instants]
        for changes in itertools.permutations(possible, len(new)):
            oracle = self.oracle.copy()
            for instant, commit in zip(new, changes, strict=True):
                oracle.commit(instant, [_at_epoch(change) for change in commit])
            seen = self.observer.look(application, oracle.instants)
            try:
                check_snapshot(seen, oracle.snapshot())
            except AssertionError:
                continue
            check_time_travel(seen, oracle)
            if not is_alone:
                return changes
            check_invariants(
                Inspection(
                    files=moment.files,
                    state=state,
                    seen=seen,
                    oracle=oracle,
                    blocks=self.blocks,
                    reader_orders=self.layout.reader_orders,
                    untouched=self.start.files,
                )
            )
            return changes
        raise AssertionError(f"{new} wrote nothing that was to be written: {possible}")


def _at_epoch(change: Change) -> Change:
    return Change(change.partition, change.key, None if change.ms is None else EPOCH_MS + change.ms, change.word)


def ingest_case(layout: Layout, bench: Bench) -> IngestCase:
    written = write_history(layout, BEGINNING, bench.name)
    return IngestCase(layout, start_of(written), written.oracle, bench)
