"""Wait for others: for writes that are open, or for plans of other engines."""

from collections.abc import Callable

from eventide_core.ports import Clock

POLL_MS = 200


def wait_until(is_over: Callable[[], bool], clock: Clock, limit_ms: int, *, poll_ms: int = POLL_MS) -> int | None:
    """Looks again and again, for `limit_ms` at most. None when it is over, else how many milliseconds it has waited."""
    begin_ms = clock.now_ms()
    while not is_over():
        waited_ms = clock.now_ms() - begin_ms
        if waited_ms >= limit_ms:
            return waited_ms
        clock.sleep(poll_ms)
    return None
