"""The locks in services, contended for by eventide and by Hudi's own providers on the real services."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import pytest

from eventide.spark.java_home import JavaNotFoundError
from eventide_core.config import (
    DYNAMODB_ENDPOINT,
    DYNAMODB_PARTITION_KEY,
    DYNAMODB_REGION,
    DYNAMODB_TABLE,
    LOCK_HEARTBEAT_INTERVAL_MS,
    LOCK_WAIT_MS,
    METASTORE_LOCK_DATABASE,
    METASTORE_LOCK_TABLE,
    METASTORE_LOCK_URIS,
    ZOOKEEPER_BASE_PATH,
    ZOOKEEPER_LOCK_KEY,
    ZOOKEEPER_SESSION_TIMEOUT_MS,
    ZOOKEEPER_URL,
)
from eventide_core.errors import LockError
from support.cases.critical_sections import PROCESSES, held_until_killed, increments, lock_of
from support.judge.hudi_judge import JudgeUnavailableError
from support.judge.lock_providers import HudiLock, hudi_lock
from support.run.campaign import tries
from support.run.maven import JarUnavailableError
from support.run.reach import reached
from support.run.real_parts import require_or_skip
from support.servers.fixtures import started
from support.servers.hive_metastore import HiveMetastoreServer, hive_metastore
from support.servers.s3_servers import moto
from support.servers.server_process import ServerUnavailableError

pytestmark = pytest.mark.real

HUDI = "org.apache.hudi.client.transaction.lock."
SECTIONS = tries(25, 2500)  # of each of four contenders


@dataclass(frozen=True, slots=True)
class Shared:
    """A lock in a service: how Hudi calls its provider, and the version of Hudi that has one here."""

    provider: str
    options: dict[str, str]
    version: str


@pytest.fixture
def shared(request: pytest.FixtureRequest) -> Shared:
    """A lock that no other test has, in the service that the test names."""
    name = f"t{uuid4().hex}"
    return OPENED[request.param](request, name)


def _zookeeper(request: pytest.FixtureRequest, name: str) -> Shared:
    options: dict[str, str] = {
        ZOOKEEPER_URL: request.getfixturevalue("zookeeper").url,
        ZOOKEEPER_BASE_PATH: "/hudi/locks",
        ZOOKEEPER_LOCK_KEY: name,
        ZOOKEEPER_SESSION_TIMEOUT_MS: "4000",
        LOCK_WAIT_MS: "20000",
    }
    return Shared(f"{HUDI}ZookeeperBasedLockProvider", options, "1.1.1")


def _dynamodb(request: pytest.FixtureRequest, name: str) -> Shared:
    server = started(request.getfixturevalue("parts"), moto)
    options: dict[str, str] = {
        DYNAMODB_ENDPOINT: server.endpoint,
        DYNAMODB_TABLE: "locks",
        DYNAMODB_PARTITION_KEY: name,
        DYNAMODB_REGION: "us-east-1",
        LOCK_WAIT_MS: "4000",
        "hoodie.aws.access.key": "tests",
        "hoodie.aws.secret.key": "tests",
        "hoodie.aws.session.token": "tests",
    }
    # The only version whose module for AWS Maven Central has.
    return Shared("org.apache.hudi.aws.transaction.lock.DynamoDBBasedLockProvider", options, "0.15.0")


def _hivemetastore(request: pytest.FixtureRequest, name: str) -> Shared:
    return _locked_in(request.getfixturevalue("hive_metastore"), name)


def _hivemetastore_that_drops_dead_locks(request: pytest.FixtureRequest, name: str) -> Shared:
    return _locked_in(request.getfixturevalue("hive_metastore_that_drops_dead_locks"), name)


def _locked_in(metastore: HiveMetastoreServer, name: str) -> Shared:
    options: dict[str, str] = {
        METASTORE_LOCK_URIS: metastore.uri,
        METASTORE_LOCK_DATABASE: "lake",
        METASTORE_LOCK_TABLE: name,
        LOCK_HEARTBEAT_INTERVAL_MS: "500",
        LOCK_WAIT_MS: "20000",
    }
    return Shared("org.apache.hudi.hive.transaction.lock.HiveMetastoreBasedLockProvider", options, "1.1.1")


CONTENDED = {"zookeeper": _zookeeper, "dynamodb": _dynamodb, "hivemetastore": _hivemetastore}
OPENED = {**CONTENDED, "hivemetastore_that_drops_dead_locks": _hivemetastore_that_drops_dead_locks}


@pytest.fixture
def hive_metastore_that_drops_dead_locks(tmp_path: Path) -> Iterator[HiveMetastoreServer]:
    directory = tmp_path / "metastore"
    directory.mkdir()
    try:
        with hive_metastore(directory, drops_dead_locks=True) as server:
            yield server
    except ServerUnavailableError as missing:
        require_or_skip(f"a server is missing here: {missing}")


@pytest.fixture
def start_hudi(tmp_path: Path, shared: Shared) -> Iterator[Callable[[], HudiLock]]:
    """Starts Hudi's provider of the lock, as often as it is called."""
    with ExitStack() as processes:

        def start() -> HudiLock:
            log = tmp_path / f"{uuid4().hex}.log"
            try:
                return processes.enter_context(hudi_lock(shared.version, shared.provider, shared.options, log))
            except (JarUnavailableError, JavaNotFoundError, JudgeUnavailableError) as missing:
                require_or_skip(f"Hudi's lock providers can't run here: {missing}")

        yield start


