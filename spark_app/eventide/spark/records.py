"""The records of a write as a DataFrame of Spark: ports.IncomingRecords, with every row on executors.

1. Executors compute keys and partition paths and check the records batch by batch, as for Arrow tables (`keyed_records`).
   Each record gets its place in a column.
2. The driver gets the counts by place, and plans. Global keys are looked up in the record index of the metadata table, if
   the table has one. Otherwise, the records are joined with the keys that the files of their partitions hold (for global
   keys: with all live keys), which one task per slice reads. Spark persists the result, so that the rows are computed once.
3. The rows are shuffled by file group. A task has one group in memory at a time: it keeps one version of each key if the
   operation combines records, and writes the group's files.

If Spark runs a task again, it produces the same file names, and the files of the first run stay. If Spark has lost persisted
rows, it computes them again; a record that then has a place where no record was before fails the write.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide.spark.engine import cause_of, parallelism, ship_packages
from eventide.spark.global_keys import (
    combined_by_key,
    keyed_columns,
    placed_by_index,
    placed_by_key,
    placed_schema,
)
from eventide.spark.types import arrow_schema_of
from eventide_adapters.format.avro.schema import RECORD_KEY
from eventide_adapters.format.write.arrow_records import assign_groups, hashed_texts
from eventide_adapters.format.write.global_keys import PLACE
from eventide_adapters.format.write.incoming_schema import evolved_schema
from eventide_adapters.format.write.java_hash import buckets_of
from eventide_adapters.format.write.key_lookup import KeyLookup
from eventide_adapters.format.write.keyed_records import (
    IS_DELETE,
    PARTITION_PATH,
    combined,
    keyed_deletes,
    keyed_schema,
    keyed_upserts,
)
from eventide_adapters.format.write.record_writer import GroupRows, RowWriter
from eventide_core import errors
from eventide_core.errors import EngineError, EventideError
from eventide_core.ports import KeyIndex
from eventide_core.table.bucket import bucket_name
from eventide_core.table.commit_metadata import WriteStat
from eventide_core.table.file_group_write import FileGroupWrite, Placement
from eventide_core.table.slice_read import SliceRead
from eventide_core.table.write_shape import WriteShape

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_GROUP = "_eventide_group"
_STATS = "group int, stats string"
Batches = Iterable[pa.RecordBatch]


@dataclass(slots=True)
class SparkRecords:
    """`rows` has columns of the table; for deletes, the key and partition columns, and optionally the ordering column."""

    rows: DataFrame
    writer: RowWriter
    is_delete: bool
    _shape: WriteShape | None = None
    _combines: bool = False
    _placed: DataFrame | None = None

    def schema_after(self, table_schema: str | None, table_name: str) -> str:
        if not self.is_delete:
            return evolved_schema(table_schema, arrow_schema_of(self.rows.schema), table_name)
        assert table_schema is not None, "deletes of a table that has no schema"
        return table_schema

    def prepare(self, shape: WriteShape, *, combines: bool) -> None:
        ship_packages(self.rows.sparkSession)
        self._shape, self._combines = shape, combines

    def place_by_bucket(self, buckets: int, hash_fields: Sequence[str]) -> tuple[Placement, ...]:
        keyed, shape = _Keyed(self._required_shape, self.is_delete), self._required_shape

        def place(batches: Batches) -> Iterator[pa.RecordBatch]:
            for table in keyed(batches):
                numbers = buckets_of(hashed_texts(table, shape, hash_fields), buckets)
                yield from _with_places(table, pa.array([bucket_name(int(number)) for number in numbers], pa.string()))

        return self._place(self.rows.mapInArrow(place, placed_schema(self._required_shape)))

    def place_nowhere(self) -> tuple[Placement, ...]:
        keyed = _Keyed(self._required_shape, self.is_delete)

        def place(batches: Batches) -> Iterator[pa.RecordBatch]:
            for table in keyed(batches):
                yield from _with_places(table, pa.repeat("", len(table)))

        return self._place(self.rows.mapInArrow(place, placed_schema(self._required_shape)))

    def place_by_key(self, slices: Sequence[SliceRead], *, by_bloom: bool) -> tuple[Placement, ...]:  # noqa: ARG002
        """Filters can't reduce the read: a join needs every key of the partitions."""
        from pyspark.sql import functions

        self.place_nowhere()
        assert self._placed is not None
        new = self._placed.drop(PLACE)
        mine = {row[0] for row in _answered(lambda: new.select(PARTITION_PATH).distinct().collect())}
        asked = [file_slice for file_slice in slices if file_slice.partition in mine]
        if not asked:
            return self._place(new.withColumn(PLACE, functions.lit("")))
        spark, shape, lookup = self.rows.sparkSession, self._required_shape.records, KeyLookup(self.writer.storage)

        def keys_of(batches: Batches) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                for position in batch.column(0).to_numpy():
                    found = asked[int(position)]
                    for keys in lookup.distinct_keys(found, shape):
                        columns = [keys, pa.repeat(found.partition, len(keys)), pa.repeat(found.file_id, len(keys))]
                        yield pa.RecordBatch.from_arrays(columns, names=[RECORD_KEY, PARTITION_PATH, PLACE])

        positions = spark.range(0, len(asked), 1, len(asked))
        held = positions.mapInArrow(keys_of, f"{RECORD_KEY} string, {PARTITION_PATH} string, {PLACE} string").distinct()
        joined = new.join(held, [RECORD_KEY, PARTITION_PATH], "left").fillna("", [PLACE])
        return self._place(joined.select(*(f"`{name}`" for name in (*keyed_schema(self._required_shape).names, PLACE))))

    def place_by_global_key(
        self,
        slices: Sequence[SliceRead],
        *,
        by_bloom: bool,  # noqa: ARG002
        moves: bool,
        index: KeyIndex | None = None,
    ) -> tuple[Placement, ...]:
        shape, storage = self._required_shape, self.writer.storage
        if index is None:
            self.place_nowhere()  # the rows are read once, although the join may read them again
            assert self._placed is not None
            new = self._placed.drop(PLACE)
        else:
            keyed = _Keyed(shape, self.is_delete)

            def with_keys(batches: Batches) -> Iterator[pa.RecordBatch]:
                for table in keyed(batches):
                    yield from table.combine_chunks().to_batches()

            new = self.rows.mapInArrow(with_keys, keyed_columns(shape))
        if self._combines:
            new = combined_by_key(new, shape)
        if index is not None:
            placements = self._place(placed_by_index(new, slices, shape, storage, index, moves=moves))
            known = {(found.partition, found.file_id) for found in slices}
            if all((found.partition, found.place) in known for found in placements if found.place):
                return placements
        return self._place(placed_by_key(new, slices, shape, storage, moves=moves))

    def write(
        self, groups: Sequence[FileGroupWrite], *, on_done: Callable[[], None] | None = None
    ) -> list[tuple[WriteStat, ...]]:
        from pyspark.sql.types import IntegerType

        assert self._placed is not None, "records are written before they have their places"
        shape, writer, combines = self._required_shape, self.writer, self._combines
        positions = sorted({(group.partition, group.place) for group in groups})
        place_of = {place: number for number, place in enumerate(positions)}
        schema = placed_schema(shape).add(_GROUP, IntegerType())

        def with_groups(batches: Batches) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                table = pa.Table.from_batches([batch])
                directories: list[Any] = table.column(PARTITION_PATH).to_pylist()
                places: list[Any] = table.column(PLACE).to_pylist()
                pairs = zip(directories, places, strict=True)
                numbers = np.array([place_of.get(pair, len(positions)) for pair in pairs], np.int64)
                # Rows whose place has no group get the number after the last group, and are dropped below. These are the
                # deletes of keys that do not exist.
                found = assign_groups([*positions, ("", "")], numbers, table.column(RECORD_KEY), groups)
                found[numbers == len(positions)] = len(groups)
                is_lost = (found == len(groups)) & ~table.column(IS_DELETE).to_numpy(zero_copy_only=False)
                if is_lost.any():
                    raise EngineError(
                        f"key {table.column(RECORD_KEY)[int(is_lost.argmax())].as_py()!r} is new: Spark computed the "
                        "records a second time, with another result; write them to files, and then write those to the "
                        "table"
                    )
                kept = table.append_column(_GROUP, pa.array(found.astype(np.int32)))
                yield from kept.filter(pc.less(kept.column(_GROUP), pa.scalar(len(groups)))).to_batches()

        def write_groups(batches: Batches) -> Iterator[pa.RecordBatch]:
            for number, rows in _by_group(batches, shape):
                one = combined(rows, shape) if combines else rows
                stats = [stat._asdict() for stat in writer(GroupRows(groups[number], shape, one))]
                columns: list[Any] = [pa.array([number], pa.int32()), pa.array([json.dumps(stats)])]
                yield pa.RecordBatch.from_arrays(columns, names=["group", "stats"])

        tasks = min(len(groups), parallelism(self.rows.sparkSession) * 4) or 1
        sorted_rows = (
            self._placed.mapInArrow(with_groups, schema).repartition(tasks, _GROUP).sortWithinPartitions(_GROUP)
        )
        try:
            answers = _answered(lambda: sorted_rows.mapInArrow(write_groups, _STATS).collect())
        finally:
            self._placed.unpersist()
        found: dict[int, tuple[WriteStat, ...]] = {}
        for row in answers:
            found[row.group] = tuple(_stat(stat) for stat in json.loads(row.stats))
            if on_done is not None:
                on_done()
        return [found.get(number, ()) for number in range(len(groups))]

    @property
    def _required_shape(self) -> WriteShape:
        assert self._shape is not None, "records are placed before they were prepared"
        return self._shape

    def _place(self, placed: DataFrame) -> tuple[Placement, ...]:
        from pyspark.sql import functions

        before, self._placed = self._placed, placed.persist()
        deletes = functions.sum(functions.col(IS_DELETE).cast("long"))
        counted = self._placed.groupBy(PARTITION_PATH, PLACE).agg(functions.count("*"), deletes)
        try:
            rows = _answered(counted.collect)
        except EventideError:
            self._placed.unpersist()
            raise
        finally:
            # Not earlier: the rows with places are computed from the rows without places.
            if before is not None:
                before.unpersist()
        return tuple(Placement(row[0], row[1], int(row[2]) - int(row[3]), int(row[3])) for row in sorted(rows))


