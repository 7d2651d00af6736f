"""Hudi's DynamoDBBasedLockProvider: the layout of Amazon's DynamoDB Lock Client, without its sort key.

1. The lock is an item of the lock table. It contains its owner, the length of a lease, and the version of its record.
2. A contender that finds no item creates one, on the condition that none exists.
3. The holder renews the lease three times within its length, each time with a new version, on the condition that the item
   still has the holder's last version.
4. A contender that sees the same version for longer than the lease, by its own clock, replaces the item, on the condition
   that the item still has that version. No two clocks are compared.
5. The holder deletes the item to release the lock, on the condition that the item still has the holder's last version.

A lease lasts for `hoodie.write.lock.wait_time_ms`, as in Hudi. A contender waits for the same time. If it finds a
holder, it also waits for the length of the holder's lease, so that it acquires the lock of a dead process in the same
call.

The lock does not protect against a holder that pauses for longer than the lease, between `Lease.check` and the next
write. In that case, put-if-absent still protects the table.
"""

import os
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from typing import Any, Final, Self

from eventide_adapters.aws_credentials import client_credentials, require_credentials
from eventide_adapters.extras import install_command
from eventide_adapters.lock.lock_names import path_hash, table_name
from eventide_adapters.lock.renewal import Renewal
from eventide_core import config as keys
from eventide_core.config import Options
from eventide_core.errors import ConfigError, LockError, LockLostError
from eventide_core.ports import Clock, Storage, TableLock

_KEY: Final = "key"
_OWNER: Final = "ownerName"
_LEASE_MS: Final = "leaseDuration"
_VERSION: Final = "recordVersionNumber"
_RELEASED: Final = "isReleased"

_RENEWALS_IN_A_LEASE: Final = 3  # as in Hudi
_POLL_MS: Final = 1000  # as in the lock client
_REGION_DEFAULT: Final = "us-east-1"  # Hudi's
_IS_THIS_VERSION: Final = f"attribute_exists(#{_KEY}) AND #{_VERSION} = :{_VERSION}"


@dataclass(frozen=True, slots=True)
class _LockItem:
    """The lock's item as read. `version` is the condition for replacing this state of the item."""

    owner: str
    version: str
    lease_ms: int
    is_released: bool


