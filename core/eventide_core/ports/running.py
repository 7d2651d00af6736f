"""The ports for running tasks, for the time, for progress, and for traces."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol, TypeVar, runtime_checkable

T = TypeVar("T")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


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

        `sizes`: the bytes that a task reads for each item, so that small items can share a task.
        """
        ...


class RunningTask(Protocol[R_co]):
    """A task that an engine has begun in this process."""

    def result(self) -> R_co:
        """What it returned, as soon as it has ended. Raises what it raised."""
        ...

    def cancel(self) -> None:
        """Ends it if it has not begun."""
        ...

    def join(self) -> None:
        """Returns when it has ended, whatever came of it."""
        ...


@runtime_checkable
class BackgroundEngine(Protocol):
    """An optional capability of engines whose tasks run in this process, and can wait for what it does meanwhile."""

    def begin(
        self, function: Callable[[T], R], items: Sequence[T], *, on_done: Callable[[], None] | None = None
    ) -> Sequence[RunningTask[R]] | None:
        """Begins what `Engine.map` runs, and returns at once. None if the tasks run elsewhere after all."""
        ...


class Clock(Protocol):
    def now_ms(self) -> int:
        """The current time in epoch milliseconds."""
        ...

    def sleep(self, milliseconds: int) -> None: ...

    def local_offset_ms(self, epoch_ms: int, /) -> int:
        """The offset of the local time zone from UTC at a moment."""
        ...


class Progress(Protocol):
    """Progress for the user. An implementation may ignore any call."""

    def start(self, what: str, total: int) -> None: ...

    def advance(self) -> None: ...


class NoProgress:
    """Progress that is not shown."""

    def start(self, what: str, total: int) -> None:
        """A series of tasks begins."""

    def advance(self) -> None:
        """One task of the series has ended."""


class Tracer(Protocol):
    """Records how long each step takes, as spans: the one that begins within another is its child.

    A name stands for a kind of step; attributes say which one it is. Neither contains a secret.
    """

    def span(self, name: str, /, **attributes: str | int) -> AbstractContextManager[object]:
        """The step that the block is. An error that leaves the block is its error."""
        ...

    def past(self, name: str, began_ns: int, ended_ns: int, /, **attributes: str | int) -> None:
        """A step that has ended, within the one that goes on: one that another process may have run."""
        ...


class NoTracer:
    """Records nothing."""

    def span(self, _name: str, /, **_attributes: str | int) -> AbstractContextManager[object]:
        return nullcontext()

    def past(self, _name: str, _began_ns: int, _ended_ns: int, /, **_attributes: str | int) -> None: ...
