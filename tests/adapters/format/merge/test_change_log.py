"""Change logs hold what a plain comparison of the rows by key finds, in each mode and for each kind of column."""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Mapping
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide_adapters.format.avro.schema import arrow_schema
from eventide_adapters.format.merge.change_log import ChangeLog
from eventide_core.ports import MergeTask
from eventide_core.table.change_log import SupplementalLogging
from eventide_core.table.log_block import BlockType, HeaderKey, read_blocks
from eventide_core.table.record_order import MergeRule
from eventide_core.table.record_shape import RecordShape
from eventide_core.table.slice_read import BlockFilter
from support.campaign import tries

INSTANT = "20261122000000000"
FLAT: list[dict[str, Any]] = [
    {"name": "id", "type": "string"},
    {"name": "count", "type": ["null", "long"], "default": None},
    {"name": "word", "type": ["string", "null"]},
]
NESTED = [*FLAT, {"name": "many", "type": ["null", {"type": "array", "items": "long"}], "default": None}]
META = ("_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_record_key")

Rows = Mapping[str, int]
"""The version of each key's row."""


def table(rows: Rows, schema: str) -> pa.Table:
    found = [
        {
            "_hoodie_commit_time": str(version),
            "_hoodie_commit_seqno": f"{version}_{key}",
            "_hoodie_record_key": key,
            **image(key, version, schema),
        }
        for key, version in rows.items()
    ]
    return pa.Table.from_pylist(
        found, pa.schema([*(pa.field(name, pa.string()) for name in META), *arrow_schema(schema)])
    )


def image(key: str, version: int, schema: str) -> dict[str, Any]:
    row = {"id": key, "count": None if version % 3 == 0 else version, "word": None if version % 2 else "w" * version}
    return row | ({"many": list(range(version))} if "many" in schema else {})


def decoded(data: bytes) -> list[dict[str, Any]]:
    (block,) = read_blocks(lambda at, size: data[at : at + size], len(data), "x", is_strict=True)
    assert (block.block_type, block.instant_time) == (BlockType.CDC_DATA, INSTANT)
    schema = fastavro.parse_schema(json.loads(block.header[HeaderKey.SCHEMA]))
    content = io.BytesIO(data[block.content_offset : block.content_offset + block.content_length])
    _, count = struct.unpack(">ii", content.read(8))
    found: list[Any] = []
    for _ in range(count):
        (length,) = struct.unpack(">i", content.read(4))
        found.append(fastavro.schemaless_reader(io.BytesIO(content.read(length)), schema))
    assert not content.read()
    return found


def task_of(shape: RecordShape, mode: SupplementalLogging) -> MergeTask:
    return MergeTask(
        partition="p",
        file_id="f",
        instant=INSTANT,
        base_path="base",
        merged=(),
        left_overs=(),
        early={},
        link_mode="copy",
        carried_path=None,
        new_base_path="new",
        marker_path="marker",
        shape=shape,
        blocks=BlockFilter(frozenset(), None),
        codec="zstd",
        change_log_path="changes",
        logged=mode,
    )


ROWS = st.dictionaries(st.sampled_from("abcdefgh"), st.integers(0, 5), max_size=8)


@pytest.mark.parametrize("mode", list(SupplementalLogging))
@pytest.mark.parametrize("fields", [FLAT, NESTED], ids=["flat", "nested"])
@settings(max_examples=tries(20, 300), deadline=None)
@given(old=ROWS, new=ROWS)
def test_each_difference_is_logged_once(
    fields: list[dict[str, Any]], mode: SupplementalLogging, old: Rows, new: Rows
) -> None:
    schema = json.dumps({"type": "record", "name": "row", "namespace": "some.where", "fields": fields})
    shape = RecordShape(schema, MergeRule.COMMIT_TIME_ORDERING, (), None)
    log = ChangeLog(task_of(shape, mode), pa.array(sorted({*old, *new}), pa.string()))
    batches = table(old, schema).to_batches(max_chunksize=3)
    assert list(log.reading(batches)) == batches
    log.written(table(new, schema))
    expected: list[dict[str, Any]] = []
    for key in sorted({*old, *new}):
        before = None if key not in old else image(key, old[key], schema)
        after = None if key not in new else image(key, new[key], schema)
        if old.get(key) == new.get(key):
            continue
        op = "i" if before is None else "d" if after is None else "u"
        match mode:
            case SupplementalLogging.OP_KEY_ONLY:
                expected.append({"op": op, "record_key": key})
            case SupplementalLogging.DATA_BEFORE:
                expected.append({"op": op, "record_key": key, "before": before})
            case SupplementalLogging.DATA_BEFORE_AFTER:
                expected.append({"op": op, "ts_ms": INSTANT, "before": before, "after": after})
    assert sorted(map(repr, decoded(log.encoded()))) == sorted(map(repr, expected))


def test_rows_of_other_keys_are_not_kept() -> None:
    schema = json.dumps({"type": "record", "name": "row", "fields": FLAT})
    shape = RecordShape(schema, MergeRule.COMMIT_TIME_ORDERING, (), None)
    log = ChangeLog(task_of(shape, SupplementalLogging.DATA_BEFORE), pa.array(["a"]))
    list(log.reading(table({"a": 1, "b": 1}, schema).to_batches()))
    log.written(table({"a": 2}, schema))
    assert [record["before"]["id"] for record in decoded(log.encoded())] == ["a"]
