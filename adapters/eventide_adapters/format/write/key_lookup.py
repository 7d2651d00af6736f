"""Finds the keys in a file slice, so that writes find a key's file group without a bucket index.

1. Only the keys of the base file are read. If bloom filters are used, its footer is read first, and the keys only if the
   footer doesn't exclude all wanted keys.
2. The keys of records in log files count too: a table may have keys that are in no base file. The keys of deletes don't
   count.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from eventide_adapters.format.encoding.avro.schema import table_fields
from eventide_adapters.format.encoding.columns.arrow_numpy import ArrowArray
from eventide_adapters.format.slice.base_file.key_range import may_have_one
from eventide_adapters.format.slice.base_file.parquet import BaseFooter, read_base
from eventide_adapters.format.slice.log_file.cursor import LogCursor
from eventide_adapters.format.slice.log_file.records import DataBlock
from eventide_core.ports import Storage
from eventide_core.table.files.slice_read import SliceRead
from eventide_core.table.records.record_shape import RecordShape
from eventide_core.table.schema.avro_schema import RECORD_KEY


@dataclass(frozen=True, slots=True)
class LookupTask:
    """A slice, and the keys to look up in it.

    `keys` are record keys, which may repeat. `by_bloom`: the base file's footer is read first, and its keys are not read if
    that excludes all of the wanted ones. Log files are read anyway.
    """

    file_slice: SliceRead
    shape: RecordShape
    keys: ArrowArray
    by_bloom: bool


def held_keys(storage: Storage, task: LookupTask, /) -> npt.NDArray[np.int64]:
    """The positions of the task's keys that are in the slice, ascending."""
    is_held = np.zeros(len(task.keys), np.bool_)
    for keys in _keys(storage, task):
        is_held |= pc.is_in(task.keys, keys).to_numpy(zero_copy_only=False)
    return np.flatnonzero(is_held)


def distinct_keys(storage: Storage, file_slice: SliceRead, shape: RecordShape) -> Iterator[ArrowArray]:
    """The slice's keys in portions, each without duplicates."""
    return map(pc.unique, _keys(storage, LookupTask(file_slice, shape, pa.array([], pa.string()), by_bloom=False)))


def _keys(storage: Storage, task: LookupTask) -> Iterator[ArrowArray]:
    path, shape = task.file_slice.base_path, task.shape
    if path is not None and (not task.by_bloom or _may_have_one(storage, path, task.keys)):
        for batch in read_base(storage, path, table_fields(shape.schema, [RECORD_KEY]), shape):
            yield batch.column(0)
    cursor = LogCursor(storage, task.file_slice.log_paths, task.file_slice.blocks, is_strict=True)
    for part in cursor.parts(shape, [RECORD_KEY]):
        if isinstance(part, DataBlock):
            yield part.keys


def _may_have_one(storage: Storage, path: str, keys: ArrowArray) -> bool:
    texts: list[Any] = keys.to_pylist()
    return may_have_one(BaseFooter.read(storage, path).pairs, texts, path)
