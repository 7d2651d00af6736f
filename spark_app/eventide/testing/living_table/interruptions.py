"""What can happen to a process at one of its writes: it dies before it, or stands still there while others go on."""

from collections.abc import Callable
from dataclasses import dataclass

from eventide.testing.crash_enumeration import StandingStill
from eventide_adapters.storage.faulty import Fault, FaultPlan, FaultyStorage
from eventide_core.ports import Storage


@dataclass(frozen=True, slots=True)
class Pause:
    """A process is paused before this write until its lock and heartbeat have expired and others have changed the table."""

    before: int
    meanwhile: Callable[[], None]


Interruption = int | Pause | None
"""The write before which a process dies, or stands still; None if it does neither."""


def interrupted(storage: Storage, how: Interruption, falls_asleep: Callable[[], None]) -> FaultyStorage:
    """The storage of such a process. `falls_asleep` runs before what others do meanwhile."""
    if isinstance(how, Pause):
        meanwhile = how.meanwhile

        def interlude() -> None:
            falls_asleep()
            meanwhile()

        return StandingStill(storage, how.before, interlude)
    writes = {} if how is None else {how: Fault.CRASH_BEFORE}
    return FaultyStorage(storage, FaultPlan(writes=writes))


def was_paused(storage: FaultyStorage, how: Interruption) -> bool:
    """Whether the process has come to the write before which it stands still."""
    return isinstance(how, Pause) and len(storage.writes) > how.before
