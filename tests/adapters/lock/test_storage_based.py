"""Hudi's storage-based lock, on a storage in memory and on servers of each kind of object store. Time is a manual clock."""

import json
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from eventide_adapters.lock.storage_based import PATH, StorageBasedLock
from eventide_adapters.storage.faulty import Fault, FaultPlan, FaultyStorage, SimulatedCrash
from eventide_adapters.storage.local import LocalStorage
from eventide_adapters.storage.memory import MemoryStorage
from eventide_adapters.storage.open import open_storage
from eventide_core.config import LOCK_RENEWAL_SECONDS, LOCK_VALIDITY_SECONDS, LOCK_WAIT_MS, Options
from eventide_core.errors import ConfigError, LockError, RefusedError, StorageError
from eventide_core.ports import Storage
from support.cases.critical_sections import PROCESSES, held_until_killed, increments, lock_of
from support.doubles.clocks import ManualClock
from support.run.reach import reached
from support.servers.cloud_servers import CloudServer
from support.servers.faulty_proxy import faulty_proxy
from support.servers.s3_servers import BUCKET, S3Server

VALIDITY_MS = 300_000
OF_HUDI = b'{"expired":%s,"validUntil":%d,"owner":"0b7a2c9e-5b0f-4f0e-9c39-2f2f6f5b3c11"}'


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def storage(clock: ManualClock) -> MemoryStorage:
    return MemoryStorage.from_dump("locked by content", {}, now_ms=clock.now_ms)


def _lock(storage: Storage, clock: ManualClock, owner: str = "us", **more: str) -> StorageBasedLock:
    return StorageBasedLock(storage, Options({LOCK_WAIT_MS: "0", **more}), clock, owner)


def _content(storage: Storage) -> dict[str, object]:
    content: dict[str, object] = json.loads(storage.read(PATH))
    return content


class TestHolding:
    def test_the_lock_is_a_document_that_names_the_holder_and_the_expiry(
        self, storage: MemoryStorage, clock: ManualClock
    ) -> None:
        with _lock(storage, clock, "eventide compact on host-7").acquire() as lease:
            lease.check()
            held = _content(storage)
        assert str(held["owner"]).startswith("eventide compact on host-7 ")
        assert (held["expired"], held["validUntil"]) == (False, clock.now_ms() + VALIDITY_MS)
        assert _content(storage) == held | {"expired": True}

    def test_a_second_one_is_refused_and_the_error_names_the_holder_and_the_expiry(
        self, storage: MemoryStorage, clock: ManualClock
    ) -> None:
        with (
            _lock(storage, clock, "first").acquire(),
            pytest.raises(LockError, match=r"table_lock\.json was not free.*'first .*until 2026-11-18T11:11:40"),
        ):
            _lock(storage, clock, "second").acquire()

    def test_a_waiting_process_gets_it_when_it_is_released(self, storage: MemoryStorage, clock: ManualClock) -> None:
        first = _lock(storage, clock, "first").acquire()
        clock.events.append((clock.now_ms() + 2_500, lambda: first.__exit__(None, None, None)))
        with _lock(storage, clock, "second", **{LOCK_WAIT_MS: "10000"}).acquire() as lease:
            lease.check()
            assert str(_content(storage)["owner"]).startswith("second ")

    def test_a_lock_is_free_again_after_an_error(self, storage: MemoryStorage, clock: ManualClock) -> None:
        with pytest.raises(ZeroDivisionError), _lock(storage, clock).acquire():
            raise ZeroDivisionError
        with _lock(storage, clock).acquire() as lease:
            lease.check()

    def test_if_many_try_at_once_one_holds_it(self, storage: MemoryStorage, clock: ManualClock) -> None:
        def try_once(number: int) -> bool:
            try:
                _lock(storage, clock, str(number)).acquire()
            except LockError:
                return False
            return True

        with ThreadPoolExecutor(8) as pool:
            assert sum(pool.map(try_once, range(16))) == 1


