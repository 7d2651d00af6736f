"""A runner of windows that stands still before any of its writes takes no window from another one, and skips none.

While it sleeps, others write, compact, clean and archive; or another runner of the consumer takes its window over, and goes
on with it to the last one.
"""

from collections import Counter
from dataclasses import dataclass, field
from functools import cache, partial

import pytest

from eventide.bootstrap import Application
from eventide.testing.crash_enumeration import Bench, Moment
from eventide.testing.histories import EPOCH_MS, Layout, Story, put
from eventide_core.action.compaction.request import CompactionRequest
from eventide_core.config import LinkChoice
from eventide_core.errors import BusyError
from eventide_core.ports import NoProgress
from eventide_core.table.timeline.contents.plans import CutMode
from support.pasts.served import EARLY, LAYOUTS
from support.pauses.scenes import in_words, named, table_of
from support.pauses.standstill import Kind, Others, Woken, wakings
from support.run.reach import reached

pytestmark = pytest.mark.slow

LATER_MS = 6_000
"""Others write later than any window that is closed when the consumer falls asleep."""
Window = tuple[int, frozenset[tuple[object, ...]]]


@dataclass(slots=True)
class Taken:
    """The windows that runners of one consumer were given, and the ones that were confirmed to them as done.

    Corrections are left out: they come whenever a key of a done window moves on.
    """

    delivered: list[Window] = field(default_factory=list[Window])
    done: list[Window] = field(default_factory=list[Window])

    def take(self, application: Application) -> None:
        """All windows that are due, as a runner does that knows the others dead."""
        for window in table_of(application).windows("1s", "billing", take_over=True):
            rows = window.rows().to_arrow().to_pylist()
            given = (window.begin_ms, frozenset((row["key"], row["ms"], row["word"]) for row in rows))
            if not window.is_correction:
                self.delivered.append(given)
            window.done()
            if not window.is_correction:
                self.done.append(given)


@cache
def _begun(layout: Layout) -> tuple[Bench, Moment]:
    """Three windows of a second are closed, and hold a row each."""
    bench = Bench("windows", EARLY)
    story = Story.begin(layout, bench.storage, bench.clock)
    for second in range(5):
        story.commit(
            (put("moves", 1000 * second + 1, f"in {second}"), put(f"stays {second}", 1000 * second + 500, "own"))
        )
    application = bench.process()
    request = CompactionRequest(EPOCH_MS + 4_000, None, LinkChoice.COPY, cut=CutMode.EXACT)
    draft = application.scheduler.schedule(request)
    application.runner.execute(draft.plan.instant, NoProgress())
    return bench, bench.moment()


@pytest.mark.parametrize(
    ("layout", "kind"),
    [
        pytest.param(layout, kind, id=f"{layout.version}-{kind}", marks=marks)
        for layout in LAYOUTS
        for kind in (Kind.UNDO, Kind.FINISH)
        for rarely in (pytest.mark.broad if layout.version == 9 else pytest.mark.proof,)
        for marks in (() if (layout.version, kind) == (9, Kind.FINISH) else rarely,)
    ],
)
def test_every_window_is_done_once_whichever_runner_sleeps(layout: Layout, kind: Kind) -> None:
    bench, start = _begun(layout)
    sleeper, others = Taken(), Taken()

    def sleep(application: Application) -> None:
        sleeper.delivered, sleeper.done, others.delivered, others.done = [], [], [], []
        sleeper.take(application)

    problems, places = list[str](), 0
    acting = partial(Others, next_ms=LATER_MS, kind=kind, again=others.take)
    for woken in wakings(bench, start, sleep, others=acting):
        places += 1
        bench.load(woken.moment)
        problem = _problem(bench, woken, sleeper, others)
        if problem is not None:
            problems.append(in_words(woken, problem))
    reached(f"paused, others {kind}: windows", places)
    assert places > 5
    assert not problems, f"{len(problems)} of {places} places:\n" + "\n".join(problems)


def _problem(bench: Bench, woken: Woken, sleeper: Taken, others: Taken) -> str | None:
    if woken.blocked is not None:
        return f"others were stopped: {named(woken.blocked)}"
    if not isinstance(woken.failure, BusyError | None):
        return "it does not say that its window was taken"
    others.take(bench.process())
    done = Counter(begin for begin, _ in (*sleeper.done, *others.done))
    if set(done.values()) != {1}:
        return f"windows were done more than once: {dict(done)}"
    begun = sorted(done)
    if begun != list(range(begun[0], begun[-1] + 1000, 1000)):
        return f"windows are missing: {begun}"
    states = Counter(begin for begin, _ in {*sleeper.delivered, *others.delivered})
    return None if set(states.values()) == {1} else f"a window came in two states: {dict(states)}"
