"""Hudi's HiveMetastoreBasedLockProvider: an exclusive lock of a table in the Hive Metastore's lock manager.

1. A contender requests an exclusive lock of `hoodie.write.lock.hivemetastore.database` and `.table`. The metastore grants
   it or queues the request, in order. The contender polls a queued request until it is granted or the wait time is over.
2. The holder sends heartbeats. The metastore drops a lock that has no heartbeat for `hive.txn.timeout`, by default five
   minutes.
3. The holder unlocks it. The lock of a dead holder ends when that timeout has passed since its last heartbeat.

The table need not exist in the metastore. The metastore's transaction tables must exist: a metastore whose schema was
created by `schematool` has them.
"""

import getpass
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final, Self

from eventide_adapters.catalog.hive_metastore import metastore_client, metastore_thrift, thrift_error
from eventide_adapters.catalog.metastore_address import URIS_DEFAULT, metastore_addresses
from eventide_adapters.lock.renewal import Renewal
from eventide_core import config as keys
from eventide_core.config import Options
from eventide_core.errors import CatalogError, ConfigError, LockError, LockLostError
from eventide_core.ports import Clock, Storage, TableLock

_EXCLUSIVE: Final = 3  # LockType
_TABLE: Final = 2  # LockLevel
_NO_TRANSACTION: Final = 6  # DataOperationType
_ACQUIRED, _WAITING = 1, 2  # LockState
_POLL_MS: Final = 200


class HiveMetastoreBasedLock:
    """ports.TableLock. `owner` names the holder for people. Raises ConfigError if the options name no table."""

    def __init__(self, options: Options, clock: Clock, owner: str) -> None:
        database, table = options.get(keys.METASTORE_LOCK_DATABASE), options.get(keys.METASTORE_LOCK_TABLE)
        if database is None or table is None:
            missing = keys.METASTORE_LOCK_DATABASE if database is None else keys.METASTORE_LOCK_TABLE
            raise ConfigError(f"option {missing} is missing: a lock in the Hive Metastore needs a database and a table")
        self.table = f"{database}.{table}"
        self._database, self._name = database, table
        self._addresses = metastore_addresses(
            options.get(keys.METASTORE_LOCK_URIS) or URIS_DEFAULT, keys.METASTORE_LOCK_URIS
        )
        self._clock = clock
        self._owner = owner
        self._wait_ms = options.get(keys.LOCK_WAIT_MS)
        self.heartbeat_seconds = options.get(keys.LOCK_HEARTBEAT_INTERVAL_MS) / 1000

    @property
    def place(self) -> str:
        return f"of {self.table} in the Hive Metastore at {', '.join(map(str, self._addresses))}"

    def acquire(self) -> "HiveMetastoreBasedLease":
        try:
            client = metastore_client(self._addresses)
        except CatalogError as failure:
            raise LockError(f"the table lock {self.place} could not be acquired: {failure}") from failure
        try:
            return HiveMetastoreBasedLease(self, client, self._granted(client))
        except BaseException:
            with suppress(OSError, thrift_error()):
                client.close()
            raise

    def _granted(self, client: Any) -> int:
        """Acquires the lock and returns its number. Raises LockError."""
        thrift = metastore_thrift()
        component = thrift.LockComponent(
            type=_EXCLUSIVE,
            level=_TABLE,
            dbname=self._database,
            tablename=self._name,
            operationType=_NO_TRANSACTION,
        )
        request = thrift.LockRequest(
            component=[component],
            user=getpass.getuser(),
            hostname=socket.gethostname(),
            agentInfo=self._owner,
        )
        deadline_ms = self._clock.now_ms() + self._wait_ms
        with self.asking("grant it"):
            answer = client.lock(request)
        number = int(answer.lockid)
        try:
            while answer.state == _WAITING and (remaining_ms := deadline_ms - self._clock.now_ms()) > 0:
                self._clock.sleep(min(_POLL_MS, remaining_ms))
                with self.asking("grant it"):
                    answer = client.check_lock(thrift.CheckLockRequest(lockid=number))
            if answer.state == _ACQUIRED:
                return number
        except BaseException:
            self.unlock(client, number)
            raise
        # Otherwise, the metastore would later grant the queued request although nobody waits for it.
        self.unlock(client, number)
        raise LockError(
            f"the table lock {self.place} was not free within {self._wait_ms} ms; try again. `SHOW LOCKS` in Hive shows who "
            "holds it; the lock of a process that died ends after the metastore's hive.txn.timeout"
        )

    def unlock(self, client: Any, number: int) -> None:
        """Releases the lock. A lock that cannot be released ends because it gets no heartbeats."""
        with suppress(OSError, EOFError, thrift_error()):
            client.unlock(metastore_thrift().UnlockRequest(lockid=number))

    @contextmanager
    def asking(self, what: str) -> Iterator[None]:
        """Turns the errors of the block into LockError, and the error of a missing lock into LockLostError."""
        thrift = metastore_thrift()
        try:
            yield
        except (thrift.NoSuchLockException, thrift.NoSuchTxnException, thrift.TxnAbortedException) as gone:
            raise LockLostError(
                f"the table lock {self.place} was lost: the metastore has dropped it; nothing was written after that"
            ) from gone
        except (OSError, EOFError, thrift_error()) as failure:
            message = getattr(failure, "message", None) or str(failure) or type(failure).__name__
            raise LockError(
                f"the metastore did not {what}, the table lock {self.place}: {message}; nothing was written after that. "
                "Check that the metastore has its transaction tables (schematool creates them)"
            ) from failure


class HiveMetastoreBasedLease:
    """ports.Lease. A thread sends its heartbeats until it is released or lost."""

    def __init__(self, lock: HiveMetastoreBasedLock, client: Any, number: int) -> None:
        self._lock = lock
        self._client = client
        self.number = number
        self._one_at_a_time = threading.Lock()
        self._heartbeats = Renewal(self.beat, lock.heartbeat_seconds)

    def check(self) -> None:
        thrift = metastore_thrift()
        answer = self._asked(lambda: self._client.check_lock(thrift.CheckLockRequest(lockid=self.number)))
        if answer.state != _ACQUIRED:
            raise LockLostError(f"the table lock {self._lock.place} was lost; nothing was written after that")

    def beat(self) -> bool:
        """Sends a heartbeat. Returns False if the lock was lost. Raises LockError."""
        thrift = metastore_thrift()
        try:
            self._asked(lambda: self._client.heartbeat(thrift.HeartbeatRequest(lockid=self.number)))
        except LockLostError:
            return False  # `check` reports it
        return True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._heartbeats.stop()
        self._lock.unlock(self._client, self.number)
        with suppress(OSError, thrift_error()):
            self._client.close()

    def _asked(self, ask: Callable[[], Any]) -> Any:
        # One connection handles one request at a time.
        with self._one_at_a_time, self._lock.asking("confirm it"):
            return ask()


def open_hive_metastore(storage: Storage, options: Options, clock: Clock, owner: str) -> TableLock:  # noqa: ARG001
    return HiveMetastoreBasedLock(options, clock, owner)
