"""Freshness that stays true: a stream with lateness is replayed, and after every step the table is asked by query whether
it holds what freshness says, whoever wrote, compacted, rolled back, restored or archived in between.

EVENTIDE_CAMPAIGN=n replays n streams for each kind of table and cut.
"""

import random
from dataclasses import dataclass, field

import pytest

from eventide.bootstrap import Application, assemble
from eventide.engine_local import LocalEngine
from eventide.rows.reader import Rows
from eventide.rows.writer import arrow_records, create
from eventide.testing.crash_enumeration import Bench
from eventide.testing.histories import EPOCH_MS, Layout, NoLock, put, records
from eventide.testing.living_table.stock_engine import run_plan_as_stock
from eventide.testing.oracle import Change, Order
from eventide_core.action.compaction.request import CompactionRequest
from eventide_core.config import LOG_EVENT_TIMES, TRACK_EVENT_TIMES, LinkChoice
from eventide_core.errors import CleanedHistoryError
from eventide_core.ports import NoProgress
from eventide_core.table.files.slice_read import QueryPlan
from eventide_core.table.settings.write_shape import WriteOperation
from eventide_core.table.timeline.contents.plans import CutMode
from support.run.campaign import tries
from support.run.reach import reached

pytestmark = pytest.mark.slow

EAGER = {
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.cleaner.commits.retained": "2",
    "hoodie.compact.inline.max.delta.commits": "1",
}
COMMITS = 26
KEYS = 12
COMMIT_MS = 10
LATE_SHARE = 0.2
LATE_COMMITS_MEAN = 4


Shown = frozenset[tuple[str, int, str]]
"""Rows: key, event time, word."""


@dataclass(slots=True)
class Known:
    """What has been committed, in order; of it, what no compaction has been planned over; the published cut; and the rows of
    the read-optimized table as each compaction left them, with the cut that it published.
    """

    committed: list[Change] = field(default_factory=list[Change])
    since_plan: list[Change] = field(default_factory=list[Change])
    cut_ms: int | None = None
    views: list[tuple[int, Shown]] = field(default_factory=list[tuple[int, "Shown"]])

    def copy(self) -> "Known":
        return Known(list(self.committed), list(self.since_plan), self.cut_ms, list(self.views))

    @property
    def late(self) -> list[int]:
        return [c.ms for c in self.since_plan if self.cut_ms is not None and c.ms is not None and c.ms < self.cut_ms]


