"""Work that is handed over to other threads. No thread waits for a result that never comes.

Where memory is short, a new thread can die before its first line, and a running one beside its work. The executor of the
standard library then waits for ever: in `Thread.start`, for a result, or at the end of the process. Here, whoever waits for
work that no thread has begun does it itself. What follows the work needs no memory, so that its end is always seen.
"""

from _thread import LockType, start_new_thread
from collections import deque
from collections.abc import Callable
from concurrent.futures import CancelledError  # noqa: TID251 - the error alone
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from threading import Lock  # noqa: TID251 - requests and engines start threads here alone
from typing import Any, Final, Generic, Self, TypeVar, cast

R = TypeVar("R")

_PATIENCE_S: Final = 1.0
"""A thread that lives begins the work that is waited for much earlier, because work is taken in order."""


class Future(Generic[R]):
    """Work that is run once, by the first thread that takes it. The result or the error is its caller's."""

    __slots__ = ("_ended", "_error", "_is_done", "_result", "_taken", "_work")

    def __init__(self, work: Callable[[], R]) -> None:
        self._work: Callable[[], R] | None = work
        self._result: R | None = None
        self._error: BaseException | None = None
        self._is_done = False
        self._taken, self._ended = Lock(), Lock()
        self._ended.acquire()

    def run(self) -> None:
        """Runs it here, unless someone has taken it."""
        if self._taken.acquire(blocking=False):
            try:
                self._result = cast(Callable[[], R], self._work)()
            except BaseException as error:
                self._error = error
            finally:
                self._work = None
                self._is_done = True
                self._ended.release()

    def cancel(self) -> None:
        """Nobody runs it, unless someone has taken it."""
        cancelled = CancelledError()
        if self._taken.acquire(blocking=False):
            self._work, self._error, self._is_done = None, cancelled, True
            self._ended.release()

    def done(self) -> bool:
        return self._is_done

    def join(self) -> None:
        """Returns when it has ended."""
        while not self._ended.acquire(timeout=_PATIENCE_S):
            self.run()
        self._ended.release()

    def result(self) -> R:
        """What it returned, or raises what it raised."""
        self.join()
        if self._error is not None:
            raise self._error
        return cast(R, self._result)


class Threads:
    """At most `count` threads, each of which starts with a work. At the end of its block, all works have ended.

    The process doesn't wait for them when it ends.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._works = SimpleQueue[Future[Any] | None]()
        self._handed = deque[Future[Any]]()
        self._at_work: list[LockType] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()

    def submit(self, function: Callable[..., R], *arguments: Any) -> Future[R]:
        """Hands over a call. Raises RuntimeError if no thread can start, and then nobody makes the call."""
        work = Future(partial(function, *arguments))
        if len(self._at_work) < self._count:
            at_work = Lock()
            start_new_thread(_run_all, (self._works, at_work))
            self._at_work.append(at_work)
        while self._handed and self._handed[0].done():
            self._handed.popleft()
        self._handed.append(work)
        self._works.put(work)
        return work

    def shutdown(self, *, wait: bool = True, cancel_futures: bool = False) -> None:
        """Ends the threads after what they have been handed, or have begun."""
        for work in self._handed if cancel_futures else ():
            work.cancel()
        for _ in self._at_work:
            self._works.put(None)
        if wait:
            for work in self._handed:
                work.join()
            for at_work in self._at_work:  # free if its thread has ended, or never begun
                with at_work:
                    pass


class Gate:
    """Holds back those who wait at it until its one owner opens or shuts it."""

    def __init__(self) -> None:
        self._is_open = self.is_decided = False
        self._closed = Lock()
        self._closed.acquire()

    def decide(self, *, is_open: bool) -> None:
        """Opens or shuts it for good. Only the first call counts."""
        if not self.is_decided:
            self._is_open, self.is_decided = is_open, True
            self._closed.release()

    def wait(self) -> None:
        """Returns when it is open. Raises CancelledError when it is shut."""
        with self._closed:
            pass
        if not self._is_open:
            raise CancelledError


def _run_all(works: SimpleQueue[Future[Any] | None], at_work: LockType) -> None:
    with at_work, suppress(MemoryError):  # what this thread leaves is done by whoever waits for it
        while (work := works.get()) is not None:
            work.run()
            del work
