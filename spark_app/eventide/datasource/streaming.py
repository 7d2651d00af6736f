"""A sink for structured streaming: each micro-batch is one delta commit, written exactly once however often it is replayed.

    frame.writeStream.foreachBatch(eventide.stream_sink(TABLE, options)).option("checkpointLocation", ...).start()

The commit records the stream and the batch number in the format of Hudi's own sink. The stream is identified by the ID of
its query, which lasts as long as its checkpoint, or by `hoodie.datasource.write.streaming.checkpoint.identifier`.

After each batch, if the compaction trigger is due:

    hoodie.compact.inline=true                     plans a compaction and runs it before the next batch
    hoodie.compact.schedule.inline=true            plans a compaction; the table service runs it
    hoodie.datasource.compaction.async.enable=true plans a compaction; a thread of the driver runs it beside the next batches

A compaction that is busy, refused or fails is logged and retried after the next batch: it never fails the stream. An
interrupted compaction is continued.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, assert_never

from eventide.bootstrap import Application
from eventide.options import streams as keys
from eventide.options.new_tables import RECORD_KEY
from eventide.rows.writer import incoming_records
from eventide.spark.engine import SparkEngine
from eventide.spark.types import arrow_schema_of
from eventide.spark.workers import is_connect
from eventide.table.arguments import options_of
from eventide.table.creation import existing_table, written_by_spark
from eventide.table.derived import append_of
from eventide.table.table import Table
from eventide.table.table_service import Round, TableService
from eventide_core.access.threads import Future, Threads
from eventide_core.action.write.pending_write import WriteResult
from eventide_core.config import DATA_LATENCY, THRESHOLD, Options
from eventide_core.errors import BusyError, ConfigError, UnsupportedEngineError, format_timestamp
from eventide_core.ports import NoProgress
from eventide_core.service.write.batch import BatchWriter
from eventide_core.table.settings.stream_batch import StreamBatch
from eventide_core.table.settings.write_shape import WriteOperation
from eventide_core.table.timeline.source_statements import stated

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_QUERY_ID = "sql.streaming.queryId"
_LOG = logging.getLogger("eventide.streaming")


class StreamCompaction(StrEnum):
    NONE = "none"
    INLINE = "inline"
    SCHEDULE = "schedule"
    ASYNC = "async"


def stream_sink(table: str, options: Mapping[str, Any] | None = None) -> "StreamSink":
    """The function for `foreachBatch`. It writes each batch of a stream to the table exactly once.

    If the options name the record key, the first batch creates a table that does not exist. Raises ConfigError,
    NotAHudiTableError.
    """
    settings = options_of(options)
    typed = Options(settings)
    existing_table(table, settings, may_be_absent=typed.get(RECORD_KEY) is not None)
    session = None
    if typed.get(keys.STREAM_WATERMARK_AS_THRESHOLD):
        if typed.text(THRESHOLD) or typed.text(DATA_LATENCY):
            raise ConfigError(f"option {keys.STREAM_WATERMARK_AS_THRESHOLD}=true excludes another T")
        session = _session(keys.STREAM_WATERMARK_AS_THRESHOLD, f"set T by {DATA_LATENCY}")
    if typed.get(keys.STREAM_WATERMARK_AS_SOURCE) is not None:
        session = _session(keys.STREAM_WATERMARK_AS_SOURCE, "state the source in the options of each batch")
    return StreamSink(table, settings, typed.get(keys.WRITE_OPERATION), stream_compaction(typed), session)


def _session(option: str, otherwise: str) -> "SparkSession":
    """The session that knows the stream's watermark. A batch has a session of its own, which does not know the query."""
    # Imported here: streams exist only with PySpark.
    from pyspark.sql import SparkSession

    session = SparkSession.getActiveSession()
    if session is None:
        raise ConfigError(f"option {option} needs an active SparkSession in this thread: make one first")
    if is_connect(session):
        raise UnsupportedEngineError(f"option {option} needs a classic SparkSession: over Spark Connect, {otherwise}")
    return session


def stream_compaction(options: Options) -> StreamCompaction:
    """How the options request compactions. Raises ConfigError if they request more than one way."""
    stated = {
        StreamCompaction.INLINE: keys.COMPACT_INLINE,
        StreamCompaction.SCHEDULE: keys.COMPACT_SCHEDULE_INLINE,
        StreamCompaction.ASYNC: keys.COMPACT_ASYNC,
    }
    chosen = [how for how, key in stated.items() if options.get(key)]
    if len(chosen) > 1:
        raise ConfigError(f"options {' and '.join(stated[how] for how in chosen)} exclude each other; set one of them")
    return chosen[0] if chosen else StreamCompaction.NONE


