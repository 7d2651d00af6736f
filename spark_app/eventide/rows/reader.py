"""The rows of a query: as Arrow in this process, or as a Spark DataFrame that executors read.

A cleaner may remove a file after a query is planned and before it is read. If no row has been returned yet, the query is
planned again on the current table. Later, that would mix two states of the table, so the query raises
CleanedWhileReadingError. If the new plan still names every file of the old one, the file is really missing:
MissingFileError. Spark's executors don't plan again, as in Hudi: their job fails, and the user runs the query again.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from eventide.rows.row_filter import Filter, filter_expression, selected, shown
from eventide.spark.engine import task_count
from eventide.spark.parquet import divided, parquet_frame
from eventide.spark.types import batches_with_lists, spark_schema_of
from eventide.spark.workers import ship_packages
from eventide_adapters.format.slice.merge.slice_reader import ArrowSliceReader
from eventide_adapters.format.slice.merge.sought import Sought
from eventide_core.config import COMMITS_RETAINED
from eventide_core.errors import (
    CleanedWhileReadingError,
    ConfigError,
    InvalidFilterError,
    MissingFileError,
    counted,
)
from eventide_core.ports import Engine
from eventide_core.table.files.slice_read import QueryPlan, SliceRead
from eventide_core.table.records.record_shape import RecordShape
from eventide_core.table.settings.table_config import TableConfig

if TYPE_CHECKING:
    import duckdb
    import pandas
    import polars
    from pyspark.sql import DataFrame, SparkSession

    from eventide_core.service.query.record_index_lookup import RecordIndexLookup


T = TypeVar("T")

_HTML_ROWS = 20
_FEW_ROWS = 4096  # of a batch of a query with a limit
_LOOKED_AT_MAX = 1000  # slices whose footers are read before tasks are made
PLANS_AT_MOST = 5  # of one query: each new plan follows because files of the last one were cleaned


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of one query, read on request. Hudi's five meta columns come first, if the table has them.

    `filter` is a condition as in SQL's WHERE ("amount > 10 and part = 'a'"), an Arrow expression, or a list of
    `(column, operator, value)`, all of which must hold. What cannot hold a row that it keeps is not read: partitions,
    buckets, base files and their row groups (rows/row_filter.py).

    Any library that accepts Arrow's C stream accepts the rows: `polars.DataFrame(rows)`, `pyarrow.table(rows)`.

    `plan_again` returns the plan of the same query on the current table; without it, the query is planned once. `config`
    reads the table's configuration, for a filter; without it, all partitions are read. `key_lookup` finds the keys of a
    filter in the record index; without it, files are searched. `row_limit` is the greatest number of rows that are read;
    None: all.
    """

    plan: QueryPlan
    reader: ArrowSliceReader
    engine: Engine
    plan_again: Callable[[], QueryPlan] | None = None
    config: Callable[[], TableConfig] | None = None
    key_lookup: "RecordIndexLookup | None" = None
    row_limit: int | None = None

    def __repr__(self) -> str:
        logs = sum(len(one.log_paths) for one in self.plan.slices)
        columns, slices = counted(len(self.schema.names), "column"), counted(len(self.plan.slices), "file slice")
        return f"<Rows of {self.reader.storage.root}: {columns}, {slices}, {counted(logs, 'log file')}>"

    def __len__(self) -> int:
        return self.count()

    def limit(self, rows: int) -> "Rows":
        """This query, of which at most this many rows are read: slices behind them are not opened.

        Which rows they are is not defined. Raises ConfigError for a negative number.
        """
        given: object = rows
        if not isinstance(given, int) or rows < 0:
            raise ConfigError(f"limit must be 0 or more, not {rows!r}")
        return replace(self, row_limit=rows if self.row_limit is None else min(rows, self.row_limit))

    def head(self, rows: int = 20) -> pa.Table:
        """The first rows that are read, in one table."""
        return self.limit(rows).to_arrow()

    def count(self, filter: Filter | None = None) -> int:
        """The number of rows. A slice that is only a base file is counted by its footer, others by one column.

        Raises InvalidFilterError, CleanedWhileReadingError.
        """
        names, most = self.schema.names[:1], self.row_limit
        if most is None:
            return sum(self._mapped(names, filter, lambda read: read.count))
        return self._planned(names, filter, lambda read: read.count_up_to(most))

    def _repr_html_(self) -> str:
        """The first rows, for a notebook, without Hudi's own columns."""
        from eventide.notebook import html_table
        from eventide.rows.plain_values import plain_rows

        names = [name for name in self.schema.names if not name.startswith("_hoodie_")]
        batches = self.limit(_HTML_ROWS).to_batches(names)
        return html_table(repr(self), names, (list(row.values()) for batch in batches for row in plain_rows(batch)))

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The rows as a stream of Arrow's C interface, read slice by slice on request."""
        reader: Any = pa.RecordBatchReader.from_batches(self.schema, self.to_batches())
        stream: object = reader.__arrow_c_stream__(requested_schema)
        return stream

    @property
    def note(self) -> str | None:
        """What a later increment will skip, beside a pending write on version 6; or why there are no rows as of a time."""
        return self.plan.note

    @property
    def schema(self) -> pa.Schema:
        return self.reader.schema_of(self.plan.shape)

    def schema_of(self, columns: Sequence[str] | None) -> pa.Schema:
        """The schema of these columns, or of all columns if None. Raises InvalidFilterError."""
        schema = self.schema
        if isinstance(columns, str):
            raise InvalidFilterError(f"columns {columns!r} is one text: pass a list of names")
        if columns is not None and not isinstance(columns, Iterable):
            raise InvalidFilterError(f"columns must be a list of names, not {columns!r}")
        if columns is None:
            return schema
        names: list[Any] = list(columns)
        known = set[str]()
        for name in names:
            if not isinstance(name, str) or schema.get_field_index(name) < 0:
                raise InvalidFilterError(f"column {name!r} is not one of {', '.join(schema.names)}")
            if name in known:
                raise InvalidFilterError(f"column {name!r} is named twice: name it once")
            known.add(name)
        return pa.schema([schema.field(name) for name in names])

    def to_batches(
        self, columns: Sequence[str] | None = None, filter: Filter | None = None
    ) -> Iterator[pa.RecordBatch]:
        """The rows, slice by slice, in batches of bounded size. Raises InvalidFilterError, CleanedWhileReadingError."""
        batches = self._batches(columns, filter)
        return batches if self.row_limit is None else _limited(batches, self.row_limit)

    def _batches(self, columns: Sequence[str] | None, filter: Filter | None) -> Iterator[pa.RecordBatch]:
        rows, plans = self, 1
        is_begun = False
        while True:
            read = rows.reading(columns, filter)
            try:
                for slice_read in read.slices:
                    for batch in read(slice_read):
                        is_begun = True
                        yield batch
                return
            except MissingFileError as missing:
                rows = rows._after(missing, may_go_on=not is_begun and plans < PLANS_AT_MOST)
                plans += 1

    def to_arrow(self, columns: Sequence[str] | None = None, filter: Filter | None = None) -> pa.Table:
        """All rows in one table; slices are read in parallel. Raises InvalidFilterError, CleanedWhileReadingError."""
        schema = self.schema_of(columns)
        if self.row_limit is not None:
            return pa.Table.from_batches(self.to_batches(columns, filter), schema=schema)
        parts = self._mapped(columns, filter, lambda read: read.whole)
        return pa.Table.from_batches([batch for part in parts for batch in part], schema=schema)

    def _mapped(
        self,
        columns: Sequence[str] | None,
        filter: Filter | None,
        task: "Callable[[SliceReading], Callable[[SliceRead], T]]",
    ) -> "list[T]":
        """What the task finds in each slice, on the engine. Plans again if a cleaner was faster."""
        return self._planned(columns, filter, lambda read: self.engine.map(task(read.of_slices()), read.slices))

    def _planned(self, columns: Sequence[str] | None, filter: Filter | None, ask: "Callable[[SliceReading], T]") -> "T":
        """The answer of all slices. Plans again if a cleaner was faster."""
        rows, plans = self, 1
        while True:
            try:
                return ask(rows.reading(columns, filter))
            except MissingFileError as missing:
                rows = rows._after(missing, may_go_on=plans < PLANS_AT_MOST)
                plans += 1

    def to_pandas(
        self, columns: Sequence[str] | None = None, filter: Filter | None = None, **words: Any
    ) -> "pandas.DataFrame":
        """All rows as a pandas DataFrame. Passes other arguments to `pyarrow.Table.to_pandas`. Raises InvalidFilterError.

        Whole numbers of more than 53 bits beside null are objects: a double would round them. With
        `types_mapper=pandas.ArrowDtype`, every value comes back as it left, also null beside NaN, and maps.
        """
        try:
            import pandas  # noqa: F401  # by pyarrow
        except ModuleNotFoundError as missing:
            raise _missing("pandas") from missing
        rows = self.to_arrow(columns, filter)
        words.setdefault("integer_object_nulls", any(map(_is_rounded_by_pandas, rows.columns)))
        return rows.to_pandas(**words)

    def to_polars(self, columns: Sequence[str] | None = None, filter: Filter | None = None) -> "polars.DataFrame":
        """All rows as a Polars DataFrame. Raises InvalidFilterError."""
        try:
            import polars
        except ModuleNotFoundError as missing:
            raise _missing("polars") from missing
        return polars.DataFrame(self.to_arrow(columns, filter))

    def to_duckdb(
        self,
        columns: Sequence[str] | None = None,
        filter: Filter | None = None,
        *,
        connection: "duckdb.DuckDBPyConnection | None" = None,
    ) -> "duckdb.DuckDBPyRelation":
        """All rows as a relation of a DuckDB connection, by default DuckDB's default one. Raises InvalidFilterError.

        For example: `rows.to_duckdb().query("trips", "select count(*) from trips")`.
        """
        try:
            import duckdb
        except ModuleNotFoundError as missing:
            raise _missing("duckdb") from missing
        if connection is not None and not hasattr(connection, "from_arrow"):
            raise ConfigError(f"{connection!r} isn't a DuckDB connection: pass one, or omit it")
        if columns is not None and not columns:
            raise InvalidFilterError("columns are none, and a relation of DuckDB has one or more: name some")
        return (connection or duckdb).from_arrow(self.to_arrow(columns, filter))

    def to_spark(
        self, spark: "SparkSession", columns: Sequence[str] | None = None, filter: Filter | None = None
    ) -> "DataFrame":
        """A DataFrame that executors read. Raises InvalidFilterError.

        Without `filter`, Spark's own Parquet reader reads slices without log files if it can (`spark/parquet`). Python tasks
        read the other slices, with the columns named here: they don't know which columns a query selects later. They read
        every slice of a window of event time, too, and of a filter.
        """
        ship_packages(spark)
        chosen = self.reading(columns, filter)
        read = chosen.of_slices()
        schema, root = spark_schema_of(read.schema), self.reader.storage.root
        by_spark, slices = (
            divided(self.plan.slices, root, read.schema)
            if filter is None and self.reader.reads_whole_slices
            else ((), chosen.unskipped(self.engine))
        )
        frames = [parquet_frame(spark, by_spark, root, schema)] if by_spark else []
        if not slices and not frames:
            return spark.createDataFrame([], schema)
        if slices:

            def read_slices(batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
                for batch in batches:
                    for position in batch.column(0).to_numpy():
                        yield from batches_with_lists(read(slices[int(position)]))

            positions = spark.range(0, len(slices), 1, task_count(spark, len(slices)))
            frames.append(positions.mapInArrow(read_slices, schema))
        frame = reduce(lambda one, other: one.unionAll(other), frames)
        return frame if self.row_limit is None else frame.limit(self.row_limit)

    def reading(self, columns: Sequence[str] | None = None, filter: Filter | None = None) -> "SliceReading":
        """The picklable read of one of the plan's slices, for callers with their own engine."""
        kept, row_filter = self.schema_of(columns), filter_expression(filter, self.schema)
        names = self._read_names(kept.names, row_filter)
        if row_filter is None or self.config is None:
            is_few = row_filter is None and self.row_limit is not None
            reader = replace(self.reader, few_rows=_FEW_ROWS) if is_few else self.reader
            return SliceReading(reader, self.plan.shape, kept, row_filter, names, self.plan.slices)
        config = self.config()
        is_by_path = self.key_lookup is None or not self.key_lookup.may_leave_keys(config)
        selection = selected(self.plan, row_filter, self.schema, config, is_by_path=is_by_path)
        sought = Sought(row_filter, self.schema, self._read_names((), row_filter), selection.keys)
        reader = replace(self.reader, sought=sought)
        slices = selection.slices
        if self.key_lookup is not None:
            slices = self.key_lookup.kept(config, self.plan, slices, selection.named)
        return SliceReading(reader, self.plan.shape, kept, row_filter, names, slices)

    def _after(self, missing: MissingFileError, *, may_go_on: bool) -> "Rows":
        """The rows of the same query on the current table. Raises the error if the table still has the file."""
        newer = self.plan if self.plan_again is None else self.plan_again()
        if self.plan.paths <= newer.paths:
            raise missing
        if not may_go_on or newer.shape != self.plan.shape:
            raise CleanedWhileReadingError(
                f"{missing}: a cleaner has removed it since the query was planned; run the query again, and if "
                f"that happens often, retain more ({COMMITS_RETAINED}) or read a tag"
            ) from missing
        return replace(self, plan=newer)

    def _read_names(self, columns: Sequence[str], row_filter: pc.Expression | None) -> tuple[str, ...]:
        """The columns to read: those requested, and those that the filter needs."""
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
    """A picklable read of one slice: projected, merged, filtered. `slices` are those to read."""

    reader: ArrowSliceReader
    shape: RecordShape
    schema: pa.Schema
    row_filter: pc.Expression | None
    read_names: tuple[str, ...]
    slices: tuple[SliceRead, ...] = ()

    def of_slices(self) -> "SliceReading":
        """This reading without its slices, for tasks that get theirs."""
        return replace(self, slices=())

    def unskipped(self, engine: Engine) -> tuple[SliceRead, ...]:
        """The slices without those that footers and block headers exclude: a task for them would read no row.

        Opens no file if there are too many to open one after another.
        """
        is_whole = self.reader.reads_whole_slices and self.reader.sought is None
        if is_whole or len(self.slices) > _LOOKED_AT_MAX:
            return self.slices
        is_outside = engine.map(self.of_slices().is_outside, self.slices)
        return tuple(one for one, skipped in zip(self.slices, is_outside, strict=True) if not skipped)

    def is_outside(self, slice_read: SliceRead) -> bool:
        """If the filter keeps no row of the slice, as its footer and its block headers show."""
        return self.reader.is_outside(slice_read, self.shape)

    def __call__(self, slice_read: SliceRead) -> Iterator[pa.RecordBatch]:
        for batch in self.reader.read(slice_read, self.shape, self.read_names):
            yield self._chosen(batch).select(self.schema.names)

    def _chosen(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        if self.row_filter is None:
            return batch
        try:
            return batch.filter(self.row_filter)
        except pa.ArrowInvalid as error:
            raise InvalidFilterError(
                f"filter {shown(self.row_filter)} can't be computed for a row: {error}; write nullif(a, 0) for a divisor, a "
                "fraction such as 2.0 for an overflow, and an Arrow expression with casts, or as SQL"
            ) from error

    def whole(self, slice_read: SliceRead) -> list[pa.RecordBatch]:
        return list(self(slice_read))

    def count(self, slice_read: SliceRead) -> int:
        if self.row_filter is None and (known := self.reader.base_row_count(slice_read)) is not None:
            return known
        return sum(batch.num_rows for batch in self(slice_read))

    def count_up_to(self, most: int) -> int:
        """The number of rows, up to this many. Opens no slice behind them."""
        count = 0
        for slice_read in self.slices:
            known = None if self.row_filter is not None else self.reader.base_row_count(slice_read)
            for rows in (known,) if known is not None else (batch.num_rows for batch in self(slice_read)):
                count += rows
                if count >= most:
                    return most
        return count


def _limited(batches: Iterable[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    """The batches up to this many rows. Opens none behind them."""
    if rows == 0:
        return
    for batch in batches:
        yield batch.slice(0, rows)
        rows -= batch.num_rows
        if rows <= 0:
            return


def _missing(package: str) -> ConfigError:
    return ConfigError(f"to_{package} needs {package}: run `pip install {package}`")


def _is_rounded_by_pandas(column: Any) -> bool:
    """Whether a column of whole numbers would become one of doubles, which do not hold all of them."""
    if not column.null_count or not pa.types.is_int64(column.type):
        return False
    ends: Any = pc.min_max(column).as_py()
    return any(abs(end or 0) > 1 << 53 for end in ends.values())


def first_row(reading: SliceReading, file_slice: SliceRead, /) -> pa.Table:
    """The first row of a slice, or none."""
    batches = (batch for batch in reading(file_slice) if len(batch))
    return pa.Table.from_batches([batch.slice(0, 1) for batch in islice(batches, 1)], reading.schema)
