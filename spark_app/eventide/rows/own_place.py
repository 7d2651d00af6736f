"""A new table needs a place of its own: a table in another one would have files that the other takes for its own."""

from collections.abc import Iterator
from typing import Final

from eventide_adapters.storage.open import open_storage
from eventide_core.config import Options
from eventide_core.errors import ConfigError, EventideError
from eventide_core.table.settings.properties import PROPERTIES_PATH

_LOOKED_AT_MAX: Final = 100  # directories directly below a new table


def require_own_place(uri: str, options: Options) -> None:
    """Raises ConfigError for a path in a Hudi table, or with Hudi tables directly in it.

    A path above that may not be read counts as none of a table.
    """
    storage = open_storage(uri, options)
    if storage.stat(PROPERTIES_PATH) is not None:
        return  # it is a table: creating one raises its own error
    directories = [entry.path for entry in storage.list("") if entry.is_directory][:_LOOKED_AT_MAX]
    inner = next((path for path in directories if storage.stat(f"{path}/{PROPERTIES_PATH}") is not None), None)
    if inner is not None:
        raise ConfigError(
            f"{uri} holds the Hudi table {inner}: choose a path beside it, such as {uri.rstrip('/')}/NAME"
        )
    above = next((directory for directory in _above(uri) if _is_table(directory, options)), None)
    if above is not None:
        raise ConfigError(f"{uri} is in the Hudi table {above}: write to that table, or choose a path beside it")


def _is_table(uri: str, options: Options) -> bool:
    try:
        return open_storage(uri, options).stat(PROPERTIES_PATH) is not None
    except EventideError:
        return False


def _above(uri: str) -> Iterator[str]:
    """The directories above, the nearest first; not the root of a store."""
    parts = uri.rstrip("/").split("/")
    least = 4 if "://" in uri else 1
    for end in range(len(parts) - 1, least - 1, -1):
        directory = "/".join(parts[:end])
        if directory:
            yield directory