class TestBesideHudi:
    def test_a_lock_that_a_hudi_writer_holds_is_respected(self, storage: MemoryStorage, clock: ManualClock) -> None:
        held = OF_HUDI % (b"false", clock.now_ms() - 500)
        storage.put(PATH, held)
        with pytest.raises(LockError, match=r"'0b7a2c9e-.*' holds it until"):
            _lock(storage, clock).acquire()
        assert storage.read(PATH) == held

    @pytest.mark.parametrize(("released", "ended_ago_ms"), [(b"true", -60_000), (b"false", 501)])
    def test_one_that_was_given_up_or_is_over_is_taken(
        self, released: bytes, ended_ago_ms: int, storage: MemoryStorage, clock: ManualClock
    ) -> None:
        storage.put(PATH, OF_HUDI % (released, clock.now_ms() - ended_ago_ms))
        with _lock(storage, clock).acquire() as lease:
            lease.check()

    @pytest.mark.parametrize("content", [b"", b"[]", b'{"expired":0,"validUntil":1,"owner":"a"}', b"[" * 100_000])
    def test_what_is_no_lock_is_left_alone(self, content: bytes, storage: MemoryStorage, clock: ManualClock) -> None:
        storage.put(PATH, content)
        with pytest.raises(LockError, match=r"table_lock\.json is not a lock of Hudi's.*delete the file"):
            _lock(storage, clock).acquire()
        assert storage.read(PATH) == content


class TestRenewal:
    def test_a_renewed_lock_is_valid_from_then_on(self, storage: MemoryStorage, clock: ManualClock) -> None:
        with _lock(storage, clock).acquire() as lease:
            clock.time_ms += VALIDITY_MS - 1
            assert lease.renew()
            clock.time_ms += VALIDITY_MS
            lease.check()
            with pytest.raises(LockError, match="not free"):
                _lock(storage, clock, "second").acquire()

    def test_a_thread_renews_it(self, storage: MemoryStorage, clock: ManualClock) -> None:
        times: dict[str, str] = {LOCK_VALIDITY_SECONDS: "10", LOCK_RENEWAL_SECONDS: "1"}
        renewed = _Renewals(storage)
        with _lock(renewed, clock, **times).acquire():
            clock.time_ms += 5_000
            assert renewed.seen.wait(60), "nobody renewed the lock"
            assert _content(storage)["validUntil"] == clock.now_ms() + 10_000

    def test_a_holder_that_stood_still_for_too_long_is_reported(
        self, storage: MemoryStorage, clock: ManualClock
    ) -> None:
        with _lock(storage, clock).acquire() as lease:
            clock.time_ms += VALIDITY_MS + 1
            with pytest.raises(LockError, match="not renewed in time"):
                lease.check()

    def test_a_lost_lock_is_neither_renewed_nor_given_up(self, storage: MemoryStorage, clock: ManualClock) -> None:
        with _lock(storage, clock, "first").acquire() as first:
            clock.time_ms += VALIDITY_MS + 501
            _lock(storage, clock, "second").acquire()
            taken = storage.read(PATH)
            assert not first.renew()
            with pytest.raises(LockError, match="lost: it is now held by 'second "):
                first.check()
        assert storage.read(PATH) == taken

    def test_a_lock_that_is_gone_is_lost(self, storage: MemoryStorage, clock: ManualClock) -> None:
        with _lock(storage, clock).acquire() as lease:
            storage.delete(PATH)
            with pytest.raises(LockError, match="lost: it is gone"):
                lease.check()

    @pytest.mark.parametrize(("validity", "renewal"), [("300", "31"), ("9", "1"), ("300", "0"), ("0", "30")])
    def test_times_that_would_lose_the_lock_are_refused(
        self, validity: str, renewal: str, storage: MemoryStorage, clock: ManualClock
    ) -> None:
        with pytest.raises(ConfigError, match=f"{LOCK_VALIDITY_SECONDS}={validity} must be at least 10 times"):
            _lock(storage, clock, **{LOCK_VALIDITY_SECONDS: validity, LOCK_RENEWAL_SECONDS.aliases[0]: renewal})


class _Renewals(FaultyStorage):
    """Tells when a replacement has happened: taking the lock of a new table is none."""

    def __init__(self, inner: Storage) -> None:
        super().__init__(inner)
        self.seen = threading.Event()

    def replace_version(self, path: str, data: bytes, version: str) -> bool:
        is_done = super().replace_version(path, data, version)
        if is_done:
            self.seen.set()
        return is_done


