"""Writes the files of one file group: a base file, or log files.

1. The marker comes first, by which Hudi finds the file when it rolls back the write. The file follows, under its planned
   name.
2. A base file contains the records, after the rows of the base file that it fills up, if any. Log files contain data blocks
   of bounded size, and the deletes after the last of them. A log file that has reached its size ends, and the next version
   begins.
3. If a name exists, an earlier attempt wrote the file, and the existing file counts. No other writer makes such a name,
   because it contains the instant of the write, at least in its token.
"""

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide_adapters.format.encoding.avro.schema import arrow_schema, table_fields
from eventide_adapters.format.encoding.columns.event_times import event_time_range, event_times_ms
from eventide_adapters.format.encoding.columns.field_path import column_at
from eventide_adapters.format.encoding.parquet.bloom_filter import BloomFilterBuilder, BloomParameters
from eventide_adapters.format.slice.base_file.parquet import BaseFileWriter, read_base_and_footer
from eventide_adapters.format.slice.log_file.delete_block import encode_delete_block
from eventide_adapters.format.slice.log_file.ordering_values import ordering_of_fields, orderings_of
from eventide_adapters.format.slice.log_file.writer import encode_data_block, encode_parquet_block
from eventide_adapters.format.write.keyed_records import IS_DELETE
from eventide_core.access.files import ChecksummedOutput, checksum_of_file
from eventide_core.errors import StorageError, UnsupportedTableError
from eventide_core.ports import Storage
from eventide_core.table.files.file_group_write import FileGroupWrite, FileKind
from eventide_core.table.records.event_time import EventTimeRange
from eventide_core.table.records.record_shape import RecordShape
from eventide_core.table.schema.avro_schema import FILE_NAME, META_FIELDS, PARTITION_PATH, RECORD_KEY
from eventide_core.table.settings.write_shape import LogBlockFormat, WriteShape
from eventide_core.table.timeline.contents.commit_metadata import WriteStat

_NO_EVENT_TIMES: Final = EventTimeRange(None, None)
_FEW: Final = 64  # a span of less than one row in so many is a small one


