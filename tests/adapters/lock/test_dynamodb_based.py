"""Hudi's DynamoDB lock on a stand-in for DynamoDB. Beside Hudi's own: test_shared_with_hudi.py."""

import time
from typing import Any
from uuid import uuid4

import pytest
from botocore.session import get_session

from eventide_adapters.lock import dynamodb_based
from eventide_adapters.lock.dynamodb_based import DynamoDBBasedLock
from eventide_adapters.lock.open import open_lock
from eventide_adapters.storage.memory import MemoryStorage
from eventide_core.config import (
    DYNAMODB_BILLING_MODE,
    DYNAMODB_ENDPOINT,
    DYNAMODB_PARTITION_KEY,
    DYNAMODB_READ_CAPACITY,
    DYNAMODB_TABLE,
    LOCK_BASE_PATH,
    LOCK_WAIT_MS,
    Options,
)
from eventide_core.errors import ConfigError, LockError, LockLostError
from support.doubles.clocks import ManualClock
from support.servers.s3_servers import S3Server

IMPLICIT = "org.apache.hudi.aws.transaction.lock.DynamoDBBasedImplicitPartitionKeyLockProvider"
LEASE_MS = 60_000
CREDENTIALS = {"hoodie.aws.access.key": "tests", "hoodie.aws.secret.key": "not-to-be-shown"}


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def options(moto: S3Server) -> dict[str, str]:
    return {
        **CREDENTIALS,
        DYNAMODB_ENDPOINT: moto.endpoint,
        DYNAMODB_TABLE: f"locks-{uuid4().hex}",
        DYNAMODB_PARTITION_KEY: "trips",
        LOCK_WAIT_MS: str(LEASE_MS),
    }


def _lock(options: dict[str, str], clock: ManualClock, name: str = "dynamodb-based") -> DynamoDBBasedLock:
    lock = open_lock(name, MemoryStorage("locked in DynamoDB"), Options(options), clock, "us")
    assert isinstance(lock, DynamoDBBasedLock)
    return lock


def _client(options: dict[str, str]) -> Any:
    return get_session().create_client(
        "dynamodb",
        endpoint_url=options[DYNAMODB_ENDPOINT],
        region_name="us-east-1",
        aws_access_key_id="tests",
        aws_secret_access_key="tests",
    )


def _items(options: dict[str, str]) -> list[dict[str, str]]:
    items = _client(options).scan(TableName=options[DYNAMODB_TABLE])["Items"]
    return [{name: value["S"] for name, value in item.items()} for item in items]


