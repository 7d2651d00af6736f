"""Merges one slice into a new base file, in Arrow.

1. Read the base file and the merged log files strictly. With an exact cut, also read the records of left-overs before it.
2. Write the merged rows to the output that the caller opened.
3. Encode the deletes of merged log files that win over a record in a left-over, but have no row in the base file: they are
   carried in DELETE blocks with their original instants.

The order of the writes to the storage is the core's: `service/compaction/compact_slice.py`.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from eventide_adapters.format.encoding.avro.schema import AvroField, table_fields
from eventide_adapters.format.encoding.columns.arrow_numpy import to_arrow, to_texts
from eventide_adapters.format.encoding.parquet.bloom_filter import DEFAULT_PARAMETERS, BloomFilterBuilder
from eventide_adapters.format.encoding.parquet.dictionary_columns import dictionary_fields
from eventide_adapters.format.encoding.parquet.threads import slice_at_work
from eventide_adapters.format.slice.base_file.key_range import bloom_filter_in
from eventide_adapters.format.slice.base_file.parquet import (
    BaseFileWriter,
    BaseFooter,
    read_base_and_footer,
    read_footer,
)
from eventide_adapters.format.slice.log_file.cursor import LogCursor
from eventide_adapters.format.slice.log_file.writer import encode_change_log
from eventide_adapters.format.slice.merge.base_merge import ChangedRows, SliceMerge
from eventide_adapters.format.slice.merge.left_overs import EarlyRecords, contradicted, encode_carried
from eventide_adapters.format.slice.merge.log_fold import FoldedLogFiles
from eventide_adapters.format.slice.merge.positions import are_positions_known
from eventide_adapters.format.slice.merge.record_mergers import check_merger
from eventide_core.access.threads import Threads
from eventide_core.config import ParquetCodec
from eventide_core.errors import PlanMismatchError
from eventide_core.ports import MergedSlice, MergeResult, MergeTask, OutputFile, Storage
from eventide_core.table.records.record_shape import RecordShape
from eventide_core.table.schema.avro_schema import FILE_NAME, META_FIELDS, RECORD_KEY


@dataclass(frozen=True, slots=True)
class ArrowSliceMerger:
    """Implements `ports.SliceMerger` over a storage."""

    storage: Storage

    def check(self, shape: RecordShape, /) -> None:
        check_merger(shape)

    def read_footer(self, base_path: str) -> Mapping[str, str]:
        return read_footer(self.storage, base_path)

    @slice_at_work()
    def merge(
        self, task: MergeTask, output: OutputFile, footer_of: Callable[[MergeResult], Mapping[str, str]]
    ) -> MergedSlice:
        op = task.op
        # All columns but the file name, which is the same in every row of the new file.
        fields = [field for field in table_fields(task.shape.schema) if field.name != FILE_NAME]
        names = [field.name for field in fields]
        early = EarlyRecords(self.storage, task, names)
        cursor = LogCursor(self.storage, [(log.path, log.size) for log in op.compacted], task.blocks, is_strict=True)
        schema = pa.schema([field.arrow for field in fields])
        changes = None if op.change_log_path is None else ChangedRows()
        # From a server, the base file's first batch is read while the log files are: both wait for responses.
        with Threads(1) if self.storage.is_remote else nullcontext() as thread:
            opening = None if thread is None else thread.submit(self._begin_base, task, fields)
            parts = itertools.chain(cursor.parts(task.shape, names), early)
            folded = FoldedLogFiles.of(parts, schema, task.shape)
            footer, base = self._open_base(task, fields) if opening is None else opening.result()
        merge = SliceMerge(
            folded,
            task.shape,
            changes=changes,
            early_parts=early.parts,
            meets_all_of_key=not op.left_overs and are_positions_known(op.base_path, cursor.blocks),
        )
        deletes = int(np.count_nonzero(merge.folded.is_delete))
        if deletes and op.rests_on_no_deletes:
            raise PlanMismatchError(
                f"{op.partition}/{op.file_id}: log files of the plan at {task.instant} hold deletes, and their writers' "
                "commits state none; merged in part, deleted rows could return. Nothing was committed: roll the plan back, "
                "and compact whole slices, by hoodie.compaction.strategy=UnBoundedCompactionStrategy"
            )
        bloom, are_keys_known = _bloom(footer, task, deletes)
        with BaseFileWriter(
            output,
            task.shape.schema,
            codec=_codec(footer, task),
            bloom=bloom,
            marks_local_times=(
                task.shape.marks_local_times if footer is None else footer.marks_local_times(task.shape.schema)
            ),
        ) as writer:
            for table in merge.met(base):
                writer.write(_as_written(table, task), are_keys_known=are_keys_known)
            inserted = merge.inserted()
            writer.write(_as_written(inserted, task))
            logged = b""
            if changes is not None and (merge.deletes or writer.row_count != merge.inserts):
                logged = _change_log(task, changes, inserted)
            tombstones = contradicted(self.storage, task, merge.tombstones, early)
            carried = encode_carried(task, tombstones)
            result = MergeResult(
                new_base_path=op.new_base_path,
                base_size=0,
                num_writes=writer.row_count,
                num_deletes=merge.deletes,
                num_updates=merge.updates,
                num_inserts=merge.inserts,
                log_records=merge.folded.record_count,
                log_blocks=merge.folded.block_count,
                carried_size=len(carried) or None,
                carried_tombstones=len(tombstones.keys),
                uncompacted_from_ms=early.uncompacted_from_ms,
                merged_keys=len(merge.folded.keys),
                change_log_size=len(logged) or None,
            )
            size = writer.close(footer_of(result))
        return MergedSlice(replace(result, base_size=size), carried, logged)

    def _begin_base(
        self, task: MergeTask, fields: Sequence[AvroField]
    ) -> tuple[BaseFooter | None, Iterator[pa.RecordBatch]]:
        """The base file's footer and batches, of which the first has been read."""
        footer, batches = self._open_base(task, fields)
        first = list(itertools.islice(batches, 1))
        return footer, itertools.chain(first, batches)

    def _open_base(
        self, task: MergeTask, fields: Sequence[AvroField]
    ) -> tuple[BaseFooter | None, Iterator[pa.RecordBatch]]:
        if task.op.base_path is None:
            return None, iter(())
        few = dictionary_fields(fields, task.shape)
        return read_base_and_footer(self.storage, task.op.base_path, fields, task.shape, few)


