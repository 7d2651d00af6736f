"""What the exploration of pauses goes through: tables, the processes that fall asleep, the others, and the judge."""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final
from unittest.mock import patch

from eventide.bootstrap import Application
from eventide.testing.crash_enumeration import Bench, Moment, Protocol
from eventide.testing.histories import EPOCH_MS, Commit, Layout, Story, put
from eventide.testing.inspection.decode_cache import Decoded
from eventide.testing.inspection.observation import Files
from eventide.testing.living_table.stock_engine import schedule_as_stock
from eventide.testing.schedules.pauses import (
    ASLEEP_MS,
    At,
    Counted,
    Dying,
    Found,
    Other,
    Pauses,
    acted,
    anywhere,
    attempted,
    in_words,
)
from eventide.testing.schedules.replay import replay
from eventide.testing.schedules.world import World
from eventide_core.action.compaction.request import CompactionRequest
from eventide_core.config import LinkChoice
from eventide_core.errors import BusyError, EventideError, PlanMismatchError
from eventide_core.ports import NoProgress
from eventide_core.service.common.facts.needed_files import savepoints_of
from eventide_core.service.common.state.table import TableState
from eventide_core.table.timeline.contents.plans import CutMode
from eventide_core.table.timeline.instant import Action, Instant
from eventide_core.table.timeline.timeline import Timeline
from support.pasts.served import EARLY, begin_and_die
from support.pauses.services import shown
from support.pauses.standstill import OWN, Rows, archive, by_key, clean, compact, difference, ingest, merged, verified

_READS_TIMELINE: Final = "eventide_core.access.active_timeline.timeline_of"
_FIRST_MS = 200
_STEP_MS = 10


@dataclass(frozen=True, slots=True)
class Known:
    """What others have written that counts, by number, and the number of their next write.

    `saved` and `asked` are what counted when the first savepoint was begun, of the latest write then, and when a restore was
    requested. `is_restored`: a restore has completed.
    """

    written: tuple[int, ...] = ()
    following: int = 0
    saved: tuple[int, ...] | None = None
    asked: tuple[int, ...] = ()
    is_restored: bool = False


def noted(notes: Hashable, before: Files, after: Files) -> Hashable:
    """A restore undoes what counted when it was requested, but for what the savepoint keeps."""
    assert isinstance(notes, Known)
    kinds = {path.partition(".hoodie/")[2].partition(".")[2] for path in after.keys() - before.keys()}
    if "savepoint.inflight" in kinds and notes.saved is None:
        notes = replace(notes, saved=notes.written)
    if "restore.requested" in kinds:
        notes = replace(notes, asked=notes.written)
    if "restore" in kinds:
        kept = tuple(n for n in notes.written if n not in notes.asked or n in (notes.saved or ()))
        notes = replace(notes, written=kept, is_restored=True)
    return notes


def _as_it_is(files: Iterable[Instant], _evidence: object) -> Timeline:
    return Timeline.of(files)


def commit_of(number: int) -> Commit:
    """A write of others. The number orders their event times."""
    ms = _FIRST_MS + _STEP_MS * number
    word = f"others {number}"
    return put("k0", ms, word), put("k1", ms + 1, word), put(f"n{number}", ms + 2, word)


def write(application: Application, notes: Hashable) -> Hashable:
    assert isinstance(notes, Known)
    ingest(commit_of(notes.following))(application)
    return replace(notes, written=(*notes.written, notes.following), following=notes.following + 1)


def try_to_write(application: Application, notes: Hashable) -> Hashable:
    """Writes, unless something is in the way."""
    assert isinstance(notes, Known)
    try:
        return write(application, notes)
    except EventideError:
        return replace(notes, following=notes.following + 1)


def execute(application: Application) -> None:
    """Runs the pending plan."""
    (pending,) = application.state().timeline.pending_plans or (None,)
    if pending is not None:
        application.runner.execute(pending.requested_time, NoProgress())


def undo(application: Application) -> None:
    """Undoes what is pending and of the dead."""
    application.rollback.undo_failed_writes()
    for pending in application.state().timeline.pending_plans:
        application.rollback.undo(pending.requested_time)