@dataclass(frozen=True, slots=True)
class GroupRows:
    """One task: a file group, and the rows to write to it.

    `group` has the names of the files. `rows` is a keyed table (`keyed_records`): upserts, and deletes, which one of its
    columns marks.
    """

    group: FileGroupWrite
    shape: WriteShape
    rows: pa.Table

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles only the rows of the slice, not the table that it is a slice of."""
        sink = io.BytesIO()
        with pa.ipc.new_stream(sink, self.rows.schema) as stream:
            stream.write_table(self.rows)
        return _group_rows, (self.group, self.shape, sink.getvalue())


def _group_rows(group: FileGroupWrite, shape: WriteShape, data: bytes) -> GroupRows:
    with pa.ipc.open_stream(data) as stream:
        return GroupRows(group, shape, stream.read_all())


@dataclass(frozen=True, slots=True)
class RowWriter:
    """Writes the files of one group. Picklable. A task can run again, because the same task makes the same names."""

    storage: Storage

    def __call__(self, task: GroupRows, /) -> tuple[WriteStat, ...]:
        """A write stat for each file. Raises UnsupportedTableError for a value that the format cannot represent."""
        is_delete = task.rows.column(IS_DELETE)
        upserts, deletes = task.rows.filter(pc.invert(is_delete)), task.rows.filter(is_delete)
        match task.group.kind:
            case FileKind.BASE:
                return (self._write_base(task.group, task.shape, upserts),)
            case FileKind.LOG:
                return tuple(self._write_logs(task.group, task.shape, upserts, deletes))

    def _write_base(self, group: FileGroupWrite, shape: WriteShape, upserts: pa.Table) -> WriteStat:
        name = group.base_name
        path = group.path_of(name)
        self.storage.put_if_absent(group.marker_path(name, is_shared=_shares_logs(shape)), b"")
        layout = BloomParameters.for_entries(shape.layout.bloom_entries, shape.layout.bloom_false_positives)
        bloom = BloomFilterBuilder(layout)
        output, before = ChecksummedOutput(self.storage.open_output(path)), 0
        try:
            marks, rows_before = self._rows_before(group, shape, name)
            with BaseFileWriter(
                output, shape.records.schema, codec=shape.layout.codec, bloom=bloom, marks_local_times=marks
            ) as writer:
                for batch in rows_before:
                    writer.write(pa.Table.from_batches([batch]))
                    before += len(batch)
                writer.write(_with_meta_columns(upserts, shape, group, name, 0))
                writer.close({})
            is_new = output.commit()
        finally:
            output.abort()
        size, checksum = self._made(path, output, is_new)
        old = group.filled_up
        return WriteStat(
            file_id=group.file_id,
            path=path,
            partition=group.partition,
            prev_commit="null" if old is None else old.name.instant,
            prev_base_file=None if old is None else str(old.name),
            num_writes=before + len(upserts),
            num_inserts=len(upserts),
            total_write_bytes=size,
            file_size_bytes=size,
            checksum=checksum,
        )

    def _rows_before(
        self, group: FileGroupWrite, shape: WriteShape, name: str
    ) -> tuple[bool, Iterator[pa.RecordBatch]]:
        """Of the base file that is filled up: whether it marks local timestamps, and its rows in the new file."""
        if group.filled_up is None:
            return shape.records.marks_local_times, iter(())
        schema = shape.records.schema
        footer, batches = read_base_and_footer(
            self.storage, group.filled_up.path, table_fields(schema), shape.records, ()
        )
        return footer.marks_local_times(schema), (_renamed(batch, name) for batch in batches)

    def _write_logs(
        self, group: FileGroupWrite, shape: WriteShape, upserts: pa.Table, deletes: pa.Table
    ) -> Iterator[WriteStat]:
        names: list[str] = []
        for log in _log_files(group, shape, upserts, deletes):
            name = group.log_name(len(names))
            names.append(name)
            path = group.path_of(name)
            self.storage.put_if_absent(group.marker_path(name, is_shared=_shares_logs(shape)), b"")
            output = ChecksummedOutput(self.storage.open_output(path))
            try:
                for block in log.blocks:
                    output.write(block)
                is_new = output.commit()
            finally:
                output.abort()
            size, checksum = self._made(path, output, is_new)
            is_shared = _shares_logs(shape)
            is_known = shape.stat_field is not None and log.event_times.has_only_times
            times = log.event_times if is_known else _NO_EVENT_TIMES
            yield WriteStat(
                file_id=group.file_id,
                path=path,
                partition=group.partition,
                prev_commit=group.slice_instant,
                num_writes=log.upserts,
                num_deletes=log.deletes,
                num_update_writes=log.upserts,
                total_write_bytes=size,
                file_size_bytes=size,
                min_event_time_ms=times.min_ms,
                max_event_time_ms=times.max_ms,
                log_version=group.first_log_version + len(names) - 1,
                base_file=(group.base_file or "") if is_shared else "",
                # Version 6 names every log file of the slice up to this one.
                log_files=(*group.earlier_logs, *names) if is_shared else (name,),
                checksum=checksum,
            )

    def _made(self, path: str, output: ChecksummedOutput, is_new: bool) -> tuple[int, str | None]:
        """Size and checksum of the file, which another attempt of this task may have made."""
        if is_new:
            return output.size, output.checksum
        info = self.storage.stat(path)
        if info is None:
            raise StorageError(f"{path} disappeared after it was written; the write was not committed")
        return info.size, checksum_of_file(self.storage, path, info.size)


@dataclass(slots=True)
class _LogFile:
    """The blocks of one log file, and counts of their content."""

    blocks: list[bytes] = field(default_factory=list[bytes])
    size: int = 0
    upserts: int = 0
    deletes: int = 0
    event_times: EventTimeRange = _NO_EVENT_TIMES

    def add(self, block: bytes, event_times: EventTimeRange, *, upserts: int = 0, deletes: int = 0) -> None:
        self.blocks.append(block)
        self.size += len(block)
        self.upserts += upserts
        self.deletes += deletes
        self.event_times = self.event_times.union(event_times)


def _log_files(group: FileGroupWrite, shape: WriteShape, upserts: pa.Table, deletes: pa.Table) -> Iterator[_LogFile]:
    log = _LogFile()
    first_row = 0
    for rows in _in_blocks(upserts, shape):
        if log.size >= shape.layout.log_file_bytes_max:
            yield log
            log = _LogFile()
        records = _with_meta_columns(rows, shape, group, group.file_id, first_row)
        event_times = _event_times(records, shape)
        log.add(_data_block(group.instant, shape, records, event_times), event_times, upserts=len(rows))
        first_row += len(rows)
    for of_kind, orderings in _by_kind(deletes, shape.records.ordering_fields):
        keys: list[Any] = of_kind.column(RECORD_KEY).to_pylist()
        block = encode_delete_block(group.instant, group.partition, keys, orderings)
        log.add(block, _delete_event_times(orderings, shape.records), deletes=len(keys))
    yield log


def _by_kind(deletes: pa.Table, fields: Sequence[str]) -> Iterator[tuple[pa.Table, Any]]:
    """Deletes with an ordering value, then those in natural order, with their ordering values.

    Hudi writes the int 0 for natural order, and hudi-rs reads no block whose ordering values are of two types.
    """
    if len(deletes):
        orderings = _delete_orderings(deletes, fields)
        for is_of_kind in (orderings.is_valid(), orderings.is_null()):
            if is_of_kind.true_count:
                yield deletes.filter(is_of_kind), orderings.filter(is_of_kind)


def _renamed(batch: pa.RecordBatch, name: str) -> pa.RecordBatch:
    """The rows with the new file's name."""
    number = batch.schema.get_field_index(FILE_NAME)
    return batch.set_column(number, batch.schema.field(number), pa.repeat(name, len(batch)))


