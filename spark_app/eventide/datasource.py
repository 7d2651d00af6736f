"""`format("eventide")` on Spark 4: a Python data source that reads tables, writes them, and writes streams into them.

    reading     each file slice is a partition, read by an executor; the query is planned once, by the driver
    writing     the rows come to the driver as the tasks' commit messages, compressed, and are written from there: Spark
                gives a Python source no way to bring the rows of a key together. `spark.driver.maxResultSize` bounds a
                write; a larger one goes by `Table.upsert(frame)`, whose rows stay on executors, or `stream_sink`
    a task or a driver that dies before the commit leaves nothing at all

Options are those of `Table.open`, beside Hudi's for the query (`hoodie.datasource.query.type`, `as.of.instant`,
`hoodie.datasource.read.begin.instanttime`, `...end.instanttime`), eventide's (`as.of.watermark`, `as.of.tag`), and for the
write `hoodie.datasource.write.operation`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamArrowWriter,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from eventide.bootstrap import assemble
from eventide.progress import NoProgress
from eventide.reader import Rows
from eventide.streaming import (
    StreamCompaction,
    compact_after_batch,
    stream_compaction,
    stream_operation,
    write_batch,
)
from eventide.table import Table
from eventide.writer import incoming_records
from eventide_core import config as keys
from eventide_core.config import Options
from eventide_core.errors import ConfigError, NotAHudiTableError
from eventide_core.table.slice_read import SliceRead
from eventide_core.table.stream_batch import StreamBatch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAME = "eventide"


class QueryType(StrEnum):
    SNAPSHOT = "snapshot"
    READ_OPTIMIZED = "read_optimized"
    INCREMENTAL = "incremental"


def register_source(spark: SparkSession) -> None:
    """Makes `format("eventide")` known to a session of Spark 4."""
    spark.dataSource.register(EventideSource)


class EventideSource(DataSource):
    """One table, as the options of a read or a write name it."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> StructType:
        return from_arrow_schema(self._rows().schema)

    def reader(self, schema: StructType) -> DataSourceReader:
        found = self._rows().schema
        if schema != from_arrow_schema(found):
            raise ConfigError("a schema of your own is not possible: select and cast the table's columns instead")
        return _Reader(self._rows())

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:  # noqa: ARG002
        _check_append(overwrite)
        return _Writer(self._path(), dict(self.options))

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:  # noqa: ARG002, N802
        _check_append(overwrite)
        return _StreamWriter(self._path(), dict(self.options))

    def _path(self) -> str:
        path = self.options.get("path")
        if not path:
            raise ConfigError("no table: give its path to load, save or start")
        return path

    def _rows(self) -> Rows:
        """The rows of the query that the options ask for."""
        options = Options(self.options)
        table = Table.open(self._path(), self.options)
        as_of, tag, watermark = (
            options.text(keys.AS_OF),
            options.text(keys.AS_OF_TAG),
            options.text(keys.AS_OF_WATERMARK),
        )
        kind = options.choice(keys.QUERY_TYPE, QueryType.SNAPSHOT)
        if sum(word is not None for word in (as_of, tag, watermark)) > 1:
            raise ConfigError(f"give one of {keys.AS_OF}, {keys.AS_OF_WATERMARK} and {keys.AS_OF_TAG}")
        if watermark is not None and kind is not QueryType.READ_OPTIMIZED:
            raise ConfigError(f"{keys.AS_OF_WATERMARK} goes with {keys.QUERY_TYPE}=read_optimized, not with {kind}")
        match kind:
            case QueryType.SNAPSHOT:
                return table.snapshot(tag=tag) if as_of is None else table.as_of(as_of)
            case QueryType.READ_OPTIMIZED:
                return table.read_optimized(as_of_watermark=watermark, tag=tag)
            case QueryType.INCREMENTAL:
                begin = options.text(keys.BEGIN)
                if begin is None:
                    raise ConfigError(f"an incremental query needs {keys.BEGIN}")
                return table.incremental(begin, options.text(keys.END))


class _Slice(InputPartition):
    def __init__(self, slice_read: SliceRead) -> None:
        self.slice_read = slice_read


