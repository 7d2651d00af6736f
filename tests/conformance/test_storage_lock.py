"""The storage-based lock: each of eventide and Hudi reads what the other one writes."""

import pytest

from eventide_adapters.lock.storage_based import PATH, StorageBasedLock
from eventide_adapters.storage.memory import MemoryStorage
from eventide_core.config import LOCK_WAIT_MS, Options
from eventide_core.errors import LockError
from support.doubles.clocks import ManualClock
from support.judge import HudiJudge


def test_hudi_reads_eventides_lock_and_eventide_respects_it_as_hudi_writes_it(judge_111: HudiJudge) -> None:
    clock, storage = ManualClock(), MemoryStorage.from_dump("a lock that Hudi reads", {})

    def lock(owner: str) -> StorageBasedLock:
        return StorageBasedLock(storage, Options({LOCK_WAIT_MS: "0"}), clock, owner)

    with lock("eventide").acquire():
        held = judge_111.storage_lock(storage.read(PATH))
    released = judge_111.storage_lock(storage.read(PATH))

    storage.put(PATH, held)
    with pytest.raises(LockError, match=r"'eventide .*' holds it until"):
        lock("another").acquire()
    storage.put(PATH, released)
    with lock("another").acquire() as lease:
        lease.check()
