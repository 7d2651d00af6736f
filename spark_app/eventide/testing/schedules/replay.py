"""Does a schedule again for real: each actor in a thread of its own, on a storage, under the file lock of the table.

The exploration never runs two actors at once: it puts their answers together. Here they do run, one operation at a time, and
the lock, its expiry and the heartbeats are files. So a schedule that is found wrong is wrong without the model of a lock.
"""

import threading
from collections.abc import Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from eventide.testing.crash_enumeration import LOCK_EXPIRY_MS, Bench, Moment
from eventide.testing.schedules.actor import ScheduledActor
from eventide.testing.schedules.pauses import ASLEEP_MS, Move, Other, acted
from eventide.testing.schedules.world import (
    CHECK_LOCK,
    GIVE_LOCK,
    LOOK_AT_CLOCK,
    TAKE_LOCK,
    WAIT,
    Notes,
    Step,
    is_ticking,
)
from eventide_adapters.lock.file_system_based import FileSystemBasedLock
from eventide_core.config import Options
from eventide_core.errors import EventideError
from eventide_core.ports import Lease

assert LOCK_EXPIRY_MS < ASLEEP_MS


class _GaveUp(BaseException):  # not an Exception, so that no program handles it
    """Ends the thread of an actor that never wakes up."""


@dataclass(slots=True, eq=False)
class _Live:
    """The life of an actor in its thread. It waits at each operation until it may go on."""

    bench: Bench
    number: int
    failure: EventideError | None = None
    next_step: Step | None = None
    may_expire: bool = True
    _leases: dict[Hashable, Lease] = field(default_factory=dict[Hashable, Lease])
    _arrived: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    _may_go_on: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    _is_over: bool = False

    def begin(self, actor: ScheduledActor) -> None:
        threading.Thread(target=self._run, args=(actor,), daemon=True).start()
        self._arrived.acquire()

    def go_on(self) -> None:
        """Does one operation, and returns when the actor has come to the next one, or has ended."""
        self._may_go_on.release()
        self._arrived.acquire()

    def give_up(self) -> None:
        self._is_over = True
        if self.next_step is not None:
            self.go_on()

    def perform(self, step: Step) -> Any:
        if step.kind == LOOK_AT_CLOCK:
            return self.bench.clock.now_ms()
        self.next_step = step
        self._arrived.release()
        self._may_go_on.acquire()
        if self._is_over:
            raise _GaveUp
        return self._done(step)

    def _done(self, step: Step) -> Any:
        if step.act is not None:
            before = self.bench.storage.dump()
            try:
                return step.act(self.bench.storage)
            finally:
                self.bench.clock.sleep(is_ticking(step, before, self.bench.storage.dump()))
        if step.kind == WAIT:
            assert isinstance(step.details, int)
            return self.bench.clock.sleep(step.details)
        if step.kind == TAKE_LOCK:
            self._leases[step.details] = _file_lock(self.bench).acquire()
            return None
        lease = self._leases[step.details]
        assert step.kind in (CHECK_LOCK, GIVE_LOCK)
        return lease.check() if step.kind == CHECK_LOCK else lease.__exit__(None, None, None)

    def _run(self, actor: ScheduledActor) -> None:
        try:
            with suppress(_GaveUp):
                actor.act(self)
        except EventideError as error:
            self.failure = error
        self.next_step = None
        self._arrived.release()


def _file_lock(bench: Bench) -> FileSystemBasedLock:
    return FileSystemBasedLock(bench.storage, Options(dict(bench.options)), bench.clock, "replayed")


def replay(
    actors: Sequence[ScheduledActor],
    start: Moment,
    schedule: Sequence[Move],
    others: Mapping[str, Sequence[Other]],
    note: Notes | None,
    first: Hashable,
) -> tuple[Moment, Hashable, tuple[EventideError | None, ...]]:
    """The moment after the schedule, the notes, and the errors of the actors. Each does the operations of the schedule."""
    bench = actors[0].worlds.bench
    bench.load(start)
    lives = [_Live(bench, actor.number) for actor in actors]
    notes, begun = first, set[int]()
    try:
        for actor, step, other in schedule:
            before = bench.storage.dump()
            if actor is None:
                notes = acted(bench, others[other], notes, note, _file_lock)
                continue
            life = lives[actor]
            if step is None:
                bench.clock.sleep(ASLEEP_MS)
                continue
            if actor not in begun:
                begun.add(actor)
                life.begin(actors[actor])
            assert str(life.next_step) == str(step), f"{actor} does {life.next_step} instead of {step}"
            life.go_on()
            notes = note(notes, before, bench.storage.dump()) if note else notes
        return bench.moment(), notes, tuple(life.failure for life in lives)
    finally:
        for life in lives:
            life.give_up()