@dataclass(frozen=True, slots=True)
class _Keyed:
    """Turns batches of records into keyed tables. Row numbers count within a batch, because Spark numbers no rows."""

    shape: WriteShape
    is_delete: bool

    def __call__(self, batches: Batches) -> Iterator[pa.Table]:
        for batch in batches:
            rows = pa.Table.from_batches([batch])
            yield keyed_deletes(rows, self.shape) if self.is_delete else keyed_upserts(rows, self.shape)


def _with_places(table: pa.Table, places: Any) -> list[pa.RecordBatch]:
    return table.append_column(PLACE, places).combine_chunks().to_batches()


def _by_group(batches: Batches, shape: WriteShape) -> Iterator[tuple[int, pa.Table]]:
    """The rows of each group, from batches that are sorted by group."""
    names, waiting, current = keyed_schema(shape), list[pa.Table](), -1
    for batch in batches:
        numbers = batch.column(batch.schema.get_field_index(_GROUP)).to_numpy()
        rows = pa.Table.from_batches([batch]).select(names.names).cast(names)
        bounds = [0, *(np.flatnonzero(np.diff(numbers)) + 1), len(numbers)]
        for begin, end in itertools.pairwise(bounds):
            if end == begin:
                continue
            if numbers[begin] != current and waiting:
                yield current, pa.concat_tables(waiting)
                waiting = []
            current = int(numbers[begin])
            waiting.append(rows.slice(int(begin), int(end - begin)))
    if waiting:
        yield current, pa.concat_tables(waiting)


def _stat(values: Mapping[str, Any]) -> WriteStat:
    logs = values["log_files"]
    return WriteStat(**{**values, "log_files": None if logs is None else tuple(logs)})


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
        raise EngineError(f"a task failed on Spark: {cause}; nothing was committed") from failure
