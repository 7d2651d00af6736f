"""An actor as a tree of operations by the answers that it received. Runs of the actor explore the tree, which is cached.

An actor is a protocol of eventide with its own storage and its own clock. It knows only the answers of its storage, so its
next operation is a function of these answers: a tree, with a `Point` for each list of answers. Where the tree ends, the
actor runs from its start. It receives the answers that lead to that point, and then continues alone in a world as far as
possible, which adds a branch. Each run checks that the actor does the same after the same answers.
"""

import threading
from collections import deque
from collections.abc import Hashable, Iterable
from copy import copy
from dataclasses import dataclass, field
from typing import Any, Self
from typing import Protocol as Port

from eventide.bootstrap import Application, assemble
from eventide.engine_local import LocalEngine
from eventide.testing.crash_enumeration import Protocol
from eventide.testing.histories import ManualClock
from eventide.testing.schedules.storage import StorageOfSteps
from eventide.testing.schedules.world import (
    CHECK_LOCK,
    GIVE_LOCK,
    LOOK_AT_CLOCK,
    TAKE_LOCK,
    WAIT,
    Refusal,
    Step,
    Worlds,
)
from eventide_adapters.lock.heartbeats import FileHeartbeats
from eventide_adapters.lock.renewal import Renewal
from eventide_core.access.requests import Requests
from eventide_core.errors import EventideError
from eventide_core.table.files.file_group_write import heartbeat_path


class _Over(BaseException):  # not an Exception, so that no program handles it
    """Interrupts the run: the next answer isn't known yet."""


@dataclass(slots=True, eq=False)
class Point:
    """The point that an actor has reached.

    `step` is its next operation, or None if it has ended. `failure` is the error it ended in, or None.
    """

    number: int
    before: "tuple[Point, Hashable] | None" = None
    step: Step | None = None
    failure: EventideError | None = None
    is_known: bool = False
    after: "dict[Hashable, Point]" = field(default_factory=dict[Hashable, "Point"])

    @property
    def answers(self) -> tuple[Hashable, ...]:
        """All answers that the actor received before this point."""
        answers: deque[Hashable] = deque()
        before = self.before
        while before is not None:
            answers.appendleft(before[1])
            before = before[0].before
        return tuple(answers)


class ScheduledActor:
    """One of the actors over `worlds`.

    `runs` counts its runs; `length` is how many operations it does if nothing disturbs it.
    """

    def __init__(self, number: int, protocol: Protocol, worlds: Worlds) -> None:
        self.number = number
        self.worlds = worlds
        self.runs = 0
        self._protocol = protocol
        self._points = 0
        self.first = self.new_point(None)
        self._run((), 0)
        self.length = self._points - 1

    def after(self, point: Point, answer: Hashable, world: int) -> Point:
        """The point to which the answer leads; `world` is the world after the answered step."""
        following = point.after.get(answer)
        if following is None or not following.is_known:
            self._run((*point.answers, answer), world)
            following = point.after[answer]
            assert following.is_known
        return following

    def new_point(self, before: tuple[Point, Hashable] | None) -> Point:
        self._points += 1
        return Point(self._points - 1, before)

    def _run(self, answers: Iterable[Hashable], world: int) -> None:
        self.runs += 1
        life = _Life(self, answers, world)
        failure: EventideError | None = None
        try:
            self.act(life)
        except _Over:
            return
        except EventideError as error:
            failure = error
        life.end(failure)

    def act(self, life: "Life") -> None:
        """Does everything, answered by `life`."""
        bench = self.worlds.bench
        storage, engine = StorageOfSteps(life.perform, bench.storage), LocalEngine(1)
        application = assemble(
            storage.root,
            bench.options,
            engine=engine,
            storage=storage,
            lock=_LivedLock(life),
            clock=_LivedClock(life) if self.worlds.may_expire else ManualClock(self.worlds.time_ms),
            new_uuid=lambda: f"00000000-0000-4000-8000-{self.number:012d}",
        )
        application.heartbeats = Beats.of(application)
        application.files.requests, application.files.codec = Requests(engine), bench.codec
        self._protocol(application)


class Life(Port):
    """What performs the operations of an actor. `may_expire`: leases are checked, and the clock advances."""

    may_expire: bool

    def perform(self, step: Step) -> Any:
        """The answer to the operation."""
        ...


class Beats(FileHeartbeats):
    """ports.Heartbeats without a thread: no real time passes."""

    @classmethod
    def of(cls, application: Application) -> Self:
        return cls(application.storage, application.options, owner=application.new_uuid(), host="explored", pid=0)

    def start(self, instant: str) -> None:
        if instant not in self._running:
            self._storage.put(heartbeat_path(instant), self._content)
            self._running[instant] = _NoRenewal()


class _NoRenewal(Renewal):
    def __init__(self) -> None:
        """Starts nothing."""

    def stop(self) -> None:
        """Nothing runs."""


class _Life:
    """One run: it first follows the given answers, then continues alone."""

    def __init__(self, actor: ScheduledActor, answers: Iterable[Hashable], world: int) -> None:
        self._actor = actor
        self._answers = deque(answers)
        self._world = world
        self._point = actor.first
        self._thread = threading.get_ident()
        self.may_expire = actor.worlds.may_expire
        self.is_over = False

    def perform(self, step: Step) -> Any:
        """The answer to the step."""
        if self.is_over:
            raise _Over
        assert threading.get_ident() == self._thread, (
            f"{step}: an actor with threads isn't a function of what it is answered"
        )
        self._arrive(step, None)
        if self._answers:
            answer = self._answers.popleft()
        elif self._actor.worlds.can(self._world, step):
            self._world, answer = self._actor.worlds.after(self._world, step, self._actor.number)
        else:
            self.is_over = True
            raise _Over
        after = self._point.after.get(answer)
        if after is None:
            after = self._point.after[answer] = self._actor.new_point((self._point, answer))
        self._point = after
        if isinstance(answer, Refusal):
            raise copy(answer.error)
        return answer

    def end(self, failure: EventideError | None) -> None:
        assert not self.is_over, "the actor went on after the run was broken off"
        self._arrive(None, failure)

    def _arrive(self, step: Step | None, failure: EventideError | None) -> None:
        point = self._point
        if point.is_known:
            assert point.step == step, f"after the same answers an actor does not the same: {point.step}, {step}"
            return
        point.is_known, point.step, point.failure = True, step, failure


@dataclass(slots=True)
class _LivedLock:
    """ports.TableLock. Its lease is lost only if leases expire."""

    life: Life
    acquired: int = 0

    def acquire(self) -> "_LivedLease":
        lease = _LivedLease(self.life, self.acquired)
        self.acquired += 1
        self.life.perform(Step(TAKE_LOCK, details=lease.number))
        return lease


@dataclass(slots=True)
class _LivedLease:
    """ports.Lease."""

    life: Life
    number: int

    def check(self) -> None:
        if self.life.may_expire:
            self.life.perform(Step(CHECK_LOCK, details=self.number))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.life.perform(Step(GIVE_LOCK, details=self.number))


@dataclass(slots=True)
class _LivedClock:
    """ports.Clock, whose time is an answer."""

    life: Life

    def now_ms(self) -> int:
        now: int = self.life.perform(Step(LOOK_AT_CLOCK, details=0))
        return now

    def sleep(self, milliseconds: int) -> None:
        if milliseconds:
            self.life.perform(Step(WAIT, details=milliseconds))

    def local_offset_ms(self, _epoch_ms: int, /) -> int:
        return 0
