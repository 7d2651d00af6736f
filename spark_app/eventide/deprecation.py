"""What is deprecated works for a minor version at least, and says what to use instead (docs/stability.md)."""

import inspect
import warnings
from collections.abc import Iterable
from typing import Final

OPTIONS: Final[dict[str, tuple[str, str]]] = {}
"""The deprecated keys of options, which are aliases by now: what to use instead, and the version that removes them."""


class DeprecatedUseWarning(DeprecationWarning):
    """What the caller uses goes in a later version of eventide."""


def warn_of_use(what: str, instead: str, removed_in: str) -> None:
    """Warns whoever has called eventide. The command line says it in a line, also where Python hides it."""
    sentence = f"{what} is deprecated, and eventide {removed_in} removes it: use {instead}"
    warnings.warn(sentence, DeprecatedUseWarning, stacklevel=level_of_the_user())


def warn_of_options(keys: Iterable[str]) -> None:
    """Warns of the deprecated ones."""
    for key in keys:
        if key in OPTIONS:
            warn_of_use(f"option {key}", *OPTIONS[key])


def level_of_the_user() -> int:
    """The level, for a warning of the function that asks, of the first frame that is not eventide's."""
    frame, level = inspect.currentframe(), 0
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "eventide":
        frame, level = frame.f_back, level + 1
    return level