class DynamoDBBasedLock:
    """ports.TableLock.

    `key` returns the lock's name in its table. Raises ConfigError if the options name no lock table.
    """

    def __init__(self, key: Callable[[], str], options: Options, clock: Clock, owner: str) -> None:
        table = options.get(keys.DYNAMODB_TABLE)
        if table is None:
            raise ConfigError(f"option {keys.DYNAMODB_TABLE} is missing: name the DynamoDB table that holds the locks")
        self._table = table
        self._named = key
        self._options = options
        self._clock = clock
        self._owner = owner
        self.lease_ms = max(options.get(keys.LOCK_WAIT_MS), _POLL_MS)
        self._wait_ms = options.get(keys.LOCK_WAIT_MS)
        self._service = _Service(options)

    @cached_property
    def key(self) -> str:
        return self._named()

    @property
    def place(self) -> str:
        return f"{self.key!r} in the DynamoDB table {self._table}"

    def acquire(self) -> "DynamoDBBasedLease":
        """Acquires the lock. Raises LockError."""
        self._create_table()
        owner = f"{self._owner} {uuid.uuid4().hex}"
        allowed_ms = self._wait_ms
        # Adds up this process's pauses, so that a change of the clock does not end a lease.
        waited_ms = unchanged_ms = 0
        seen: _LockItem | None = None
        while True:
            item = self._read()
            if item is not None and (seen is None or item.version != seen.version):
                if seen is None:
                    allowed_ms += item.lease_ms + _POLL_MS
                seen, unchanged_ms = item, 0
            if item is None or item.is_released or unchanged_ms > item.lease_ms:
                version = self._take(owner, item)
                if version is not None:
                    return DynamoDBBasedLease(self, owner, version)
            if waited_ms >= allowed_ms:
                by = f": {item.owner!r} holds it" if item else ": other writers were faster each time"
                raise LockError(
                    f"the table lock {self.place} was not free within {waited_ms} ms{by}; try again. The lock of a "
                    "process that died is taken over when its lease has ended"
                )
            pause_ms = min(_POLL_MS, allowed_ms - waited_ms)
            self._clock.sleep(pause_ms)
            waited_ms += pause_ms
            unchanged_ms += pause_ms

    def renew(self, owner: str, version: str) -> str | None:
        """The holder's next version; None if the lock was lost."""
        renewed = str(uuid.uuid4())
        is_renewed = self._change(
            "update_item",
            UpdateExpression=f"SET #{_VERSION} = :renewed, #{_LEASE_MS} = :{_LEASE_MS}",
            ConditionExpression=f"{_IS_THIS_VERSION} AND #{_OWNER} = :{_OWNER}",
            names=(_KEY, _VERSION, _LEASE_MS, _OWNER),
            values={
                ":renewed": renewed,
                f":{_LEASE_MS}": str(self.lease_ms),
                f":{_VERSION}": version,
                f":{_OWNER}": owner,
            },
        )
        if is_renewed or self._holds(renewed):
            return renewed
        return None

    def check(self, version: str) -> None:
        """Raises LockLostError if the lock doesn't have this version."""
        item = self._read()
        if item is None or item.version != version:
            now = "is gone" if item is None else f"is now held by {item.owner!r}"
            raise LockLostError(f"the table lock {self.place} was lost: it {now}; nothing was written after that")

    def release(self, owner: str, version: str) -> None:
        """Releases the lock, unless it now belongs to another owner."""
        self._change(
            "delete_item",
            ConditionExpression=f"{_IS_THIS_VERSION} AND #{_OWNER} = :{_OWNER}",
            names=(_KEY, _VERSION, _OWNER),
            values={f":{_VERSION}": version, f":{_OWNER}": owner},
        )

    def _take(self, owner: str, over: _LockItem | None) -> str | None:
        """The version of the lock that this owner now holds; None if another contender was faster."""
        version = str(uuid.uuid4())
        item = {_KEY: self.key, _OWNER: owner, _LEASE_MS: str(self.lease_ms), _VERSION: version}
        is_taken = self._change(
            "put_item",
            Item={name: {"S": value} for name, value in item.items()},
            ConditionExpression=f"attribute_not_exists(#{_KEY})" if over is None else _IS_THIS_VERSION,
            names=(_KEY,) if over is None else (_KEY, _VERSION),
            values={} if over is None else {f":{_VERSION}": over.version},
        )
        # The client may repeat a request. The repetition fails if the first request succeeded, so look at the item.
        return version if is_taken or self._holds(version) else None

    def _holds(self, version: str) -> bool:
        item = self._read()
        return item is not None and item.version == version

    def _read(self) -> _LockItem | None:
        answer = self._service.ask("get_item", TableName=self._table, Key=self._item_key, ConsistentRead=True)
        return _parse(answer["Item"], self.place) if "Item" in answer else None

    def _change(self, request: str, *, names: tuple[str, ...], values: Mapping[str, str], **more: Any) -> bool:
        """Sends a conditional request. Returns whether the condition held."""
        arguments = {
            "TableName": self._table,
            "ExpressionAttributeNames": {f"#{name}": name for name in names},
            **({"ExpressionAttributeValues": {name: {"S": value} for name, value in values.items()}} if values else {}),
            **({} if request == "put_item" else {"Key": self._item_key}),
            **more,
        }
        return self._service.ask(request, failed="ConditionalCheckFailedException", **arguments) is not None

    @property
    def _item_key(self) -> dict[str, dict[str, str]]:
        return {_KEY: {"S": self.key}}

    def _create_table(self) -> None:
        if self._service.ask("describe_table", failed="ResourceNotFoundException", TableName=self._table) is None:
            throughput = {
                "ReadCapacityUnits": self._options.get(keys.DYNAMODB_READ_CAPACITY),
                "WriteCapacityUnits": self._options.get(keys.DYNAMODB_WRITE_CAPACITY),
            }
            billing = self._options.get(keys.DYNAMODB_BILLING_MODE)
            self._service.ask(
                "create_table",
                failed="ResourceInUseException",  # another writer was faster
                TableName=self._table,
                KeySchema=[{"AttributeName": _KEY, "KeyType": "HASH"}],
                AttributeDefinitions=[{"AttributeName": _KEY, "AttributeType": "S"}],
                BillingMode=billing,
                **({"ProvisionedThroughput": throughput} if billing == "PROVISIONED" else {}),
            )
        deadline_ms = self._clock.now_ms() + self._options.get(keys.DYNAMODB_CREATION_TIMEOUT_MS)
        while self._service.ask("describe_table", TableName=self._table)["Table"]["TableStatus"] == "CREATING":
            if self._clock.now_ms() > deadline_ms:
                raise LockError(f"the DynamoDB table {self._table} was not ready in time; try again")
            self._clock.sleep(_POLL_MS)