@pytest.mark.parametrize(
    "shared",
    ["zookeeper", *(pytest.param(name, marks=pytest.mark.broad) for name in ("dynamodb", "hivemetastore"))],
    indirect=True,
)
def test_it_excludes_and_is_excluded_by_hudi(shared: Shared, start_hudi: Callable[[], HudiLock]) -> None:
    hudi, impatient = start_hudi(), {**shared.options, LOCK_WAIT_MS: "500"}
    ours = lock_of(shared.provider, shared.options)
    hudi.acquire()
    with pytest.raises(LockError, match="was not free within"):
        lock_of(shared.provider, impatient).acquire()
    hudi.release()
    with ours.acquire() as lease:
        lease.check()
        assert not hudi.try_acquire(wait_ms=500)
        lease.check()
    assert hudi.try_acquire()
    hudi.release()


@pytest.mark.campaign
@pytest.mark.parametrize(
    "shared",
    [
        "zookeeper",
        pytest.param("dynamodb", marks=pytest.mark.broad),
        pytest.param("hivemetastore", marks=pytest.mark.broad),
    ],
    indirect=True,
)
def test_of_contenders_of_both_kinds_one_holds_it_at_a_time(
    shared: Shared, start_hudi: Callable[[], HudiLock], tmp_path: Path
) -> None:
    hudi = [start_hudi(), start_hudi()]
    ended_at = increments(shared.provider, shared.options, hudi, tmp_path / "counter", SECTIONS)
    assert ended_at == SECTIONS * (len(hudi) + PROCESSES)
    reached(f"sections under {shared.provider.rpartition('.')[2]}, Hudi's and ours, none at once", ended_at)


@pytest.mark.parametrize(
    "shared",
    [
        pytest.param("zookeeper", marks=pytest.mark.broad),
        pytest.param("dynamodb", marks=pytest.mark.proof),
        pytest.param("hivemetastore_that_drops_dead_locks", marks=pytest.mark.proof),
    ],
    indirect=True,
)
def test_the_lock_of_a_holder_that_was_killed_goes_to_the_other_kind(
    shared: Shared, start_hudi: Callable[[], HudiLock]
) -> None:
    victim, heir = start_hudi(), start_hudi()
    victim.acquire()
    victim.kill()
    with lock_of(shared.provider, shared.options).acquire() as lease:
        lease.check()
    kill = held_until_killed(shared.provider, shared.options)
    assert not heir.try_acquire(wait_ms=1)
    kill()
    heir.acquire()
    heir.release()