@pytest.mark.real
class TestOnAStandIn:
    def test_the_lock_is_an_item_as_the_lock_client_writes_it(
        self, options: dict[str, str], clock: ManualClock
    ) -> None:
        with _lock(options, clock).acquire() as lease:
            (item,) = _items(options)
            assert set(item) == {"key", "ownerName", "leaseDuration", "recordVersionNumber"}
            assert (item["key"], item["leaseDuration"]) == ("trips", str(LEASE_MS))
            assert item["ownerName"].startswith("us ")
            assert lease.renew()
            lease.check()
            assert _items(options)[0]["recordVersionNumber"] != item["recordVersionNumber"]
        assert _items(options) == []

    def test_a_lock_that_stays_unchanged_for_its_lease_is_taken_over(
        self, options: dict[str, str], clock: ManualClock
    ) -> None:
        dead = _lock(options, clock).acquire()
        before_ms = clock.now_ms()
        with _lock(options, clock).acquire() as lease:
            assert clock.now_ms() - before_ms > LEASE_MS
            lease.check()
            with pytest.raises(LockLostError, match=r"'trips' in the DynamoDB table locks-.* is now held by 'us "):
                dead.check()
            assert not dead.renew()
            dead.__exit__(None, None, None)
            lease.check()

    def test_a_lock_that_is_renewed_is_not_taken_over(self, options: dict[str, str], clock: ManualClock) -> None:
        with _lock(options, clock).acquire() as lease:
            start_ms = clock.now_ms()
            clock.events += [(start_ms + ms, lease.renew) for ms in range(30_000, 300_000, 30_000)]
            with pytest.raises(LockError, match=r"was not free within \d+ ms: 'us .*' holds it"):
                _lock(options, clock).acquire()
            lease.check()

    def test_a_clock_that_is_set_forward_ends_no_lease(self, options: dict[str, str], clock: ManualClock) -> None:
        with _lock(options, clock).acquire() as lease:

            def jump() -> None:
                clock.time_ms += 3_600_000

            clock.events.append((clock.now_ms() + 1_000, jump))
            waited = _lock({**options, LOCK_WAIT_MS: "1000"}, clock)
            clock.events.append((clock.now_ms() + 2_000, lease.renew))
            # Its own wait and one lease of the holder's: less than a lease after the renewal.
            with pytest.raises(LockError, match="was not free"):
                waited.acquire()
            lease.check()

    def test_a_holder_that_stood_still_for_too_long_is_reported(
        self, options: dict[str, str], clock: ManualClock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with _lock(options, clock).acquire() as lease:
            now = time.monotonic()
            monkeypatch.setattr(time, "monotonic", lambda: now + LEASE_MS / 1000 + 1)
            with pytest.raises(LockError, match="was not renewed in time"):
                lease.check()

    def test_one_that_was_released_but_kept_is_taken(self, options: dict[str, str], clock: ManualClock) -> None:
        with _lock(options, clock).acquire():
            pass
        released = {
            "key": "trips",
            "ownerName": "it",
            "leaseDuration": "1",
            "recordVersionNumber": "v",
            "isReleased": "1",
        }
        _client(options).put_item(
            TableName=options[DYNAMODB_TABLE], Item={name: {"S": value} for name, value in released.items()}
        )
        before_ms = clock.now_ms()
        with _lock(options, clock).acquire() as lease:
            assert clock.now_ms() == before_ms
            lease.check()

    def test_what_is_no_lock_is_left_alone(self, options: dict[str, str], clock: ManualClock) -> None:
        with _lock(options, clock).acquire():
            pass
        _client(options).put_item(TableName=options[DYNAMODB_TABLE], Item={"key": {"S": "trips"}})
        with pytest.raises(LockError, match="is not a lock of Amazon's lock client"):
            _lock(options, clock).acquire()
        assert _items(options) == [{"key": "trips"}]

    def test_a_lock_table_is_created_as_it_is_to_be_billed(self, options: dict[str, str], clock: ManualClock) -> None:
        provisioned = {**options, DYNAMODB_BILLING_MODE: "PROVISIONED", DYNAMODB_READ_CAPACITY: "7"}
        with _lock(provisioned, clock).acquire():
            table = _client(options).describe_table(TableName=options[DYNAMODB_TABLE])["Table"]
        assert table["ProvisionedThroughput"]["ReadCapacityUnits"] == 7


@pytest.mark.slow
def test_a_service_that_does_not_answer_is_named_and_no_secret_is(
    clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    options: dict[str, str] = {
        **CREDENTIALS,
        DYNAMODB_ENDPOINT: "http://127.0.0.1:1",
        DYNAMODB_TABLE: "locks",
        DYNAMODB_PARTITION_KEY: "trips",
    }
    with pytest.raises(LockError, match=r"http://127\.0\.0\.1:1 did not answer") as refused:
        _lock(options, clock).acquire()
    assert "not-to-be-shown" not in str(refused.value)


# As Hudi 1.1.1 hashes "s3a://b/t" for its implicit locks.
@pytest.mark.parametrize("name", ["dynamodb-based-implicit", IMPLICIT])
def test_an_implicit_lock_has_the_name_that_hudi_gives_it(name: str, clock: ManualClock) -> None:
    lock = _lock({DYNAMODB_TABLE: "locks", LOCK_BASE_PATH: "s3a://b/t"}, clock, name)
    assert lock.key == "45205BCC2F82AB53"


def test_a_missing_lock_table_is_named(clock: ManualClock) -> None:
    with pytest.raises(ConfigError, match=f"{DYNAMODB_TABLE} is missing"):
        _lock({DYNAMODB_PARTITION_KEY: "trips"}, clock)


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch, clock: ManualClock) -> None:
    monkeypatch.setattr(dynamodb_based, "find_spec", lambda _: None)
    with pytest.raises(ConfigError, match=r"pip install '.*\[dynamodb\]'"):
        _lock({DYNAMODB_TABLE: "locks", DYNAMODB_PARTITION_KEY: "trips"}, clock).acquire()
