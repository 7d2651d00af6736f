"""How writers of one table keep out of each other's way, and know of each other's lives."""

from types import TracebackType
from typing import Protocol, Self


class Lease(Protocol):
    """A held table lock, given up at the end of the `with` block."""

    def check(self) -> None:
        """Raises LockError when the lease has been lost. Called before every write of a step."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None: ...


class TableLock(Protocol):
    def acquire(self) -> Lease:
        """Waits for the table lock, as long as configured. Raises LockError."""
        ...


class Heartbeats(Protocol):
    """Signs of life of a write, as Hudi's writers leave them: who finds none for long takes the write for dead."""

    def start(self, instant: str) -> None:
        """Begins to beat: the first one is there on return."""
        ...

    def stop(self, instant: str) -> None:
        """Ends it; the last beat stays, and grows old. Harmless where none was started."""
        ...
