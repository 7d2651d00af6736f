"""What each actor does, again and again, until its process dies or the storm is over."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

from eventide.bootstrap import Application
from eventide.rows.reader import Rows as RowReader
from eventide.rows.writer import arrow_records
from eventide.table.table_service import Round, TableService
from eventide.testing.histories import records
from eventide.testing.living_table.stock_engine import schedule_as_stock
from eventide.testing.simulation.ledger import TICK_MS, BrokenPromiseError, Fate, Saved
from eventide.testing.simulation.process import Process
from eventide.testing.simulation.scene import Scene
from eventide_adapters.storage.faulty import SimulatedCrash
from eventide_core.action.compaction.request import CompactionRequest
from eventide_core.config import LinkChoice
from eventide_core.errors import (
    BusyError,
    CleanedHistoryError,
    CleanedWhileReadingError,
    EventideError,
    InstantNotFoundError,
    LockError,
    NothingToDoError,
    PlanMismatchError,
    RefusedError,
    StorageError,
    TagNotFoundError,
    WriteConflictError,
)
from eventide_core.ports import NoProgress
from eventide_core.table.settings.write_shape import WriteOperation
from eventide_core.table.timeline.contents.plans import CutMode

EXPECTED: Final = (
    BusyError,
    CleanedHistoryError,
    CleanedWhileReadingError,
    InstantNotFoundError,
    NothingToDoError,
    PlanMismatchError,
    RefusedError,
    StorageError,
    TagNotFoundError,
)
"""What a user sees where several processes work on a table. Anything else is a fault of eventide's."""
_BEHIND_TICKS: Final = (0, 1, 3, 8, 15)
_LIVES: Final = 4  # verbs that a process does on average


@dataclass(frozen=True, slots=True)
class Turn:
    """One verb of a process."""

    scene: Scene
    process: Process
    application: Application

    @property
    def name(self) -> str:
        return self.process.actor.name

    def request(self, cut: CutMode) -> CompactionRequest:
        behind_ms = TICK_MS * self.process.actor.dice.choice(_BEHIND_TICKS)
        return CompactionRequest(self.scene.ledger.latest_ms - behind_ms, None, LinkChoice.AUTO, cut=cut)


def live(scene: Scene, process: Process) -> None:
    """The life of a process: verbs, and pauses between them."""
    dice = process.actor.dice
    application, has_done = process.application(), True
    while scene.is_storm:
        process.sleep(dice.randint(0, scene.lot.rest_ms) if has_done else dice.randint(2_000, 20_000))
        has_done = attempt(Turn(scene, process, application), VERBS[process.actor.name])
        scene.count_turn(has_done=has_done)
        if dice.randrange(_LIVES) == 0:
            application = process.application()


def attempt(turn: Turn, verb: "Verb") -> bool:
    """Runs a verb. Returns whether it has succeeded."""
    scene, name = turn.scene, turn.name
    try:
        scene.store.say(name, f"begins {_name(verb)}")
        turn.process.begin_verb()
        verb(turn)
        scene.store.say(name, "done")
        return True
    except EventideError as error:
        scene.store.say(name, type(error).__name__)
        if isinstance(error, LockError):
            scene.check_withdrawn(turn.process)
        if not isinstance(error, EXPECTED) and not scene.store.is_disturbed:
            raise BrokenPromiseError(f"error {type(error).__name__}", f"{name}, {_name(verb)}: {error}") from error
        return False
    except (SimulatedCrash, BrokenPromiseError):
        raise
    except Exception as error:
        raise BrokenPromiseError(f"raw {type(error).__name__}", f"{name}, {_name(verb)}: {error}") from error


def _write(turn: Turn) -> None:
    scene, application = turn.scene, turn.application
    write = scene.ledger.begin(turn.name, turn.process.actor.dice)
    incoming = arrow_records(application, *records(write.changes))
    try:
        application.append.write(WriteOperation.UPSERT, incoming, NoProgress())
    except WriteConflictError:
        write.fate = Fate.GONE
        raise
    except RefusedError as refused:
        if not scene.store.is_disturbed and not write.meets_a_restore and "rolled back while it ran" in str(refused):
            raise BrokenPromiseError("undone alive", str(refused)) from refused
        raise
    scene.ledger.succeeded(turn.name, write)
    if not scene.store.is_disturbed:
        scene.look(scene.ledger.now())


def _plan_as_stock(turn: Turn) -> None:
    """Not beside a restore: Hudi's documentation asks people to stop its writers for one."""
    application = turn.application
    with application.runner.lock.acquire():
        timeline = application.state().timeline
        is_undoing = any(instant.is_undoing for instant in timeline.pending)
        if not is_undoing and not timeline.pending_writes and not timeline.pending_plans:
            schedule_as_stock(application)