class TestFaults:
    @pytest.mark.parametrize("fault", [Fault.REPLY_LOST, Fault.DUPLICATED])
    @pytest.mark.parametrize("is_first", [True, False])
    def test_a_lost_or_repeated_request_takes_the_lock_all_the_same(
        self, fault: Fault, is_first: bool, storage: MemoryStorage, clock: ManualClock
    ) -> None:
        if not is_first:
            storage.put(PATH, OF_HUDI % (b"true", 0))
        faulty = FaultyStorage(storage, FaultPlan(writes={0: fault}))
        with _lock(faulty, clock).acquire() as lease:
            lease.check()

    @pytest.mark.parametrize("is_first", [True, False])
    def test_a_request_that_failed_raises_and_leaves_the_lock_free(
        self, is_first: bool, storage: MemoryStorage, clock: ManualClock
    ) -> None:
        if not is_first:
            storage.put(PATH, OF_HUDI % (b"true", 0))
        faulty = FaultyStorage(storage, FaultPlan(writes={0: Fault.ERROR}))
        with pytest.raises(StorageError, match="did not happen"):
            _lock(faulty, clock).acquire()
        with _lock(storage, clock, "next").acquire() as lease:
            lease.check()

    def test_work_that_is_done_stays_done_where_the_lock_cannot_be_given_up(
        self, storage: MemoryStorage, clock: ManualClock
    ) -> None:
        faulty = FaultyStorage(storage, FaultPlan(writes={2: Fault.ERROR}))
        with _lock(faulty, clock).acquire():
            pass
        clock.time_ms += VALIDITY_MS + 501
        with _lock(storage, clock, "next").acquire() as lease:
            lease.check()

    @pytest.mark.parametrize("fault", [Fault.CRASH_BEFORE, Fault.CRASH_AFTER])
    def test_a_kill_at_any_step_leaves_a_lock_that_ends_with_its_time(self, clock: ManualClock, fault: Fault) -> None:
        for step in range(10):
            storage = MemoryStorage.from_dump("killed", {}, now_ms=clock.now_ms)
            with suppress(SimulatedCrash):
                with _lock(FaultyStorage(storage, FaultPlan(writes={step: fault})), clock, "dying").acquire() as lease:
                    lease.renew()
                assert step == 4, "the lock, the look whether conditions count, a renewal, the release"
                return
            clock.sleep(VALIDITY_MS + 501)
            with _lock(storage, clock, "next").acquire() as lease:
                lease.check()
        pytest.fail("more than 10 steps")

    def test_a_dead_holders_lock_ends_with_its_time(self, storage: MemoryStorage, clock: ManualClock) -> None:
        faulty = FaultyStorage(storage, FaultPlan(writes={2: Fault.CRASH_BEFORE}))
        with pytest.raises(SimulatedCrash), _lock(faulty, clock).acquire():
            pass
        with pytest.raises(LockError):
            _lock(storage, clock, "next").acquire()
        clock.time_ms += VALIDITY_MS + 501
        with _lock(storage, clock, "next").acquire() as lease:
            lease.check()

    def test_the_lock_of_a_killed_process_of_this_machine_is_taken_at_once(
        self, storage: MemoryStorage, clock: ManualClock
    ) -> None:
        tell = (
            "from eventide_adapters.lock.processes import this_process; import json; print(json.dumps(this_process()))"
        )
        ran = subprocess.run([sys.executable, "-c", tell], check=True, capture_output=True, text=True)
        document = json.loads(OF_HUDI % (b"false", clock.now_ms() + VALIDITY_MS)) | json.loads(ran.stdout)
        storage.put(PATH, json.dumps(document).encode())
        with _lock(storage, clock).acquire() as lease:
            lease.check()


def test_a_storage_that_cannot_replace_on_condition_is_refused(tmp_path: Path, clock: ManualClock) -> None:
    with pytest.raises(ConfigError, match=r"it is for tables on S3, Google.* and Azure; set .* to file-system-based"):
        _lock(LocalStorage(tmp_path), clock).acquire()
    assert list(tmp_path.iterdir()) == []


@pytest.fixture(params=["moto", "seaweedfs", "fake_gcs", "azurite"])
def on_server(request: pytest.FixtureRequest) -> Callable[[], Storage]:
    server: S3Server | CloudServer = request.getfixturevalue(request.param)
    uri = server.uri(uuid.uuid4().hex)
    return lambda: open_storage(uri, Options(server.options))


