"""The warnings of eventide, and what is deprecated: that works for a minor version at least (docs/stability.md)."""

import inspect
import warnings
from collections.abc import Iterable
from typing import Final

DEPRECATED_OPTIONS: Final[dict[str, tuple[str, str]]] = {}
"""By a key, which is an alias by now: what to use instead, and the version that removes the key."""


class OwnWarning(Warning):
    """A warning of eventide. The command line says it once, in a line, also where Python hides it."""


class DeprecatedUseWarning(OwnWarning, DeprecationWarning):
    """What the caller uses goes in a later version of eventide."""


def warn(sentence: str, kind: type[OwnWarning]) -> None:
    """Warns whoever has called eventide."""
    frame, level = inspect.currentframe(), 1
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "eventide":
        frame, level = frame.f_back, level + 1
    warnings.warn(sentence, kind, stacklevel=level)


def warn_of_use(what: str, instead: str, removed_in: str) -> None:
    """Warns of a deprecated key, flag or parameter."""
    warn(f"{what} is deprecated, and eventide {removed_in} removes it: use {instead}", DeprecatedUseWarning)


def warn_of_deprecated(keys: Iterable[str]) -> None:
    """Warns of deprecated options."""
    for key in keys:
        if key in DEPRECATED_OPTIONS:
            warn_of_use(f"option {key}", *DEPRECATED_OPTIONS[key])
