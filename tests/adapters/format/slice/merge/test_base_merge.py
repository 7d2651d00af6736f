"""The columnar merge agrees with core's record_order for every key."""

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide_adapters.format.slice.log_file.records import DataBlock, DeleteBlock
from eventide_adapters.format.slice.merge.base_merge import SliceMerge
from eventide_adapters.format.slice.merge.log_fold import HELD_BYTES, FoldedLogFiles
from eventide_core.errors import RecordDecodeError, UnsupportedTableError
from eventide_core.table.records.record_order import MergeRule, Version, latest
from eventide_core.table.records.record_shape import RecordShape
from eventide_core.table.schema.avro_schema import AvroSchema
from support.run.campaign import tries

pytestmark = pytest.mark.slow

EVENT_TIME = MergeRule.EVENT_TIME_ORDERING
COMMIT_TIME = MergeRule.COMMIT_TIME_ORDERING

# Five values of each type in rising order: few, so that ties are common.
ORDERINGS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "long": (pa.int64(), [-(2**63), -1, 0, 1, 2**63 - 1]),
    "int": (pa.int32(), [-5, 0, 1, 2, 3]),
    "double": (pa.float64(), [-math.inf, -1.5, 0.0, 1e-300, math.inf]),
    "float": (pa.float32(), [-math.inf, -1.5, 0.0, 1.0, math.inf]),
    "string": (pa.string(), ["", "A", "a", "ab", "ä"]),
    "timestamp": (
        pa.timestamp("us", "UTC"),
        [datetime(1969, 1, 1, tzinfo=UTC) + timedelta(microseconds=i) for i in range(5)],
    ),
    "date": (pa.date32(), [date(1969, 12, 31) + timedelta(days=i) for i in range(5)]),
    "decimal": (pa.decimal128(9, 2), [Decimal(f"{i}.25") for i in range(-2, 3)]),
    "several": (
        pa.struct([("ts", pa.int64()), ("name", pa.string())]),
        [{"ts": ts, "name": name} for ts, name in ((-1, "b"), (0, ""), (0, "a"), (0, "ab"), (7, "a"))],
    ),
}


@dataclass(frozen=True, slots=True)
class Change:
    """One record of a log. `ordering` is a place in the five values; None: a delete in natural order."""

    key: str
    ordering: int | None
    is_delete: bool


def shape_of(rule: MergeRule, ordering_fields: tuple[str, ...] = ("ts",)) -> RecordShape:
    return RecordShape(AvroSchema.of(json.dumps("null")), rule, ordering_fields, None)


def schema_of(ordering_type: pa.DataType) -> pa.Schema:
    ordering = ordering_type if isinstance(ordering_type, pa.StructType) else [pa.field("ts", ordering_type)]
    return pa.schema([pa.field("_hoodie_record_key", pa.string()), *ordering, pa.field("position", pa.int64())])


def records(schema: pa.Schema, rows: Sequence[tuple[str | None, Any, int]]) -> pa.RecordBatch:
    _, *ordering, _ = schema.names
    return pa.RecordBatch.from_pylist(
        [
            {
                "_hoodie_record_key": key,
                "position": position,
                **(value if isinstance(value, dict) else {ordering[0]: value}),
            }
            for key, value, position in rows
        ],
        schema=schema,
    )


def deletes(instant: str, keys: Sequence[str], orderings: Sequence[Any], ordering_type: pa.DataType) -> DeleteBlock:
    return DeleteBlock(instant, pa.array(keys, pa.string()), pa.array(orderings, ordering_type))


def merged(
    base: Sequence[pa.RecordBatch],
    blocks: Sequence[DataBlock | DeleteBlock],
    schema: pa.Schema,
    shape: RecordShape,
    held_bytes: int = HELD_BYTES,
) -> tuple[list[dict[str, Any]], SliceMerge]:
    merge = SliceMerge(FoldedLogFiles.of(blocks, schema, shape, held_bytes=held_bytes), shape)
    return pa.concat_tables(merge.batches(base)).to_pylist(), merge


