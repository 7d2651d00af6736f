"""Hudi's file lock. Time is a manual clock that also stamps the files."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from eventide.bootstrap import SystemClock
from eventide_adapters.lock.file_system_based import FileSystemBasedLease, FileSystemBasedLock
from eventide_adapters.storage.faulty import Fault, FaultPlan, FaultyStorage, SimulatedCrash
from eventide_adapters.storage.local import LocalStorage
from eventide_adapters.storage.memory import MemoryStorage
from eventide_core.config import LOCK_EXPIRE_MINUTES, LOCK_PATH, LOCK_WAIT_MS, Options
from eventide_core.errors import ConfigError, LockError, LockLostError, StorageError
from eventide_core.ports import Storage
from support.doubles.clocks import ManualClock
from support.doubles.metered import Cost, MeteredStorage

LOCK = ".hoodie/lock"
MINUTE_MS = 60_000
EXPIRING: dict[str, str] = {LOCK_EXPIRE_MINUTES: "10", LOCK_WAIT_MS: "0"}


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def storage(clock: ManualClock) -> MemoryStorage:
    return MemoryStorage.from_dump("locked", {}, now_ms=clock.now_ms)


def _lock(storage: Storage, clock: ManualClock, owner: str = "us", **more: str) -> FileSystemBasedLock:
    return FileSystemBasedLock(storage, Options({LOCK_WAIT_MS: "0", **more}), clock, owner)


def _expiring(storage: Storage, clock: ManualClock, owner: str) -> FileSystemBasedLock:
    return FileSystemBasedLock(storage, Options(EXPIRING), clock, owner)


class TestHolding:
    def test_the_lock_is_a_file_while_it_is_held(self, storage: MemoryStorage, clock: ManualClock) -> None:
        with _lock(storage, clock).acquire() as lease:
            lease.check()
            assert list(storage.dump()) == [LOCK]
        assert storage.dump() == {}

    def test_the_file_names_the_holder_as_hudi_would(self, storage: MemoryStorage, clock: ManualClock) -> None:
        with _lock(storage, clock, "eventide compact on host-7").acquire():
            lock_info = json.loads(storage.read(LOCK))
        assert list(lock_info) == ["lockCreateTime", "lockThreadName", "lockStacksInfo", "process"]
        assert lock_info["lockCreateTime"] == "2026-11-18 11:06:40.000"
        assert lock_info["lockThreadName"].startswith("eventide compact on host-7 ")

    def test_a_second_one_is_refused_and_the_error_names_the_holder(
        self, storage: MemoryStorage, clock: ManualClock
    ) -> None:
        with (
            _lock(storage, clock, "first").acquire(),
            pytest.raises(LockError, match=r"memory://locked/\.hoodie/lock.*'first .*since 2026-11-18T"),
        ):
            _lock(storage, clock, "second").acquire()

    @pytest.mark.parametrize(("options", "asked"), [({}, {"read": 1}), (EXPIRING, {"stat": 1, "read": 1})])
    def test_a_check_asks_for_the_age_only_of_a_lock_that_expires(
        self, storage: MemoryStorage, clock: ManualClock, options: dict[str, str], asked: dict[str, int]
    ) -> None:
        cost = Cost()
        with _lock(MeteredStorage(storage, cost), clock, **options).acquire() as lease:
            cost.calls.clear()
            lease.check()
            assert cost.calls == asked
            storage.delete(LOCK)
            with pytest.raises(LockLostError, match="is gone"):
                lease.check()

    def test_the_same_owner_is_no_exception(self, storage: MemoryStorage, clock: ManualClock) -> None:
        lock = _lock(storage, clock)
        with lock.acquire(), pytest.raises(LockError):
            lock.acquire()

    def test_an_empty_lock_file_as_hudi_leaves_it_is_respected(
        self, storage: MemoryStorage, clock: ManualClock
    ) -> None:
        storage.put(LOCK, b"")
        with pytest.raises(LockError, match="a writer that does not state its name"):
            _lock(storage, clock).acquire()
        assert storage.read(LOCK) == b""

    def test_a_lock_is_free_again_after_an_error(self, storage: MemoryStorage, clock: ManualClock) -> None:
        with pytest.raises(ZeroDivisionError), _lock(storage, clock).acquire():
            raise ZeroDivisionError
        with _lock(storage, clock).acquire() as lease:
            lease.check()

    def test_if_many_try_at_once_one_holds_it(self, tmp_path: Path, clock: ManualClock) -> None:
        def try_once(number: int) -> bool:
            try:
                _lock(LocalStorage(tmp_path), clock, str(number)).acquire()
            except LockError:
                return False
            return True

        with ThreadPoolExecutor(8) as pool:
            assert sum(pool.map(try_once, range(16))) == 1


class TestWaiting:
    def test_who_waits_gets_the_lock_when_it_is_given_up(self, storage: MemoryStorage, clock: ManualClock) -> None:
        first = _lock(storage, clock, "first").acquire()
        start_ms = clock.now_ms()
        clock.events.append((start_ms + 30_000, lambda: first.__exit__(None, None, None)))
        with _lock(storage, clock, "second", **{LOCK_WAIT_MS: "60000"}).acquire() as lease:
            lease.check()
            assert 30_000 <= clock.now_ms() - start_ms < 31_000

    @pytest.mark.parametrize(("option", "waited_ms"), [({LOCK_WAIT_MS: "2050"}, 2_050), ({}, 60_000)])
    def test_the_wait_ends_on_the_millisecond(
        self, storage: MemoryStorage, clock: ManualClock, option: dict[str, str], waited_ms: int
    ) -> None:
        storage.put(LOCK, b"")
        start_ms = clock.now_ms()
        with pytest.raises(LockError, match=f"within {waited_ms} ms"):
            FileSystemBasedLock(storage, Options(option), clock, "us").acquire()
        assert clock.now_ms() - start_ms == waited_ms

    def test_a_dead_holders_lock_stays_unless_expiry_is_configured(
        self, storage: MemoryStorage, clock: ManualClock
    ) -> None:
        storage.put(LOCK, b"")
        clock.sleep(1_000_000 * MINUTE_MS)
        with pytest.raises(LockError, match=LOCK_EXPIRE_MINUTES):
            _lock(storage, clock).acquire()


class TestExpiry:
    def test_a_lock_expires_after_its_minutes_and_not_before(self, storage: MemoryStorage, clock: ManualClock) -> None:
        storage.put(LOCK, b"")
        clock.sleep(10 * MINUTE_MS)
        with pytest.raises(LockError):
            _expiring(storage, clock, "us").acquire()
        clock.sleep(1)
        with _expiring(storage, clock, "us").acquire() as lease:
            lease.check()
            assert list(storage.dump()) == [LOCK]

    def test_a_holder_notices_that_its_lock_has_expired(self, storage: MemoryStorage, clock: ManualClock) -> None:
        with _expiring(storage, clock, "us").acquire() as lease:
            clock.sleep(10 * MINUTE_MS)
            lease.check()
            clock.sleep(1)
            with pytest.raises(LockError, match=f"expired while it was held: set {LOCK_EXPIRE_MINUTES}"):
                lease.check()

    def test_a_process_that_wakes_up_neither_passes_nor_removes_the_next_ones_lock(
        self, storage: MemoryStorage, clock: ManualClock
    ) -> None:
        sleeper = _expiring(storage, clock, "sleeper").acquire()
        clock.sleep(11 * MINUTE_MS)
        with _expiring(storage, clock, "next").acquire() as lease:
            with pytest.raises(LockError, match="held by 'next "):
                sleeper.check()
            sleeper.__exit__(None, None, None)
            lease.check()

    def test_a_lease_of_an_earlier_lock_does_not_pass_for_the_same_owners_next(
        self, storage: MemoryStorage, clock: ManualClock
    ) -> None:
        lock = _expiring(storage, clock, "us")
        earlier = lock.acquire()
        clock.sleep(11 * MINUTE_MS)
        with lock.acquire() as lease:
            with pytest.raises(LockError, match="lost"):
                earlier.check()
            lease.check()

    def test_a_lock_that_a_stock_writer_took_away_is_lost(self, storage: MemoryStorage, clock: ManualClock) -> None:
        with _lock(storage, clock).acquire() as lease:
            storage.delete(LOCK)
            with pytest.raises(LockError, match="is gone"):
                lease.check()
            storage.put(LOCK, b"")
            with pytest.raises(LockError, match="held by a writer that does not state its name"):
                lease.check()
        assert storage.read(LOCK) == b""


@dataclass
class _Interrupted:
    """A storage that lets someone else act just before the n-th operation."""

    inner: Storage
    before: int
    act: Callable[[], object]
    count: int = 0

    def __getattr__(self, name: str) -> object:
        value = getattr(self.inner, name)
        if not callable(value):
            return value

        def call(*arguments: object) -> object:
            if self.count == self.before:
                self.act()
            self.count += 1
            return value(*arguments)

        return call


class FullDisk(MemoryStorage):
    is_full = False

    def put_if_absent(self, path: str, data: bytes) -> bool:
        if self.is_full and data:
            raise StorageError(f"cannot write {len(data)} bytes to {path!r}: No space left on device")
        return super().put_if_absent(path, data)


class TestTwoWhoFindAnExpiredLock:
    """Every point at which one of them can be overtaken by the other, by a holder's release, and by a crash."""

    def _holders_after(self, clock: ManualClock, before: int, waits: str) -> tuple[int, bool]:
        storage = MemoryStorage.from_dump("raced", {}, now_ms=clock.now_ms)
        storage.put(LOCK, b"")
        clock.sleep(11 * MINUTE_MS)
        leases: list[FileSystemBasedLease] = []

        def acquire(view: Storage, owner: str) -> None:
            options = Options({**EXPIRING, LOCK_WAIT_MS: waits})
            with suppress(LockError):
                leases.append(FileSystemBasedLock(view, options, clock, owner).acquire())

        interrupted = _Interrupted(storage, before, lambda: acquire(storage, "fast"))
        acquire(interrupted, "slow")  # type: ignore[arg-type]  # it hands on what it does not name
        for lease in leases:
            lease.check()
        return len(leases), interrupted.count <= before

    @pytest.mark.parametrize("waits", ["0", "1000"])
    def test_exactly_one_of_them_gets_the_next(self, clock: ManualClock, waits: str) -> None:
        points = 0
        while True:
            holders, is_past_the_end = self._holders_after(clock, points, waits)
            if is_past_the_end:
                break
            assert holders == 1, f"overtaken before operation {points}"
            points += 1
        assert points >= 8

    def test_a_release_takes_the_next_lock_away_only_after_a_pause_at_its_delete(self, clock: ManualClock) -> None:
        """A pause that is longer than a lock lasts. The next holder notices the loss."""
        lost: list[int] = []
        for before in range(20):
            storage = MemoryStorage.from_dump("released", {}, now_ms=clock.now_ms)
            leases: list[FileSystemBasedLease] = []

            def take_over(storage: Storage = storage, leases: list[FileSystemBasedLease] = leases) -> None:
                clock.sleep(11 * MINUTE_MS)
                leases.append(_expiring(storage, clock, "next").acquire())

            interrupted = _Interrupted(storage, -1, take_over)
            holder = _expiring(interrupted, clock, "holder").acquire()  # type: ignore[arg-type]  # as above
            interrupted.before = interrupted.count + before
            holder.__exit__(None, None, None)
            for lease in leases:
                try:
                    lease.check()
                except LockLostError:
                    lost.append(before)
            if interrupted.count <= interrupted.before:
                assert before >= 6, "fewer operations than a claim, a look, a delete and the end of the claim take"
                assert len(lost) == 1
                return
        pytest.fail("a release takes more than 20 operations")


