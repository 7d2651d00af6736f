"""Returns the problem of a file instead of raising it. Failures of storage and engine still raise."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from eventide_core.errors import EventideError, StorageError, UnsupportedTableError

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Problem:
    """The message of a typed error about a damaged or unknown file, as `text`."""

    text: str


@dataclass(frozen=True, slots=True)
class Attempt(Generic[T, R]):
    """A picklable call that returns a Problem if the table is at fault. Failures of storage and engine still raise.

    `function` is called with one item, such as a path or a slice.
    """

    function: Callable[[T], R]

    def __call__(self, item: T) -> R | Problem:
        try:
            return self.function(item)
        except EventideError as error:
            require_damage(error)
            return Problem(str(error))


class Noting:
    """Records why a file cannot be read, and continues: a check reports unreadable files."""

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
    """Raises failures of storage and engine, and what eventide doesn't support: neither is damage of the table."""
    if error.exit_code == StorageError.exit_code or isinstance(error, UnsupportedTableError):
        raise error
