"""Whether the writer of a pending action is still there, by its heartbeat.

One with a heartbeat is alive until that expires. Without a heartbeat nothing tells (stock writers that clean eagerly keep
none): it is neither known to be alive nor to be dead.
"""

from dataclasses import dataclass

from eventide_core import config as keys
from eventide_core.config import Options
from eventide_core.errors import BusyError
from eventide_core.ports import Clock, Storage
from eventide_core.table.file_group_write import heartbeat_path
from eventide_core.table.instant import WRITE_ACTIONS, Instant

HEARTBEAT_TOLERABLE_MISSES_DEFAULT = 2  # Hudi's default


@dataclass(frozen=True, slots=True)
class Liveness:
    storage: Storage
    clock: Clock
    options: Options

    def is_dead(self, pending: Instant) -> bool:
        """Whether it is a write whose heartbeat has expired."""
        if pending.action not in WRITE_ACTIONS:
            return False
        age_ms = self._age_ms(pending.requested_time)
        return age_ms is not None and age_ms > self._expiry_ms

    def is_known_alive(self, instant: str) -> bool:
        """Whether a heart beats at an instant."""
        age_ms = self._age_ms(instant)
        return age_ms is not None and age_ms <= self._expiry_ms

    def check_not_alive(self, pending: Instant, cure: str) -> None:
        """Raises BusyError, with what to do about it, where the heart of a pending action is known to beat."""
        age_ms = self._age_ms(pending.requested_time)
        if age_ms is not None and age_ms <= self._expiry_ms:
            raise BusyError(
                f"the {pending.action} at {pending.requested_time} is alive: its heartbeat is {age_ms} ms old; {cure}"
            )

    def _age_ms(self, instant: str) -> int | None:
        found = self.storage.stat(heartbeat_path(instant))
        return None if found is None else max(0, self.clock.now_ms() - found.modified_ms)

    @property
    def _expiry_ms(self) -> int:
        """The age from which on a write counts as dead."""
        interval = self.options.integer(keys.HEARTBEAT_INTERVAL_MS, keys.HEARTBEAT_INTERVAL_MS_DEFAULT)
        return interval * self.options.integer(keys.HEARTBEAT_TOLERABLE_MISSES, HEARTBEAT_TOLERABLE_MISSES_DEFAULT)