class TestAKill:
    """The process dies before or after any write of its removal of a lock that is over, and of its own release."""

    @pytest.mark.parametrize("fault", [Fault.CRASH_BEFORE, Fault.CRASH_AFTER])
    def test_after_any_step_the_lock_is_free_again_once_it_has_expired(self, clock: ManualClock, fault: Fault) -> None:
        for step in range(20):
            storage = MemoryStorage.from_dump("killed", {}, now_ms=clock.now_ms)
            storage.put(LOCK, b"")
            clock.sleep(11 * MINUTE_MS)
            dying = FaultyStorage(storage, FaultPlan(writes={step: fault}))
            with suppress(SimulatedCrash):
                with _expiring(dying, clock, "dying").acquire():
                    pass
                assert step == 8, "a lock, in vain; a claim, two deletes, a lock; a claim and two deletes"
                return
            clock.sleep(10 * MINUTE_MS + 1)
            with _expiring(storage, clock, "next").acquire() as lease:
                lease.check()
                assert LOCK in storage.dump()
            assert LOCK not in storage.dump()
        pytest.fail("more than 20 steps")

    def test_of_a_second_process_leaves_the_claim_to_a_third(self, storage: MemoryStorage, clock: ManualClock) -> None:
        storage.put(LOCK, b"")
        for dead in range(3):
            clock.sleep(11 * MINUTE_MS)
            dying = FaultyStorage(storage, FaultPlan(writes={1 + dead: Fault.CRASH_AFTER}))
            with suppress(SimulatedCrash):
                _expiring(dying, clock, "dying").acquire()
        assert len(storage.dump()) == 4
        with pytest.raises(LockError):
            _expiring(storage, clock, "early").acquire()
        clock.sleep(11 * MINUTE_MS)
        with _expiring(storage, clock, "next").acquire() as lease:
            lease.check()
            assert list(storage.dump()) == [LOCK]

    def test_an_empty_claim_is_enough_on_a_full_disk(self, clock: ManualClock) -> None:
        storage = FullDisk("full-disk")
        with _expiring(storage, clock, "us").acquire():
            storage.is_full = True
        assert storage.dump() == {}


