"""Whether the process that works on a pending action is alive, by its heartbeat.

1. A heartbeat that has not been renewed for as long as Hudi's options say has expired: its process counts as dead.
2. A heartbeat of eventide names its process. One of this machine that has ended is dead at once.
3. Without a heartbeat, a process counts as neither alive nor dead: stock writers that clean eagerly keep none, nor does
   Flink.
4. Cleans and rollbacks of other engines keep none either. One that has been pending for long counts as abandoned: an hour
   by default, `eventide.pending.service.stale_ms`. If two processes completed it, it would be on the timeline twice.
"""

import json
from dataclasses import dataclass

from eventide_core import config as keys
from eventide_core.access.files import info_of_file
from eventide_core.config import Options
from eventide_core.errors import BusyError, MissingFileError
from eventide_core.ports import Clock, Heartbeats, Storage
from eventide_core.table.files.file_group_write import heartbeat_path
from eventide_core.table.timeline.instant import WRITE_ACTIONS, Action, Instant


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """The last heartbeat at an instant. `owner` describes eventide's process for the user; None for another engine's.

    `age_ms` is the time since it was renewed, by the storage's modification time and this clock. `is_fresh`: it has not
    expired, and its process is not known to have ended.
    """

    age_ms: int
    is_fresh: bool
    owner: str | None


@dataclass(frozen=True, slots=True)
class Liveness:
    """`expiry_ms` is the age at which a heartbeat expires, `stale_ms` that at which a service of another engine does."""

    storage: Storage
    heartbeats: Heartbeats
    clock: Clock
    expiry_ms: int
    stale_ms: int

    @classmethod
    def of(cls, storage: Storage, heartbeats: Heartbeats, clock: Clock, options: Options) -> "Liveness":
        """Raises ConfigError."""
        expiry_ms = options.get(keys.HEARTBEAT_INTERVAL_MS) * options.get(keys.HEARTBEAT_TOLERABLE_MISSES)
        return cls(storage, heartbeats, clock, expiry_ms, options.get(keys.PENDING_SERVICE_STALE_MS))

    def is_dead(self, pending: Instant) -> bool:
        """Whether it is a write whose writer is known to be dead."""
        if pending.action not in WRITE_ACTIONS:
            return False
        heartbeat = self.heartbeat(pending.requested_time)
        return heartbeat is not None and not heartbeat.is_fresh

    def is_known_alive(self, instant: str) -> bool:
        """Whether a process is known to work on the instant."""
        heartbeat = self.heartbeat(instant)
        return heartbeat is not None and heartbeat.is_fresh

    def has_heartbeat(self, instant: str) -> bool:
        """Whether anything states who works on the instant."""
        return self.heartbeat(instant) is not None

    def is_own_overwrite(self, pending: Instant) -> bool:
        """Whether it is an overwrite of eventide, which compares itself with what completed before it does."""
        if pending.action is not Action.REPLACE_COMMIT:
            return False
        heartbeat = self.heartbeat(pending.requested_time)
        return heartbeat is not None and heartbeat.owner is not None

    def is_abandoned(self, pending: Instant, timeline_path: str) -> bool:
        """Whether a pending clean or rollback is abandoned."""
        try:
            self.check_abandoned(pending, timeline_path)
        except BusyError:
            return False
        return True

    def check_abandoned(self, pending: Instant, timeline_path: str) -> None:
        """Raises BusyError if someone may still be at work on a clean or rollback that is pending. Under the lock."""
        heartbeat = self.heartbeat(pending.requested_time)
        if heartbeat is not None:
            # A rollback of eventide holds the table lock from its first file to its last, and this process has the lock
            # now.
            if not (pending.action is Action.ROLLBACK and heartbeat.owner is not None):
                self._check_expired(pending, heartbeat, "try again when it has completed or died")
            return
        info = info_of_file(self.storage, f"{timeline_path}/{pending.file_name}")
        if info is None:
            return
        age_ms = self.clock.now_ms() - info.modified_ms
        if age_ms < self.stale_ms:
            raise BusyError(
                f"a {pending.action} of another engine has been pending at {pending.requested_time} for "
                f"{age_ms / 1000:.1f} s, and may be running: try again when it has completed. After "
                f"{self.stale_ms / 1000:g} s ({keys.PENDING_SERVICE_STALE_MS}), it counts as abandoned, and eventide "
                "completes it"
            )

    def check_not_alive(self, pending: Instant, cure: str) -> None:
        """Raises BusyError, with the cure, if a process is known to work on a pending action."""
        self._check_expired(pending, self.heartbeat(pending.requested_time), cure)

    def _check_expired(self, pending: Instant, heartbeat: Heartbeat | None, cure: str) -> None:
        if heartbeat is not None and heartbeat.is_fresh:
            raise BusyError(
                f"the {pending.action} at {pending.requested_time} is alive: {heartbeat.owner or 'a writer'} works "
                f"on it, its heartbeat is {heartbeat.age_ms / 1000:.1f} s old and expires at "
                f"{self.expiry_ms / 1000:g} s; {cure}"
            )

    def heartbeat(self, instant: str) -> Heartbeat | None:
        """The last sign of life at the instant; None if there is none."""
        path = heartbeat_path(instant)
        try:
            content = self.storage.read(path)
        except MissingFileError:
            return None
        info = info_of_file(self.storage, path)
        if info is None:
            return None  # it has ended since
        age_ms = max(0, self.clock.now_ms() - info.modified_ms)
        is_fresh = age_ms <= self.expiry_ms and not self.heartbeats.has_ended(instant, content)
        return Heartbeat(age_ms, is_fresh, _owner(content))


def _owner(content: bytes) -> str | None:
    try:
        match json.loads(content):
            case {"host": str(host), "pid": int(pid)}:
                return f"eventide on host {host}, process {pid},"
            case _:
                return None
    except (ValueError, RecursionError):
        return None
