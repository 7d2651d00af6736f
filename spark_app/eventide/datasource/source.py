"""`format("eventide")` on Spark 4.1: a Python data source that reads tables, streams their changes, and writes them.

    reading     Each file slice is a partition, read by an executor. The driver plans the query once. Simple conditions are
                applied while a slice is read, and a slice that they exclude doesn't become a partition. Spark doesn't pass
                the columns that a query selects to a Python source: to read only some, pass a schema that names them.
    streaming   `change_stream` reads changes from a table, `window_stream` its windows of event time, and `writers` writes
                batches to one.
    writing     The rows reach the driver as the tasks' commit messages, compressed, and the driver writes them: Spark
                gives a Python source no way to group rows by key. A write of more rows than
                `eventide.spark.write.bytes.max` is refused, and `spark.driver.maxResultSize` applies, too. For a larger one,
                use `Table.upsert(frame)`, whose rows stay on executors, or `stream_sink`.

A task or a driver that dies before the commit leaves nothing behind.

The options are as in `Table.open`; Hudi's options for the query (`hoodie.datasource.query.type`, `as.of.instant`,
`hoodie.datasource.read.begin.instanttime`, `...end.instanttime`); eventide's (`as.of.watermark`, `as.of.tag`);
`hoodie.datasource.streaming.startOffset` for a stream from the table; and `hoodie.datasource.write.operation` for a write.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
    Filter,
    InputPartition,
)
from pyspark.sql.types import StructType

from eventide.catalog import located
from eventide.datasource.change_stream import ChangeStream
from eventide.datasource.window_stream import WindowStream, with_window_columns
from eventide.datasource.writers import StreamWriter, Writer, overwriting
from eventide.options import queries as keys
from eventide.options.queries import QueryType
from eventide.options.streams import STREAM_START, WRITE_OPERATION
from eventide.options.windows import CONSUMER, EVERY, SINCE
from eventide.rows.reader import Rows
from eventide.spark.datasource_schema import chosen_columns
from eventide.spark.pushed_filters import pushed_filter
from eventide.spark.types import batches_with_lists, spark_schema_of
from eventide.spark.workers import ship_packages
from eventide.table.table import Table
from eventide_core.config import Options
from eventide_core.errors import ConfigError
from eventide_core.table.files.slice_read import SliceRead

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAME = "eventide"
_PUSH_DOWN = "spark.sql.python.filterPushdown.enabled"


def register_source(spark: "SparkSession") -> None:
    """Registers `format("eventide")` with a session, and enables filter pushdown to Python sources."""
    ship_packages(spark)
    spark.dataSource.register(EventideSource)
    # Off by default. Spark then rejects a source that accepts filters.
    spark.conf.set(_PUSH_DOWN, "true")


class EventideSource(DataSource):
    """The table that the options of a read or a write name."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> StructType:
        if Options(self.options).get(EVERY) is None:
            return spark_schema_of(self._rows().schema)
        rows = Table.open(self._path(), self.options).read_optimized()
        return spark_schema_of(with_window_columns(rows.schema))

    def reader(self, schema: StructType) -> DataSourceReader:
        if self._asks_for_windows():
            raise ConfigError(
                f"options {EVERY}, {CONSUMER}: windows are read as a stream: use spark.readStream, or "
                'Table.windows(every="1h", consumer="billing") and `to_spark` of each window'
            )
        return _Reader(self._rows(), schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        options = Options(self.options)
        if self._asks_for_windows():
            return self._window_stream(options, schema)
        is_of_changes = options.get(keys.QUERY_TYPE) is not QueryType.READ_OPTIMIZED
        if not is_of_changes or any(options.get(key) for key in (keys.AS_OF, keys.BEGIN, keys.END)):
            raise ConfigError(
                "a stream reads the changes of a table as they are committed: omit "
                f"{keys.QUERY_TYPE}=read_optimized, {keys.AS_OF}, {keys.BEGIN} and {keys.END}; {STREAM_START} "
                "states where it begins"
            )
        return ChangeStream(*self._located(dict(self.options)), schema)

    def _asks_for_windows(self) -> bool:
        options = Options(self.options)
        return any(options.get(key) is not None for key in (EVERY, CONSUMER))

    def _window_stream(self, options: Options, schema: StructType) -> DataSourceStreamReader:
        kind = options.text(keys.QUERY_TYPE)
        is_other = kind is not None and options.get(keys.QUERY_TYPE) is not QueryType.READ_OPTIMIZED
        others = (keys.AS_OF, keys.AS_OF_TAG, keys.AS_OF_WATERMARK, keys.BEGIN, keys.END, STREAM_START)
        given = [str(key) for key in others if options.text(key) is not None]
        if is_other or given:
            raise ConfigError(
                f"a stream of windows reads the read-optimized view from where the consumer is: omit "
                f"{', '.join(given or [str(keys.QUERY_TYPE)])}; {SINCE} states where a new consumer begins"
            )
        return WindowStream(*self._located(dict(self.options)), schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:  # noqa: ARG002
        options = overwriting(self.options) if overwrite else dict(self.options)
        return Writer(*self._located(options))

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:  # noqa: ARG002, N802
        if overwrite:
            raise ConfigError(f'output mode "complete" is not possible; use "append", with {WRITE_OPERATION}')
        return StreamWriter(*self._located(dict(self.options)))

    def _located(self, options: dict[str, str]) -> tuple[str, dict[str, str]]:
        """The table's location, also if its name in a catalog is given, and the options to open it with."""
        return located(self._path(), options)

    def _path(self) -> str:
        path = self.options.get("path")
        if not path:
            raise ConfigError(
                "no table: pass its path to load, save or start. Spark does not pass the LOCATION of a table in its catalog "
                "to a source in Python: instead of it, CREATE TEMPORARY VIEW name USING eventide OPTIONS (path '...')"
            )
        return path

    def _rows(self) -> Rows:
        """The rows of the query that the options request."""
        options = Options(self.options)
        table = Table.open(self._path(), self.options)
        as_of, tag, watermark = (
            options.get(keys.AS_OF),
            options.get(keys.AS_OF_TAG),
            options.get(keys.AS_OF_WATERMARK),
        )
        kind = options.get(keys.QUERY_TYPE)
        if sum(word is not None for word in (as_of, tag, watermark)) > 1:
            raise ConfigError(f"set only one of {keys.AS_OF}, {keys.AS_OF_WATERMARK} and {keys.AS_OF_TAG}")
        if watermark is not None and kind is not QueryType.READ_OPTIMIZED:
            raise ConfigError(f"{keys.AS_OF_WATERMARK} goes with {keys.QUERY_TYPE}=read_optimized, not with {kind}")
        match kind:
            case QueryType.SNAPSHOT:
                return table.snapshot(tag=tag) if as_of is None else table.as_of(as_of)
            case QueryType.READ_OPTIMIZED:
                return table.read_optimized(as_of_watermark=watermark, tag=tag)
            case QueryType.INCREMENTAL:
                begin = options.get(keys.BEGIN)
                if begin is None:
                    raise ConfigError(f"an incremental query needs {keys.BEGIN}")
                return table.incremental(begin, options.get(keys.END))


class _Slice(InputPartition):
    def __init__(self, slice_read: SliceRead) -> None:
        self.slice_read = slice_read


class _Reader(DataSourceReader):
    """Reads whole slices; `read` runs on executors."""

    def __init__(self, rows: Rows, schema: StructType) -> None:
        self._slices = rows.plan.slices
        self._rows: Rows | None = rows
        self._columns = chosen_columns(rows.schema, schema)
        self._reading = rows.reading(self._columns).of_slices()

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802
        """Applies the filters that Arrow can express: slices without such rows get no task, and the others pass fewer rows.

        Spark still applies all of them.
        """
        if self._rows is not None:
            reading = self._rows.reading(self._columns, pushed_filter(filters, self._rows.schema))
            self._slices, self._reading = reading.unskipped(self._rows.engine), reading.of_slices()
        return filters

    def __getstate__(self) -> dict[str, object]:
        """The state without the rows, which hold the driver's engine: executors don't need them."""
        return {**self.__dict__, "_rows": None}

    def partitions(self) -> Sequence[InputPartition]:
        return [_Slice(slice_read) for slice_read in self._slices]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        # If there are no partitions, Spark calls this once with None.
        if isinstance(partition, _Slice):
            yield from batches_with_lists(self._reading(partition.slice_read))
