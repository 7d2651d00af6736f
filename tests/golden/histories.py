"""The histories that the golden tables went through: the same rows every time, from a seeded generator.

Event times are milliseconds. Batch `b` of a history spans the seconds [1000 b, 1000 b + 1000) after
`EPOCH_MS`, except for late rows. Partition `c` is written once and never changed: its slices have no logs.
"""

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, TypeAlias

import pyarrow as pa

from support.judge.options import LOG_COMPACTION

EPOCH_MS = 1_700_000_000_000
KEYS_IN_BASE = 120
UPDATES = 18
INSERTS = 8
DELETES = 5
UPSERTS = 6

Row: TypeAlias = dict[str, Any]

PLAIN_COLUMNS: "list[pa.Field[Any]]" = [
    pa.field("id", pa.string()),
    pa.field("part", pa.string()),
    pa.field("event_ts", pa.int64()),
    pa.field("val", pa.string()),
    pa.field("amount", pa.float64()),
]
PLACE: "list[pa.Field[Any]]" = [
    pa.field("name", pa.string()),
    pa.field("lat", pa.float64()),
    pa.field("floor", pa.int32()),
]
RICH_COLUMNS: "list[pa.Field[Any]]" = [
    *PLAIN_COLUMNS,
    pa.field("seats", pa.int32()),
    pa.field("paid", pa.bool_()),
    pa.field("picked_up", pa.timestamp("us", "UTC")),
    pa.field("day", pa.date32()),
    pa.field("fare", pa.decimal128(10, 2)),
    pa.field("signature", pa.binary()),
    pa.field("place", pa.struct(PLACE)),
    pa.field("tags", pa.list_(pa.string())),
]
PLAIN = pa.schema(PLAIN_COLUMNS)
RICH = pa.schema(RICH_COLUMNS)
ORDERED_DELETES = PLAIN.append(pa.field("_hoodie_is_deleted", pa.bool_()))
REGIONAL = PLAIN.append(pa.field("region", pa.string()))
SEQUENCED = PLAIN.append(pa.field("seq", pa.int64()))


@dataclass(frozen=True, slots=True)
class Step:
    """One action on the table: an `operation` of Hudi with its rows, a write that fails, or a table service.

    Services: `compact`, `cluster` and `plan_clustering`, `savepoint` of the latest commit and `restore` to it,
    `roll_back` of the latest commit. `merge_into` updates the columns that its rows have. `schema` and `options` are this
    write's own, where they differ from the table's.
    """

    operation: str
    rows: tuple[Row, ...] = ()
    must_fail: bool = False
    schema: pa.Schema | None = None
    options: Mapping[str, str] = field(default_factory=dict)


def changes_and_natural_deletes(*, compact_after: int | None = None, rich: bool = False) -> Iterator[Step]:
    """Upserts with late rows, ties and inserts; the deletes name no event time that Hudi would heed."""
    keys = _Keys(seed=74, rich=rich)
    yield Step("bulk_insert", keys.base())
    for batch in range(1, UPSERTS + 1):
        yield Step("upsert", keys.changes(batch, late_share=0.15, tie_share=0.1))
        if batch in (2, 4):
            yield Step("delete", keys.deleted(batch))
        if batch == compact_after:
            yield Step("compact")


def changes_and_ordered_deletes() -> Iterator[Step]:
    """Upserts of which some rows are deletes that carry an event time; rows older than a delete follow it."""
    keys = _Keys(seed=75)
    yield Step("bulk_insert", tuple(row | {"_hoodie_is_deleted": False} for row in keys.base()))
    removed: tuple[Row, ...] = ()
    for batch in range(1, UPSERTS + 1):
        # The keys removed in the batch before come back: half of them too late to count.
        returning = {
            row["id"]: row | {"val": f"back-{batch}", "event_ts": row["event_ts"] + (-60_000 if nth % 2 else 1_000_000)}
            for nth, row in enumerate(removed)
        }
        changed = {row["id"]: row for row in keys.changes(batch, late_share=0.15, tie_share=0.1)}
        removed = tuple(row for row in keys.deleted(batch) if row["id"] not in changed | returning)
        rows = [row | {"_hoodie_is_deleted": False} for row in (changed | returning).values()]
        yield Step("upsert", (*rows, *(row | {"_hoodie_is_deleted": True} for row in removed)))