def end(application: Application) -> None:
    """Ends what is pending, as each round of the table service does."""
    application.pending.end(NoProgress())


def restore(application: Application) -> None:
    """To the first savepoint, or ends the restore that is pending."""
    for saved in sorted(savepoints_of(application.files, _state_beside_a_restore(application)))[:1]:
        application.restorer.restore(saved)


def _state_beside_a_restore(application: Application) -> TableState:
    """One that is pending may have deleted the files of what a process committed that woke."""
    return TableState.load(application.files, requires_files=False)


def save(application: Application) -> None:
    application.savepoints.save(application.state().timeline.writes[-1].requested_time)


def save_first(application: Application) -> None:
    """Keeps the oldest slices that there are."""
    application.savepoints.save(application.state().timeline.writes[0].requested_time)


def compact_all(application: Application) -> None:
    compact(_FIRST_MS + 1_000, CutMode.FILE)(application)


_GO_ON = (try_to_write, *map(attempted, (compact_all, clean, archive)))
OTHERS: Mapping[str, Sequence[Other]] = {
    "write": (try_to_write,),
    "go on": _GO_ON,
    "compact": (attempted(compact_all),),
    "save first": (attempted(save_first),),
    **{action.__name__: (attempted(action),) for action in (execute, end, undo, clean, archive, save, restore)},
}
"""What others do: `go on` stands for a write, a compaction, a clean and an archival, one after the other."""


def _heal(application: Application, notes: Hashable) -> Hashable:
    """The first thing that others do when everybody else is dead: end what is pending, one way or the other."""
    for pending in _state_beside_a_restore(application).timeline.pending:
        if pending.action is Action.RESTORE:
            restore(application)
    application.rollback.undo_failed_writes()
    for pending in application.state().timeline.pending_plans:
        try:
            application.runner.execute(pending.requested_time, NoProgress())
        except PlanMismatchError:
            application.rollback.undo(pending.requested_time)
        except BusyError:  # a late plan on version 6, which this has rolled back beside a later one
            if pending in application.state().timeline.pending_plans:
                raise
    return notes


def _all_go_on(application: Application, notes: Hashable) -> Hashable:
    """Unlike the others of a search, they have to succeed."""
    for action in (compact_all, clean, archive):
        action(application)
    return notes


@dataclass(frozen=True, slots=True)
class Sleeper:
    """A process that falls asleep, and what it promises if it ends without an error.

    `own` is what it writes; `keeps`: there is a savepoint then.
    """

    run: Protocol
    own: Commit = ()
    keeps: bool = False


