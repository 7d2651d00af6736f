"""The writers of `format("eventide")`: rows reach the driver as the tasks' commit messages, and the driver writes them.

Rows above `eventide.spark.write.bytes.max` are refused before anything is written: by the first task that alone has more,
otherwise by the driver, which unpacks none of them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from eventide.datasource.streaming import StreamCompaction, compact_after_batch, stream_compaction, write_batch
from eventide.formatting import format_size
from eventide.options import streams
from eventide.rows.writer import incoming_records
from eventide.table.creation import written_by_spark
from eventide.table.derived import append_of
from eventide.table.table import Table
from eventide_core.config import Options
from eventide_core.errors import ConfigError, InvalidRecordError, RefusedError
from eventide_core.ports import NoProgress
from eventide_core.table.settings.stream_batch import StreamBatch
from eventide_core.table.settings.write_shape import WriteOperation


@dataclass
class _Rows(WriterCommitMessage):
    """The rows of one task, as an Arrow stream, and their size before compression."""

    content: bytes | None
    size_bytes: int = 0


@dataclass(frozen=True, slots=True)
class _Limit:
    """The most bytes of rows. `instead` is the call for more rows."""

    bytes_max: int
    instead: str

    @classmethod
    def of(cls, path: str, options: Mapping[str, str], call: str) -> "_Limit":
        return cls(Options(options).get(streams.WRITE_BYTES_MAX), call.format(path=path))

    def check(self, size_bytes: int) -> None:
        """Raises RefusedError for more bytes."""
        if size_bytes > self.bytes_max:
            raise RefusedError(
                f"the rows of this write have {format_size(size_bytes)} or more, above {streams.WRITE_BYTES_MAX}="
                f'{self.bytes_max}, and format("eventide") sends all rows to the driver; nothing was written: use '
                f"{self.instead}, whose rows stay on executors, or raise the option"
            )


def _packed(batches: Iterator[pa.RecordBatch], limit: _Limit) -> _Rows:
    sink, writer, size_bytes = pa.BufferOutputStream(), None, 0
    for batch in batches:
        size_bytes += batch.nbytes
        limit.check(size_bytes)
        if writer is None:
            writer = pa.ipc.new_stream(sink, batch.schema, options=pa.ipc.IpcWriteOptions(compression="zstd"))
        writer.write_batch(batch)
    if writer is None:
        return _Rows(None)
    writer.close()
    return _Rows(sink.getvalue().to_pybytes(), size_bytes)


def _unpacked(messages: Sequence[WriterCommitMessage | None], limit: _Limit) -> pa.Table | None:
    """All rows; None if there are none."""
    limit.check(sum(m.size_bytes for m in messages if isinstance(m, _Rows)))
    contents = [m.content for m in messages if isinstance(m, _Rows) and m.content is not None]
    if not contents:
        return None
    return pa.concat_tables([pa.ipc.open_stream(content).read_all() for content in contents])


def overwriting(options: Mapping[str, str]) -> dict[str, str]:
    """The options of a write with mode("overwrite"). Raises ConfigError for an operation that replaces nothing."""
    typed = Options(options)
    if typed.text(streams.WRITE_OPERATION) is not None:
        operation = typed.get(streams.WRITE_OPERATION)
        if not operation.is_overwrite:
            raise ConfigError(
                f'mode("overwrite") with {streams.WRITE_OPERATION}={operation}: use mode("append") for it'
            )
        return dict(options)
    is_dynamic = typed.get(streams.PARTITION_OVERWRITE_MODE) == "dynamic"
    chosen = WriteOperation.INSERT_OVERWRITE if is_dynamic else WriteOperation.INSERT_OVERWRITE_TABLE
    return {**options, str(streams.WRITE_OPERATION): chosen.value}


class Writer(DataSourceArrowWriter):
    def __init__(self, path: str, options: Mapping[str, str]) -> None:
        self._path, self._options = path, options
        self._limit = _Limit.of(path, options, "Table.open({path!r}).upsert(frame)")

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:  # type: ignore[override]  # PySpark's own
        return _packed(iterator, self._limit)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        rows = _unpacked(messages, self._limit)
        if rows is None:
            if Options(self._options).get(streams.WRITE_OPERATION).is_overwrite:
                raise InvalidRecordError(
                    f"{streams.WRITE_OPERATION}: an overwrite without rows; to empty the table, use "
                    f"Table.open({self._path!r}).insert_overwrite_table(frame)"
                )
            return
        application = written_by_spark(self._path, rows.schema, self._options)
        operation = application.options.get(streams.WRITE_OPERATION)
        append_of(application).write(operation, incoming_records(application, operation, rows), NoProgress())

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Nothing has been written."""


class StreamWriter(DataSourceStreamArrowWriter):
    def __init__(self, path: str, options: Mapping[str, str]) -> None:
        typed = Options(options)
        sink = typed.get(streams.STREAM_IDENTIFIER)
        if sink is None:
            raise ConfigError(
                f"Spark does not pass a Python source the name of its stream: set {streams.STREAM_IDENTIFIER}, a "
                "name for this stream that lasts as long as its checkpoint"
            )
        self._compaction = stream_compaction(typed)
        has_watermark = typed.get(streams.STREAM_WATERMARK_AS_THRESHOLD) or typed.get(
            streams.STREAM_WATERMARK_AS_SOURCE
        )
        if self._compaction is StreamCompaction.ASYNC or has_watermark:
            raise ConfigError(
                f"options {streams.COMPACT_ASYNC}, eventide.stream.watermark.as.*: they need the stream's own "
                "process; use foreachBatch(eventide.stream_sink(...))"
            )
        self._path, self._options, self._sink = path, options, sink
        self._limit = _Limit.of(path, options, "foreachBatch(eventide.stream_sink({path!r}))")

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:  # type: ignore[override]  # PySpark's own
        return _packed(iterator, self._limit)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        rows = _unpacked(messages, self._limit)
        if rows is None:
            return
        application = written_by_spark(self._path, rows.schema, self._options)
        write_batch(
            application, StreamBatch(self._sink, batchId), application.options.get(streams.WRITE_OPERATION), rows
        )
        compact_after_batch(Table.open(self._path, self._options).service(), self._compaction)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Nothing has been written."""
