"""Checks what a caller passes to `Table`, so that a wrong type is named before anything is read or written."""

from collections.abc import Mapping
from os import PathLike, fspath
from typing import Any

from eventide_core.errors import ConfigError
from eventide_core.ports import NoProgress, Progress


def uri_of(uri: str | PathLike[str]) -> str:
    """Raises ConfigError for anything but a text or a path."""
    if not isinstance(uri, str | PathLike):
        raise ConfigError(f"{uri!r} is no URI or path of a table: pass a text or a path")
    return fspath(uri)


def options_of(options: Mapping[str, Any] | None) -> dict[str, str]:
    """The options as texts. Raises ConfigError for anything but a mapping; a value, which may be a secret, is not shown."""
    if options is not None and not isinstance(options, Mapping):
        raise ConfigError(f"options are a {type(options).__name__}: pass a dictionary of keys and values")
    return {str(key): _text(value) for key, value in (options or {}).items()}


def progress_of(progress: Progress | None) -> Progress:
    """Raises ConfigError for anything without `start` and `advance`."""
    if progress is None:
        return NoProgress()
    if not (callable(getattr(progress, "start", None)) and callable(getattr(progress, "advance", None))):
        raise ConfigError(
            f"progress={progress!r} is no progress: pass an object with the methods start(what, total) and advance()"
        )
    return progress


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
