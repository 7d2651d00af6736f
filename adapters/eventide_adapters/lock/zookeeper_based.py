"""Hudi's ZookeeperBasedLockProvider: ZooKeeper's lock recipe, with the nodes of Apache Curator's InterProcessMutex.

1. A contender creates an ephemeral sequential node below `<base_path>/<lock_key>`. Its name ends with `-lock-` and ten
   digits, which is how Curator and Kazoo recognize each other's contenders.
2. The contender with the least number holds the lock. Every other contender watches the one before it.
3. The holder deletes its node to release the lock. If a holder dies, ZooKeeper deletes its node when the session expires,
   after `hoodie.write.lock.zookeeper.session_timeout_ms`.

The lock does not protect against a holder that pauses for longer than its session, between `Lease.check` and the next write.
In that case, put-if-absent still protects the table. The connection to ZooKeeper has no authentication.
"""

from collections.abc import Callable
from contextlib import suppress
from importlib.util import find_spec
from typing import Any, ClassVar, Final, Self

from eventide_adapters.extras import install_command
from eventide_adapters.lock.lock_names import path_hash, table_name
from eventide_adapters.lock.renewal import Renewal
from eventide_core import config as keys
from eventide_core.config import Options
from eventide_core.errors import ConfigError, LockError, LockLostError
from eventide_core.ports import Clock, Storage, TableLock

_IMPLICIT_ZOOKEEPER_KEY: Final = "lock_key"  # Hudi's
_LOCK_NAME: Final = "-lock-"  # Curator orders contenders by the text after the last "lock-" of their names


class ZookeeperBasedLock:
    """ports.TableLock at the path that `path` returns. `owner` names the holder for people.

    Raises ConfigError if the options name no server.
    """

    def __init__(self, path: Callable[[], str], options: Options, owner: str) -> None:
        self._hosts = options.get(keys.ZOOKEEPER_URL)
        if self._hosts is None:
            raise ConfigError(
                f"option {keys.ZOOKEEPER_URL} is missing: a ZooKeeper lock needs the servers, such as zk1:2181,zk2:2181"
            )
        self._path = path
        self._owner = owner
        self._wait_seconds = options.get(keys.LOCK_WAIT_MS) / 1000
        self._session_seconds = options.get(keys.ZOOKEEPER_SESSION_TIMEOUT_MS) / 1000
        self._connection_seconds = options.get(keys.ZOOKEEPER_CONNECTION_TIMEOUT_MS) / 1000

    @property
    def path(self) -> str:
        return f"/{self._path().strip('/')}"

    @property
    def place(self) -> str:
        return f"{self.path} in ZooKeeper at {self._hosts}"

    def acquire(self) -> "ZookeeperBasedLease":
        kazoo = _kazoo()
        place = self.place  # refuses a table without a name before it connects
        client = kazoo.client.KazooClient(self._hosts, timeout=self._session_seconds)
        try:
            client.start(timeout=self._connection_seconds)
            return ZookeeperBasedLease(client, self._taken(client), self)
        except (kazoo.exceptions.KazooException, kazoo.handlers.threading.KazooTimeoutError) as failure:
            _disconnect(client)
            raise LockError(
                f"the table lock {place} could not be acquired: {failure or type(failure).__name__}; check that "
                f"{keys.ZOOKEEPER_URL} is right and that ZooKeeper responds, then try again"
            ) from failure
        except BaseException:
            _disconnect(client)
            raise

    def _taken(self, client: Any) -> Any:
        """Acquires the lock and returns it. Raises LockError if it isn't free in time."""
        lock = _curator_lock()(client, self.path, self._owner)

        def cancel() -> bool:
            lock.cancel()
            return False

        # Kazoo restarts its timeout for each contender that leaves.
        deadline = Renewal(cancel, self._wait_seconds)
        kazoo = _kazoo()
        try:
            # A free lock is acquired even if the wait time is short.
            is_taken = lock.acquire(timeout=max(self._wait_seconds, 1e-3))
        except (kazoo.exceptions.LockTimeout, kazoo.exceptions.CancelledError):
            is_taken = False
        finally:
            deadline.stop()
        if is_taken:
            return lock
        holders = [one for one in lock.contenders() if one != self._owner]
        by = f": {holders[0]!r} holds it" if holders else ""
        raise LockError(
            f"the table lock {self.place} was not free within {self._wait_seconds * 1000:g} ms{by}; try again. The lock of "
            f"a process that died is released after its session timeout"
        )


class ZookeeperBasedLease:
    """ports.Lease, kept by the session's heartbeats until it is released or the session ends."""

    def __init__(self, client: Any, lock: Any, of: ZookeeperBasedLock) -> None:
        self._client = client
        self._lock = lock
        self._of = of
        self._node = f"{lock.path}/{lock.node}"

    def check(self) -> None:
        kazoo = _kazoo()
        try:
            # Another server of the ensemble may lag behind the server that ended the session.
            self._client.sync(self._node)
            stat = self._client.exists(self._node)
        except (kazoo.exceptions.KazooException, kazoo.handlers.threading.KazooTimeoutError) as failure:
            raise LockError(
                f"the table lock {self._of.place} cannot be confirmed: {failure or type(failure).__name__}; nothing was "
                "written after that; try again when ZooKeeper responds"
            ) from failure
        if stat is None:
            raise LockLostError(
                f"the table lock {self._of.place} was lost: its session ended; nothing was written after that"
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        # Closing the session also deletes the node. Without a connection, the node expires.
        with suppress(_kazoo().exceptions.KazooException):
            self._lock.release()
        _disconnect(self._client)


def _disconnect(client: Any) -> None:
    client.stop()
    client.close()


def _curator_lock() -> Any:
    from kazoo.recipe.lock import Lock

    class CuratorLock(Lock):  # type: ignore[misc, unused-ignore]
        """Kazoo's lock, with node names that Curator orders by their number."""

        _NODE_NAME = _LOCK_NAME
        _EXCLUDE_NAMES: ClassVar = [_LOCK_NAME]

    return CuratorLock


def _kazoo() -> Any:
    if find_spec("kazoo") is None:
        raise ConfigError(f"the library for ZooKeeper is not installed: run `{install_command('zookeeper')}`")
    import kazoo.client
    import kazoo.exceptions
    import kazoo.handlers.threading

    return kazoo


def open_zookeeper(storage: Storage, options: Options, clock: Clock, owner: str) -> TableLock:  # noqa: ARG001
    return ZookeeperBasedLock(lambda: _zookeeper_path(storage, options), options, owner)


def open_zookeeper_implicit(storage: Storage, options: Options, clock: Clock, owner: str) -> TableLock:  # noqa: ARG001
    hashed = path_hash(storage, options)
    return ZookeeperBasedLock(lambda: f"/tmp/{hashed}/{_IMPLICIT_ZOOKEEPER_KEY}", options, owner)


def _zookeeper_path(storage: Storage, options: Options) -> str:
    base = options.get(keys.ZOOKEEPER_BASE_PATH)
    if base is None:
        raise ConfigError(
            f"option {keys.ZOOKEEPER_BASE_PATH} is missing: name the path in ZooKeeper below which the table's writers "
            f"keep their locks, or set {keys.LOCK_PROVIDER} to zookeeper-based-implicit for every writer"
        )
    return f"{base}/{table_name(keys.ZOOKEEPER_LOCK_KEY, storage, options)}"