def _compact(cut: CutMode, turn: Turn) -> None:
    _require(TableService(turn.application, turn.request(cut)).compact(NoProgress()))


def _serve(turn: Turn) -> None:
    _require(TableService(turn.application, turn.request(CutMode.FILE)).round(NoProgress()))


def _require(done: Round) -> None:
    for trouble in done.troubles:
        if not isinstance(trouble.error, EXPECTED):
            raise trouble.error
    if done.troubles:
        raise done.troubles[0].error


def _clean(turn: Turn) -> None:
    turn.application.cleaner.clean(turn.process.actor.dice.randint(1, 3))


def _archive(turn: Turn) -> None:
    turn.application.archiver.archive()


def _undo(turn: Turn) -> None:
    """Rolls back what the dead left, and one pending plan."""
    turn.application.rollback.undo_failed_writes()
    for plan in turn.application.state().timeline.pending_plans[:1]:
        turn.application.rollback.undo(plan.requested_time)


def _save_or_restore(turn: Turn) -> None:
    scene, savepoints = turn.scene, turn.application.savepoints
    if scene.restoring is not None:
        return restore(turn, scene.restoring)
    if scene.saved and turn.process.actor.dice.random() < 0.4:
        return restore(turn, scene.saved[max(scene.saved)])
    if scene.saved and turn.process.actor.dice.random() < 0.5:
        instant = min(scene.saved)
        scene.unpin(instant)
        return savepoints.delete(instant)
    began = scene.ledger.now()
    instant = turn.application.state().timeline.writes[-1].requested_time
    savepoints.save(instant)
    scene.saved.setdefault(instant, Saved(instant, began, scene.ledger.now()))
    return None


def restore(turn: Turn, saved: Saved) -> None:
    """Until it has succeeded or was refused, nobody knows whether it has happened."""
    scene = turn.scene
    began, scene.restoring = scene.ledger.now(), saved
    scene.ledger.restored(saved, None)
    scene.forget_after(saved)
    try:
        turn.application.restorer.restore(saved.instant)
    except (RefusedError, InstantNotFoundError):
        scene.restoring = None
        raise
    scene.ledger.restored(saved, began)
    scene.restoring = None


def _tag(turn: Turn) -> None:
    scene, savepoints, dice = turn.scene, turn.application.savepoints, turn.process.actor.dice
    if scene.tags and dice.random() < 0.4:
        name = dice.choice(sorted(scene.tags))
        scene.unpin(scene.tags[name])
        savepoints.delete_tag(name)
        return
    name = f"t{scene.ledger.now()}"
    scene.tags[name] = savepoints.save_tag(name, instant=None, threshold_ms=None, comments="").instant


def _consume(turn: Turn) -> None:
    scene = turn.scene
    sink = scene.sink
    while sink.take(scene.table(turn.application), turn.name, scene.store):
        pass


def _rebuild(turn: Turn) -> None:
    turn.application.metadata_rebuilder.rebuild()


def _read(turn: Turn) -> None:
    """A query whose requests lie between the requests of others."""
    scene, application = turn.scene, turn.application
    since = scene.ledger.now()
    plan = application.queries.snapshot()
    reader = RowReader(plan, application.reader, application.engine, application.queries.snapshot)
    names = ("_hoodie_partition_path", "key", "ms", "word", "_hoodie_commit_time")
    rows = [
        row
        for batch in reader.to_batches(columns=names)
        for row in zip(*(batch.column(name).to_pylist() for name in names), strict=True)
    ]
    if len({row[:2] for row in rows}) != len(rows):
        raise BrokenPromiseError("rows", f"a key is there twice: {sorted(rows)}")
    if not scene.store.is_disturbed and "restorer" not in scene.lot.actors:
        scene.ledger.check(frozenset(rows), since)


def _name(verb: "Verb") -> str:
    function = verb.func if isinstance(verb, partial) else verb
    return str(getattr(function, "__name__", verb)).strip("_")


Verb = Callable[[Turn], None]
VERBS: Final[Mapping[str, Verb]] = {
    "writer-1": _write,
    "writer-2": _write,
    "stock-writer": _write,
    "stock-planner": _plan_as_stock,
    "compactor": partial(_compact, CutMode.FILE),
    "exact-compactor": partial(_compact, CutMode.EXACT),
    "service": _serve,
    "cleaner": _clean,
    "archiver": _archive,
    "undoer": _undo,
    "restorer": _save_or_restore,
    "tagger": _tag,
    "consumer-1": _consume,
    "consumer-2": _consume,
    "rebuilder": _rebuild,
    "reader": _read,
}
