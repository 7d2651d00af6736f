"""Reads what a write changed in a file group, as the rows of Hudi's incremental queries of format `cdc`.

    op       i, u or d
    ts_ms    the write's instant
    before   the row before the write, as JSON with the meta columns; null for i
    after    the row after the write; null for d

The slice is read in its states before and after the write. A row with the write's commit time is an insert or an update; a
key that no longer exists is a delete. As in Hudi's readers, dates are numbers of days, and times of day and timestamps are
whole numbers in their unit. Binary values are in Base64, and decimals are texts.
"""

import base64
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from eventide_adapters.format.encoding.avro.schema import query_schema
from eventide_adapters.format.encoding.columns.arrow_numpy import ArrowChunks, ArrowType
from eventide_adapters.format.slice.merge.slice_reader import ArrowSliceReader
from eventide_core.table.files.slice_read import ChangeRead, SliceRead
from eventide_core.table.records.record_shape import RecordShape
from eventide_core.table.schema.avro_schema import COMMIT_TIME, RECORD_KEY

_COLUMNS: Final = ("op", "ts_ms", "before", "after")
CHANGES: Final = pa.schema({name: pa.string() for name in _COLUMNS})


@dataclass(frozen=True, slots=True)
class ArrowChangeReader(ArrowSliceReader):
    """An ArrowSliceReader for ChangeReads."""

    def schema_of(self, shape: RecordShape) -> pa.Schema:  # noqa: ARG002
        return CHANGES

    def read(
        self, slice_read: SliceRead, shape: RecordShape, columns: Iterable[str] | None
    ) -> Iterator[pa.RecordBatch]:
        """The changes in one batch, inserts and updates before deletes; no batch if there are none."""
        assert isinstance(slice_read, ChangeRead)
        before = self._rows(slice_read.before, shape)
        after = self._rows(slice_read, shape)
        written = after.filter(pc.equal(after.column(COMMIT_TIME), pa.scalar(slice_read.instant)))
        old_keys, new_keys = (table.column(RECORD_KEY) for table in (before, after))
        old_of_written = before.filter(pc.is_in(old_keys, value_set=written.column(RECORD_KEY).combine_chunks()))
        old = {row[RECORD_KEY]: row for row in _plain(old_of_written)}
        gone = before.filter(pc.invert(pc.is_in(old_keys, value_set=new_keys.combine_chunks())))
        changes: list[tuple[str, dict[str, Any] | None, dict[str, Any] | None]] = [
            ("u" if (earlier := old.get(row[RECORD_KEY])) is not None else "i", earlier, row) for row in _plain(written)
        ]
        changes += [("d", row, None) for row in _plain(gone)]
        if not changes:
            return
        records = [
            {"op": op, "ts_ms": slice_read.instant, "before": _json(earlier), "after": _json(later)}
            for op, earlier, later in changes
        ]
        batch = pa.RecordBatch.from_pylist(records, schema=CHANGES)
        yield batch if columns is None else batch.select([name for name in _COLUMNS if name in set(columns)])

    def _rows(self, slice_read: SliceRead | None, shape: RecordShape) -> pa.Table:
        reader = ArrowSliceReader(self.storage)
        batches = [] if slice_read is None else list(reader.read(slice_read, shape, None))
        return pa.Table.from_batches(batches, schema=query_schema(shape))


def _plain(table: pa.Table) -> list[dict[str, Any]]:
    columns: list[Any] = [_counted(column) for column in table.columns]
    return pa.table(columns, names=table.column_names).to_pylist()


def _counted(column: ArrowChunks) -> ArrowChunks:
    """Dates and times as the numbers that represent them."""
    kind: ArrowType = column.type
    if pa.types.is_temporal(kind):
        return column.cast(pa.int32() if kind.bit_width == 32 else pa.int64())
    return column


def _json(row: Mapping[str, Any] | None) -> str | None:
    return None if row is None else json.dumps(row, separators=(",", ":"), ensure_ascii=False, default=_text)


def _text(value: object) -> str:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return str(value)
