"""A lease or a heartbeat that a thread renews."""

from _thread import start_new_thread
from collections.abc import Callable
from contextlib import suppress
from threading import Lock

from eventide_core.errors import EventideError


class Renewal:
    """Calls `renew` every `interval_seconds` on a separate thread, until `renew` returns False or `stop` is called.

    The calls continue after a renewal that raises an EventideError or lacks memory, because a later one may succeed. If the
    thread itself dies for lack of memory, the lease runs out as if the process had ended; nobody waits for it.
    """

    def __init__(self, renew: Callable[[], bool], interval_seconds: float) -> None:
        self._renew = renew
        self._interval_seconds = interval_seconds
        self._is_stopped = False
        self._renewing, self._stopped = Lock(), Lock()
        self._stopped.acquire()
        start_new_thread(self._repeat, ())

    def stop(self) -> None:
        """Stops the renewals. When it returns, no renewal is in progress."""
        if not self._is_stopped:
            self._is_stopped = True
            self._stopped.release()
        with self._renewing:
            pass

    def _repeat(self) -> None:
        is_held = True
        while is_held and not self._stopped.acquire(timeout=self._interval_seconds):
            with suppress(EventideError, MemoryError), self._renewing:
                is_held = not self._is_stopped and self._renew()
