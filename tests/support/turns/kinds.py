"""The kinds of tables that engines share, and the order by which each engine reads and compacts them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from eventide.testing.oracle import Order
from support.judge.options import (
    COMMIT_TIME_ORDERING,
    DEFAULT_PAYLOAD,
    EVENT_TIME_ORDERING,
    MERGE_ON_READ,
    METADATA_TABLE,
    NO_METADATA_TABLE,
    OVERWRITE_WITH_LATEST,
    table_name,
    table_version,
)

EVENTIDE = "eventide"
HUDI_RS = "hudi-rs"
OLD, FIRST, NEW, NEWEST = "0.15.0", "1.0.2", "1.1.1", "1.2.0"
# One file group per partition: the oracle's groups.
ONE_BUCKET = {
    "hoodie.index.type": "BUCKET",
    "hoodie.bucket.index.num.buckets": "1",
    "hoodie.bucket.index.hash.field": "id",
}


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of table. `writers` are the versions of Hudi that write it; `orders` are those by which engines read it."""

    name: str
    version: int
    orders: Mapping[str, Order]
    writers: tuple[str, ...]
    options: Mapping[str, str] = field(repr=False)

    @property
    def order(self) -> Order:
        """The order that eventide uses."""
        return self.orders[EVENTIDE]

    @property
    def merge_mode(self) -> str:
        by_event = self.order is Order.EVENT_TIME
        return "EVENT_TIME_ORDERING" if by_event else "COMMIT_TIME_ORDERING"

    @property
    def may_be_made_by_eventide(self) -> bool:
        return self.version in (6, 9)

    @property
    def has_null_event_times(self) -> bool:
        """Hudi also writes null ordering values into other tables, and then can't read them.

        Hudi 0.15 and 1.0 refuse to write them.
        """
        return self.version >= 8 and self.order is Order.COMMIT_TIME and FIRST not in self.writers

    @property
    def has_ordered_deletes(self) -> bool:
        return self.order is not Order.COMMIT_TIME


def _kind(
    name: str, version: int, orders: Mapping[str, Order], writers: tuple[str, ...], *more: Mapping[str, str]
) -> Kind:
    options = {**MERGE_ON_READ, **ONE_BUCKET, **NO_METADATA_TABLE, **table_name("shared")}
    for part in more:
        options |= part
    return Kind(name, version, orders, writers, options)


def _alike(order: Order) -> dict[str, Order]:
    return dict.fromkeys((EVENTIDE, HUDI_RS, NEW, NEWEST), order)


_OVERWRITE = {**_alike(Order.COMMIT_TIME), EVENTIDE: Order.HUDI_0X_OVERWRITE, OLD: Order.HUDI_0X_OVERWRITE}
_DEFAULT = {**_alike(Order.EVENT_TIME), OLD: Order.HUDI_0X_DEFAULT}
_BY_EVENT, _BY_COMMIT = _alike(Order.EVENT_TIME), _alike(Order.COMMIT_TIME)
# By event time Hudi 1.0 fails to compact a record after a delete without an ordering value (test_stock_executes_our_plan).
_BY_COMMIT_8 = {**_BY_COMMIT, FIRST: Order.COMMIT_TIME}

KINDS = (
    _kind("v6 default payload", 6, _DEFAULT, (OLD,), DEFAULT_PAYLOAD),
    _kind("v9 by event time", 9, _BY_EVENT, (NEW, NEWEST), EVENT_TIME_ORDERING, table_version(9)),
    _kind("v6 overwrite with latest", 6, _OVERWRITE, (OLD,), OVERWRITE_WITH_LATEST),
    _kind("v9 by commit time", 9, _BY_COMMIT, (NEW, NEWEST), COMMIT_TIME_ORDERING, table_version(9)),
    _kind("v8 by event time", 8, _BY_EVENT, (NEW,), EVENT_TIME_ORDERING, table_version(8)),
    _kind(
        "v9 with a metadata table", 9, _BY_EVENT, (NEW, NEWEST), EVENT_TIME_ORDERING, table_version(9), METADATA_TABLE
    ),
    _kind("v8 by commit time", 8, _BY_COMMIT_8, (FIRST, NEW), COMMIT_TIME_ORDERING, table_version(8)),
    _kind("v6 with a metadata table", 6, _DEFAULT, (OLD,), DEFAULT_PAYLOAD, METADATA_TABLE),
)
