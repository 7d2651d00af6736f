"""The table lock, whose waits are spans of the trace."""

from dataclasses import dataclass

from eventide_core.ports import Lease, TableLock, Tracer


@dataclass(frozen=True, slots=True)
class TracedLock:
    """ports.TableLock over another one."""

    lock: TableLock
    tracer: Tracer

    def acquire(self) -> Lease:
        with self.tracer.span("wait for the lock"):
            return self.lock.acquire()
