"""Which storage a table's URI means."""

import re

from eventide_adapters.storage.local import LocalStorage
from eventide_adapters.storage.memory import MemoryStorage
from eventide_core.config import Options
from eventide_core.errors import ConfigError
from eventide_core.ports import Storage

# Hadoop writes `file:/lake/trips` as well as `file:///lake/trips`.
_FILE = re.compile(r"file:(?://(?:localhost)?(?=/)|(?=/[^/]))")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")


def open_storage(uri: str, options: Options) -> Storage:  # noqa: ARG001  # local and memory have none
    """The storage of a table: a path or `file:` URI, nothing in it escaped, or `memory://NAME`. Touches nothing.

    Raises ConfigError for any other scheme.
    """
    if not uri.strip():
        raise ConfigError("the table has no path: give a folder such as /lake/trips")
    if scheme := _SCHEME.match(uri):
        name = uri[scheme.end() :].rstrip("/")
        match scheme[1].lower():
            case "memory" if name:
                return MemoryStorage(name)
            case "file" if _FILE.match(uri):
                pass
            case _:
                raise ConfigError(
                    f"the table {uri!r} has a scheme that eventide does not know: it opens folders (/lake/trips), "
                    "file:///lake/trips and memory://trips"
                )
    return LocalStorage(_FILE.sub("", uri, count=1))
