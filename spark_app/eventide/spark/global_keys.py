"""Looks up keys that are unique in the whole table, with joins on Spark (`adapters/format/write/global_keys`).

1. A shuffle by key groups the records, and one version of each key is kept.
2. One task per slice returns the live keys of the slice, with their ordering values.
3. Each record is joined with the locations of its key, and its place is chosen batch by batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from eventide_adapters.format.avro.schema import RECORD_KEY
from eventide_adapters.format.log_file.ordering_values import orderings_of
from eventide_adapters.format.merge.slice_reader import ArrowSliceReader
from eventide_adapters.format.write.global_keys import PLACE, Homes, place_records
from eventide_adapters.format.write.keyed_records import combined, keyed_schema
from eventide_core.ports import Storage
from eventide_core.table.slice_read import SliceRead
from eventide_core.table.write_shape import WriteShape

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

_HOME_PARTITION = "_eventide_home_partition"
_HOME_FILE = "_eventide_home_file"
_HOMES = "_eventide_homes"
Batches = Iterable[pa.RecordBatch]


def placed_schema(shape: WriteShape) -> StructType:
    """The columns of keyed records with their places."""
    from pyspark.sql.pandas.types import from_arrow_schema
    from pyspark.sql.types import StringType

    return from_arrow_schema(keyed_schema(shape)).add(PLACE, StringType())


def combined_by_key(keyed: DataFrame, shape: WriteShape) -> DataFrame:
    """One version of each key of keyed records."""
    from pyspark.sql.types import StructType

    return keyed.repartition(RECORD_KEY).mapInArrow(_Combined(shape), StructType(placed_schema(shape).fields[:-1]))


def placed_by_key(
    keyed: DataFrame, slices: Sequence[SliceRead], shape: WriteShape, storage: Storage, *, moves: bool
) -> DataFrame:
    """Keyed records with their places. They include deletes of the keys that move to another partition."""
    from pyspark.sql import functions
    from pyspark.sql.types import StringType, StructType

    schema, fields = placed_schema(shape), list(shape.records.ordering_fields)
    wanted = StructType([schema[name] for name in (RECORD_KEY, *fields)])
    wanted = wanted.add(_HOME_PARTITION, StringType()).add(_HOME_FILE, StringType())
    positions = keyed.sparkSession.range(0, len(slices), 1, max(len(slices), 1))
    home = functions.struct(*(f"`{name}`" for name in wanted.names[1:])).alias(_HOMES)
    homes = positions.mapInArrow(_Living(tuple(slices), shape, storage), wanted).select(RECORD_KEY, home)
    by_key = homes.groupBy(RECORD_KEY).agg(functions.collect_list(_HOMES).alias(_HOMES))
    joined = keyed.join(by_key, RECORD_KEY, "left")
    ordered = joined.select(*(f"`{name}`" for name in (*keyed_schema(shape).names, _HOMES)))
    return ordered.mapInArrow(_Settled(shape, moves), schema)


@dataclass(frozen=True, slots=True)
class _Living:
    """Maps slice numbers to the live keys of these slices, with their ordering values, partition and file ID."""

    slices: tuple[SliceRead, ...]
    shape: WriteShape
    storage: Storage

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        names = [RECORD_KEY, *self.shape.records.ordering_fields]
        reader = ArrowSliceReader(self.storage)
        for batch in batches:
            for position in batch.column(0).to_numpy():
                found = self.slices[int(position)]
                for rows in reader.read(found, self.shape.records, names):
                    home: list[Any] = [pa.repeat(text, len(rows)) for text in (found.partition, found.file_id)]
                    columns = [rows.column(name) for name in names]
                    yield pa.RecordBatch.from_arrays([*columns, *home], names=[*names, _HOME_PARTITION, _HOME_FILE])


@dataclass(frozen=True, slots=True)
class _Combined:
    """Keeps one version of each key. The batches of a call contain all versions of their keys."""

    shape: WriteShape

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        found = list(batches)
        if found:
            keyed = pa.Table.from_batches(found).cast(keyed_schema(self.shape))
            yield from combined(keyed, self.shape).to_batches()


@dataclass(frozen=True, slots=True)
class _Settled:
    """Maps keyed records, joined with lists of their keys' locations, to keyed records with places."""

    shape: WriteShape
    moves: bool

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            table = pa.Table.from_batches([batch])
            lists: Any = table.column(_HOMES).combine_chunks()
            homes: Any = pa.RecordBatch.from_struct_array(lists.flatten())
            rows: Any = pc.list_parent_indices(lists).cast(pa.int64()).to_numpy()
            keyed = table.drop_columns([_HOMES]).cast(keyed_schema(self.shape))
            fields, names = self.shape.records.ordering_fields, keyed_schema(self.shape)
            typed = [homes.column(name).cast(names.field(name).type) for name in fields]
            orderings = orderings_of(pa.RecordBatch.from_arrays(typed, names=list(fields)), fields)
            if not fields:
                orderings = pa.nulls(len(rows))
            found = Homes(rows, homes.column(_HOME_PARTITION), homes.column(_HOME_FILE), orderings)
            yield from place_records(keyed, found, self.shape, moves=self.moves).combine_chunks().to_batches()