class TestAStorageThatFails:
    @pytest.mark.parametrize("fault", [Fault.REPLY_LOST, Fault.DUPLICATED])
    def test_a_lock_taken_without_a_good_answer_is_held(
        self, storage: MemoryStorage, clock: ManualClock, fault: Fault
    ) -> None:
        faulty = FaultyStorage(storage, FaultPlan(writes={0: fault}))
        with _lock(faulty, clock).acquire() as lease:
            lease.check()
        assert storage.dump() == {}

    def test_a_lock_that_cannot_be_written_is_a_storage_error(self, storage: MemoryStorage, clock: ManualClock) -> None:
        faulty = FaultyStorage(storage, FaultPlan(writes={0: Fault.ERROR}))
        with pytest.raises(StorageError, match="did not happen"):
            _lock(faulty, clock).acquire()

    def test_a_process_that_dies_keeps_the_lock(self, storage: MemoryStorage, clock: ManualClock) -> None:
        faulty = FaultyStorage(storage, FaultPlan(writes={1: Fault.CRASH_BEFORE}))
        with pytest.raises(SimulatedCrash), _lock(faulty, clock).acquire():
            faulty.put("file", b"")
        assert list(storage.dump()) == [LOCK]


class TestWhereItLies:
    @pytest.mark.parametrize(
        ("configured", "path"),
        [
            ("{root}/.hoodie/.aux", ".hoodie/.aux/lock"),
            ("{root}/.hoodie/.aux/", ".hoodie/.aux/lock"),
            ("file://{root}/locks", "locks/lock"),
            ("file:{root}/locks", "locks/lock"),
            (".hoodie/.locks", ".hoodie/.locks/lock"),
            ("{root}", "lock"),
        ],
    )
    def test_the_directory_is_configured_as_in_hudi(
        self, tmp_path: Path, clock: ManualClock, configured: str, path: str
    ) -> None:
        options: dict[str, str] = {LOCK_PATH: configured.format(root=tmp_path)}
        with _lock(LocalStorage(tmp_path), clock, **options).acquire():
            assert (tmp_path / path).exists()

    @pytest.mark.parametrize(
        "configured",
        ["/elsewhere", "{root}2/locks", "s3://bucket/locks", "s3:{root}/locks", "{root}/../locks", "../locks"],
    )
    def test_a_directory_outside_the_table_is_refused(
        self, tmp_path: Path, clock: ManualClock, configured: str
    ) -> None:
        options: dict[str, str] = {LOCK_PATH: configured.format(root=tmp_path)}
        with pytest.raises(ConfigError, match=f"{LOCK_PATH}=.*outside the table"):
            _lock(LocalStorage(tmp_path), clock, **options)


