"""Table locks and heartbeats: how the writers of one table exclude each other, and see who is alive."""

from types import TracebackType
from typing import Protocol, Self


class Lease(Protocol):
    """A held table lock, released at the end of the `with` block."""

    def check(self) -> None:
        """Raises LockLostError if another process took the lock, LockError if it expired. Called before each write."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None: ...


class TableLock(Protocol):
    """At most one process holds the lock of a table, whichever engine it runs. A holder that dies loses it in time."""

    def acquire(self) -> Lease:
        """Acquires the table lock; waits as long as configured. Raises LockError."""
        ...


class Heartbeats(Protocol):
    """Heartbeats of the processes that work on instants, in Hudi's form. A process without a recent heartbeat is dead.

    Each is the file `heartbeat_path(instant)`. Its content names the process; Hudi's are empty, and Hudi reads none.
    """

    def start(self, instant: str) -> None:
        """Starts the heartbeat; its file exists on return. Does nothing if it has been started."""
        ...

    def stop(self, instant: str) -> None:
        """Stops the heartbeat; its file stays until it expires. Does nothing if none was started."""
        ...

    def end(self, instant: str) -> None:
        """Stops the heartbeat and removes its file, unless another process has taken over the instant."""
        ...

    def has_ended(self, instant: str, content: bytes) -> bool:
        """Whether the heartbeat's owner, a process of this machine or this object, is known to have ended its work."""
        ...
