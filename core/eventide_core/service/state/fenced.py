"""Puts a timeline file under the table lock, and withdraws it if the lock had been lost by the time it was there.

A process that sleeps between its look at the lock and the put cannot know that others have the lock now. They may have
undone, archived and cleaned beyond the file, and a timeline that starts at it again would not count what was archived. So
the lock is checked on the other side of the put, too.
"""

from eventide_core.errors import LockError
from eventide_core.ports import Lease, Storage, discard


def put_fenced(storage: Storage, path: str, data: bytes, lease: Lease) -> bool:
    """Whether the file was put; False if it existed. Raises LockError after it has withdrawn the file."""
    lease.check()
    if not storage.put_if_absent(path, data):
        return False
    try:
        lease.check()
    except LockError:
        discard(storage, path)
        raise
    return True