def changes() -> st.SearchStrategy[Change]:
    key = st.sampled_from("abcd")
    upsert = st.builds(Change, key, st.integers(0, 4), st.just(False))
    delete = st.builds(Change, key, st.none() | st.integers(0, 4), st.just(True))
    return upsert | delete


def ordered_changes() -> st.SearchStrategy[Change]:
    return changes().filter(lambda change: change.ordering is not None)


def as_blocks(
    log: Sequence[Sequence[Change]], schema: pa.Schema, values: Sequence[Any]
) -> list[DataBlock | DeleteBlock]:
    """Each list of changes as blocks of one instant: runs of upserts and of deletes in their order."""
    blocks: list[DataBlock | DeleteBlock] = []
    position = 0
    for number, changes_ in enumerate(log):
        instant = f"2026010100000000{number}"
        run: list[tuple[Change, int]] = []
        for change in [*changes_, None]:
            if run and (change is None or change.is_delete != run[0][0].is_delete):
                values_of = [None if c.ordering is None else values[c.ordering] for c, _ in run]
                keys = [c.key for c, _ in run]
                if run[0][0].is_delete:
                    _, *ordering, _ = schema
                    kind = ordering[0].type if len(ordering) == 1 else pa.struct(ordering)
                    blocks.append(deletes(instant, keys, values_of, kind))
                else:
                    rows = list(zip(keys, values_of, [p for _, p in run], strict=True))
                    blocks.append(DataBlock(instant, records(schema, rows)))
                run = []
            if change is not None:
                run.append((change, position))
                position += 1
    return blocks