@dataclass(frozen=True, slots=True)
class Scene:
    """A table at a moment, its rows, and the processes that fall asleep.

    `is_saved`: there is a savepoint, of a moment when the rows were `restored`.
    """

    bench: Bench
    start: Moment
    rows: Rows
    sleepers: tuple[Sleeper, ...]
    restored: Rows
    is_saved: bool
    decoded: Decoded = field(default_factory=Decoded)

    @property
    def known(self) -> Known:
        return Known(saved=() if self.is_saved else None)

    def pauses(self, others: Sequence[str]) -> Pauses:
        chosen = {name: OTHERS[name] for name in others}
        actors = [sleeper.run for sleeper in self.sleepers]
        return Pauses(self.bench, self.start, actors, chosen, notes=noted, first=self.known)

    def wrong(self, found: Found, *, is_for_stock: bool = False) -> str | None:
        """What is wrong with the table, now and after others went on; None if nothing is.

        `is_for_stock`: also what a reader sees that takes the files of the timeline as they are. Who has ended has left none
        that came too late.
        """
        notes = found.world.notes
        assert isinstance(notes, Known)
        bench = self.bench
        with self.decoded.used():
            step = "for stock"
            try:
                bench.load(Moment(found.world.files, found.world.time_ms))
                problem = self._wrong_for_stock(found, notes) if is_for_stock else None
                if problem is not None:
                    return f"{step}: {problem}"
            except EventideError as error:
                return f"{step}: {type(error).__name__}: {error}"
            step = "now"
            try:
                problem = self._wrong_rows(found, notes)
                if problem is None:
                    step = "when others went on"
                    bench.clock.sleep(ASLEEP_MS)
                    after = acted(bench, (_heal, write, _all_go_on), notes, noted)
                    assert isinstance(after, Known)
                    problem = self._wrong_rows(found, after) or verified(bench.process())
                return f"{step}: {problem}" if problem else None
            except EventideError as error:
                return f"{step}: {type(error).__name__}: {error}"

    def _wrong_for_stock(self, found: Found, notes: Known) -> str | None:
        with patch(_READS_TIMELINE, _as_it_is):
            problem = self._wrong_rows(found, notes)
        if problem is not None or any(point.step is not None for point in found.points):
            return problem
        process = self.bench.process()
        timeline = process.state().timeline
        if any(pending.action in (Action.ROLLBACK, Action.RESTORE) for pending in timeline.pending):
            return None  # whoever continues it removes the rest
        if timeline.strays:
            return f"left behind: {', '.join(stray.file_name for stray in timeline.strays)}"
        return verified(process) or None

    def _wrong_rows(self, found: Found, notes: Known) -> str | None:
        process = self.bench.process()
        if any(pending.action is Action.RESTORE for pending in process.files.timeline(process.files.config()).pending):
            return None  # it undoes one write after the other
        rows = by_key(shown(process))
        expected = self._expected(found, notes)
        return None if rows in expected else f"rows: {difference(rows, expected[0])}"

    def _expected(self, found: Found, notes: Known) -> list[Rows]:
        """The rows that there may be: what a process writes that has not ended is there or not."""
        commits: list[list[Commit]] = [[commit_of(number) for number in notes.written]]
        for sleeper, point in zip(self.sleepers, found.points, strict=True):
            if sleeper.own:
                is_done = point.step is None and point.failure is None
                with_own = [[*those, sleeper.own] for those in commits]
                commits = with_own if is_done and not notes.is_restored else [*with_own, *commits]
        base = frozenset((self.restored if notes.is_restored and self.is_saved else self.rows).values())
        return [merged(base, those) for those in commits]


@dataclass(frozen=True, slots=True)
class Search:
    """How far a search goes: see `Pauses.all`. `others` are names of OTHERS. `is_for_stock`: see `Scene.wrong`."""

    others: tuple[str, ...] = ()
    most_others: int = 3
    naps: int = 1
    dying: Dying = Dying.ASLEEP
    at: At = anywhere
    is_for_stock: bool = False


@dataclass(frozen=True, slots=True)
class Wrong:
    """What is wrong after a schedule. Printed, it has both."""

    problem: str
    found: Found

    def __str__(self) -> str:
        failures = [f"{n}: ends in {point.failure!r}" for n, point in enumerate(self.found.points) if point.failure]
        return "\n".join((self.problem, in_words(self.found.schedule), *failures))


def explore(scene: Scene, search: Search, counted: Counted) -> Wrong | None:
    """The first thing that is found wrong, with the schedule that leads there; None if nothing is."""
    judged: set[object] = set()
    ends = scene.pauses(search.others).all(
        counted, naps=search.naps, most_others=search.most_others, dying=search.dying, at=search.at
    )
    for found in ends:
        ended = tuple(point.step is None and point.failure is None for point in found.points)
        key = Moment(found.world.files, 0).visible, found.world.notes, ended
        if key in judged:
            continue
        judged.add(key)
        counted.judged += 1
        problem = scene.wrong(found, is_for_stock=search.is_for_stock)
        if problem is not None:
            return Wrong(problem, found)
    return None


def replayed(scene: Scene, search: Search, found: Found) -> str | None:
    """What is wrong after the schedule if it is done for real; None if nothing is."""
    pauses = scene.pauses(search.others)
    others = {name: OTHERS[name] for name in search.others}
    moment, notes, failures = replay(pauses.actors, scene.start, found.schedule, others, noted, scene.known)
    points = tuple(replace(point, failure=failure) for point, failure in zip(found.points, failures, strict=True))
    replayed_end = replace(found, world=World(moment.files, None, moment.time_ms, notes), points=points)
    return scene.wrong(replayed_end, is_for_stock=search.is_for_stock)