def changes_in_event_time_order(*, from_nothing: bool = False) -> Iterator[Step]:
    """No deletes; event times rise from batch to batch except for one late row in each of the last two.

    `from_nothing`: the table begins with an upsert, so that slices hold logs alone.
    """
    keys = _Keys(seed=76)
    yield Step("upsert" if from_nothing else "bulk_insert", keys.base())
    for batch in range(1, UPSERTS + 1):
        late = 1 / UPDATES if batch > UPSERTS - 2 else 0.0
        yield Step("upsert", keys.changes(batch, late_share=late, tie_share=0.0))


def columns_are_updated() -> Iterator[Step]:
    """Updates of some columns among upserts of whole rows; in partition `a` some are late, in `b` none."""
    keys = _Keys(seed=81)
    yield Step("bulk_insert", keys.base())
    for batch in range(1, UPSERTS + 1):
        if batch % 3 == 0:
            yield Step("upsert", keys.changes(batch, late_share=0.0, tie_share=0.0))
            continue
        some = ("id", "part", "event_ts", "val" if batch % 2 else "amount")
        yield Step("merge_into", tuple({name: row[name] for name in some} for row in keys.updates(batch)))


def changes_without_event_time() -> Iterator[Step]:
    """As in event-time order, but ordered by `seq`; every fifth change has no event time."""
    for batch, step in enumerate(changes_in_event_time_order()):
        rows = tuple(
            row | {"seq": batch * 1000 + nth, "event_ts": None if batch and nth % 5 == 0 else row["event_ts"]}
            for nth, row in enumerate(step.rows)
        )
        yield Step(step.operation, rows)


def a_writer_dies(*, work_goes_on: bool) -> Iterator[Step]:
    """A write fails after its logs were written. `work_goes_on`: the next write rolls it back."""
    keys = _Keys(seed=77)
    yield Step("bulk_insert", keys.base())
    for batch in range(1, UPSERTS + 1):
        dies = batch == (3 if work_goes_on else UPSERTS)
        yield Step("upsert", keys.changes(batch, late_share=0.1, tie_share=0.0), must_fail=dies)


def partitions_are_replaced(*, plan_only: bool = False) -> Iterator[Step]:
    """Upserts between an insert overwrite of partition `a`, a clustering, and a deletion of partition `c`.

    `plan_only`: the upserts end before the clustering, which is planned and never run.
    """
    keys = _Keys(seed=78)
    yield Step("bulk_insert", keys.base())
    for batch in range(1, UPSERTS + 1):
        if batch == 3:
            instead = keys.changes(batch, late_share=0.0, tie_share=0.0)
            yield Step("insert_overwrite", tuple(row for row in instead if row["part"] == "a"))
        elif batch == 5 and plan_only:
            yield Step("compact")
            yield Step("plan_clustering")
            return
        elif batch == 5:
            yield Step("cluster")
            yield Step("delete_partition", tuple(row for row in keys.base() if row["part"] == "c")[:1])
        yield Step("upsert", keys.changes(batch, late_share=0.1, tie_share=0.1))


def logs_are_merged() -> Iterator[Step]:
    """Two log compactions among upserts and deletes, the second over the block of the first."""
    keys = _Keys(seed=79)
    yield Step("bulk_insert", keys.base())
    for batch in range(1, UPSERTS + 1):
        options = LOG_COMPACTION if batch in (3, 5) else {}
        yield Step("upsert", keys.changes(batch, late_share=0.15, tie_share=0.1), options=options)
        if batch in (2, 4):
            yield Step("delete", keys.deleted(batch))


def the_table_goes_back() -> Iterator[Step]:
    """Two upserts are undone by a restore to a savepoint, one by a rollback of its completed commit; work continues."""
    keys = _Keys(seed=80)
    yield Step("bulk_insert", keys.base())
    for batch in range(1, UPSERTS + 1):
        yield Step("upsert", keys.changes(batch, late_share=0.1, tie_share=0.1))
        if batch == 2:
            yield Step("savepoint")
        elif batch == 4:
            yield Step("restore")
        elif batch == 5:
            yield Step("roll_back")


