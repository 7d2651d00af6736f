"""Changes hoodie.properties, on the condition that nobody has changed it since it was read, where the storage has that.

Otherwise, a process that was paused before it replaces the file takes back what others have changed meanwhile. A disk and
HDFS have no such condition: what is lost there is in docs/reference/steps.md.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress

from eventide_core.errors import StorageError
from eventide_core.ports import Lease, Storage, VersionedFiles
from eventide_core.table.settings.properties import PROPERTIES_PATH, settings_problem, settings_text, with_settings

ChangeOfSettings = Callable[[str], Mapping[str, str | None]]
"""The changed settings, by the text of all; None removes a key. It is asked again if others were faster.

Without a change, the file stays."""
_TRIES = 3  # a store that ignores or refuses the condition gets a plain put, as a disk does


def change_settings(storage: Storage, change: ChangeOfSettings, lease: Lease | None) -> None:
    """Replaces the file. `lease` is checked right before it; None if nothing of it depends on the lock. Raises LockError."""
    if isinstance(storage, VersionedFiles) and _replaced(storage, change, lease):
        return
    changed = _changed(settings_text(storage.read_range, storage.root), change, lease)
    if changed is not None:
        storage.put(PROPERTIES_PATH, changed)


def _replaced(storage: VersionedFiles, change: ChangeOfSettings, lease: Lease | None) -> bool:
    for _ in range(_TRIES):
        found = storage.read_version(PROPERTIES_PATH)
        if found is None or settings_problem(found[0]) is not None:
            return False
        changed = _changed(found[0].decode(), change, lease)
        if changed is None:
            return True
        with suppress(StorageError):
            if storage.replace_version(PROPERTIES_PATH, changed, found[1]):
                return True
    return False


def _changed(text: str, change: ChangeOfSettings, lease: Lease | None) -> bytes | None:
    values = change(text)
    if not values:
        return None
    if lease is not None:
        lease.check()
    return with_settings(text, values).encode()