@dataclass(slots=True)
class StreamSink:
    """Called with each batch and its number. `session` provides the stream's watermark."""

    uri: str
    options: Mapping[str, str] = field(repr=False)  # may contain secrets
    operation: WriteOperation
    compaction: StreamCompaction
    session: "SparkSession | None" = None
    _beside: Future[None] | None = field(default=None, repr=False)

    def __call__(self, frame: "DataFrame", number: int) -> None:
        self.write(frame, number)

    def write(self, frame: "DataFrame", number: int) -> WriteResult | None:
        """Writes a batch; None if it was written before."""
        spark = frame.sparkSession
        sink = Options(self.options).get(keys.STREAM_IDENTIFIER)
        if is_connect(spark):
            if sink is None:
                raise UnsupportedEngineError(
                    f"over Spark Connect, a batch does not name its stream: set {keys.STREAM_IDENTIFIER}, a name for "
                    "this stream that lasts as long as its checkpoint"
                )
            query = None
        else:
            query = spark.sparkContext.getLocalProperty(_QUERY_ID)
            sink = sink or query
        if sink is None:
            raise ConfigError(f"this is not a batch of a streaming query: set {keys.STREAM_IDENTIFIER}")
        schema = arrow_schema_of(frame.schema)
        application = written_by_spark(self.uri, schema, self._stating(query), engine=SparkEngine(spark))
        result = write_batch(application, StreamBatch(sink, number), self.operation, frame)
        self._compact(spark, query)
        return result

    def _stating(self, query: str | None) -> Mapping[str, str]:
        """The options of a batch, which state how far the source has come that the stream's watermark stands for."""
        name = Options(self.options).get(keys.STREAM_WATERMARK_AS_SOURCE)
        watermark_ms = None if name is None or self.session is None else _watermark_ms(self.session, query)
        if name is None or watermark_ms is None:
            return self.options
        return {**self.options, **stated({name: format_timestamp(watermark_ms)})}

    def wait(self) -> None:
        """Waits for a compaction that runs beside the stream."""
        if self._beside is not None:
            self._beside.join()

    def _compact(self, spark: "SparkSession", query: str | None) -> None:
        if self._beside is not None:
            self._beside.run()  # if its thread died before it began, for lack of memory
        is_running = self._beside is not None and not self._beside.done()
        if self.compaction is StreamCompaction.NONE or is_running:
            return
        options = dict(self.options)
        if self.session is not None and Options(self.options).get(keys.STREAM_WATERMARK_AS_THRESHOLD):
            watermark_ms = _watermark_ms(self.session, query)
            if watermark_ms is None:
                return
            options[THRESHOLD] = format_timestamp(watermark_ms)
        service = Table.open(self.uri, options, engine=spark).service()
        compact_after_batch(service, self.compaction)
        if self.compaction is StreamCompaction.ASYNC:
            threads = Threads(1)
            try:
                self._beside = threads.submit(_resume, service)
            except RuntimeError as error:
                _LOG.warning("the compaction waits for the next batch: %s", error)
            finally:
                threads.shutdown(wait=False)


def write_batch(
    application: Application, batch: StreamBatch, operation: WriteOperation, records: Any
) -> WriteResult | None:
    """Writes a batch; None for a replay. If another writer makes the table busy, retries as often as the options allow."""
    options = application.options
    batches = BatchWriter(application.files, append_of(application))
    left = options.get(keys.STREAM_RETRY_COUNT)
    while True:
        incoming = incoming_records(application, operation, records)
        try:
            return batches.write(batch, operation, incoming, NoProgress())
        except BusyError as error:
            if left == 0:
                raise
            left -= 1
            _LOG.warning("batch %s of %s is retried: %s", batch.number, batch.sink, error)
            application.clock.sleep(options.get(keys.STREAM_RETRY_INTERVAL_MS))


def compact_after_batch(service: TableService, compaction: StreamCompaction) -> None:
    """Runs or schedules the compaction that is due after a batch. Schedules one only if no plan is pending."""
    match compaction:
        case StreamCompaction.NONE:
            pass
        case StreamCompaction.INLINE:
            _log(service.compact(NoProgress()))
        case StreamCompaction.SCHEDULE | StreamCompaction.ASYNC:
            _log(service.schedule())
        case _:
            assert_never(compaction)


def _resume(service: TableService) -> None:
    """Runs on a thread, whose errors nobody waits for."""
    try:
        _log(service.resume(NoProgress()))
    except Exception:
        _LOG.exception("the compaction beside the stream failed")


def _log(done: Round) -> None:
    for trouble in done.troubles:
        _LOG.log(logging.INFO if trouble.state == "busy" else logging.WARNING, "%s", trouble)


def _watermark_ms(session: "SparkSession", query: str | None) -> int | None:
    """The stream's watermark in its last batch, never later than the current one; None if it has none yet."""
    streaming_query = session.streams.get(query) if query is not None else None
    progress = None if streaming_query is None else streaming_query.lastProgress
    text = None if progress is None else progress["eventTime"].get("watermark")
    if not text:
        return None
    # Spark's first watermark is 1970, which means none.
    return int(datetime.fromisoformat(text).timestamp() * 1000) or None