@pytest.mark.slow
class TestOnServers:
    def test_if_many_try_at_once_one_holds_it_and_then_the_next(
        self, on_server: Callable[[], Storage], clock: ManualClock
    ) -> None:
        leases = []

        def try_once(number: int) -> None:
            try:
                leases.append(_lock(on_server(), clock, str(number)).acquire())
            except LockError:
                return

        for _ in range(3):
            with ThreadPoolExecutor(4) as pool:
                list(pool.map(try_once, range(4)))
            assert len(leases) == 1
            with leases.pop() as lease:
                lease.check()
                assert lease.renew()
                lease.check()

    def test_a_lost_lock_is_not_given_up(self, on_server: Callable[[], Storage], clock: ManualClock) -> None:
        storage = on_server()
        with _lock(storage, clock, "first").acquire() as first:
            clock.time_ms += VALIDITY_MS + 501
            with _lock(storage, clock, "second").acquire() as second:
                assert not first.renew()
                first.__exit__(None, None, None)
                second.check()

    def test_a_lock_that_a_hudi_writer_left_is_respected_until_it_is_over(
        self, on_server: Callable[[], Storage], clock: ManualClock
    ) -> None:
        storage = on_server()
        storage.put(PATH, OF_HUDI % (b"false", clock.now_ms()))
        with pytest.raises(LockError, match=r"'0b7a2c9e-.*' holds it until"):
            _lock(storage, clock).acquire()
        clock.time_ms += 501
        with _lock(storage, clock).acquire() as lease:
            assert _content(storage).keys() >= {"expired", "validUntil", "owner"}
            lease.check()
        assert _content(storage)["expired"] is True


@pytest.mark.parametrize(
    ("name", "sections"),
    [
        pytest.param("fake_gcs", 25, marks=pytest.mark.broad),
        *(pytest.param(name, 5_000, marks=pytest.mark.proof) for name in ("moto", "fake_gcs", "azurite")),
    ],
)
def test_critical_sections_never_overlap_and_a_killed_owners_lock_is_taken_over(
    name: str, sections: int, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    server: S3Server | CloudServer = request.getfixturevalue(name)
    uri = server.uri(uuid.uuid4().hex)
    options: dict[str, str] = {**server.options, LOCK_WAIT_MS: "20000"}
    counted = increments("storage-based", options, (), tmp_path / "counter", sections, uri)
    assert counted == sections * PROCESSES
    reached(f"critical sections on {name}", counted)
    kill = held_until_killed("storage-based", options, uri)
    with pytest.raises(LockError, match="holds it until"):
        lock_of("storage-based", {**options, LOCK_WAIT_MS: "0"}, "heir", uri).acquire()
    kill()
    with lock_of("storage-based", options, "heir", uri).acquire() as lease:
        lease.check()


def test_a_store_that_ignores_conditions_is_refused(rclone: S3Server, clock: ManualClock) -> None:
    storage = open_storage(f"s3://{BUCKET}/{uuid.uuid4().hex}", Options(rclone.options))
    storage.put(PATH, OF_HUDI % (b"true", 0))
    with pytest.raises(RefusedError, match="ignores or refuses the condition"):
        _lock(storage, clock).acquire()


@pytest.mark.parametrize("status", [501, 400])
@pytest.mark.parametrize("is_first", [True, False])
def test_a_store_that_answers_a_replacement_with_an_error_is_refused(
    status: int, moto: S3Server, clock: ManualClock, *, is_first: bool
) -> None:
    """It creates on condition, so the lock can be taken once, and neither renewed nor released."""
    uri = f"s3://{BUCKET}/{uuid.uuid4().hex}"
    with faulty_proxy(moto.endpoint.removeprefix("http://")) as proxy:
        proxy.refused_header, proxy.refused_conditions = "If-Match", {"PUT": status}
        storage = open_storage(uri, Options(replace(moto, endpoint=f"http://{proxy.address}").options))
        if not is_first:
            storage.put(PATH, OF_HUDI % (b"true", 0))
        before = storage.list(".hoodie/.locks")
        for _ in range(2):
            with pytest.raises(RefusedError, match=r"\(If-Match\).*set another hoodie.write.lock.provider") as refused:
                _lock(storage, clock).acquire()
            assert refused.value.exit_code == 3
        assert storage.list(".hoodie/.locks") == before
        proxy.refused_conditions = {}
        with _lock(storage, clock).acquire() as lease:
            lease.check()
