"""Wait for others: for writes that are open, or for plans of other engines."""

from collections.abc import Callable
from typing import TypeVar

from eventide_core.errors import MetadataTableBusyError
from eventide_core.ports import Clock

POLL_MS = 200

Result = TypeVar("Result")


def wait_until(is_over: Callable[[], bool], clock: Clock, limit_ms: int, *, poll_ms: int = POLL_MS) -> int | None:
    """Looks again and again, for `limit_ms` at most. None when it is over, else how many milliseconds it has waited."""
    begin_ms = clock.now_ms()
    while not is_over():
        waited_ms = clock.now_ms() - begin_ms
        if waited_ms >= limit_ms:
            return waited_ms
        clock.sleep(poll_ms)
    return None


def once_metadata_table_is_free(act: Callable[[], Result], clock: Clock, limit_ms: int) -> Result:
    """What `act` returns, which is done again while Hudi compacts the metadata table, for `limit_ms` at most.

    On version 6 a writer of Hudi does so as it begins. Raises MetadataTableBusyError after the limit.
    """
    begin_ms = clock.now_ms()
    while True:
        try:
            return act()
        except MetadataTableBusyError:
            if clock.now_ms() - begin_ms >= limit_ms:
                raise
            clock.sleep(POLL_MS)
