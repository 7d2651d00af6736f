"""Two processes stand still at once: one begins to end what the other left, and sleeps as well; then both wake up.

The first one wakes up while the second one stands before any of its writes. Either what the first one did is there, and it
said so, or nothing of it is, and it said that.
"""

from dataclasses import dataclass, replace

import pytest

from eventide.bootstrap import Application
from eventide.testing.crash_enumeration import Protocol
from eventide.testing.histories import Commit, Layout
from eventide_adapters.storage.faulty import Operation
from eventide_core.errors import BusyError, RefusedError
from support.pasts.served import LAYOUTS
from support.pauses.scenes import Scene, in_words, named, scene
from support.pauses.standstill import ASLEEP_MS, OWN, Kind, Pair, Woken, ingest, pairs
from support.run.reach import reached

pytestmark = pytest.mark.slow

SLEEPS = {"at once": 0, "when its lock has expired": ASLEEP_MS}
TABLES = {
    f"{layout.version}{' with a metadata table' if layout.has_metadata_table else ''}": layout
    for layout in (*LAYOUTS, *(replace(layout, has_metadata_table=True) for layout in LAYOUTS))
}
CASES = [
    pytest.param(layout, slept_ms, id=f"{name}-{when}", marks=marks)
    for name, layout in TABLES.items()
    for when, slept_ms in SLEEPS.items()
    for rarely in (pytest.mark.proof if layout.has_metadata_table else pytest.mark.broad,)
    for marks in (() if name == "9" and slept_ms == ASLEEP_MS else rarely,)
]


def undo_what_failed(application: Application) -> None:
    application.rollback.undo_failed_writes()


def _is_completed_file(_: int, operation: Operation) -> bool:
    return operation.kind == "put_if_absent" and operation.path.endswith(".deltacommit")


@pytest.mark.parametrize(("layout", "slept_ms"), CASES)
@pytest.mark.parametrize(
    "second", [undo_what_failed, pytest.param(ingest((OWN[0],)), id="ingest", marks=pytest.mark.proof)]
)
def test_a_write_and_its_rollback_that_both_sleep_agree_on_what_is_there(
    second: Protocol, layout: Layout, slept_ms: int
) -> None:
    wrote = scene("ingest", layout)
    problems, places = list[str](), 0
    for pair in pairs(wrote.bench, wrote.start, wrote.run, _is_completed_file, second, slept_ms):
        places += 1
        written = ((OWN[0],),) if second is not undo_what_failed and pair.second is None else ()
        problems += _problem(wrote, pair, written)
    reached("a write and its rollback paused at once", places)
    assert places > 5
    assert not problems, f"{len(problems)} of {places} places:\n" + "\n".join(problems)


def _is_base_file(_: int, operation: Operation) -> bool:
    return operation.kind == "open_output" and operation.path.endswith(".parquet")


@pytest.mark.parametrize(("layout", "slept_ms"), CASES)
def test_two_processes_that_sleep_over_a_plan_of_hudi_complete_it_once(layout: Layout, slept_ms: int) -> None:
    plan = scene("run a plan of Hudi", layout)
    problems, places = list[str](), 0
    for pair in pairs(plan.bench, plan.start, plan.run, _is_base_file, plan.run, slept_ms):
        places += 1
        problems += _problem(plan, pair)
    reached("two runs of a plan of Hudi paused at once", places)
    assert places > 10
    assert not problems, f"{len(problems)} of {places} places:\n" + "\n".join(problems)


TWICE = ("compact", "save", "restore", "roll back a completed write", "clean", "archive", "update", "repair an orphan")


@pytest.mark.proof
@pytest.mark.parametrize(
    ("layout", "verb"),
    [pytest.param(layout, verb, id=f"{layout.version}-{verb}") for verb in TWICE for layout in LAYOUTS],
)
def test_two_processes_that_sleep_over_the_same_verb_harm_nobody(layout: Layout, verb: str) -> None:
    """The first one before each of its writes, and so the second one."""
    twice = scene(verb, layout)
    problems, places = list[str](), 0
    for woken in twice.wakings(Kind.FINISH):
        for pair in pairs(twice.bench, twice.start, twice.run, _Numbered(woken.number), twice.again, ASLEEP_MS):
            places += 1
            found = _problem(twice, pair, are_alike=True)
            problems += [f"{woken.number} {woken.operation.path}, then {said}" for said in found]
    reached("two of the same verb paused at once", places)
    assert places > 10
    assert not problems, f"{len(problems)} of {places} places:\n" + "\n".join(problems)


@dataclass(frozen=True, slots=True)
class _Numbered:
    number: int

    def __call__(self, number: int, _: Operation) -> bool:
        return number == self.number


def _problem(of: Scene, pair: Pair, written: tuple[Commit, ...] = (), *, are_alike: bool = False) -> list[str]:
    """What is wrong after both ended, in words; nothing if nothing is. `are_alike`: both do the same."""
    is_unfinished = pair.second is not None
    woken = Woken(
        pair.number, pair.operation, pair.moment, pair.first, written, has_begun=False, leaves_restores=is_unfinished
    )
    if pair.second is None and (are_alike or of.own == ()):
        woken = replace(woken, failure=None)  # one of the two has done it
    problem = of.wrong(woken)
    if problem is None:
        lost = [error for error in (pair.first, pair.second) if not isinstance(error, BusyError | RefusedError | None)]
        problem = f"failed: {named(lost[0])}" if lost else None
    ended = f"the second one {'said done' if pair.second is None else named(pair.second)}"
    return [] if problem is None else [f"{in_words(replace(woken, failure=pair.first), problem)}; {ended}"]