def in_a_record(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The same with the ordering columns as fields of a record."""
    key, *ordering, position = batch.columns
    names = batch.schema.names[1:-1]
    record = pa.StructArray.from_arrays(ordering, names)
    return pa.RecordBatch.from_arrays([key, record, position], ["_hoodie_record_key", "r", "position"])


def ordered_in_a_record(block: DataBlock | DeleteBlock) -> DataBlock | DeleteBlock:
    if isinstance(block, DataBlock):
        return replace(block, records=in_a_record(block.records))
    values = block.orderings
    if isinstance(values, pa.StructArray):
        names = [f"r.{field.name}" for field in values.type]
        values = pa.StructArray.from_arrays(values.flatten(), names, mask=values.is_null())
    return replace(block, orderings=values)


@pytest.mark.parametrize(
    ("kind", "is_in_a_record"), [*((kind, False) for kind in ORDERINGS), ("long", True), ("several", True)]
)
@pytest.mark.parametrize("rule", [COMMIT_TIME, EVENT_TIME, MergeRule.HUDI_0X_OVERWRITE_WITH_LATEST])
@settings(max_examples=tries(50, 100))  # the first example loads Arrow
@given(
    base=st.dictionaries(st.sampled_from("abcd"), st.integers(0, 4)),
    log=st.lists(st.lists(changes(), max_size=6), max_size=5),
    batch_size=st.integers(1, 4),
    held_bytes=st.sampled_from([0, 100, HELD_BYTES]),
)
def test_a_merged_slice_holds_the_latest_version_of_every_key(
    kind: str,
    rule: MergeRule,
    is_in_a_record: bool,
    base: dict[str, int],
    log: list[list[Change]],
    batch_size: int,
    held_bytes: int,
) -> None:
    ordering_type, values = ORDERINGS[kind]
    schema = schema_of(ordering_type)
    base_rows = [(key, values[ordering], -1 - i) for i, (key, ordering) in enumerate(base.items())]
    batches = [records(schema, base_rows[i : i + batch_size]) for i in range(0, len(base_rows), batch_size)]
    fields, blocks = tuple(schema.names[1:-1]), as_blocks(log, schema, values)
    if is_in_a_record:
        fields = tuple(f"r.{name}" for name in fields)
        batches, blocks = [*map(in_a_record, batches)], [*map(ordered_in_a_record, blocks)]
        schema = in_a_record(records(schema, [])).schema
    rows, merge = merged(batches, blocks, schema, shape_of(rule, fields), held_bytes)

    flat = [change for part in log for change in part]
    keys = list(dict.fromkeys([*base, *(change.key for change in flat)]))
    expected: list[tuple[str, int]] = []
    counts = {"update": 0, "insert": 0, "delete": 0}
    for key in keys:
        old = Version(base[key], False, -1 - list(base).index(key)) if key in base else None
        versions = [Version(c.ordering, c.is_delete, i) for i, c in enumerate(flat) if c.key == key]
        winner = latest(rule, old, versions)
        if winner is not None:
            expected.append((key, winner.position))
        if winner is None and old is not None:
            counts["delete"] += 1
        elif winner is not None and winner != old:
            counts["insert" if old is None else "update"] += 1

    # Base rows in their order, then inserts in order of first appearance: just as the keys were gathered.
    assert [(row["_hoodie_record_key"], row["position"]) for row in rows] == expected
    assert {"update": merge.updates, "insert": merge.inserts, "delete": merge.deletes} == counts


@given(
    base=st.dictionaries(st.sampled_from("abcd"), st.integers(0, 4)),
    log=st.lists(st.lists(ordered_changes(), max_size=5), max_size=4),
    later=st.lists(ordered_changes(), max_size=4),
)
def test_tombstones_are_what_a_later_reader_lacks_to_see_the_same(
    base: dict[str, int], log: list[list[Change]], later: list[Change]
) -> None:
    """base + log + later == merged base + tombstones + later, where no delete is in natural order.

    A natural delete wins over a base row, which is gone after a merge: a planner merges such a slice in full.
    """
    schema = schema_of(pa.int64())
    shape = shape_of(EVENT_TIME)
    batch = records(schema, [(key, ordering, -1) for key, ordering in base.items()])
    values = list(range(5))
    first = as_blocks(log, schema, values)
    second = as_blocks([later], schema, values)
    whole, _ = merged([batch], [*first, *second], schema, shape)

    half, merge = merged([batch], first, schema, shape)
    left = merge.tombstones
    carried = [DeleteBlock("20260101000000000", left.keys, left.orderings)]
    half_batch = pa.RecordBatch.from_pylist(half, schema=schema)
    again, _ = merged([half_batch], [*carried, *second], schema, shape)

    ours = {row["_hoodie_record_key"]: row["ts"] for row in again}
    assert ours == {row["_hoodie_record_key"]: row["ts"] for row in whole}


def test_a_tombstone_keeps_the_instant_of_the_block_that_deleted() -> None:
    schema = schema_of(pa.int64())
    blocks: list[DataBlock | DeleteBlock] = [
        deletes("20260101000000001", ["a", "b"], [5, 5], pa.int64()),
        deletes("20260101000000002", ["b", "c"], [7, None], pa.int64()),
    ]
    _, merge = merged([], blocks, schema, shape_of(EVENT_TIME))
    assert merge.tombstones.keys.to_pylist() == ["a", "b"]
    assert merge.tombstones.orderings.to_pylist() == [5, 7]
    assert merge.tombstones.instants == ("20260101000000001", "20260101000000002")


def test_a_delete_that_loses_to_the_base_is_no_tombstone() -> None:
    schema = schema_of(pa.int64())
    rows, merge = merged(
        [records(schema, [("a", 9, -1)])],
        [deletes("20260101000000001", ["a"], [5], pa.int64())],
        schema,
        shape_of(EVENT_TIME),
    )
    assert [row["position"] for row in rows] == [-1]
    assert len(merge.tombstones.keys) == 0


def test_only_the_first_of_several_base_rows_with_one_key_meets_the_logs() -> None:
    schema = schema_of(pa.int64())
    base = [records(schema, [("a", 1, 0), ("a", 1, 1), ("b", 1, 2)]), records(schema, [("b", 1, 3)])]
    blocks: list[DataBlock | DeleteBlock] = [
        DataBlock("20260101000000001", records(schema, [("a", 2, 10)])),
        deletes("20260101000000002", ["b"], [2], pa.int64()),
    ]
    rows, merge = merged(base, blocks, schema, shape_of(EVENT_TIME))
    assert [row["position"] for row in rows] == [10, 1, 3]
    assert (merge.updates, merge.deletes, merge.inserts) == (1, 1, 0)


def test_an_upsert_without_ordering_value_counts_as_less_than_any() -> None:
    schema = schema_of(pa.int64())
    base = [records(schema, [("a", -(2**63) + 1, 0), ("b", None, 1), ("c", None, 2)])]
    upserts = DataBlock("20260101000000001", records(schema, [("a", None, 10), ("b", None, 11), ("c", 1, 12)]))
    rows, _ = merged(base, [upserts], schema, shape_of(EVENT_TIME))
    assert [row["position"] for row in rows] == [0, 11, 12]


def test_not_a_number_is_greater_than_infinity_as_in_java() -> None:
    schema = schema_of(pa.float64())
    base = [records(schema, [("a", math.nan, 0), ("b", math.inf, 1), ("c", 0.0, 2)])]
    upserts = DataBlock(
        "20260101000000001", records(schema, [("a", math.inf, 10), ("b", math.nan, 11), ("c", -0.0, 12)])
    )
    rows, _ = merged(base, [upserts], schema, shape_of(EVENT_TIME))
    assert [row["position"] for row in rows] == [0, 11, 2]


def test_without_an_ordering_field_the_later_version_wins() -> None:
    schema = schema_of(pa.int64())
    base = [records(schema, [("a", 9, 0)])]
    upserts = DataBlock("20260101000000001", records(schema, [("a", 1, 10), ("a", 0, 11)]))
    rows, _ = merged(base, [upserts], schema, shape_of(EVENT_TIME, ()))
    assert [row["position"] for row in rows] == [11]


def test_a_log_record_without_key_is_refused() -> None:
    schema = schema_of(pa.int64())
    block = DataBlock("20260101000000001", records(schema, [(None, 1, 0)]))
    with pytest.raises(RecordDecodeError, match="_hoodie_record_key"):
        FoldedLogFiles.of([block], schema, shape_of(EVENT_TIME))


def test_an_ordering_field_that_is_no_column_is_refused() -> None:
    with pytest.raises(UnsupportedTableError, match="ordering field when"):
        FoldedLogFiles.of([], schema_of(pa.int64()), shape_of(EVENT_TIME, ("when",)))


@pytest.mark.parametrize("rule", [EVENT_TIME, COMMIT_TIME])
def test_versions_that_have_lost_leave_the_memory(rule: MergeRule) -> None:
    """A hundred blocks of a megabyte change the same keys again and again."""
    schema = schema_of(pa.int64()).append(pa.field("payload", pa.binary()))
    before, most = pa.total_allocated_bytes(), 0

    def blocks() -> Iterator[DataBlock]:
        nonlocal most
        for number in range(100):
            columns: list[Any] = [[f"k{n}" for n in range(100)], [number] * 100, [number] * 100, [bytes(10_000)] * 100]
            arrays = [pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)]
            yield DataBlock("1", pa.RecordBatch.from_arrays(arrays, schema=schema))
            most = max(most, pa.total_allocated_bytes() - before)

    logs = FoldedLogFiles.of(blocks(), schema, shape_of(rule), held_bytes=4_000_000)
    assert logs.rows.column("position").to_pylist() == [99] * 100
    assert logs.record_count == 10_000
    assert most < 20_000_000