@dataclass(slots=True)
class Replay:
    """A table in memory, and what one knows of it who has listened. Times are milliseconds after EPOCH_MS."""

    version: int
    cut: CutMode
    chance: random.Random
    bench: Bench = field(init=False)
    known: Known = field(default_factory=Known)
    saved: Known = field(default_factory=Known)
    now_ms: int = 0
    words: int = 0
    groups: int = 0

    def __post_init__(self) -> None:
        layout = Layout(self.version, Order.EVENT_TIME)
        self.bench = Bench("replayed")
        self.bench.options = {**self.bench.options, **layout.write_options, **EAGER}
        create(self.bench.storage, layout.table)

    def commit(self) -> str:
        """One more of the stream, by a writer that records event times in headers and stats, or by one that does not."""
        self.now_ms += COMMIT_MS
        changes = tuple(self._change() for _ in range(self.chance.randint(1, 5)))
        reflects = str(self.chance.random() < 0.5)
        writer = self._writer({LOG_EVENT_TIMES: reflects, TRACK_EVENT_TIMES: reflects})
        incoming = arrow_records(writer, *records(changes))
        self.bench.clock.sleep(10)
        instant = writer.append.write(WriteOperation.UPSERT, incoming, NoProgress()).instant
        latest = {(c.partition, c.key): c for c in sorted(changes, key=lambda c: c.ms or 0)}  # a write combines its own
        self.known.committed += latest.values()
        self.known.since_plan += latest.values()
        return instant

    def compact(self, *, as_stock: bool = False) -> None:
        """Everything older than two commits; as stock: another engine runs the plan, and publishes nothing."""
        self.bench.clock.sleep(10)
        process = self.bench.process()
        request = CompactionRequest(EPOCH_MS + self.now_ms - 2 * COMMIT_MS, None, LinkChoice.AUTO, cut=self.cut)
        plan = process.scheduler.schedule(request).plan
        if as_stock:
            run_plan_as_stock(process, plan.instant)
        else:
            process.runner.execute(plan.instant, NoProgress())
            assert plan.cut_ms is not None
            said = process.state().publications[plan.instant]
            assert (said.cut_ms, said.watermark_ms, said.late_records) == (plan.cut_ms, plan.cut_ms, 0)
            self.known.cut_ms = plan.cut_ms - EPOCH_MS
            self.known.views.append((self.known.cut_ms, self._shown(process.queries.read_optimized())))
        self.known.since_plan = [
            c for c in self.known.since_plan if c.ms is not None and c.ms >= self.now_ms - 2 * COMMIT_MS
        ]
        reached("replayed streams: compactions")
        self.bench.clock.sleep(10)

    def roll_back(self, instant: str, before: Known) -> None:
        self.bench.process().rollback.undo(instant)
        self.known = before

    def save(self, instant: str) -> None:
        self.bench.process().savepoints.save(instant)
        self.saved = self.known.copy()

    def restore(self, instant: str) -> None:
        self.bench.process().restorer.restore(instant)
        self.known = self.saved.copy()
        self.bench.process().savepoints.delete(instant)

    def tidy(self) -> None:
        self.bench.process().cleaner.clean(2)
        reached("replayed streams: archived instants", len(self.bench.process().archiver.archive()))

    def check(self) -> None:
        """What freshness says is what was heard, and the read-optimized table holds what it promises."""
        process = self.bench.process()
        said = process.freshness.now(process.state())
        late = self.known.late
        if self.known.cut_ms is None:
            assert (said.watermark_ms, said.cut_ms, said.late_records) == (None, None, 0)
            return
        watermark_ms = min([self.known.cut_ms, *late])
        assert (said.cut_ms, said.watermark_ms, said.late_records) == (
            EPOCH_MS + self.known.cut_ms,
            EPOCH_MS + watermark_ms,
            len(late),
        )
        by_partition = process.freshness.by_partition(process.state()).values()
        assert min(fresh.watermark_ms or 0 for fresh in by_partition) == said.watermark_ms
        shown = {key: ms for key, ms, _ in self._shown(process.queries.read_optimized())}
        for change in self.known.committed:
            assert change.ms is not None
            if change.ms < watermark_ms:
                assert shown.get(change.key, -1) >= change.ms, f"{change} lies before the watermark, and isn't there"
        reached("replayed streams: freshness asked by query")
        reached("replayed streams: late records told", len(late))

    def look_back(self) -> None:
        """The view as of a watermark that was published is the one that a compaction with the least such cut had left."""
        for cut_ms in sorted({cut_ms for cut_ms, _ in self.known.views}):
            for before_ms in (cut_ms - self.chance.randrange(COMMIT_MS), cut_ms):
                least_ms = min(cut for cut, _ in self.known.views if cut >= before_ms)
                left = [rows for cut, rows in self.known.views if cut == least_ms]
                try:
                    plan = self.bench.process().queries.as_of_watermark(EPOCH_MS + before_ms)
                except CleanedHistoryError:
                    reached("replayed streams: views that were cleaned")
                else:
                    assert self._shown(plan) in left
                    reached("replayed streams: views as of a watermark")

    def _shown(self, plan: QueryPlan) -> Shown:
        process = self.bench.process()
        rows = Rows(plan, process.reader, process.engine).to_arrow(["key", "ms", "word"]).to_pylist()
        return frozenset((row["key"], row["ms"] - EPOCH_MS, row["word"]) for row in rows)

    def _change(self) -> Change:
        ms = self.now_ms + self.chance.randrange(COMMIT_MS)
        if self.chance.random() < LATE_SHARE:
            ms = max(0, ms - round(self.chance.expovariate(1 / (LATE_COMMITS_MEAN * COMMIT_MS))))
        self.words += 1
        number = self.chance.randrange(KEYS)
        return put(f"k{number}", ms, f"word {self.words}", partition="ab"[number % 2])

    def _writer(self, options: dict[str, str]) -> Application:
        def next_uuid() -> str:
            self.groups += 1
            return f"00000000-0000-4000-8000-{self.groups:012d}"

        return assemble(
            self.bench.storage.root,
            {**self.bench.options, **options},
            engine=LocalEngine(1),
            storage=self.bench.storage,
            lock=NoLock(),
            clock=self.bench.clock,
            new_uuid=next_uuid,
        )


@pytest.mark.parametrize("cut", list(CutMode))
@pytest.mark.parametrize("version", [6, 9])
def test_after_every_step_the_read_optimized_table_has_all_before_the_watermark(version: int, cut: CutMode) -> None:
    for seed in range(tries(test=1, proof=1)):
        replay = Replay(version, cut, random.Random(f"{version} {cut} {seed}"))
        saved = ""
        for number in range(COMMITS):
            before = replay.known.copy()
            instant = replay.commit()
            replay.check()
            if number % 7 == 4:
                replay.roll_back(instant, before)
                replay.check()
            elif number == 9:
                replay.save(saved := instant)
            if number % 3 == 2:
                replay.compact(as_stock=number == 14)
                replay.check()
            if number == 12:
                replay.restore(saved)
                replay.check()
            if number % 4 == 3:
                replay.look_back()
                replay.tidy()
                replay.check()
        replay.look_back()
