"""A task that answers what is wrong with a file instead of failing for it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from eventide_core.errors import EventideError, StorageError

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Problem:
    """What a typed error said of a damaged or unknown file."""

    text: str


@dataclass(frozen=True, slots=True)
class Attempt(Generic[T, R]):
    """A picklable call that is answered with a Problem where the table is to blame. A failing world still raises."""

    function: Callable[[T], R]

    def __call__(self, item: T) -> R | Problem:
        try:
            return self.function(item)
        except EventideError as error:
            if error.exit_code == StorageError.exit_code:
                raise
            return Problem(str(error))
