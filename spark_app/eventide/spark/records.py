"""The records of a write as a DataFrame of Spark: ports.IncomingRecords, with every row on executors.

1. Executors compute keys and partition paths and check the records, some megabytes at a time, as for Arrow tables
   (`keyed_records`). Each record gets its place, and the records of a place are packed (`packed_rows`).
2. The driver gets the counts by place, and plans. Global keys are looked up in the record index of the metadata table, if
   the table has one. Otherwise, the records are joined with the keys that the files of their partitions hold (for global
   keys: with all live keys), which one task per slice reads, and packed after that. Spark persists the packed records, so
   that the rows are computed once.
3. Packed records are shuffled by their place, or by file group if a place has several; a small write gets a single task, and
   no shuffle. A task has one group in memory at a time: it keeps one version of each key if the operation combines records,
   and writes the group's files.

If Spark runs a task again, it produces the same file names, and the files of the first run stay. If Spark has lost persisted
rows, it computes them again; a record that then has a place where no record was before fails the write. Of versions with the
same ordering value, the last one in the order of the DataFrame's partitions is kept, unless a join places the records.
"""

import itertools
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide.spark.engine import parallelism
from eventide.spark.global_keys import (
    Placing,
    combined_by_key,
    keyed_columns,
    placed_by_index,
    placed_by_key,
)
from eventide.spark.packed_rows import ORDER, PACKED, Message, Packer, RecordBatches, chunk_bytes, gathered, messages
from eventide.spark.types import arrow_schema_of, batches_with_lists
from eventide.spark.workers import cause_of, failure_of, ship_packages
from eventide_adapters.format.encoding.columns.java_hash import buckets_of
from eventide_adapters.format.write.arrow_records import assign_groups, hashed_texts
from eventide_adapters.format.write.global_keys import PLACE
from eventide_adapters.format.write.incoming_schema import evolved_schema
from eventide_adapters.format.write.key_lookup import distinct_keys
from eventide_adapters.format.write.keyed_records import IS_DELETE, combined, keyed_deletes, keyed_schema, keyed_upserts
from eventide_adapters.format.write.record_writer import GroupRows, RowWriter
from eventide_core import errors
from eventide_core.errors import EngineError, EventideError
from eventide_core.ports import KeyIndex
from eventide_core.table.files.bucket import bucket_name
from eventide_core.table.files.file_group_write import FileGroupWrite, Placement
from eventide_core.table.files.slice_read import SliceRead
from eventide_core.table.schema.avro_schema import PARTITION_PATH, RECORD_KEY, AvroSchema
from eventide_core.table.settings.write_shape import SchemaRules, WriteShape
from eventide_core.table.timeline.contents.commit_metadata import WriteStat

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_TASK_BYTES = 32 << 20  # of packed rows: half a second of writing; starting a task costs a tenth of a second
_STATS = "group int, stats string"


