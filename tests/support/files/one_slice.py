"""One slice that is partially compacted: its files, its task, and its executor."""

from dataclasses import fields, replace
from time import time_ns
from typing import Any

from eventide_adapters.format.slice.merge.slice_merger import ArrowSliceMerger
from eventide_core.config import ParquetCodec
from eventide_core.ports import MergeTask, Storage
from eventide_core.service.compaction.compact_slice import SliceCompactor
from eventide_core.table.files.slice_read import BlockFilter
from eventide_core.table.records.record_order import MergeRule
from eventide_core.table.records.record_shape import RecordShape
from eventide_core.table.schema.avro_schema import AvroSchema
from eventide_core.table.timeline.contents.plans import LeftOver, LinkMode, PlannedLog, PlannedOperation
from support.files.slices import SCHEMA, base_file, data_block, delete_block, row

D0, D1, D2, D3 = (f"2026010100000000{i}" for i in range(4))
C = "20260101000000009"
BASE = f"part=a/f-0_0-1-0_{D0}.parquet"
NEW_BASE = f"part=a/f-0_9-9-9_{C}.parquet"
LOGS = tuple(f"part=a/.f-0_{D0}.log.{i}_0-1-0" for i in (1, 2, 3))
COPIES = tuple(f"part=a/.f-0_{C}.log.{i}_0-1-0" for i in (2, 3))
CARRIED = f"part=a/.f-0_{C}.log.1_0-1-0"
MARKER = f".hoodie/.temp/{C}/{NEW_BASE}.marker.CREATE"

FILES = {
    BASE: base_file(
        [row("a", 10, "base", D0, "old"), row("b", 10, "base", D0, "old"), row("d", 10, "base", D0, "old")]
    ),
    # a and d are deleted with ordering values; b is changed; c is new.
    LOGS[0]: delete_block(D1, [("a", 30), ("d", 30)])
    + data_block(D1, [row("b", 20, "first", D1, "f-0"), row("c", 20, "first", D1, "f-0")]),
    # a is late: it lost against its tombstone, and must continue to lose.
    LOGS[1]: data_block(D2, [row("a", 20, "late", D2, "f-0"), row("b", 40, "second", D2, "f-0")]),
    LOGS[2]: data_block(D3, [row("e", 50, "third", D3, "f-0"), row("d", 50, "third", D3, "f-0")]),
}


def logged(path: str, size: int | None = None) -> PlannedLog:
    return PlannedLog(path, len(FILES[path]) if size is None else size, None)


def name_of(path: str) -> str:
    return path.rpartition("/")[2]


OPERATION = PlannedOperation(
    partition="part=a",
    file_id="f-0",
    base_instant=D0,
    base_path=BASE,
    base_size=len(FILES[BASE]),
    compacted=(logged(LOGS[0]),),
    left_overs=tuple(LeftOver(logged(log), name_of(copy)) for log, copy in zip(LOGS[1:], COPIES, strict=True)),
    new_base_name=name_of(NEW_BASE),
    carried_name=name_of(CARRIED),
    fallback=None,
    reason="",
)


def task(**changes: Any) -> MergeTask:
    """The task, with other fields of its operation or of its own."""
    of_operation = {field.name: changes.pop(field.name) for field in fields(OPERATION) if field.name in changes}
    made = MergeTask(
        instant=C,
        op=replace(OPERATION, **of_operation),
        link_mode=LinkMode.COPY,
        shape=RecordShape(AvroSchema.of(SCHEMA), MergeRule.EVENT_TIME_ORDERING, ("ts",), "ts"),
        blocks=BlockFilter(frozenset({D0, D1, D2, D3}), D0),
        codec=ParquetCodec.ZSTD,
    )
    return replace(made, **changes)


def compactor(storage: Storage) -> SliceCompactor:
    return SliceCompactor(storage, ArrowSliceMerger(storage), time_ns)
