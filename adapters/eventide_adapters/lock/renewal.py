"""A lease or a heartbeat that a thread renews."""

import threading
from collections.abc import Callable
from contextlib import suppress

from eventide_core.errors import EventideError


class Renewal:
    """Calls `renew` every `interval_seconds` on a separate thread, until `renew` returns False or `stop` is called.

    The calls continue after a renewal that raises an EventideError, because a later one may succeed.
    """

    def __init__(self, renew: Callable[[], bool], interval_seconds: float, name: str) -> None:
        self._renew = renew
        self._interval_seconds = interval_seconds
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._repeat, name=name, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stops the renewals. When it returns, no renewal is in progress."""
        self._end.set()
        self._thread.join()

    def _repeat(self) -> None:
        is_held = True
        while is_held and not self._end.wait(self._interval_seconds):
            with suppress(EventideError):
                is_held = self._renew()
