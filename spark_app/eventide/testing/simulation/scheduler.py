"""Threads that run one at a time, in the order of a simulated time.

A thread runs until it sleeps. Then the next event is due, and the clock is at its time: a sleeper continues, or an action
runs. Events of the same time come in the order in which they were made. So a run depends on nothing but what the threads do.
"""

import itertools
import threading
from collections.abc import Callable
from heapq import heappop, heappush

from eventide_adapters.storage.faulty import SimulatedCrash

_EVENTS_MAX = 400_000
"""A world that takes more doesn't come to rest: a storm and what follows it take about 20,000."""


class _Thread:
    """A thread that runs only between `resume` and its next sleep."""

    def __init__(self, work: Callable[[], None], owner: object, baton: threading.Lock) -> None:
        self._work = work
        self.owner = owner
        self._baton = baton
        self._go = threading.Lock()
        self._go.acquire()
        self._is_started = False
        self.failure: BaseException | None = None

    def resume(self) -> None:
        if not self._is_started:
            self._is_started = True
            threading.Thread(target=self._run, daemon=True).start()
        self._go.release()
        self._baton.acquire()

    def pause(self) -> None:
        self._baton.release()
        self._go.acquire()

    def _run(self) -> None:
        self._go.acquire()
        try:
            self._work()
        except SimulatedCrash:
            pass
        except BaseException as failure:  # raised again where the scheduler runs
            self.failure = failure
        finally:
            self._baton.release()


class Scheduler:
    """`now_ms` is the time of the current event."""

    def __init__(self, now_ms: int) -> None:
        self.now_ms = now_ms
        self._queue: list[tuple[int, int, _Thread | Callable[[], None]]] = []
        self._numbers = itertools.count()
        self._baton = threading.Lock()
        self._baton.acquire()
        self._running: _Thread | None = None
        self._left = _EVENTS_MAX

    @property
    def owner(self) -> object:
        """The owner of the thread that runs."""
        return None if self._running is None else self._running.owner

    def start(self, work: Callable[[], None], owner: object, after_ms: int = 0) -> None:
        """Runs `work` in a new thread of that owner. It ends quietly when it raises SimulatedCrash."""
        self._add(after_ms, _Thread(work, owner, self._baton))

    def call(self, action: Callable[[], None], after_ms: int) -> None:
        """Runs an action that doesn't sleep."""
        self._add(after_ms, action)

    def sleep(self, milliseconds: int) -> None:
        """Called by a thread of this scheduler."""
        own = self._running
        assert own is not None, "only a thread of the scheduler sleeps"
        self._add(milliseconds, own)
        if self._queue[0][2] is own:  # nothing happens before
            self._next()
        else:
            own.pause()

    def run(self) -> None:
        """Runs until no event is left. Raises what a thread has raised."""
        while self._queue:
            due = self._next()
            if not isinstance(due, _Thread):
                due()
                continue
            self._running = due
            due.resume()
            if due.failure is not None:
                raise due.failure

    def _add(self, after_ms: int, due: "_Thread | Callable[[], None]") -> None:
        heappush(self._queue, (self.now_ms + after_ms, next(self._numbers), due))

    def _next(self) -> "_Thread | Callable[[], None]":
        self.now_ms, _, due = heappop(self._queue)
        self._left -= 1
        assert self._left, "the world doesn't come to rest"
        return due
