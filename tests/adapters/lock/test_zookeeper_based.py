"""Hudi's ZooKeeper lock on a real ZooKeeper. Beside Hudi's own: test_shared_with_hudi.py."""

from pathlib import Path
from uuid import uuid4

import pytest

from eventide_adapters.lock import zookeeper_based
from eventide_adapters.lock.open import open_lock
from eventide_adapters.lock.zookeeper_based import ZookeeperBasedLease, ZookeeperBasedLock
from eventide_adapters.storage.local import LocalStorage
from eventide_adapters.storage.memory import MemoryStorage
from eventide_core.config import (
    LOCK_BASE_PATH,
    LOCK_WAIT_MS,
    ZOOKEEPER_BASE_PATH,
    ZOOKEEPER_CONNECTION_TIMEOUT_MS,
    ZOOKEEPER_LOCK_KEY,
    ZOOKEEPER_URL,
    Options,
)
from eventide_core.errors import ConfigError, LockError, LockLostError
from eventide_core.ports import Storage
from eventide_core.table.settings.properties import table_checksum
from support.doubles.clocks import ManualClock
from support.servers.zookeeper_server import ZookeeperServer

IMPLICIT = "org.apache.hudi.client.transaction.lock.ZookeeperBasedImplicitBasePathLockProvider"
ELSEWHERE = MemoryStorage("locked in ZooKeeper")


@pytest.fixture
def options(zookeeper: ZookeeperServer) -> dict[str, str]:
    return {ZOOKEEPER_URL: zookeeper.url, ZOOKEEPER_BASE_PATH: f"/tests/{uuid4().hex}", LOCK_WAIT_MS: "200"}


def _lock(
    options: dict[str, str], name: str = "zookeeper-based", storage: Storage = ELSEWHERE, owner: str = "us"
) -> ZookeeperBasedLock:
    lock = open_lock(name, storage, Options(options), ManualClock(), owner)
    assert isinstance(lock, ZookeeperBasedLock)
    return lock


def _held(options: dict[str, str], owner: str = "us") -> ZookeeperBasedLease:
    return _lock({**options, ZOOKEEPER_LOCK_KEY: "trips"}, owner=owner).acquire()


@pytest.mark.real
def test_a_second_one_is_refused_and_the_error_names_the_holder(options: dict[str, str]) -> None:
    with _held(options, "eventide compact on host-7"), pytest.raises(LockError) as refused:
        _held(options)
    assert "was not free within 200 ms: 'eventide compact on host-7' holds it" in str(refused.value)
    assert f"{options[ZOOKEEPER_BASE_PATH]}/trips in ZooKeeper at {options[ZOOKEEPER_URL]}" in str(refused.value)
    # The one who gave up left no node that would hold the lock after the first.
    with _held(options) as lease:
        lease.check()


@pytest.mark.real
def test_a_lock_is_free_again_after_an_error(options: dict[str, str]) -> None:
    with pytest.raises(ZeroDivisionError), _held(options):
        raise ZeroDivisionError
    with _held(options) as lease:
        lease.check()


@pytest.mark.real
def test_a_lock_whose_node_is_gone_is_lost(options: dict[str, str]) -> None:
    from kazoo.client import KazooClient

    path = f"{options[ZOOKEEPER_BASE_PATH]}/trips"
    other = KazooClient(options[ZOOKEEPER_URL])
    other.start()
    with _held(options) as lease:
        nodes = other.get_children(path)
        assert nodes is not None
        (node,) = nodes
        other.delete(f"{path}/{node}")
        with pytest.raises(LockLostError, match=r"was lost: its session ended"):
            lease.check()
    other.stop()
    other.close()


@pytest.mark.real
def test_a_table_s_lock_has_its_name(options: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / ".hoodie").mkdir()
    name = {"hoodie.table.name": "trips"}
    properties = {**name, "hoodie.table.checksum": table_checksum(name)}
    text = "".join(f"{key}={value}\n" for key, value in properties.items())
    (tmp_path / ".hoodie/hoodie.properties").write_text(text)
    lock = _lock(options, storage=LocalStorage(tmp_path))
    assert lock.path == f"{options[ZOOKEEPER_BASE_PATH]}/trips"


@pytest.mark.slow
def test_a_server_that_does_not_answer_is_named_with_its_option() -> None:
    options: dict[str, str] = {
        ZOOKEEPER_URL: "127.0.0.1:1",
        ZOOKEEPER_BASE_PATH: "/locks",
        ZOOKEEPER_LOCK_KEY: "trips",
        ZOOKEEPER_CONNECTION_TIMEOUT_MS: "200",
    }
    with pytest.raises(LockError, match=rf"/locks/trips in ZooKeeper at 127\.0\.0\.1:1 .*{ZOOKEEPER_URL}"):
        _lock(options).acquire()


# As Hudi 1.1.1 answers from ZookeeperBasedImplicitBasePathLockProvider.getLockBasePath("s3a://b/t").
@pytest.mark.parametrize("path", ["s3a://b/t", "s3://b/t"])
@pytest.mark.parametrize("name", ["zookeeper-based-implicit", IMPLICIT])
def test_an_implicit_lock_is_where_hudi_looks_for_it(name: str, path: str) -> None:
    lock = _lock({ZOOKEEPER_URL: "zk:2181", LOCK_BASE_PATH: path}, name)
    assert lock.path == "/tmp/45205BCC2F82AB53/lock_key"


def test_an_implicit_lock_wants_the_path_as_the_other_writers_write_it() -> None:
    with pytest.raises(ConfigError, match=rf"{LOCK_BASE_PATH} is missing.*exactly as the other writers"):
        _lock({ZOOKEEPER_URL: "zk:2181"}, "zookeeper-based-implicit")


@pytest.mark.parametrize("missing", [ZOOKEEPER_URL, ZOOKEEPER_BASE_PATH])
def test_a_missing_option_is_named(missing: str) -> None:
    options = {ZOOKEEPER_URL: "zk:2181", ZOOKEEPER_BASE_PATH: "/locks", ZOOKEEPER_LOCK_KEY: "trips"}
    with pytest.raises(ConfigError, match=f"{missing} is missing"):
        _lock({str(key): value for key, value in options.items() if key != missing}).acquire()


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zookeeper_based, "find_spec", lambda _: None)
    with pytest.raises(ConfigError, match=r"pip install '.*\[zookeeper\]'"):
        _lock({ZOOKEEPER_URL: "zk:2181", ZOOKEEPER_BASE_PATH: "/l", ZOOKEEPER_LOCK_KEY: "t"}).acquire()
