"""A world: a table and its actors, in storms and at rest.

1. A storm: all actors work, and things happen to their requests, until so many requests were sent.
2. The actors end what they do. Nothing happens anymore, but late writes arrive.
3. The locks and heartbeats of the dead expire. A person completes an interrupted restore, the table service runs a round,
   and a person rolls back the writes that it leaves (`rollback --force`), and completes a plan whose rollback was
   interrupted and that writers follow (`compact --execute --force`), as the documentation says.
4. The world is at rest: all checks.
"""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from eventide.table.table_service import TableService
from eventide.testing.histories import ManualClock, Story
from eventide.testing.simulation.actors import Turn, live, restore
from eventide.testing.simulation.ledger import BrokenPromiseError, without_instants
from eventide.testing.simulation.lot import Lot, Mishap, luck_of
from eventide.testing.simulation.process import RESTARTS_MS, Actor, Process, Store, simulated
from eventide.testing.simulation.scene import Scene
from eventide.testing.simulation.scheduler import Scheduler
from eventide_adapters.storage.faulty import SimulatedCrash
from eventide_adapters.storage.memory import MemoryStorage
from eventide_core.action.compaction.request import CompactionRequest
from eventide_core.config import (
    CONCURRENCY_MODE,
    EVENT_TIME_FIELD,
    HEARTBEAT_INTERVAL_MS,
    LOCK_EXPIRE_MINUTES,
    LOCK_PROVIDER,
    LOCK_RENEWAL_SECONDS,
    LOCK_VALIDITY_SECONDS,
    LOCK_WAIT_MS,
    PENDING_WRITE_WAIT_MS,
    LinkChoice,
)
from eventide_core.errors import EventideError
from eventide_core.ports import NoProgress
from eventide_core.table.timeline.contents.plans import CutMode

