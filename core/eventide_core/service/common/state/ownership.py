"""Which process runs a pending action of eventide: one at a time.

1. Under the table lock: if a live process has a heartbeat, the action is busy. Otherwise, this process writes its own.
2. The work, outside the lock.
3. The heartbeat is removed, whether the work succeeded or failed, so that the next process continues immediately. If
   a process was killed, or could not end its work for want of the lock, its heartbeat stays, and shows that it is dead:
   what it made may be left.

A process that is paused past its heartbeat's expiry loses the instant to the next process, and both work when it continues.
That costs work, but no data: ownership only avoids double work. The claim of the outcome, or the completed file,
ensures that an action ends only once.
"""

from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from eventide_core.errors import LockError, StorageError
from eventide_core.ports import TableLock
from eventide_core.service.common.state.liveness import Liveness
from eventide_core.table.timeline.instant import Instant


@dataclass(frozen=True, slots=True)
class Ownership:
    lock: TableLock
    liveness: Liveness

    @contextmanager
    def held(self, pending: Instant) -> Generator[None]:
        """Keeps the instant for the block. Raises BusyError while another process works on it."""
        instant = pending.requested_time
        is_ours = False
        try:
            with self.lock.acquire() as lease:
                self.liveness.check_not_alive(pending, "try again when it has completed or died")
                lease.check()
                self.liveness.heartbeats.start(instant)
                is_ours = True
            yield
        except LockError:
            if is_ours:
                self.liveness.heartbeats.stop(instant)
                is_ours = False
            raise
        finally:
            if is_ours:
                # The work has ended; a heartbeat that cannot be removed expires.
                with suppress(StorageError):
                    self.liveness.heartbeats.end(instant)
