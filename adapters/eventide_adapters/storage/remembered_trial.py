"""What the trial of a store has shown, which the table remembers for a day: not each process has to try the store again.

The file counts only where it was made: in the same bucket of the store at the same address, below the same prefix.
"""

import hashlib
import time
from contextlib import suppress
from typing import Final

from eventide_adapters.storage.objects.contract import Objects
from eventide_core.errors import StorageError, UnsupportedTableError
from eventide_core.table.files.own_file import decoded_own, encoded_own
from eventide_core.table.settings.properties import PROPERTIES_PATH

PATH: Final = ".hoodie/.aux/eventide/storage.tried"
_KEPT_MS: Final = 24 * 60 * 60 * 1000
_BYTES_MAX: Final = 1000


def is_remembered(objects: Objects, prefix: str) -> bool:
    """Whether a trial of this store has shown within the last day that it keeps the condition of a create."""
    digest = _digest(objects, prefix)
    if digest is None:
        return False
    with suppress(StorageError, UnsupportedTableError, ValueError, RecursionError):
        match decoded_own(objects.read(prefix + PATH, 0, _BYTES_MAX) or b"", PATH):
            case {"store": str(store), "tried_ms": int(tried_ms)}:
                return store == digest and 0 <= _now_ms() - tried_ms < _KEPT_MS
            case _:
                pass
    return False


def remember(objects: Objects, prefix: str) -> None:
    """Remembers a trial that has succeeded, if the table is there: nothing may make a place look like a table."""
    digest = _digest(objects, prefix)
    if digest is None:
        return
    with suppress(StorageError):
        if objects.head(prefix + PROPERTIES_PATH) is not None:
            document = {"store": digest, "tried_ms": _now_ms()}
            objects.replace(prefix + PATH, encoded_own(document))


def _digest(objects: Objects, prefix: str) -> str | None:
    address = objects.address
    return (
        None if address is None else hashlib.sha256("\n".join((address, objects.bucket, prefix)).encode()).hexdigest()
    )


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