def _shares_logs(shape: WriteShape) -> bool:
    """Whether several writes may append to a log file."""
    return not shape.table_layout.names_logs_by_write


def _delete_orderings(deletes: pa.Table, fields: Sequence[str]) -> Any:
    """The ordering values of deletes. Null, a delete in natural order, if one of the ordering fields is null."""
    values: Any = orderings_of(deletes.combine_chunks().to_batches()[0], fields)
    if len(fields) < 2:
        return values
    is_natural = np.logical_or.reduce([column.is_null().to_numpy(zero_copy_only=False) for column in values.flatten()])
    return pa.StructArray.from_arrays(values.flatten(), list(fields), mask=pa.array(is_natural))


def _data_block(instant: str, shape: WriteShape, records: pa.Table, event_times: EventTimeRange) -> bytes:
    name, schema = shape.records.event_time_source, shape.records.schema
    in_header = (name, event_times) if name is not None and shape.layout.notes_event_times else None
    match shape.layout.log_block_format:
        case LogBlockFormat.AVRO:
            return encode_data_block(instant, schema, records, in_header)
        case LogBlockFormat.PARQUET:
            marks = shape.records.marks_local_times
            return encode_parquet_block(
                instant, schema, records, in_header, codec=shape.layout.codec, marks_local_times=marks
            )


def _in_blocks(upserts: pa.Table, shape: WriteShape) -> Iterator[pa.Table]:
    if len(upserts) == 0:
        return
    step = max(1, int(len(upserts) * shape.layout.log_block_bytes_max / max(upserts.nbytes, 1)))
    for rows in by_event_time(upserts, shape.records, shape.layout.log_block_span_ms):
        for begin in range(0, len(rows), step):
            yield rows.slice(begin, step)