def in_odd_partitions() -> Iterator[Step]:
    """Partition values that a path cannot show as they are, and null; `region` partitions, too."""
    odd = {"a": "2026/11/21 a", "b": "é%=b", "c": None}
    for step in changes_and_natural_deletes():
        rows = tuple(row | {"part": odd[row["part"]], "region": "xy"[row["part"] == "b"]} for row in step.rows)
        yield Step(step.operation, rows)


def in_partitions_of_days() -> Iterator[Step]:
    """`part` is a date, of which the key generator makes a path of three directories."""
    days = {"a": "2026-11-20", "b": "2026-11-21", "c": "2026-12-01"}
    for step in changes_and_natural_deletes():
        yield Step(step.operation, tuple(row | {"part": days[row["part"]]} for row in step.rows))


class _Keys:
    """Generates rows, and remembers which keys there are and when each was last changed."""

    def __init__(self, *, seed: int, rich: bool = False) -> None:
        self._random = random.Random(seed)
        self._rich = rich
        self._last_ms: dict[int, int] = {}

    def base(self) -> tuple[Row, ...]:
        return tuple(self._row(key, 0, EPOCH_MS + key * 8_000) for key in range(KEYS_IN_BASE))

    def updates(self, batch: int) -> tuple[Row, ...]:
        """Changes of rows of the first batch; half of those in partition `a` are late."""
        known = [key for key in range(KEYS_IN_BASE) if _partition(key) != "c"]
        rows = []
        for nth, key in enumerate(self._random.sample(known, UPDATES)):
            is_late = _partition(key) == "a" and nth % 2 == 0
            event_ms = EPOCH_MS + self._random.randrange(batch * 1000) * 1000 if is_late else self._within(batch)
            rows.append(self._row(key, batch, event_ms))
        return tuple(rows)

    def changes(self, batch: int, *, late_share: float, tie_share: float) -> tuple[Row, ...]:
        known = [key for key in self._last_ms if _partition(key) != "c"]
        late, ties = round(UPDATES * late_share), round(UPDATES * tie_share)
        rows = []
        for nth, key in enumerate(self._random.sample(known, UPDATES)):
            if nth < late:
                event_ms = EPOCH_MS + self._random.randrange(batch * 1000) * 1000
            elif nth < late + ties:
                event_ms = self._last_ms[key]
            else:
                event_ms = self._within(batch)
            rows.append(self._row(key, batch, event_ms))
        new = range(batch * 1000, batch * 1000 + INSERTS)
        return (*rows, *(self._row(key, batch, self._within(batch)) for key in new))

    def deleted(self, batch: int) -> tuple[Row, ...]:
        known = [key for key in self._last_ms if _partition(key) != "c"]
        at = EPOCH_MS + (batch * 1000 + 900) * 1000
        nulls = {"val": None, "amount": None}
        return tuple(self._row(key, batch, at) | nulls for key in self._random.sample(known, DELETES))

    def _within(self, batch: int) -> int:
        return EPOCH_MS + (batch * 1000 + self._random.randrange(1000)) * 1000

    def _row(self, key: int, batch: int, event_ms: int) -> Row:
        self._last_ms[key] = event_ms
        plain = {
            "id": f"k{key:05d}",
            "part": _partition(key),
            "event_ts": event_ms,
            "val": f"b{batch}-{key}",
            "amount": key + batch / 10,
        }
        return plain | rich_values(key, batch, event_ms) if self._rich else plain


def _partition(key: int) -> str:
    return "c" if key % 10 == 9 and key < KEYS_IN_BASE else "ab"[key % 2]


def rich_values(key: int, batch: int, event_ms: int) -> Row:
    """The columns that RICH has and PLAIN has not."""
    picked_up = datetime.fromtimestamp(event_ms // 1000, UTC) + timedelta(microseconds=key)
    return {
        "seats": None if key % 7 == 0 else key % 5,
        "paid": key % 3 == 0,
        "picked_up": picked_up,
        "day": date(2026, 11, 21) - timedelta(days=key),
        "fare": Decimal(key * 100 + batch) / 100,
        "signature": bytes([key % 256, batch, 0xFF]),
        "place": None if key % 11 == 0 else {"name": f"p{key % 4}", "lat": key / 8, "floor": batch - 3},
        "tags": [f"t{nth}" for nth in range(key % 3)],
    }
