"""Whether the process behind a pending action is alive, by its heartbeat; and who holds an action of eventide's."""

import json
from dataclasses import dataclass, field

import pytest

from eventide_adapters.lock.file_system_based import FileSystemBasedLock
from eventide_adapters.storage.memory import MemoryStorage
from eventide_core.config import HEARTBEAT_INTERVAL_MS, HEARTBEAT_TOLERABLE_MISSES, PENDING_SERVICE_STALE_MS, Options
from eventide_core.errors import BusyError, LockLostError, MissingFileError, StorageError
from eventide_core.ports import Lease
from eventide_core.service.common.state.liveness import Liveness
from eventide_core.service.common.state.ownership import Ownership
from eventide_core.table.files.file_group_write import heartbeat_path
from eventide_core.table.timeline.instant import Action, Instant, State
from support.doubles.clocks import ManualClock

TIME = "20261118110640000"
TIMELINE = ".hoodie/timeline"
OWN = json.dumps({"host": "host-7", "pid": 4711}).encode()
OPTIONS = Options({HEARTBEAT_INTERVAL_MS: "1000", HEARTBEAT_TOLERABLE_MISSES: "3", PENDING_SERVICE_STALE_MS: "60000"})
EXPIRY_MS = 3000  # interval times misses


@dataclass
class KnownHeartbeats:
    """The instants in `ended` are known to be dead, whatever their age."""

    storage: MemoryStorage
    ended: set[str] = field(default_factory=set[str])
    is_failing: bool = False

    def start(self, instant: str) -> None:
        self.storage.put(heartbeat_path(instant), OWN)

    def stop(self, instant: str) -> None:  # noqa: ARG002
        raise AssertionError("an owner ends its heartbeat")

    def end(self, instant: str) -> None:
        if self.is_failing:
            raise StorageError("the storage is gone")
        self.storage.delete(heartbeat_path(instant))

    def has_ended(self, instant: str, content: bytes) -> bool:  # noqa: ARG002
        return instant in self.ended


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def storage(clock: ManualClock) -> MemoryStorage:
    return MemoryStorage.from_dump("alive", {}, now_ms=clock.now_ms)


@pytest.fixture
def heartbeats(storage: MemoryStorage) -> KnownHeartbeats:
    return KnownHeartbeats(storage)


@pytest.fixture
def liveness(storage: MemoryStorage, heartbeats: KnownHeartbeats, clock: ManualClock) -> Liveness:
    return Liveness.of(storage, heartbeats, clock, OPTIONS)


def _pending(action: Action) -> Instant:
    return Instant(TIME, action, State.INFLIGHT)


@pytest.mark.parametrize(("age_ms", "is_alive"), [(0, True), (EXPIRY_MS, True), (EXPIRY_MS + 1, False)])
def test_a_heartbeat_expires_after_the_misses_that_are_tolerable(
    age_ms: int, is_alive: bool, storage: MemoryStorage, liveness: Liveness, clock: ManualClock
) -> None:
    storage.put(heartbeat_path(TIME), b"")
    clock.time_ms += age_ms
    assert liveness.is_known_alive(TIME) is is_alive
    assert liveness.is_dead(_pending(Action.DELTA_COMMIT)) is not is_alive


def test_a_heartbeat_from_the_future_counts_as_current(
    storage: MemoryStorage, liveness: Liveness, clock: ManualClock
) -> None:
    storage.put(heartbeat_path(TIME), OWN)
    clock.time_ms -= 5000
    with pytest.raises(
        BusyError, match=r"eventide on host host-7, process 4711, works on it, its heartbeat is 0\.0 s old"
    ):
        liveness.check_not_alive(_pending(Action.COMPACTION), "try again")


def test_a_write_without_a_heartbeat_is_neither_alive_nor_dead(liveness: Liveness) -> None:
    assert not liveness.is_known_alive(TIME)
    assert not liveness.is_dead(_pending(Action.DELTA_COMMIT))
    assert not liveness.has_heartbeat(TIME)