def _with_meta_columns(
    rows: pa.Table, shape: WriteShape, group: FileGroupWrite, file_name: str, first_row: int
) -> pa.Table:
    """The records with Hudi's meta columns first, then the table's columns in the order of its schema."""
    count = len(rows)
    numbers: Any = pa.array(range(first_row, first_row + count), pa.int64()).cast(pa.string())
    prefix: Any = f"{group.instant}_{group.number}"
    meta: list[Any] = [
        pa.repeat(group.instant, count),
        pc.binary_join_element_wise(prefix, numbers, "_"),
        rows.column(RECORD_KEY),
        rows.column(PARTITION_PATH),
        pa.repeat(file_name, count),
    ]
    own = arrow_schema(shape.records.schema)
    columns = [rows.column(field.name) for field in own]
    fields = [pa.field(name, pa.string()) for name in META_FIELDS]
    return pa.table([*meta, *columns], schema=pa.schema([*fields, *own]))


def _event_times(rows: pa.Table, shape: WriteShape) -> EventTimeRange:
    name = shape.records.event_time_field
    column: Any = pa.nulls(len(rows)) if name is None else column_at(rows, name).combine_chunks()
    return _range(column, shape.records)


def _delete_event_times(orderings: Any, shape: RecordShape) -> EventTimeRange:
    """The event times of deletes, as readers of the block find them.

    If the event time is an ordering field, a delete has it in its ordering value; otherwise, a delete has none.
    """
    name = shape.event_time_field
    if name is None or name not in shape.ordering_fields:
        return EventTimeRange(None, None, len(orderings))
    return _range(ordering_of_fields(orderings, shape.ordering_fields, name), shape)


def _range(column: Any, shape: RecordShape) -> EventTimeRange:
    try:
        return event_time_range(column, shape.event_time_texts)
    except UnsupportedTableError:
        # Only a compaction by event time needs the times, and it reports this error.
        return EventTimeRange(None, None, column.null_count, len(column) - column.null_count)


def by_event_time(rows: pa.Table, shape: RecordShape, bucket_ms: int) -> Iterator[pa.Table]:
    """The rows in portions by event time, the earliest first, and rows without one before all. Keeps the order within one.

    A compaction by event time then needs only the headers of the blocks to skip rows at or after T. Adjacent spans with few
    rows share a block: late records have many such spans, and each block costs a header.

    Returns one portion in the original order if the order of the rows may decide which of two versions of a key is newer, or
    if the event time is unknown. `bucket_ms` is the span of a portion, 0 for none.
    """
    if not bucket_ms or shape.event_time_field is None or len(rows) < 2 or _has_doubles(rows):
        yield rows
        return
    column: Any = column_at(rows, shape.event_time_field).combine_chunks()
    try:
        times = event_times_ms(column, shape.event_time_texts)
    except UnsupportedTableError:
        yield rows  # only a compaction by event time needs them, and reports it
        return
    filled = times.fill_null(np.iinfo(np.int64).min).to_numpy(zero_copy_only=False)
    spans = np.floor_divide(filled, bucket_ms)
    order = np.argsort(spans, kind="stable")
    _, sizes = np.unique(spans, return_counts=True)
    ordered = rows.take(order)
    begin = 0
    for size in _portions(sizes, max(1, len(rows) // _FEW)):
        yield ordered.slice(begin, size)
        begin += size


def _portions(sizes: Any, few: int) -> list[int]:
    """The sizes of the portions, after combining adjacent spans with few rows each."""
    portions: list[int] = []
    is_open = False
    for size in map(int, sizes):
        if is_open and size < few:
            portions[-1] += size
        else:
            portions.append(size)
        is_open = size < few
    return portions


def _has_doubles(rows: pa.Table) -> bool:
    keys: Any = rows.column(RECORD_KEY)
    return bool(pc.count_distinct(keys).as_py() != len(rows))
