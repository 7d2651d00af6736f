"""Which process runs a pending action of eventide's: one at a time.

1. Inside the table lock: a heartbeat of someone who is alive is in the way; otherwise, this process leaves its own.
2. The work, outside the lock.
3. The heartbeat goes, whether the work was done or failed: who comes next continues at once. That of a process that was
   killed stays, and tells that it is dead.

A process that sleeps past its heartbeat's expiry loses the instant to whoever comes next, and both work when it wakes
up. That costs work and no data: ownership is a courtesy, and what ends an action once is the claim of its outcome or its
completed file.
"""

from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from eventide_core.errors import StorageError
from eventide_core.ports import Heartbeats, TableLock
from eventide_core.service.state.liveness import Liveness
from eventide_core.table.instant import Instant


@dataclass(frozen=True, slots=True)
class Ownership:
    lock: TableLock
    heartbeats: Heartbeats
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
                self.heartbeats.start(instant)
                is_ours = True
            yield
        finally:
            if is_ours:
                # The work has ended; a heartbeat that cannot be removed expires.
                with suppress(StorageError):
                    self.heartbeats.end(instant)
