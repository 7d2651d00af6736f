"""How writers of one table keep out of each other's way, and know of each other's lives."""

from types import TracebackType
from typing import Protocol, Self


class Lease(Protocol):
    """A held table lock, given up at the end of the `with` block."""

    def check(self) -> None:
        """Raises LockLostError when the lock was taken away, LockError when it has expired. Called before every write."""
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
    """Signs of life of whoever works on an instant, as Hudi's writers leave them: without one for long, that one is dead.

    Each is the file `heartbeat_path(instant)`. Its content names the process; Hudi's are empty, and Hudi reads none.
    """

    def start(self, instant: str) -> None:
        """Begins to beat: the first one exists on return. Harmless if it beats already."""
        ...

    def stop(self, instant: str) -> None:
        """Ends it; the last beat stays, and grows old. Harmless if none was started."""
        ...

    def end(self, instant: str) -> None:
        """Ends it and removes the last beat, unless another process has taken the instant over since."""
        ...

    def has_ended(self, instant: str, content: bytes) -> bool:
        """Whether whoever left the heartbeat is known to have ended its work: a process of this machine, or this object."""
        ...