@pytest.mark.slow
class TestDeadProcesses:
    """On a real disk, with real processes: nothing ever expires here."""

    @pytest.mark.parametrize("calls", range(1, 7))
    def test_one_that_was_killed_while_it_removed_a_dead_lock_leaves_none(self, calls: int, tmp_path: Path) -> None:
        _held_by_a_killed_process(tmp_path)
        _killed_after(calls, tmp_path)
        storage = LocalStorage(str(tmp_path))
        with _lock(storage, ManualClock(), "next").acquire() as lease:
            lease.check()
        assert storage.stat(LOCK) is None

    def test_the_lock_of_a_killed_process_is_taken_over(self, tmp_path: Path) -> None:
        _held_by_a_killed_process(tmp_path)
        storage = LocalStorage(str(tmp_path))
        with FileSystemBasedLock(storage, Options({LOCK_WAIT_MS: "0"}), ManualClock(), "next").acquire() as lease:
            lease.check()
        assert storage.stat(LOCK) is None

    def test_the_lock_of_a_process_that_lives_is_left_alone(self, tmp_path: Path) -> None:
        storage = LocalStorage(str(tmp_path))
        with _lock(storage, ManualClock(), "first").acquire(), pytest.raises(LockError, match="first"):
            _lock(storage, ManualClock(), "second").acquire()

    @pytest.mark.parametrize("change", [{"place": "another boot"}, {"pid": "1"}, {"started": None}])
    def test_who_cannot_be_known_to_be_dead_is_taken_for_alive(self, change: dict[str, object], tmp_path: Path) -> None:
        _held_by_a_killed_process(tmp_path)
        file = tmp_path / LOCK
        lock_info = json.loads(file.read_text())
        lock_info["process"] |= change
        file.write_text(json.dumps(lock_info))
        with pytest.raises(LockError):
            _lock(LocalStorage(str(tmp_path)), ManualClock(), "next").acquire()

    def test_a_number_that_another_process_has_now_does_not_keep_the_lock(self, tmp_path: Path) -> None:
        _held_by_a_killed_process(tmp_path)
        file = tmp_path / LOCK
        lock_info = json.loads(file.read_text())
        lock_info["process"]["pid"] = os.getpid()
        file.write_text(json.dumps(lock_info))
        with _lock(LocalStorage(str(tmp_path)), ManualClock(), "next").acquire():
            assert json.loads(file.read_text())["lockThreadName"].startswith("next")

    def test_if_many_find_a_dead_lock_one_has_it_at_a_time(self, tmp_path: Path) -> None:
        _held_by_a_killed_process(tmp_path)
        storage = LocalStorage(str(tmp_path))
        inside: list[int] = []

        def work(number: int) -> None:
            lock = FileSystemBasedLock(storage, Options({LOCK_WAIT_MS: "60000"}), SystemClock(), str(number))
            with lock.acquire() as lease:
                inside.append(number)
                assert len(inside) == 1
                lease.check()
                inside.remove(number)

        with ThreadPoolExecutor(6) as pool:
            list(pool.map(work, range(12)))
        assert [entry.path for entry in storage.list(".hoodie")] == []