class DynamoDBBasedLease:
    """ports.Lease. A thread renews it until it is released or lost. `check` reports a lease that has ended."""

    def __init__(self, lock: DynamoDBBasedLock, owner: str, version: str) -> None:
        self._lock = lock
        self._owner = owner
        self._version = version
        # The time of the last renewal request: the lease begins then or later.
        self._renewed_seconds = time.monotonic()
        self._one_at_a_time = threading.Lock()
        interval_seconds = lock.lease_ms / _RENEWALS_IN_A_LEASE / 1000
        self._renewal = Renewal(self.renew, interval_seconds)

    def check(self) -> None:
        with self._one_at_a_time:
            self._lock.check(self._version)
            if 1000 * (time.monotonic() - self._renewed_seconds) > self._lock.lease_ms:
                raise LockError(
                    f"the table lock {self._lock.place} was not renewed in time: the process was suspended, or could not "
                    "reach DynamoDB; nothing was written after that"
                )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._renewal.stop()
        # A lock that cannot be released ends with its lease. The work under it is complete.
        with suppress(LockError):
            self._lock.release(self._owner, self._version)

    def renew(self) -> bool:
        """Restarts the lease now. Returns False if the lock was lost."""
        with self._one_at_a_time:
            now_seconds = time.monotonic()
            renewed = self._lock.renew(self._owner, self._version)
            if renewed is not None:
                self._version, self._renewed_seconds = renewed, now_seconds
            return renewed is not None


class _Service:
    """The DynamoDB service. Connects on the first request."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._client: Any = None

    def ask(self, request: str, failed: str | None = None, **arguments: Any) -> Any:
        """The response; None if the service responds with the error `failed`. Raises LockError."""
        client = self._connected()
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            return getattr(client, request)(**arguments)
        except ClientError as error:
            if error.response["Error"]["Code"] == failed:
                return None
            message = f"{error.response['Error']['Code']}: {error.response['Error'].get('Message', '')}"
            raise LockError(self._refused(request, message)) from error
        except BotoCoreError as error:
            require_credentials("Amazon's DynamoDB", error)
            raise LockError(self._refused(request, str(error))) from error

    def _connected(self) -> Any:
        if self._client is None:
            if find_spec("botocore") is None:
                raise ConfigError(f"the library for DynamoDB is not installed: run `{install_command('dynamodb')}`")
            from botocore.session import get_session

            endpoint = self._options.get(keys.DYNAMODB_ENDPOINT)
            if endpoint is not None and "://" not in endpoint:
                endpoint = f"https://{endpoint}"
            self._client = get_session().create_client(
                "dynamodb",
                endpoint_url=endpoint,
                region_name=self._options.get(keys.DYNAMODB_REGION) or os.environ.get("AWS_REGION") or _REGION_DEFAULT,
                **client_credentials(self._options.values),
            )
        return self._client

    def _refused(self, request: str, message: str) -> str:
        where = self._options.get(keys.DYNAMODB_ENDPOINT) or "Amazon's DynamoDB"
        return f"{where} did not answer {request}: {message}; check region, credentials and address, then try again"


def _parse(item: Mapping[str, Mapping[str, str]], place: str) -> _LockItem:
    try:
        return _LockItem(
            owner=item[_OWNER]["S"],
            version=item[_VERSION]["S"],
            lease_ms=int(item[_LEASE_MS]["S"]),
            is_released=_RELEASED in item,
        )
    except (KeyError, ValueError):
        raise LockError(
            f"the table lock {place} is not a lock of Amazon's lock client: make sure that nobody works on the table, then "
            "delete the item"
        ) from None


def open_dynamodb(storage: Storage, options: Options, clock: Clock, owner: str) -> TableLock:
    return DynamoDBBasedLock(lambda: table_name(keys.DYNAMODB_PARTITION_KEY, storage, options), options, clock, owner)


def open_dynamodb_implicit(storage: Storage, options: Options, clock: Clock, owner: str) -> TableLock:
    hashed = path_hash(storage, options)
    return DynamoDBBasedLock(lambda: hashed, options, clock, owner)
