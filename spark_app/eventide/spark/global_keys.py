"""Looks up keys that are unique in the whole table, with joins on Spark (`format/write/global_keys`).

1. A shuffle by key groups the records, and one version of each key is kept.
2. One task per slice returns the live keys of the slice, with their ordering values.
3. Each record is joined with the locations of its key, and its place is chosen batch by batch.

By the record index of the metadata table (`format/write/indexed_keys`), 2 and 3 become:

2. A shuffle by the file group of the index that has the key. A task asks each file group for its own keys, sorted, some
   hundred thousand at a time.
3. If the row of a key at its home decides, another shuffle brings the records of one home together, and a task reads the
   rows of these keys there.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide.spark.engine import parallelism
from eventide.spark.packed_rows import RecordBatches, gathered
from eventide.spark.types import batches_with_lists, spark_schema_of
from eventide_adapters.format.encoding.columns.java_hash import file_group_numbers
from eventide_adapters.format.slice.log_file.ordering_values import orderings_of
from eventide_adapters.format.slice.merge.slice_reader import ArrowSliceReader
from eventide_adapters.format.write.global_keys import Homes, place_records, shown_keys
from eventide_adapters.format.write.indexed_keys import (
    Places,
    is_decided_at_home,
    located_keys,
    place_decided,
    place_located,
)
from eventide_adapters.format.write.keyed_records import combined, keyed_schema
from eventide_core.ports import KeyIndex, Storage
from eventide_core.table.files.slice_read import SliceRead
from eventide_core.table.records.record_order import MergeRule
from eventide_core.table.schema.avro_schema import RECORD_KEY
from eventide_core.table.settings.write_shape import WriteShape

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

_HOME_PARTITION = "_eventide_home_partition"
_HOME_FILE = "_eventide_home_file"
_HOMES = "_eventide_homes"
_NUMBER = "_eventide_index_group"
_DECIDES = "_eventide_decides"
_KEYS_AT_ONCE = 200_000
Placing = Callable[[RecordBatches], Iterator[pa.Table]]
"""Gives tables of keyed records with their places."""


def keyed_columns(shape: WriteShape) -> "StructType":
    """The columns of keyed records."""
    return spark_schema_of(keyed_schema(shape))


def combined_by_key(keyed: "DataFrame", shape: WriteShape) -> "DataFrame":
    """One version of each key of keyed records."""
    return keyed.repartition(RECORD_KEY).mapInArrow(_Combined(shape), keyed_columns(shape))


def placed_by_key(
    keyed: "DataFrame", slices: Sequence[SliceRead], shape: WriteShape, storage: Storage, *, moves: bool
) -> "tuple[DataFrame, Placing]":
    """Keyed records with what a task needs to know, and how it places them.

    The placed records include deletes of the keys that move to another partition.
    """
    from pyspark.sql import functions
    from pyspark.sql.types import StringType, StructType

    schema, fields = keyed_columns(shape), list(shape.records.ordering_fields)
    wanted = StructType([schema[name] for name in (RECORD_KEY, *fields)])
    wanted = wanted.add(_HOME_PARTITION, StringType()).add(_HOME_FILE, StringType())
    positions = keyed.sparkSession.range(0, len(slices), 1, max(len(slices), 1))
    home = functions.struct(*(f"`{name}`" for name in wanted.names[1:])).alias(_HOMES)
    homes = positions.mapInArrow(_Living(tuple(slices), shape, storage), wanted).select(RECORD_KEY, home)
    by_key = homes.groupBy(RECORD_KEY).agg(functions.collect_list(_HOMES).alias(_HOMES))
    joined = keyed.join(by_key, RECORD_KEY, "left")
    ordered = joined.select(*(f"`{name}`" for name in (*keyed_schema(shape).names, _HOMES)))
    return ordered, _Settled(shape, moves)


def placed_by_index(
    keyed: "DataFrame",
    slices: Sequence[SliceRead],
    shape: WriteShape,
    storage: Storage,
    index: KeyIndex,
    *,
    moves: bool,
) -> "tuple[DataFrame, Placing]":
    """What `placed_by_key` returns, by the index.

    A place that is not among `slices` shows that the index is of another moment than they are.
    """
    from pyspark.sql import functions
    from pyspark.sql.types import IntegerType, StringType

    groups = min(index.file_groups, 4 * parallelism(keyed.sparkSession))
    numbered = keyed.mapInArrow(_Numbered(index), keyed_columns(shape).add(_NUMBER, IntegerType()))
    by_number = numbered.repartition(groups, _NUMBER).sortWithinPartitions(_NUMBER, RECORD_KEY)
    homes = keyed_columns(shape).add(_HOME_PARTITION, StringType()).add(_HOME_FILE, StringType())
    located = by_number.mapInArrow(_Located(shape, index, moves), homes.add(_DECIDES, StringType()))
    if moves and shape.records.merge_rule is not MergeRule.COMMIT_TIME_ORDERING:
        spread = functions.when(functions.col(_DECIDES) == "", functions.col(RECORD_KEY)).otherwise(
            functions.concat(_HOME_PARTITION, functions.lit("/"), _HOME_FILE)
        )
        located = located.repartition(spread).sortWithinPartitions(_DECIDES)
    return located, _Decided(tuple(slices), shape, storage, moves)


@dataclass(frozen=True, slots=True)
class _Numbered:
    """Adds the file group of the index that has each key."""

    index: KeyIndex

    def __call__(self, batches: RecordBatches) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            keys = batch.column(batch.schema.get_field_index(RECORD_KEY))
            numbers = file_group_numbers(keys, self.index.file_groups)
            yield batch.append_column(_NUMBER, pa.array(numbers, pa.int32()))


@dataclass(frozen=True, slots=True)
class _Located:
    """Looks up keys, sorted by file groups of the index, and adds their homes.

    _DECIDES has partition and file ID of the homes whose rows decide; otherwise, it is empty.
    """

    shape: WriteShape
    index: KeyIndex
    moves: bool

    def __call__(self, batches: RecordBatches) -> Iterator[pa.RecordBatch]:
        for number, rows in _runs(batches, _NUMBER):
            keyed = rows.drop_columns([_NUMBER]).cast(keyed_schema(self.shape))
            coded: Any = keyed.column(RECORD_KEY).combine_chunks().dictionary_encode()
            codes = coded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
            places = located_keys(self.index, (number, coded.dictionary)).take(codes)
            decides = is_decided_at_home(keyed, places, self.shape, moves=self.moves)
            texts: tuple[Any, ...] = (places.partitions, places.file_ids, "/")
            home = pc.binary_join_element_wise(*texts)
            chosen = pc.if_else(pa.array(decides), home, pa.scalar("")).fill_null("")
            located = keyed.append_column(_HOME_PARTITION, places.partitions)
            located = located.append_column(_HOME_FILE, places.file_ids).append_column(_DECIDES, chosen)
            yield from batches_with_lists(located.combine_chunks().to_batches())


@dataclass(frozen=True, slots=True)
class _Decided:
    """Maps keyed records with their homes, sorted by _DECIDES, to keyed records with places."""

    slices: tuple[SliceRead, ...]
    shape: WriteShape
    storage: Storage
    moves: bool

    def __call__(self, batches: RecordBatches) -> Iterator[pa.Table]:
        known = {f"{slice_read.partition}/{slice_read.file_id}": slice_read for slice_read in self.slices}
        for home, rows in _runs(batches, _DECIDES):
            names = keyed_schema(self.shape)
            keyed = rows.select(names.names).cast(names)
            texts: Any = [
                rows.column(name).combine_chunks().cast(pa.string()) for name in (_HOME_PARTITION, _HOME_FILE)
            ]
            places = Places(*texts)
            if home in known:
                yield place_decided(
                    keyed,
                    places,
                    [known[home]],
                    self.shape,
                    lambda tasks: [shown_keys(self.storage, task) for task in tasks],
                )
            else:
                yield place_located(keyed, places, self.shape, moves=self.moves)


def _runs(batches: RecordBatches, column: str) -> Iterator[tuple[Any, pa.Table]]:
    """The rows of each run of one value in a column, by which the batches are sorted; a long run in parts."""
    waiting, count, current = list[pa.Table](), 0, None
    for batch in batches:
        table = pa.Table.from_batches([batch])
        values: list[Any] = table.column(column).to_pylist()
        begin = 0
        while begin < len(values):
            end = bisect_right(values, values[begin], begin)
            if waiting and (values[begin] != current or count >= _KEYS_AT_ONCE):
                yield current, pa.concat_tables(waiting)
                waiting, count = [], 0
            current = values[begin]
            waiting.append(table.slice(begin, end - begin))
            count += end - begin
            begin = end
    if waiting:
        yield current, pa.concat_tables(waiting)


@dataclass(frozen=True, slots=True)
class _Living:
    """Maps slice numbers to the live keys of these slices, with their ordering values, partition and file ID."""

    slices: tuple[SliceRead, ...]
    shape: WriteShape
    storage: Storage

    def __call__(self, batches: RecordBatches) -> Iterator[pa.RecordBatch]:
        names = [RECORD_KEY, *self.shape.records.ordering_fields]
        reader = ArrowSliceReader(self.storage)
        for batch in batches:
            for position in batch.column(0).to_numpy():
                slice_read = self.slices[int(position)]
                places = (slice_read.partition, slice_read.file_id)
                for rows in reader.read(slice_read, self.shape.records, names):
                    home: list[Any] = [pa.repeat(text, len(rows)) for text in places]
                    columns = [rows.column(name) for name in names]
                    homes = [*names, _HOME_PARTITION, _HOME_FILE]
                    yield from batches_with_lists([pa.RecordBatch.from_arrays([*columns, *home], names=homes)])


@dataclass(frozen=True, slots=True)
class _Combined:
    """Keeps one version of each key. The batches of a call contain all versions of their keys."""

    shape: WriteShape

    def __call__(self, batches: RecordBatches) -> Iterator[pa.RecordBatch]:
        parts = list(batches)
        if parts:
            keyed = pa.Table.from_batches(parts).cast(keyed_schema(self.shape))
            yield from batches_with_lists(combined(keyed, self.shape).to_batches())


@dataclass(frozen=True, slots=True)
class _Settled:
    """Maps keyed records, joined with lists of their keys' locations, to keyed records with places."""

    shape: WriteShape
    moves: bool

    def __call__(self, batches: RecordBatches) -> Iterator[pa.Table]:
        for table in gathered(batches):
            lists: Any = table.column(_HOMES).combine_chunks()
            homes: Any = pa.RecordBatch.from_struct_array(lists.flatten())
            rows: Any = pc.list_parent_indices(lists).cast(pa.int64()).to_numpy()
            keyed = table.drop_columns([_HOMES]).cast(keyed_schema(self.shape))
            fields, names = self.shape.records.ordering_fields, keyed_schema(self.shape)
            typed = [homes.column(name).cast(names.field(name).type) for name in fields]
            orderings = orderings_of(pa.RecordBatch.from_arrays(typed, names=list(fields)), fields)
            if not fields:
                orderings = pa.nulls(len(rows))
            places = Homes(rows, homes.column(_HOME_PARTITION), homes.column(_HOME_FILE), orderings)
            yield place_records(keyed, places, self.shape, moves=self.moves)