@dataclass(slots=True)
class SparkRecords:
    """`rows` has columns of the table; for deletes, the key and partition columns, and optionally the ordering column."""

    rows: "DataFrame"
    writer: RowWriter
    is_delete: bool
    _shape: WriteShape | None = None
    _combines: bool = False
    _keyed: "DataFrame | None" = None
    _packed: "DataFrame | None" = None
    _packed_bytes: int = 0

    def schema_after(self, table_schema: AvroSchema | None, table_name: str, rules: SchemaRules) -> AvroSchema:
        if not self.is_delete:
            return evolved_schema(table_schema, arrow_schema_of(self.rows.schema), table_name, rules)
        assert table_schema is not None, "deletes of a table that has no schema"
        return table_schema

    def prepare(self, shape: WriteShape, *, combines: bool) -> None:
        ship_packages(self.rows.sparkSession)
        self._shape, self._combines = shape, combines

    def place_by_bucket(self, buckets: int, hash_fields: Sequence[str]) -> tuple[Placement, ...]:
        keyed, shape = _Keyed(self._required_shape, self.is_delete), self._required_shape
        names = pa.array([bucket_name(number) for number in range(buckets)], pa.string())

        def place(batches: RecordBatches) -> Iterator[pa.Table]:
            for table in keyed(batches):
                numbers = buckets_of(hashed_texts(table, shape, hash_fields), buckets)
                yield table.append_column(PLACE, names.take(numbers))

        return self._place(self.rows, place)

    def place_nowhere(self) -> tuple[Placement, ...]:
        keyed = _Keyed(self._required_shape, self.is_delete)

        def place(batches: RecordBatches) -> Iterator[pa.Table]:
            for table in keyed(batches):
                yield table.append_column(PLACE, pa.repeat("", len(table)))

        return self._place(self.rows, place)

    def place_by_key(self, slices: Sequence[SliceRead], *, by_bloom: bool) -> tuple[Placement, ...]:  # noqa: ARG002
        """Filters can't reduce the read: a join needs every key of the partitions."""
        from pyspark.sql import functions

        new = self._keyed_rows()
        try:
            mine = {row[0] for row in _answered(lambda: new.select(PARTITION_PATH).distinct().collect())}
        except EventideError:
            new.unpersist()
            raise
        asked = [file_slice for file_slice in slices if file_slice.partition in mine]
        if not asked:
            return self._place(new.withColumn(PLACE, functions.lit("")), gathered)
        spark, shape, storage = self.rows.sparkSession, self._required_shape.records, self.writer.storage

        def keys_of(batches: RecordBatches) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                for position in batch.column(0).to_numpy():
                    slice_read = asked[int(position)]
                    for keys in distinct_keys(storage, slice_read, shape):
                        home = [pa.repeat(text, len(keys)) for text in (slice_read.partition, slice_read.file_id)]
                        yield pa.RecordBatch.from_arrays([keys, *home], names=[RECORD_KEY, PARTITION_PATH, PLACE])

        positions = spark.range(0, len(asked), 1, len(asked))
        held = positions.mapInArrow(keys_of, f"{RECORD_KEY} string, {PARTITION_PATH} string, {PLACE} string").distinct()
        joined = new.join(held, [RECORD_KEY, PARTITION_PATH], "left").fillna("", [PLACE])
        return self._place(
            joined.select(*(f"`{name}`" for name in (*keyed_schema(self._required_shape).names, PLACE))), gathered
        )

    def place_by_global_key(
        self,
        slices: Sequence[SliceRead],
        *,
        by_bloom: bool,  # noqa: ARG002
        moves: bool,
        index: KeyIndex | None = None,
    ) -> tuple[Placement, ...]:
        shape, storage = self._required_shape, self.writer.storage
        new = (
            self._keyed_rows()
            if index is None
            else self.rows.mapInArrow(_Rows(_Keyed(shape, self.is_delete)), keyed_columns(shape))
        )
        if self._combines:
            new = combined_by_key(new, shape)
        if index is not None:
            placements = self._place(*placed_by_index(new, slices, shape, storage, index, moves=moves))
            known = {(slice_read.partition, slice_read.file_id) for slice_read in slices}
            if all((placement.partition, placement.place) in known for placement in placements if placement.place):
                return placements
        return self._place(*placed_by_key(new, slices, shape, storage, moves=moves))

    def write(
        self, groups: Sequence[FileGroupWrite], *, on_done: Callable[[], None] | None = None
    ) -> list[tuple[WriteStat, ...]]:
        assert self._packed is not None, "records are written before they have their places"
        shape, spark = self._required_shape, self.rows.sparkSession
        packed, place_of = self._packed, {(group.partition, group.place): place for place, group in enumerate(groups)}
        if len(place_of) < len(groups):
            packed = packed.mapInArrow(_Divided(shape, tuple(groups), chunk_bytes(spark)), PACKED)
            place_of = {(group.partition, group.file_id): place for place, group in enumerate(groups)}
        tasks = min(len(groups), parallelism(spark) * 4, -(-self._packed_bytes // _TASK_BYTES))
        # Without a shuffle, a single task gets all rows.
        shared = packed.repartition(tasks, *ORDER[:2]) if tasks > 1 else packed.coalesce(1)
        written = _Written(shape, tuple(groups), place_of, self.writer, self._combines)
        try:
            answers = _answered(lambda: shared.sortWithinPartitions(*ORDER).mapInArrow(written, _STATS).collect())
        finally:
            self._packed.unpersist()
        stats_of: dict[int, tuple[WriteStat, ...]] = {}
        for row in answers:
            stats = (WriteStat(**{**stat, "log_files": tuple(stat["log_files"])}) for stat in json.loads(row.stats))
            stats_of[row.group] = tuple(stats)
            if on_done is not None:
                on_done()
        return [stats_of.get(number, ()) for number in range(len(groups))]

    @property
    def _required_shape(self) -> WriteShape:
        assert self._shape is not None, "records are placed before they were prepared"
        return self._shape

    def _keyed_rows(self) -> "DataFrame":
        """The keyed rows, which Spark keeps until they are placed: a join may read them more than once."""
        assert self._keyed is None, "records are keyed twice"
        keyed = _Keyed(self._required_shape, self.is_delete)
        self._keyed = self.rows.mapInArrow(_Rows(keyed), keyed_columns(self._required_shape)).persist()
        return self._keyed

    def _place(self, rows: "DataFrame", place: Placing) -> tuple[Placement, ...]:
        """Packs the keyed records that `place` makes of the rows in a task."""
        from pyspark.sql import functions

        before, shape = self._packed, self._required_shape
        packed = rows.mapInArrow(_Packed(shape, place, chunk_bytes(rows.sparkSession)), PACKED).persist()
        self._packed = packed
        counted = packed.groupBy(*ORDER[:2]).agg(*(functions.sum(name) for name in ("upserts", "deletes", "size")))
        try:
            counts = _answered(counted.collect)
        except EventideError:
            packed.unpersist()
            raise
        finally:
            # Not earlier: the packed rows are computed from them.
            for kept in (before, self._keyed):
                if kept is not None:
                    kept.unpersist()
            self._keyed = None
        self._packed_bytes = sum(int(row[4]) for row in counts)
        return tuple(Placement(row[0], row[1], int(row[2]), int(row[3])) for row in sorted(counts))


@dataclass(frozen=True, slots=True)
class _Keyed:
    """Turns batches of records into keyed tables. Row numbers count within a table, because Spark numbers no rows."""

    shape: WriteShape
    is_delete: bool

    def __call__(self, batches: RecordBatches) -> Iterator[pa.Table]:
        for rows in gathered(batches):
            yield keyed_deletes(rows, self.shape) if self.is_delete else keyed_upserts(rows, self.shape)


@dataclass(frozen=True, slots=True)
class _Rows:
    """Turns batches of records into batches of keyed records."""

    keyed: _Keyed

    def __call__(self, batches: RecordBatches) -> Iterator[pa.RecordBatch]:
        for table in self.keyed(batches):
            yield from batches_with_lists(table.combine_chunks().to_batches())


@dataclass(frozen=True, slots=True)
class _Packed:
    """Packs the keyed records that `place` makes of records."""

    shape: WriteShape
    place: Placing
    chunk_bytes: int

    def __call__(self, batches: RecordBatches) -> Iterator[pa.RecordBatch]:
        packer = _packer(self.shape, self.chunk_bytes)
        for table in self.place(batches):
            yield from packer.pack(table, table.column(PLACE).combine_chunks().cast(pa.string()))


@dataclass(frozen=True, slots=True)
class _Divided:
    """Divides the records of each place among its groups, whose file IDs become the places."""

    shape: WriteShape
    groups: tuple[FileGroupWrite, ...]
    chunk_bytes: int

    def __call__(self, batches: RecordBatches) -> Iterator[pa.RecordBatch]:
        packer = _packer(self.shape, self.chunk_bytes)
        file_ids = pa.array([*(group.file_id for group in self.groups), ""])
        for message in messages(batches):
            rows = message.rows(keyed_schema(self.shape))
            place, all_first = (message.partition, message.place), np.zeros(len(rows), np.int64)
            group_numbers = assign_groups([place], all_first, rows.column(RECORD_KEY), self.groups)
            yield from packer.pack(rows, file_ids.take(group_numbers))


@dataclass(frozen=True, slots=True)
class _Written:
    """Writes the records of each group, from chunks in ORDER. Deletes of keys that do not exist have no group."""

    shape: WriteShape
    groups: tuple[FileGroupWrite, ...]
    place_of: Mapping[tuple[str, str], int]
    writer: RowWriter
    combines: bool

    def __call__(self, batches: RecordBatches) -> Iterator[pa.RecordBatch]:
        for place, group in itertools.groupby(messages(batches), lambda message: (message.partition, message.place)):
            if place not in self.place_of:
                for message in group:
                    self._require_deletes(message)
                continue
            number = self.place_of[place]
            rows = pa.concat_tables([message.rows(keyed_schema(self.shape)) for message in group])
            one = combined(rows, self.shape) if self.combines else rows
            stats = [stat._asdict() for stat in self.writer(GroupRows(self.groups[number], self.shape, one))]
            columns: list[Any] = [pa.array([number], pa.int32()), pa.array([json.dumps(stats)])]
            yield pa.RecordBatch.from_arrays(columns, names=["group", "stats"])

    def _require_deletes(self, message: Message) -> None:
        if message.upserts:
            rows = message.rows(keyed_schema(self.shape))
            lost: Any = rows.filter(pc.invert(rows.column(IS_DELETE))).column(RECORD_KEY)[0]
            raise EngineError(
                f"key {lost.as_py()!r} is new: Spark computed the records a second time, with another result; write "
                "them to files, and then write those to the table"
            )


def _packer(shape: WriteShape, chunk_bytes: int) -> Packer:
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None, "packed outside of a task"
    return Packer(keyed_schema(shape), chunk_bytes, context.partitionId())


def _answered(ask: Callable[[], Any]) -> Any:
    """The result of a Spark call. Raises a task's typed error unchanged, and any other error as EngineError."""
    try:
        return ask()
    except Exception as failure:
        cause = cause_of(failure)
        named = re.match(r"(?:[\w.]*\.)?(\w+): (.*)", cause, re.DOTALL)
        kind = getattr(errors, named[1], None) if named is not None else None
        if named is not None and isinstance(kind, type) and issubclass(kind, EventideError):
            raise kind(named[2]) from failure
        raise failure_of(failure) from failure
