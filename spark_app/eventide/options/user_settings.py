"""Options in TOML files, and the settings of a user: the catalog of names such as `lake.trips`, and how it is reached.

~/.config/eventide.toml, or eventide.toml in the directory that XDG_CONFIG_HOME names:

catalog = "hive"             # or by the environment: EVENTIDE_CATALOG=hive

[options]                    # of each table that is opened by name: of the catalog and of the storage
hoodie.datasource.hive_sync.metastore.uris = "thrift://metastore:9083"
"""

import os
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from eventide_core.errors import ConfigError

CATALOG_VARIABLE: Final = "EVENTIDE_CATALOG"
_KEYS: Final = ("catalog", "options")


@dataclass(frozen=True, slots=True)
class UserSettings:
    """`catalog` is None if there is no default."""

    catalog: str | None
    options: Mapping[str, str]


def user_settings() -> UserSettings:
    """The environment takes precedence over the file, which may be absent. Raises ConfigError."""
    path = settings_path()
    document = toml_document(path, "settings file") if path.exists() else {}
    where = f"settings file {path}"
    check_keys(document, _KEYS, where)
    catalog, options = document.get("catalog"), document.get("options", {})
    if not isinstance(catalog, str | None) or not isinstance(options, dict):
        raise ConfigError(f'{where}: catalog is a string, such as "hive", and [options] a table')
    return UserSettings(os.environ.get(CATALOG_VARIABLE) or catalog or None, dict(flat_options(options, where)))


def settings_path() -> Path:
    return Path(os.environ.get("XDG_CONFIG_HOME") or "~/.config").expanduser() / "eventide.toml"


def toml_document(path: Path, what: str) -> dict[str, Any]:
    """The file's tables and values. `what` it is appears in the messages. Raises ConfigError."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{what} {path} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise ConfigError(f"{what} {path} is not TOML: {error}") from None


def check_keys(given: Mapping[str, Any], known: Sequence[str], where: str) -> None:
    """Raises ConfigError for a key that is not one of the known ones."""
    for key in given:
        if key not in known:
            raise ConfigError(f"{where}: {key!r} is not one of {', '.join(known)}")


def flat_options(table: Mapping[str, Any], where: str, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Joins nested TOML tables to option keys: TOML parses the key a.b.c as tables in tables. Raises ConfigError."""
    for key, value in table.items():
        match value:
            case dict():
                yield from flat_options(value, where, f"{prefix}{key}.")
            case bool():
                yield prefix + key, str(value).lower()
            case str() | int() | float():
                yield prefix + key, str(value)
            case _:
                raise ConfigError(f"{where}: option {prefix}{key} is not a string, a number, or a boolean")