class _Reader(DataSourceReader):
    """Reads whole slices; `read` runs on executors."""

    def __init__(self, rows: Rows) -> None:
        self._slices = rows.plan.slices
        self._reading = rows.reading()

    def partitions(self) -> Sequence[InputPartition]:
        return [_Slice(slice_read) for slice_read in self._slices]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        # Spark asks once, for nothing, where there are no partitions.
        if isinstance(partition, _Slice):
            yield from self._reading(partition.slice_read)


@dataclass
class _Rows(WriterCommitMessage):
    """The rows of one task, as an Arrow stream."""

    content: bytes | None


def _packed(batches: Iterator[pa.RecordBatch]) -> _Rows:
    sink, writer = pa.BufferOutputStream(), None
    for batch in batches:
        if writer is None:
            writer = pa.ipc.new_stream(sink, batch.schema, options=pa.ipc.IpcWriteOptions(compression="zstd"))
        writer.write_batch(batch)
    if writer is None:
        return _Rows(None)
    writer.close()
    return _Rows(sink.getvalue().to_pybytes())


def _unpacked(messages: Sequence[WriterCommitMessage | None]) -> pa.Table | None:
    """All rows; None where there are none."""
    contents = [m.content for m in messages if isinstance(m, _Rows) and m.content is not None]
    if not contents:
        return None
    return pa.concat_tables([pa.ipc.open_stream(content).read_all() for content in contents])


class _Writer(DataSourceArrowWriter):
    def __init__(self, path: str, options: Mapping[str, str]) -> None:
        self._path, self._options = path, options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:  # type: ignore[override]  # PySpark's own
        return _packed(iterator)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        rows = _unpacked(messages)
        if rows is None:
            return
        _create_if_missing(self._path, self._options, rows.schema)
        application = assemble(self._path, self._options)
        operation = stream_operation(application.options)
        application.append.write(operation, incoming_records(application, operation, rows), NoProgress())

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Nothing has been written."""


class _StreamWriter(DataSourceStreamArrowWriter):
    def __init__(self, path: str, options: Mapping[str, str]) -> None:
        typed = Options(options)
        sink = typed.text(keys.STREAM_IDENTIFIER)
        if sink is None:
            raise ConfigError(
                f"Spark does not tell a Python source which stream it writes: give {keys.STREAM_IDENTIFIER}, a name "
                "for this stream that lasts as long as its checkpoint"
            )
        self._compaction = stream_compaction(typed)
        if self._compaction is StreamCompaction.ASYNC or typed.flag(keys.STREAM_WATERMARK_AS_THRESHOLD):
            raise ConfigError(
                f"options {keys.COMPACT_ASYNC}, {keys.STREAM_WATERMARK_AS_THRESHOLD}: they need the stream's own process; "
                "use foreachBatch(eventide.stream_sink(...))"
            )
        self._path, self._options, self._sink = path, options, sink

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:  # type: ignore[override]  # PySpark's own
        return _packed(iterator)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        rows = _unpacked(messages)
        if rows is None:
            return
        application = assemble(self._path, self._options)
        write_batch(application, StreamBatch(self._sink, batchId), stream_operation(application.options), rows)
        compact_after_batch(Table.open(self._path, self._options).service(), self._compaction)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Nothing has been written."""


def _check_append(overwrite: bool) -> None:
    if overwrite:
        raise ConfigError('mode "overwrite" is not possible; use mode("append"), which upserts')


def _create_if_missing(path: str, options: Mapping[str, str], schema: pa.Schema) -> None:
    """A write into a path without a table makes one, where the options say its record key."""
    typed = Options(options)
    record_key = typed.text(keys.RECORD_KEY)
    try:
        Table.open(path, options)
    except NotAHudiTableError:
        if record_key is None:
            raise
        Table.create(
            path,
            schema=schema,
            record_key=record_key,
            partition=typed.text(keys.PARTITION_PATH),
            ordering=typed.text(keys.ORDERING),
            event_time=typed.text(keys.EVENT_TIME_FIELD),
            options=options,
        )