_REST_MS = 4_000_000  # past the hour for which a pending service without a heartbeat may be alive
_ROUNDS = 3
_SKEW_MS = 100  # each from the right time: half of what writers may differ


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a world ended. `failure` is None if every promise was kept."""

    lot: Lot
    failure: BrokenPromiseError | None
    trace: tuple[str, ...]
    mishaps: tuple[Mishap, ...]
    requests: int
    writes: int


def run_world(lot: Lot) -> Outcome:
    scene = _begin(lot)
    failure: BrokenPromiseError | None = None
    with simulated(scene.store):
        try:
            _live(scene)
        except BrokenPromiseError as broken:
            failure = broken
    store = scene.store
    return Outcome(lot, failure, tuple(store.trace), tuple(store.mishaps), store.requests, len(scene.ledger.writes))


def _begin(lot: Lot) -> Scene:
    clock = ManualClock()
    scheduler = Scheduler(clock.time_ms)
    storage = MemoryStorage.from_dump("simulation", {}, now_ms=lambda: scheduler.now_ms)
    scene = Scene(lot, Store(scheduler, storage, options_of(lot)))
    Story.begin(lot.layout, storage, clock).commit(scene.ledger.base)
    scheduler.now_ms = clock.time_ms + 1_000
    return scene


def options_of(lot: Lot) -> dict[str, str]:
    dice, layout = Random(f"{lot.seed} options"), lot.layout
    lock = {str(LOCK_EXPIRE_MINUTES): "1"}
    if lot.is_lock_renewed:
        lock = {str(LOCK_PROVIDER): "storage-based", str(LOCK_VALIDITY_SECONDS): "30", str(LOCK_RENEWAL_SECONDS): "3"}
    return {
        **layout.write_options,
        **lock,
        str(EVENT_TIME_FIELD): "ms",
        str(HEARTBEAT_INTERVAL_MS): "15000",
        str(LOCK_WAIT_MS): "2000",
        str(PENDING_WRITE_WAIT_MS): "3000",
        str(CONCURRENCY_MODE): "OPTIMISTIC_CONCURRENCY_CONTROL",
        "hoodie.cleaner.policy.failed.writes": dice.choice(("EAGER", "LAZY")),
        "hoodie.keep.min.commits": "2",
        "hoodie.keep.max.commits": dice.choice(("3", "5")),
        "hoodie.cleaner.commits.retained": dice.choice(("1", "2", "4")),
        "hoodie.compact.inline.max.delta.commits": dice.choice(("1", "3")),
        "hoodie.metadata.compact.max.delta.commits": dice.choice(("2", "5")),
    }


def _live(scene: Scene) -> None:
    lot, scheduler = scene.lot, scene.store.scheduler
    actors = [
        Actor(
            name,
            scene.store,
            luck_of(lot, name),
            dice := Random(f"{lot.seed} {name}"),
            dice.randint(-_SKEW_MS, _SKEW_MS),
        )
        for name in lot.actors
    ]
    skews_ms = [actor.skew_ms for actor in actors]
    for number in range(1, lot.storms + 1):
        scene.turns_left, scene.store.is_calm, scene.store.is_disturbed = 4 * lot.turns, False, False
        for actor, skew_ms in zip(actors, skews_ms, strict=True):
            actor.skew_ms = skew_ms  # a clock that jumped is right again
            _start(scene, actor, 0)
        scheduler.run()
        scheduler.now_ms += _REST_MS
        scene.store.say("world", f"rest {number}")
        _bring_to_rest(scene)
        scene.check_at_rest()


def _start(scene: Scene, actor: Actor, after_ms: int) -> None:
    """Starts a process of the actor, and another one when it is killed."""
    process = Process(actor)

    def run() -> None:
        try:
            live(scene, process)
            process.is_over = True
        except SimulatedCrash:
            if scene.is_storm:
                _start(scene, actor, actor.dice.choice(RESTARTS_MS))

    actor.store.scheduler.start(run, process, after_ms)


def _bring_to_rest(scene: Scene) -> None:
    if scene.restoring is not None:
        saved = scene.restoring
        _as_operator(scene, lambda turn: restore(turn, saved), may_fail=True)
    troubles = _as_operator(scene, _serve)
    for _ in range(_ROUNDS):
        if not troubles:
            break
        _as_operator(scene, _end_by_force)
        scene.store.scheduler.now_ms += _REST_MS
        troubles = _as_operator(scene, _serve)
    else:
        raise BrokenPromiseError("service", f"cannot go on: {troubles}")
    _as_operator(scene, _end_by_force)
    if {"consumer-1", "consumer-2"} & {*scene.lot.actors}:
        _as_operator(scene, _publish)
        _as_operator(scene, _drain)


def _as_operator(scene: Scene, verb: Callable[[Turn], list[str] | None], *, may_fail: bool = False) -> list[str]:
    """Runs a verb by a new process of an operator, to which nothing happens."""
    actor = Actor("operator", scene.store, lambda *_: None, Random(0), 0)
    process, troubles = Process(actor), list[str]()

    def run() -> None:
        try:
            troubles.extend(verb(Turn(scene, process, process.application())) or ())
        except EventideError as error:
            troubles.append(f"{type(error).__name__}: {error}")
        process.is_over = True

    scene.store.scheduler.start(run, process)
    scene.store.scheduler.run()
    return [] if may_fail else troubles


def _serve(turn: Turn) -> list[str]:
    return [
        str(trouble)
        for trouble in TableService(turn.application, turn.request(CutMode.FILE)).round(NoProgress()).troubles
    ]


def _end_by_force(turn: Turn) -> None:
    for write in turn.application.state().timeline.pending_writes:
        turn.application.rollback.undo(write.requested_time, force=True)
    timeline = turn.application.state().timeline
    for plan in timeline.pending_plans:
        if plan.requested_time in timeline.undone:
            turn.application.runner.execute(plan.requested_time, NoProgress(), may_take_over=True)


def _publish(turn: Turn) -> None:
    """Another view, as a service publishes one while time goes on: rows in base files alone are in no view before it."""
    request = CompactionRequest(turn.scene.ledger.latest_ms + 1, None, LinkChoice.AUTO, cut=CutMode.FILE)
    TableService(turn.application, request).round(NoProgress())


def _drain(turn: Turn) -> None:
    scene = turn.scene
    sink, table = scene.sink, scene.table(turn.application)
    while sink.take(table, "operator", scene.store, take_over=True):
        pass
    view = scene.onlooker()
    rows = scene.observer.rows(view, scene.store.storage.read, view.queries.read_optimized())
    if "stock-planner" not in scene.lot.actors and not sink.is_renewed:
        sink.check(table, without_instants(rows))
