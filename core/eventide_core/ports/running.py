"""What runs tasks, tells the time, and shows the user how far it is."""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar, runtime_checkable

T = TypeVar("T")
R = TypeVar("R")


@runtime_checkable
class Engine(Protocol):
    """Runs tasks that do not depend on each other, here or on a cluster."""

    def map(
        self,
        function: Callable[[T], R],
        items: Sequence[T],
        *,
        sizes: Sequence[int] | None = None,
        on_done: Callable[[], None] | None = None,
    ) -> list[R]:
        """The results, in the items' order. A failed item may be run again. `on_done` is called once an item.

        `sizes`: the bytes that each item makes a task read, so that small ones may share what a task costs.
        """
        ...


class Clock(Protocol):
    def now_ms(self) -> int:
        """Epoch milliseconds."""
        ...

    def sleep(self, milliseconds: int) -> None: ...

    def local_offset_ms(self) -> int:
        """How far the local time zone is ahead of UTC now."""
        ...


class Progress(Protocol):
    """What the user watches. Every call is optional to heed."""

    def start(self, what: str, total: int) -> None: ...

    def advance(self) -> None: ...


class NoProgress:
    """Progress that nobody watches."""

    def start(self, what: str, total: int) -> None:
        """A row of tasks begins."""

    def advance(self) -> None:
        """One of them has ended."""
