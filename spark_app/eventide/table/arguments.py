"""Checks what a caller passes to `Table`, so that a wrong type is named before anything is read or written."""

from collections.abc import Mapping, Sequence
from os import PathLike, fspath
from typing import Any

from eventide_core.errors import ConfigError
from eventide_core.ports import NoProgress, Progress


def uri_of(uri: str | PathLike[str]) -> str:
    """Raises ConfigError for anything but a text or a path."""
    if not isinstance(uri, str | PathLike):
        raise ConfigError(f"a table's URI or path must be a string or a path, not {uri!r}")
    return fspath(uri)


def options_of(options: Mapping[str, Any] | None) -> dict[str, str]:
    """The options as texts. Raises ConfigError for anything but a mapping; a value, which may be a secret, is not shown."""
    if options is not None and not isinstance(options, Mapping):
        raise ConfigError(f"options are a {type(options).__name__}: pass a dictionary of keys and values")
    return {
        str(key): str(value).lower() if isinstance(value, bool) else str(value)
        for key, value in (options or {}).items()
    }


def progress_of(progress: Progress | None) -> Progress:
    """Raises ConfigError for anything without `start` and `advance`."""
    if progress is None:
        return NoProgress()
    if not (callable(getattr(progress, "start", None)) and callable(getattr(progress, "advance", None))):
        raise ConfigError(
            f"progress={progress!r} can't show progress: pass an object with the methods start(what, total) and advance()"
        )
    return progress


def require_texts(**given: object) -> None:
    """Raises ConfigError for the first argument that isn't a string."""
    for name, value in given.items():
        if not isinstance(value, str):
            raise ConfigError(f"{name} must be a string, not {value!r}")


def require_given_texts(**given: object) -> None:
    """Raises ConfigError for the first argument that is neither None nor a text."""
    require_texts(**{name: value for name, value in given.items() if value is not None})


def require_names(**given: object) -> None:
    """Raises ConfigError for the first argument that isn't a list of strings."""
    for name, value in given.items():
        if isinstance(value, str) or not isinstance(value, Sequence) or not all(isinstance(one, str) for one in value):
            raise ConfigError(f"{name} must be a list of names, not {value!r}")


def require_columns(**given: object) -> None:
    """Raises ConfigError for the first argument that isn't a mapping by names of columns."""
    for what, value in given.items():
        if not (isinstance(value, Mapping) and all(isinstance(name, str) for name in value)):
            raise ConfigError(f"{what}={value!r}: pass a dictionary by names of columns")


def require_number(**given: object) -> None:
    """Raises ConfigError for the first argument that is neither None nor a whole number from 0 on."""
    for name, value in given.items():
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 0):
            raise ConfigError(f"{name} must be a number of 0 or more, not {value!r}")