def _change_log(task: MergeTask, changes: ChangedRows, inserted: pa.Table) -> bytes:
    """What the new base file changes in the old one."""
    none = inserted.slice(0, 0)
    before, after, deleted = (
        pa.concat_tables([none, *tables]) for tables in (changes.before, changes.after, changes.deleted)
    )
    return encode_change_log(task.instant, task.shape.schema, task.logged, (before, after), inserted, deleted)


def _codec(footer: BaseFooter | None, task: MergeTask) -> str:
    if task.codec is not ParquetCodec.AS_BEFORE:
        return task.codec
    return "gzip" if footer is None else footer.codec


def _bloom(footer: BaseFooter | None, task: MergeTask, deletes: int) -> tuple[BloomFilterBuilder | None, bool]:
    """The Bloom filter to fill, None if the table has no keys to look up, and whether it already has the base's keys.

    The base's own filter is reused until a tenth of its keys belong to rows that no longer exist. The filter always reports
    such a key as found, as it does the key of an existing row.
    """
    if task.shape.key_fields:
        return None, False
    earlier = None if footer is None else bloom_filter_in(footer.pairs, task.op.base_path or "")
    if footer is None or earlier is None:
        return BloomFilterBuilder(DEFAULT_PARAMETERS), False
    gone = -1 if earlier.key_count is None else earlier.key_count - footer.row_count
    if gone >= 0 and 10 * (gone + deletes) <= footer.row_count:
        return BloomFilterBuilder.extending(earlier), True
    return BloomFilterBuilder(earlier.parameters), False


def _as_written(table: pa.Table, task: MergeTask) -> pa.Table:
    """The rows with the new file's name, and without keys that were computed from the columns."""
    if task.shape.key_fields:
        place = table.schema.get_field_index(RECORD_KEY)
        table = table.set_column(place, table.schema.field(place), pa.nulls(len(table), pa.string()))
    name = task.op.new_base_path.rpartition("/")[2]
    # A dictionary holds the name once, not once per row.
    names = pa.DictionaryArray.from_arrays(to_arrow(np.zeros(len(table), np.int32)), to_texts([name]))
    return table.add_column(META_FIELDS.index(FILE_NAME), pa.field(FILE_NAME, names.type), names)