def test_a_heartbeat_that_ends_between_two_reads_is_none(
    storage: MemoryStorage, liveness: Liveness, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage.put(heartbeat_path(TIME), OWN)

    def gone(path: str) -> bytes:
        raise MissingFileError(path)

    monkeypatch.setattr(storage, "read", gone)
    assert liveness.heartbeat(TIME) is None


@pytest.mark.parametrize("content", [b"[" * 100_000, b"\xff", b"[]", b'{"host": 1, "pid": 2}'])
def test_a_heartbeat_that_names_no_process_counts_by_its_age(
    content: bytes, storage: MemoryStorage, liveness: Liveness
) -> None:
    storage.put(heartbeat_path(TIME), content)
    heartbeat = liveness.heartbeat(TIME)
    assert heartbeat is not None
    assert (heartbeat.is_fresh, heartbeat.owner) == (True, None)


class TestAbandoned:
    """Cleans and rollbacks that are pending."""

    def test_a_rollback_of_eventide_is_at_work_only_under_the_lock(
        self, storage: MemoryStorage, liveness: Liveness
    ) -> None:
        storage.put(heartbeat_path(TIME), OWN)
        assert liveness.is_abandoned(_pending(Action.ROLLBACK), TIMELINE)

    @pytest.mark.parametrize(
        ("action", "content"), [(Action.ROLLBACK, b""), (Action.CLEAN, OWN)], ids=["rollback of another", "own clean"]
    )
    def test_any_other_with_a_heartbeat_is_at_work_until_it_expires(
        self, action: Action, content: bytes, storage: MemoryStorage, liveness: Liveness, clock: ManualClock
    ) -> None:
        storage.put(heartbeat_path(TIME), content)
        assert not liveness.is_abandoned(_pending(action), TIMELINE)
        clock.time_ms += EXPIRY_MS + 1
        assert liveness.is_abandoned(_pending(action), TIMELINE)

    @pytest.mark.parametrize(("age_ms", "is_abandoned"), [(59_999, False), (60_000, True)])
    def test_without_a_heartbeat_it_counts_as_abandoned_when_it_has_stood_for_long(
        self, age_ms: int, is_abandoned: bool, storage: MemoryStorage, liveness: Liveness, clock: ManualClock
    ) -> None:
        pending = _pending(Action.CLEAN)
        storage.put(f"{TIMELINE}/{pending.file_name}", b"")
        clock.time_ms += age_ms
        assert liveness.is_abandoned(pending, TIMELINE) is is_abandoned

    def test_one_that_has_completed_in_the_meantime_blocks_nobody(self, liveness: Liveness) -> None:
        liveness.check_abandoned(_pending(Action.CLEAN), TIMELINE)


class TestOwnership:
    @pytest.fixture
    def lock(self, storage: MemoryStorage, clock: ManualClock) -> FileSystemBasedLock:
        return FileSystemBasedLock(storage, Options({}), clock, "us")

    @pytest.fixture
    def ownership(self, lock: FileSystemBasedLock, liveness: Liveness) -> Ownership:
        return Ownership(lock, liveness)

    def test_the_owner_has_a_heartbeat_while_it_works_and_no_lock(
        self, ownership: Ownership, storage: MemoryStorage
    ) -> None:
        with ownership.held(_pending(Action.COMPACTION)):
            assert list(storage.dump()) == [heartbeat_path(TIME)]
        assert storage.dump() == {}

    def test_a_second_owner_is_refused_and_leaves_the_first_its_heartbeat(
        self, ownership: Ownership, storage: MemoryStorage
    ) -> None:
        with ownership.held(_pending(Action.COMPACTION)):
            with pytest.raises(BusyError, match="is alive"), ownership.held(_pending(Action.COMPACTION)):
                raise AssertionError("two owners")
            assert list(storage.dump()) == [heartbeat_path(TIME)]

    def test_the_heartbeat_goes_with_work_that_failed(self, ownership: Ownership, storage: MemoryStorage) -> None:
        with pytest.raises(ZeroDivisionError), ownership.held(_pending(Action.COMPACTION)):
            raise ZeroDivisionError
        assert storage.dump() == {}

    def test_a_heartbeat_that_cannot_be_removed_fails_nothing(
        self, ownership: Ownership, heartbeats: KnownHeartbeats
    ) -> None:
        heartbeats.is_failing = True
        with ownership.held(_pending(Action.COMPACTION)):
            pass

    def test_who_has_lost_the_lock_owns_nothing(
        self,
        ownership: Ownership,
        lock: FileSystemBasedLock,
        storage: MemoryStorage,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        acquire = lock.acquire

        def lost() -> Lease:
            lease = acquire()
            storage.delete(".hoodie/lock")
            return lease

        monkeypatch.setattr(lock, "acquire", lost)
        with pytest.raises(LockLostError), ownership.held(_pending(Action.COMPACTION)):
            raise AssertionError("owned without the lock")
        assert storage.dump() == {}
