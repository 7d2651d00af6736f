"""The rows of a query: as Arrow in this process, or as a Spark DataFrame that executors read.

A cleaner may remove a file between a query's plan and its reading. As long as no row has been handed over the query is
planned again, on the table as it is then. Later that would mix two states of the table: CleanedWhileReadingError. Where the
new plan still names every file of the old one, the file is missing indeed: MissingFileError. Spark's executors don't plan
again, as Hudi's don't: their job fails, and the query has to be run again.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from eventide.spark.engine import ship_packages, task_count
from eventide.spark.parquet import divided, parquet_frame
from eventide_adapters.format.merge.slice_reader import ArrowSliceReader
from eventide_core.config import COMMITS_RETAINED
from eventide_core.errors import CleanedWhileReadingError, InvalidFilterError, MissingFileError
from eventide_core.ports import Engine
from eventide_core.table.record_shape import RecordShape
from eventide_core.table.slice_read import QueryPlan, SliceRead

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


PLANS_AT_MOST = 5  # of one query, each because files of the last one are gone


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of one query, read on request. Hudi's five meta columns come first, if the table has them.

    `plan_again` answers with the plan of the same query as the table is then; without it none is made.
    """

    plan: QueryPlan
    reader: ArrowSliceReader
    engine: Engine
    plan_again: Callable[[], QueryPlan] | None = None

    @property
    def schema(self) -> pa.Schema:
        return self.reader.schema_of(self.plan.shape)

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
        """The rows, slice by slice, in batches of bounded size. Raises InvalidFilterError, CleanedWhileReadingError."""
        rows, plans = self, 1
        is_begun = False
        while True:
            read = rows._reader(columns, filter)
            try:
                for slice_read in rows.plan.slices:
                    for batch in read(slice_read):
                        is_begun = True
                        yield batch
                return
            except MissingFileError as missing:
                rows = rows._after(missing, may_go_on=not is_begun and plans < PLANS_AT_MOST)
                plans += 1

    def to_arrow(self, columns: Sequence[str] | None = None, filter: pc.Expression | None = None) -> pa.Table:
        """All rows in one table, its slices read side by side. Raises InvalidFilterError, CleanedWhileReadingError."""
        rows, plans = self, 1
        while True:
            read = rows._reader(columns, filter)
            try:
                parts = self.engine.map(read.whole, rows.plan.slices)
            except MissingFileError as missing:
                rows = rows._after(missing, may_go_on=plans < PLANS_AT_MOST)
                plans += 1
            else:
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

    def _after(self, missing: MissingFileError, *, may_go_on: bool) -> "Rows":
        """The rows of the same query as the table is now. Raises the error where the table still has the file."""
        newer = self.plan if self.plan_again is None else self.plan_again()
        if self.plan.paths <= newer.paths:
            raise missing
        if not may_go_on or newer.shape != self.plan.shape:
            raise CleanedWhileReadingError(
                f"{missing}: a cleaner has removed it since the query was planned; run the query again, and if "
                f"that happens often, retain more ({COMMITS_RETAINED}) or read a tag"
            ) from missing
        return replace(self, plan=newer)

    def _reader(self, columns: Sequence[str] | None, row_filter: pc.Expression | None) -> "SliceReading":
        kept = self.schema_of(columns)
        if row_filter is not None:
            try:
                self.schema.empty_table().filter(row_filter)
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowKeyError) as error:
                raise InvalidFilterError(f"filter {row_filter} does not fit the table: {error}") from None
        return SliceReading(self.reader, self.plan.shape, kept, row_filter, self._read_names(kept.names, row_filter))

    def _read_names(self, columns: Sequence[str], row_filter: pc.Expression | None) -> tuple[str, ...]:
        """The columns to read: those requested, and those without which the filter cannot be applied."""
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
