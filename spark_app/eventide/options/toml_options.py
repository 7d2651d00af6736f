"""Options in a TOML file."""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from eventide_core.errors import ConfigError


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
