"""Two processes on one table, in every order of their storage operations; three processes, in random orders.

testing/schedules/exploration.py says how. The pairs of the longest protocols are bounded to orders of few switches, which is
said: to one in `./run test`, to two in `./run proof`. A longer campaign (support.run.campaign) goes through all of them, and
through n times as many orders of three.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from eventide.bootstrap import Application
from eventide.rows.reader import Rows as RowReader
from eventide.rows.writer import arrow_records
from eventide.testing.crash_enumeration import Protocol
from eventide.testing.histories import EPOCH_MS, Commit, Layout, put, records
from eventide.testing.inspection.observation import MARKERS_PREFIX
from eventide.testing.living_table.account import Account
from eventide.testing.living_table.table import LivingTable
from eventide.testing.oracle import Order
from eventide.testing.schedules.exploration import End, Explored, Schedules, in_words
from eventide_core.action.compaction.request import CompactionRequest
from eventide_core.config import LinkChoice
from eventide_core.errors import (
    BusyError,
    EventideError,
    InstantNotFoundError,
    MissingFileError,
    PlanMismatchError,
    RefusedError,
)
from eventide_core.ports import NoProgress
from eventide_core.service.compaction.scheduling.schedule import CompactionScheduler
from eventide_core.table.settings.write_shape import WriteOperation
from support.mutants import MUTANTS
from support.run.campaign import CAMPAIGN, tries
from support.run.reach import reached

pytestmark = pytest.mark.campaign

FEW_SWITCHES = (1, 2, None)[min(CAMPAIGN, 2)]
OF_THREE = tries(test=4, proof=10)
SWITCHES_OF_THREE = 10
MEANWHILE: Commit = (put("k1", 9, "meanwhile"), put("k7", 2, "late meanwhile"))
LAYOUTS = (Layout(6, Order.EVENT_TIME), Layout(9, Order.EVENT_TIME))


@dataclass(slots=True)
class Scene:
    """A table with logs on both sides of T, and the plan for it, if there is one. `retained` is what a cleaner leaves."""

    table: LivingTable
    instant: str | None
    retained: int | None = None

    def compactor(self, application: Application) -> None:
        assert self.instant is not None
        application.runner.execute(self.instant, NoProgress())

    def undoer(self, application: Application) -> None:
        assert self.instant is not None
        application.rollback.undo(self.instant)

    def writer(self, application: Application) -> None:
        incoming = arrow_records(application, *records(MEANWHILE))
        application.append.write(WriteOperation.UPSERT, incoming, NoProgress())

    def cleaner(self, application: Application) -> None:
        application.cleaner.clean(self.retained)

    def reader(self, application: Application) -> None:
        """Sees what everybody saw before, whatever continues."""
        rows = RowReader(application.queries.snapshot(), application.reader, application.engine)
        columns = ("_hoodie_partition_path", "key", "ms", "word", "_hoodie_commit_time")
        found = frozenset(
            row
            for batch in rows.to_batches(columns=columns)
            for row in zip(*(batch.column(name).to_pylist() for name in columns), strict=True)
        )
        assert found == self.table.account.oracle.snapshot(), f"a reader saw {sorted(found)}"

    def scheduler(self, application: Application) -> None:
        impatient(application).schedule(CompactionRequest(EPOCH_MS + 3, None, LinkChoice.COPY))

    def other_scheduler(self, application: Application) -> None:
        impatient(application).schedule(CompactionRequest(EPOCH_MS + 4, None, LinkChoice.COPY))

    def judge(self, account: Account, end: End) -> None:
        """What the actors left keeps every promise, and can be brought to an end."""
        table = self.table
        table.bench.load(end.moment)
        table.account = account.copy()
        table.record_others(MEANWHILE, self.retained)
        table.inspect(whole=True)
        if table.account.plan is not None:
            table.execute()
            if table.account.plan is not None:
                table.roll_back_plan()
        assert table.account.plan is None, "the plan can neither be executed nor rolled back"
        left = [path for path in table.files if path.startswith(MARKERS_PREFIX)]
        assert not left, f"{left} are left"


def impatient(application: Application) -> CompactionScheduler:
    """Waits for a gap between writes for one look: each further one is an operation, and multiplies the orders."""
    scheduler = application.scheduler
    return replace(scheduler, settings=replace(scheduler.settings, wait_ms=5))


def scene(
    layout: Layout,
    *,
    has_plan: bool,
    is_executed: bool = False,
    is_cleaned: bool = False,
    link: LinkChoice = LinkChoice.COPY,
) -> Scene:
    """`is_executed`: the plan has been, already. `is_cleaned`: there is an older slice, too, which a clean takes away."""
    table = LivingTable(layout, link, "schedules")
    table.write((put("k0", 1, "base"), put("k1", 1, "base")))
    if is_cleaned:
        table.write((put("k1", 1, "old"),))
        table.schedule(2)
        table.execute()
    table.write((put("k0", 2, "before T"),))
    table.write((put("k1", 6, "after T"),))
    instant = None
    if has_plan:
        table.schedule(3)
        assert table.account.plan is not None
        instant = table.account.plan.instant
    if is_executed:
        table.execute()
    return Scene(table, instant, 1 if is_cleaned else None)


@dataclass(frozen=True, slots=True)
class Pair:
    """`is_long`: takes a minute where no order is left out. `refusals` are what one of the two may end in."""

    actors: Callable[[Scene], tuple[Protocol, Protocol]]
    has_plan: bool = True
    is_executed: bool = False
    is_cleaned: bool = False
    link: LinkChoice = LinkChoice.COPY
    is_long: bool = False
    refusals: tuple[type[EventideError], ...] = (BusyError,)

    def scene(self, layout: Layout) -> Scene:
        return scene(
            layout,
            has_plan=self.has_plan,
            is_executed=self.is_executed,
            is_cleaned=self.is_cleaned,
            link=self.link,
        )


PAIRS = {
    "compactor and writer": Pair(lambda s: (s.compactor, s.writer), is_long=True),
    "compactor and compactor": Pair(lambda s: (s.compactor, s.compactor), is_long=True),
    "compactor and cleaner": Pair(lambda s: (s.compactor, s.cleaner), is_cleaned=True, is_long=True),
    "compactor with links and cleaner": Pair(
        lambda s: (s.compactor, s.cleaner), is_cleaned=True, link=LinkChoice.SYMLINK, is_long=True
    ),
    # Who reads the table while what has completed is rolled back may find that files of it are gone.
    "compactor and rollback": Pair(
        lambda s: (s.compactor, s.undoer),
        refusals=(BusyError, InstantNotFoundError, PlanMismatchError, MissingFileError),
    ),
    "writer and rollback of a completed compaction": Pair(
        lambda s: (s.writer, s.undoer),
        is_executed=True,
        refusals=(BusyError, RefusedError, InstantNotFoundError, MissingFileError),
    ),
    "compactor and reader": Pair(lambda s: (s.compactor, s.reader)),
    "scheduler and scheduler": Pair(lambda s: (s.scheduler, s.other_scheduler), has_plan=False),
    "scheduler and writer": Pair(lambda s: (s.scheduler, s.writer), has_plan=False),
}


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: f"v{layout.version}")
@pytest.mark.parametrize("name", PAIRS)
def test_two_at_once_keep_every_promise_in_every_order(name: str, layout: Layout) -> None:
    pair = PAIRS[name]
    bound = FEW_SWITCHES if pair.is_long else None
    explored = go_through(pair.scene(layout), pair, bound)
    assert explored.interleavings > 1
    which = "all" if bound is None else f"at most {bound} switches"
    reached(f"schedules: {name}, v{layout.version}, {which}: situations", explored.situations)
    reached(f"schedules: {name}, v{layout.version}, {which}: interleavings", explored.interleavings)


def go_through(here: Scene, pair: Pair, most_switches: int | None) -> Explored:
    """Judges every end that the pair can come to, within so many switches."""
    start, account = here.table.bench.moment(), here.table.account
    explored = Explored()
    judged: set[object] = set()
    for end in Schedules(here.table.bench, start, pair.actors(here)).all(explored, most_switches):
        failures = [failure for failure in end.failures if failure is not None]
        assert len(failures) < 2, f"neither got anywhere: {failures}, {in_words(end.order)}"
        assert all(isinstance(failure, pair.refusals) for failure in failures), f"{failures}, {in_words(end.order)}"
        if end.moment.visible not in judged:
            judged.add(end.moment.visible)
            judged_in_order(here, account, end)
    return explored


def judged_in_order(here: Scene, account: Account, end: End) -> None:
    try:
        here.judge(account, end)
    except BaseException as failure:
        failure.add_note(in_words(end.order))
        raise


def test_an_order_in_which_a_plan_takes_the_log_of_a_pending_write_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutant 11, which shows in no order of one after the other."""
    pair = PAIRS["scheduler and writer"]
    with monkeypatch.context() as patch:
        (mutant,) = (mutant for mutant in MUTANTS if mutant.number == "11")
        mutant.is_wrong(patch)
        go_through(pair.scene(LAYOUTS[0]), pair, 0)
        with pytest.raises(AssertionError, match="I2, "):
            go_through(pair.scene(LAYOUTS[0]), pair, 1)


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: f"v{layout.version}")
@pytest.mark.parametrize("third", ["cleaner", "undoer", "compactor"])
def test_three_at_once_keep_every_promise(third: str, layout: Layout) -> None:
    here = scene(layout, has_plan=True, is_cleaned=third == "cleaner")
    start, account = here.table.bench.moment(), here.table.account
    schedules = Schedules(here.table.bench, start, (here.compactor, here.writer, getattr(here, third)))
    judged: set[object] = set()
    for number in range(OF_THREE):
        chance = random.Random(number)
        end = schedules.drawn(chance, chance.randint(0, SWITCHES_OF_THREE))
        if end.moment.visible not in judged:
            judged.add(end.moment.visible)
            judged_in_order(here, account, end)
        reached(f"schedules: random orders of compactor, writer and {third}, v{layout.version}")