_HOLDER = """
import os, signal, sys
sys.path[:0] = sys.argv[2:]
from eventide.bootstrap import SystemClock
from eventide_adapters.lock.file_system_based import FileSystemBasedLock
from eventide_adapters.storage.local import LocalStorage
from eventide_core.config import Options
FileSystemBasedLock(LocalStorage(sys.argv[1]), Options({}), SystemClock(), "killed").acquire()
os.kill(os.getpid(), signal.SIGKILL)
"""


_REMOVER = """
import os, signal, sys
sys.path[:0] = sys.argv[3:]
from eventide.bootstrap import SystemClock
from eventide_adapters.lock.file_system_based import FileSystemBasedLock
from eventide_adapters.storage.local import LocalStorage
from eventide_core.config import Options

class Killing(LocalStorage):
    left = int(sys.argv[2])

    def __getattribute__(self, name):
        if name in ("put_if_absent", "delete", "discard", "read", "stat"):
            if Killing.left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            Killing.left -= 1
        return super().__getattribute__(name)

FileSystemBasedLock(Killing(sys.argv[1]), Options({}), SystemClock(), "killed").acquire()
os.kill(os.getpid(), signal.SIGKILL)
"""


def _killed_after(calls: int, root: Path) -> None:
    """Runs a process that finds a dead lock, and is killed after some of its requests."""
    ended = subprocess.run([sys.executable, "-c", _REMOVER, str(root), str(calls), *sys.path], check=False)
    assert ended.returncode == -signal.SIGKILL


def _held_by_a_killed_process(root: Path) -> None:
    ended = subprocess.run([sys.executable, "-c", _HOLDER, str(root), *sys.path], check=False)
    assert ended.returncode == -signal.SIGKILL
    assert (root / LOCK).exists()
