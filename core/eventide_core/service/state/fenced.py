"""Puts a timeline file under the table lock, and withdraws it if the lock had been lost by the time it was there.

A process that sleeps between its look at the lock and the put cannot know that others have the lock now. They may have
undone, archived and cleaned beyond the file, and a timeline that starts at it again would not count what was archived. So
the lock is checked on the other side of the put, too.
"""

from eventide_core.errors import LockError
from eventide_core.ports import Lease, Storage, discard
from eventide_core.table.timeline.instant import Instant, State

_ORDER = (State.REQUESTED, State.INFLIGHT, State.COMPLETED)


def put_fenced(storage: Storage, path: str, data: bytes, lease: Lease) -> bool:
    """Whether the file was put; False if it existed. Raises LockError after it has withdrawn the file.

    The file stays if the action has a later state by then: the lock was lost after the put, and another process has gone
    on with the action.
    """
    lease.check()
    if not storage.put_if_absent(path, data):
        return False
    try:
        lease.check()
    except LockError:
        directory, _, name = path.rpartition("/")
        own = Instant.parse(name)
        names = (entry.path.rpartition("/")[2] for entry in storage.list(directory))
        found = [instant for instant in map(Instant.parse, names) if instant is not None]
        if own is None or not any(i.requested_time == own.requested_time and _is_later(i, own) for i in found):
            discard(storage, path)
        raise
    return True


def _is_later(instant: Instant, other: Instant) -> bool:
    return _ORDER.index(instant.state) > _ORDER.index(other.state)
