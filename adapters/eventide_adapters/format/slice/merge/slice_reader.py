"""Reads one slice as a query does: base and log files merged, or only the base file, in record batches.

A read-optimized slice (one without log files) is streamed. Otherwise, the log files are folded in memory, and the base file
is streamed and merged with them. Torn log blocks are skipped, as in Hudi's readers: a query returns what is readable.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from eventide_adapters.format.encoding.avro.schema import AvroField, query_schema, table_fields
from eventide_adapters.format.encoding.avro.vector_type import shown
from eventide_adapters.format.encoding.parquet.dictionary_columns import dictionary_fields, in_columns
from eventide_adapters.format.encoding.parquet.threads import slice_at_work
from eventide_adapters.format.slice.base_file.parquet import BaseFooter, read_base
from eventide_adapters.format.slice.log_file.cursor import LogCursor
from eventide_adapters.format.slice.merge.base_merge import SliceMerge, merge_columns
from eventide_adapters.format.slice.merge.log_fold import FoldedLogFiles
from eventide_adapters.format.slice.merge.positions import are_positions_known
from eventide_adapters.format.slice.merge.sought import Sought
from eventide_core.errors import InvalidFilterError
from eventide_core.ports import Storage
from eventide_core.table.files.slice_read import ChangeRead, SliceRead
from eventide_core.table.records.record_shape import RecordShape
from eventide_core.table.schema.avro_schema import COMMIT_TIME, RECORD_KEY


@dataclass(frozen=True, slots=True)
class ArrowSliceReader:
    """Reads slices of a storage.

    With `sought`, it may leave out rows that the filter does not keep, and the files that hold them. `few_rows`: the caller
    will soon stop, so that batches have no more rows than that.
    """

    reads_whole_slices: ClassVar[bool] = True
    """Whether no row of a slice is left out, so that another reader of its base file returns the same rows."""

    storage: Storage
    sought: Sought | None = field(default=None, kw_only=True)
    few_rows: int | None = field(default=None, kw_only=True)

    def schema_of(self, shape: RecordShape) -> pa.Schema:
        """All columns of the result, in order."""
        return query_schema(shape)

    def read(
        self, slice_read: SliceRead, shape: RecordShape, columns: Iterable[str] | None
    ) -> Iterator[pa.RecordBatch]:
        """The slice's records with the chosen columns, or all columns if None, in the order of the table's schema.

        Meta columns come first if the table has them. `_hoodie_file_name` of a record from a log file is the file ID, as in
        Hudi. Raises InvalidFilterError for a column that the table doesn't have.
        """
        table_names = [field.name for field in table_fields(shape.schema)]
        visible = query_schema(shape).names
        wanted = visible if columns is None else _known(columns, visible)
        names = set(wanted)
        if slice_read.commit_times is not None:
            names.add(COMMIT_TIME)
        if slice_read.log_paths:
            names.update(merge_columns(shape))
        fields = table_fields(shape.schema, names)
        selected = [name for name in table_names if name in set(wanted)]
        for batch in self.records(slice_read, shape, fields):
            chosen = batch.select(selected)
            if len(chosen):
                yield shown(_with_nulls(chosen, slice_read.null_fields))

    def base_row_count(self, slice_read: SliceRead) -> int | None:
        """The number of rows of a slice that is only a base file, by its footer; None for any other slice.

        Raises MissingFileError and CorruptBaseFileError.
        """
        if slice_read.log_paths or slice_read.commit_times is not None or isinstance(slice_read, ChangeRead):
            return None
        return 0 if slice_read.base_path is None else BaseFooter.read(self.storage, slice_read.base_path).row_count

    def is_outside(self, slice_read: SliceRead, shape: RecordShape) -> bool:
        """Whether it reads no row of the slice, as footers and block headers show."""
        return self.sought is not None and self.sought.is_outside(self.storage, slice_read, shape)

    def records(
        self, slice_read: SliceRead, shape: RecordShape, fields: tuple[AvroField, ...]
    ) -> Iterator[pa.RecordBatch]:
        """The slice's records in these columns and those that a merge needs. Base rows are only from chosen commits."""
        with slice_at_work():
            yield from self._records(slice_read, shape, fields)

    def _records(
        self, slice_read: SliceRead, shape: RecordShape, fields: tuple[AvroField, ...]
    ) -> Iterator[pa.RecordBatch]:
        path, logs = slice_read.base_path, slice_read.log_paths
        sought = self.sought if self.sought is not None and self.sought.applies_to(slice_read, shape) else None
        has_keys = sought is not None and sought.keys is not None
        if sought is not None and logs and not has_keys and sought.is_outside(self.storage, slice_read, shape):
            return
        # Where log files are merged, a row group may be left out only by its keys.
        choice = None if sought is None or (logs and not has_keys) else sought.row_groups(slice_read, shape)
        is_merged_whole = logs and slice_read.commit_times is None
        few = dictionary_fields(fields, shape) if is_merged_whole else ()
        rows = () if path is None else read_base(self.storage, path, fields, shape, few, choice, self.few_rows)
        # As in Hudi's incremental readers, versions of other commits don't take part in the merge either.
        base = (of_commits(batch, slice_read.commit_times) for batch in rows)
        if not logs:
            yield from base
            return
        schema = pa.schema([field.arrow for field in fields])
        cursor = LogCursor(self.storage, logs, slice_read.blocks, is_strict=False)
        parts = cursor.parts(shape, schema.names)
        folded = FoldedLogFiles.of(sought.of_keys(parts) if sought is not None and has_keys else parts, schema, shape)
        whole, partial = slice_read.whole, folded.keys.slice(0, 0)
        if whole is not None:
            folded, partial = folded.without_partial()
        merge = SliceMerge(folded, shape, meets_all_of_key=are_positions_known(path, cursor.blocks))
        for table in merge.batches(base):
            for batch in table.to_batches():
                yield of_commits(in_columns(batch, schema), slice_read.commit_times)
        if whole is not None and len(partial):
            for batch in self._records(whole, shape, fields):
                yield batch.filter(pc.is_in(batch.column(RECORD_KEY), value_set=partial))


def _known(columns: Iterable[str], names: Sequence[str]) -> list[str]:
    chosen = list(columns)
    for name in chosen:
        if name not in names:
            raise InvalidFilterError(f"the table has no column {name!r}; it has {', '.join(names)}")
    return chosen


def _with_nulls(batch: pa.RecordBatch, names: Iterable[str]) -> pa.RecordBatch:
    """The batch without values in these columns. A column that is never null keeps them."""
    for name in names:
        place = batch.schema.get_field_index(name)
        if place >= 0 and batch.schema.field(place).nullable:
            field = batch.schema.field(place)
            batch = batch.set_column(place, field, pa.nulls(len(batch), field.type))
    return batch


def of_commits(batch: pa.RecordBatch, commit_times: frozenset[str] | None) -> pa.RecordBatch:
    if commit_times is None:
        return batch
    wanted = pa.array(sorted(commit_times), pa.string())
    return batch.filter(pc.is_in(batch.column(COMMIT_TIME), value_set=wanted))
