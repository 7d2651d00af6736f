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

    def __init__(self, work: Callable[[], None], owner: object) -> None:
        self._work = work
        self.owner = owner
        self._go = threading.Lock()
        self._go.acquire()
        self._is_started = False

    def resume(self) -> None:
        if not self._is_started:
            self._is_started = True
            threading.Thread(target=self._run, daemon=True).start()
        self._go.release()

    def wait(self) -> None:
        self._go.acquire()

    def _run(self) -> None:
        self.wait()
        self._work()


class Scheduler:
    """`now_ms` is the time of the current event. The thread that sleeps or ends resumes the next one itself."""

    def __init__(self, now_ms: int) -> None:
        self.now_ms = now_ms
        self._queue: list[tuple[int, int, _Thread | Callable[[], None]]] = []
        self._numbers = itertools.count()
        self._running: _Thread | None = None
        self._failure: BaseException | None = None
        self._is_over = threading.Lock()
        self._is_over.acquire()
        self._left = _EVENTS_MAX

    @property
    def owner(self) -> object:
        """The owner of the thread that runs."""
        return None if self._running is None else self._running.owner

    def start(self, work: Callable[[], None], owner: object, after_ms: int = 0) -> None:
        """Runs `work` in a new thread of that owner. It ends quietly when it raises SimulatedCrash."""
        self._add(after_ms, _Thread(lambda: self._run(work), owner))

    def call(self, action: Callable[[], None], after_ms: int) -> None:
        """Runs an action that doesn't sleep."""
        self._add(after_ms, action)

    def sleep(self, milliseconds: int) -> None:
        """Called by a thread of this scheduler."""
        own = self._running
        assert own is not None, "only a thread of the scheduler sleeps"
        self._add(milliseconds, own)
        if not self._continue(own):
            own.wait()

    def run(self) -> None:
        """Runs until no event is left. Raises what a thread or an action has raised."""
        self._continue(None)
        self._is_over.acquire()
        if self._failure is not None:
            raise self._failure

    def _run(self, work: Callable[[], None]) -> None:
        try:
            work()
        except SimulatedCrash:
            pass
        except BaseException as failure:  # raised again by `run`
            self._failure = failure
        self._continue(None)

    def _continue(self, own: _Thread | None) -> bool:
        """Makes what is due happen, up to the next thread that continues. Returns whether that is `own`."""
        try:
            while self._queue and self._failure is None:
                self.now_ms, _, due = heappop(self._queue)
                self._left -= 1
                assert self._left, "the world doesn't come to rest"
                if isinstance(due, _Thread):
                    self._running = due
                    if due is not own:
                        due.resume()
                    return due is own
                due()
        except BaseException as failure:  # raised again by `run`
            self._failure = failure
        self._is_over.release()
        return False

    def _add(self, after_ms: int, due: "_Thread | Callable[[], None]") -> None:
        heappush(self._queue, (self.now_ms + after_ms, next(self._numbers), due))
