"""Returns the problem of a file instead of raising it. Failures of storage and engine still raise."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Generic, TypeVar

from eventide_core.errors import EventideError, StorageError, UnsupportedTableError

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Problem:
    """The message of a typed error, as `text`, about a damaged or unknown file or, if `is_unsupported`, a feature."""

    text: str
    is_unsupported: bool = False


@dataclass(frozen=True, slots=True)
class OrProblem(Generic[T, R]):
    """A picklable call that returns a Problem if the table is at fault. Failures of storage and engine still raise.

    `function` is called with one item, such as a path or a slice. `skips_unsupported`: what eventide does not support is a
    Problem, too, so that the rest can still be verified.
    """

    function: Callable[[T], R]
    skips_unsupported: bool = False

    def __call__(self, item: T) -> R | Problem:
        try:
            return self.function(item)
        except EventideError as error:
            is_unsupported = self.skips_unsupported and isinstance(error, UnsupportedTableError)
            if not is_unsupported:
                require_damage(error)
            return Problem(str(error), is_unsupported)


@contextmanager
def noting(unreadable: dict[str, str], path: str) -> Generator[None]:
    """Records why a file cannot be read, and continues: a check reports unreadable files."""
    try:
        yield
    except EventideError as error:
        require_damage(error)
        unreadable[path] = str(error)


def require_damage(error: EventideError) -> None:
    """Raises failures of storage and engine, and what eventide doesn't support: neither is damage of the table."""
    if error.exit_code == StorageError.exit_code or isinstance(error, UnsupportedTableError):
        raise error