def scene(name: str, layout: Layout) -> Scene:
    """A table with a base file, an older slice, logs, and what the sleepers of that name need: two, if joined by a plus."""
    bench = Bench("explored", EARLY)
    story = Story.begin(layout, bench.storage, bench.clock)
    story.commit((put("k0", 1, "base"), put("k1", 2, "base"), put("k3", 3, "base")))
    story.commit((put("k0", 5, "early"),))
    bench.clock.sleep(10)
    compact(10, CutMode.FILE)(bench.process())
    bench.clock.sleep(10)
    story.commit((put("k1", 20, "later"),))
    restored, sleepers = by_key(shown(bench.process())), list[Sleeper]()
    for one in name.split("+"):
        if _PREPARED[one] is _restorer and not savepoints_of(bench.process().files, bench.process().state()):
            restored = by_key(shown(bench.process()))  # the sleeper before it may have written
        sleepers.append(_PREPARED[one](story, bench))
    bench.clock.sleep(10)
    rows = by_key(shown(bench.process()))
    is_saved = bool(savepoints_of(bench.process().files, bench.process().state()))
    return Scene(bench, bench.moment(), rows, tuple(sleepers), restored, is_saved)


def _writer(_story: Story, _bench: Bench) -> Sleeper:
    return Sleeper(ingest(OWN), OWN)


def _executor(_story: Story, bench: Bench) -> Sleeper:
    """Two of them run the same plan."""
    if not bench.process().state().timeline.pending_plans:
        _plan(bench.process())
    (plan,) = bench.process().state().timeline.pending_plans
    return Sleeper(partial(_execute, plan.requested_time))


def _execute(instant: str, application: Application) -> None:
    application.runner.execute(instant, NoProgress())


def _compactor(_story: Story, _bench: Bench) -> Sleeper:
    return Sleeper(compact_all)


def _planner(_story: Story, _bench: Bench) -> Sleeper:
    return Sleeper(_plan)


def _plan(application: Application) -> None:
    application.scheduler.schedule(CompactionRequest(EPOCH_MS + 50, None, LinkChoice.COPY))


def _foreign(story: Story, bench: Bench) -> Sleeper:
    """A file group of the plan, the one in partition b, gets no later writes."""
    for ms in (4, 7):
        story.commit((put("k2", ms, "in b", partition="b"),))
    instant = schedule_as_stock(bench.process())
    return Sleeper(partial(_execute, instant))


def _cleaner(_story: Story, _bench: Bench) -> Sleeper:
    return Sleeper(clean)


def _undoer(story: Story, _bench: Bench) -> Sleeper:
    begin_and_die(story, (put("k0", 50, "never"), put("k7", 51, "never")))
    return Sleeper(_undo_failed)


def _undo_failed(application: Application) -> None:
    application.rollback.undo_failed_writes()


def _saver(_story: Story, _bench: Bench) -> Sleeper:
    return Sleeper(save, keeps=True)


def _restorer(story: Story, bench: Bench) -> Sleeper:
    save(bench.process())
    story.commit((put("k0", 60, "after the savepoint"), put("k9", 61, "after the savepoint")))
    return Sleeper(restore)


def _archiver(story: Story, _bench: Bench) -> Sleeper:
    for ms in (30, 40, 50):
        story.commit((put("k0", ms, "to archive"),))
    return Sleeper(archive)


_PREPARED: Mapping[str, Callable[[Story, Bench], Sleeper]] = {
    "write": _writer,
    "plan": _planner,
    "execute": _executor,
    "compact": _compactor,
    "foreign": _foreign,
    "clean": _cleaner,
    "undo": _undoer,
    "save": _saver,
    "restore": _restorer,
    "archive": _archiver,
}
KINDS = tuple(_PREPARED)
