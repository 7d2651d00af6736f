"""The rows of a query: as Arrow in this process, or as a Spark DataFrame that executors read."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from eventide.spark.engine import ship_packages, task_count
from eventide.spark.parquet import divided, parquet_frame
from eventide_adapters.format.avro.schema import query_schema
from eventide_adapters.format.merge.slice_reader import ArrowSliceReader
from eventide_core.errors import InvalidFilterError
from eventide_core.ports import Engine
from eventide_core.table.record_shape import RecordShape
from eventide_core.table.slice_read import QueryPlan, SliceRead

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of one query, read on request. Hudi's five meta columns come first, if the table has them."""

    plan: QueryPlan
    reader: ArrowSliceReader
    engine: Engine

    @property
    def schema(self) -> pa.Schema:
        return query_schema(self.plan.shape)

    def schema_of(self, columns: Sequence[str] | None) -> pa.Schema:
        """The schema of these columns, or of all columns for None. Raises InvalidFilterError."""
        schema = self.schema
        for column in columns or ():
            if schema.get_field_index(column) < 0:
                raise InvalidFilterError(f"column {column!r} is not one of {', '.join(schema.names)}")
        return schema if columns is None else pa.schema([schema.field(name) for name in columns])

    def to_batches(
        self, columns: Sequence[str] | None = None, filter: pc.Expression | None = None
    ) -> Iterator[pa.RecordBatch]:
        """The rows, slice by slice, in batches of bounded size. Raises InvalidFilterError."""
        read = self._reader(columns, filter)
        for slice_read in self.plan.slices:
            yield from read(slice_read)

    def to_arrow(self, columns: Sequence[str] | None = None, filter: pc.Expression | None = None) -> pa.Table:
        """All rows in one table. Slices are read in parallel. Raises InvalidFilterError."""
        read = self._reader(columns, filter)
        parts = self.engine.map(read.whole, self.plan.slices)
        return pa.Table.from_batches([b for part in parts for b in part], schema=read.schema)

    def to_spark(
        self, spark: "SparkSession", columns: Sequence[str] | None = None, filter: pc.Expression | None = None
    ) -> "DataFrame":
        """A DataFrame that executors read. Raises InvalidFilterError.

        Without `filter`, Spark's own Parquet reader reads slices without log files if it can (`spark/parquet`). Python tasks
        read the other slices, with the columns named here: they don't know which columns a query selects later.
        """
        from pyspark.sql.pandas.types import from_arrow_schema

        ship_packages(spark)
        read = self._reader(columns, filter)
        schema, root = from_arrow_schema(read.schema), self.reader.storage.root
        by_spark, slices = divided(self.plan.slices, root, read.schema) if filter is None else ((), self.plan.slices)
        frames = [parquet_frame(spark, by_spark, root, schema)] if by_spark else []
        if not slices and not frames:
            return spark.createDataFrame([], schema)
        if slices:

            def read_slices(batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
                for batch in batches:
                    for position in batch.column(0).to_numpy():
                        yield from read(slices[int(position)])

            positions = spark.range(0, len(slices), 1, task_count(spark, len(slices)))
            frames.append(positions.mapInArrow(read_slices, schema))
        return reduce(lambda one, other: one.unionAll(other), frames)

    def reading(self, columns: Sequence[str] | None = None, filter: pc.Expression | None = None) -> "SliceReading":
        """The picklable read of one of the plan's slices, for callers with an engine of their own."""
        return self._reader(columns, filter)

    def _reader(self, columns: Sequence[str] | None, row_filter: pc.Expression | None) -> "SliceReading":
        kept = self.schema_of(columns)
        if row_filter is not None:
            try:
                self.schema.empty_table().filter(row_filter)
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowKeyError) as error:
                raise InvalidFilterError(f"filter {row_filter} does not fit the table: {error}") from None
        return SliceReading(self.reader, self.plan.shape, kept, row_filter, self._read_names(kept.names, row_filter))

    def _read_names(self, columns: Sequence[str], row_filter: pc.Expression | None) -> tuple[str, ...]:
        """The columns to read: those asked for, and those without which the filter cannot be applied."""
        if row_filter is None:
            return tuple(columns)
        empty = self.schema.empty_table()

        def needs(name: str) -> bool:
            try:
                empty.drop_columns([name]).filter(row_filter)
            except (pa.ArrowInvalid, pa.ArrowKeyError):
                return True
            return False

        return tuple(name for name in self.schema.names if name in columns or needs(name))


@dataclass(frozen=True, slots=True)
class SliceReading:
    """A picklable read of one slice: projected, merged, filtered."""

    reader: ArrowSliceReader
    shape: RecordShape
    schema: pa.Schema
    row_filter: pc.Expression | None
    read_names: tuple[str, ...]

    def __call__(self, slice_read: SliceRead) -> Iterator[pa.RecordBatch]:
        for batch in self.reader.read(slice_read, self.shape, self.read_names):
            chosen = batch if self.row_filter is None else batch.filter(self.row_filter)
            yield chosen.select(self.schema.names)

    def whole(self, slice_read: SliceRead) -> list[pa.RecordBatch]:
        return list(self(slice_read))
