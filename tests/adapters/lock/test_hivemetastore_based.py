"""Hudi's lock in a real Hive Metastore. Beside Hudi's own: test_shared_with_hudi.py."""

from uuid import uuid4

import pytest

from eventide_adapters.catalog.hive_metastore import metastore_client, metastore_thrift
from eventide_adapters.catalog.metastore_address import metastore_addresses
from eventide_adapters.lock.hivemetastore_based import HiveMetastoreBasedLock
from eventide_adapters.lock.open import open_lock
from eventide_adapters.storage.memory import MemoryStorage
from eventide_core.config import (
    LOCK_WAIT_MS,
    METASTORE_LOCK_DATABASE,
    METASTORE_LOCK_TABLE,
    METASTORE_LOCK_URIS,
    Options,
)
from eventide_core.errors import ConfigError, LockError, LockLostError
from support.doubles.clocks import ManualClock
from support.servers.hive_metastore import HiveMetastoreServer


@pytest.fixture
def options(hive_metastore: HiveMetastoreServer) -> dict[str, str]:
    return {
        METASTORE_LOCK_URIS: hive_metastore.uri,
        METASTORE_LOCK_DATABASE: "lake",
        METASTORE_LOCK_TABLE: f"t{uuid4().hex}",
        LOCK_WAIT_MS: "1000",
    }


def _lock(options: dict[str, str]) -> HiveMetastoreBasedLock:
    lock = open_lock("hivemetastore-based", MemoryStorage("locked in Hive"), Options(options), ManualClock(), "us")
    assert isinstance(lock, HiveMetastoreBasedLock)
    return lock


@pytest.mark.real
def test_a_second_one_is_refused_and_leaves_nothing_in_the_queue(options: dict[str, str]) -> None:
    with _lock(options).acquire() as lease:
        assert lease.beat()
        with pytest.raises(
            LockError, match=rf"of lake\.{options[METASTORE_LOCK_TABLE]} .* was not free within 1000 ms"
        ):
            _lock(options).acquire()
        lease.check()
    with _lock(options).acquire() as lease:
        lease.check()


@pytest.mark.real
def test_a_lock_that_the_metastore_dropped_is_lost(options: dict[str, str]) -> None:
    with _lock(options).acquire() as lease:
        client = metastore_client(metastore_addresses(options[METASTORE_LOCK_URIS], METASTORE_LOCK_URIS))
        client.unlock(metastore_thrift().UnlockRequest(lockid=lease.number))
        client.close()
        with pytest.raises(LockLostError, match="was lost: the metastore has dropped it"):
            lease.check()
        assert not lease.beat()


def test_a_metastore_that_does_not_answer_is_named() -> None:
    options: dict[str, str] = {
        METASTORE_LOCK_URIS: "thrift://127.0.0.1:1",
        METASTORE_LOCK_DATABASE: "lake",
        METASTORE_LOCK_TABLE: "trips",
    }
    with pytest.raises(LockError, match=r"of lake\.trips .*could not be acquired: .*thrift://127\.0\.0\.1:1"):
        _lock(options).acquire()


@pytest.mark.parametrize("missing", [METASTORE_LOCK_DATABASE, METASTORE_LOCK_TABLE])
def test_a_missing_option_is_named(missing: str) -> None:
    options = {METASTORE_LOCK_DATABASE: "lake", METASTORE_LOCK_TABLE: "trips"}
    with pytest.raises(ConfigError, match=f"{missing} is missing"):
        _lock({str(key): value for key, value in options.items() if key != missing})
