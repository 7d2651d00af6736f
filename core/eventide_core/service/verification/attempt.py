"""Answers what is wrong with a file instead of failing for it; a failing world still raises."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from eventide_core.errors import EventideError, StorageError, UnsupportedTableError

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
            require_damage(error)
            return Problem(str(error))


class Noting:
    """Writes down why a file cannot be read, and continues: what cannot be read has a check that says so."""

    def __init__(self, unreadable: dict[str, str], path: str) -> None:
        self._unreadable, self._path = unreadable, path

    def __enter__(self) -> None:
        """Nothing has been read yet."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> bool:
        if not isinstance(error, EventideError):
            return False
        require_damage(error)
        self._unreadable[self._path] = str(error)
        return True


def require_damage(error: EventideError) -> None:
    """Raises what is the world's fault, not the table's; and what eventide doesn't support, which is no damage."""
    if error.exit_code == StorageError.exit_code or isinstance(error, UnsupportedTableError):
        raise error
