"""Streams a table's windows of event time to Spark: each micro-batch is one window, or one correction.

    spark.readStream.format("eventide").option("windows", "1h").option("consumer", "billing").load(TABLE)

1. The consumer's state decides which window is next; Spark's checkpoint records only which delivery a batch is. An offset is
   a delivery: its token, its runner, and the window in words. So a stream with a new checkpoint goes on where the consumer
   is.
2. `latestOffset` takes the next window. Spark calls it only when the batch before has ended, its sink and its entry in
   the checkpoint included. So it first marks the window of the last offset that it has seen as done. `commit`, which Spark
   calls a batch later, does the same.
3. If no window is due, or another runner holds one, the latest offset is the last one, and Spark makes no batch.
4. A batch reads the open window of its token. So a batch that Spark runs again, after a crash anywhere between 2 and the
   checkpoint's entry, has the same rows. If another runner has taken the window meanwhile, it raises WindowTakenError.
5. A stream that starts again takes the window that it held over at once. It knows its runner by the name that the user
   gives the stream, or by the last offset in the checkpoint. Only a stream without both waits for the end of the lease.

Spark fences two drivers with one checkpoint, and the tokens fence two checkpoints: `done` is of one token.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final
from uuid import uuid4

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from eventide.options import windows as keys
from eventide.options.streams import STREAM_IDENTIFIER
from eventide.rows.reader import SliceReading
from eventide.spark.datasource_schema import chosen_columns
from eventide.spark.types import batches_with_lists
from eventide.table.table import Table
from eventide.table.window import Window, Windows, runner_of
from eventide_adapters.format.encoding.columns.arrow_numpy import ArrowField
from eventide_core.config import Options
from eventide_core.errors import BusyError, ConfigError, WindowTakenError, format_timestamp
from eventide_core.table.files.slice_read import SliceRead

_LOG = logging.getLogger("eventide.streaming")
_MICROS: Final = pa.timestamp("us", "UTC")
_OWN: Final[tuple[ArrowField, ...]] = (
    pa.field("_window_begin", _MICROS),
    pa.field("_window_end", _MICROS),
    pa.field("_window_is_correction", pa.bool_()),
    pa.field("_window_token", pa.int64()),
)
_TOKEN: Final = "token"
_RUNNER: Final = "runner"
_START: Final[Mapping[str, Any]] = {_TOKEN: 0}

Offset = dict[str, Any]


def with_window_columns(schema: pa.Schema) -> pa.Schema:
    """The schema of a table's rows as a stream of windows has them. Raises ConfigError if the table has such a column."""
    taken = [field.name for field in _OWN if field.name in schema.names]
    if taken:
        raise ConfigError(
            f"the table has a column {taken[0]}, which is of the window in a stream of windows: rename it"
        )
    return pa.schema([*schema, *_OWN])


class WindowStream(DataSourceStreamReader):
    """The windows of a consumer. Raises ConfigError for options that `Table.windows` refuses."""

    def __init__(self, path: str, options: Mapping[str, str], schema: StructType) -> None:
        self._path, self._options, self._schema = path, options, schema
        name = Options(options).get(STREAM_IDENTIFIER)
        self._runner = None if name is None else runner_of(name)
        self._take_over = Options(options).get(keys.TAKE_OVER)
        self._seen: Offset = dict(_START)
        self._offered: Offset | None = None
        self._is_run = False  # the batch up to the last offset, by this process
        self._windows().progress()  # refuses a wrong consumer before Spark asks for an offset

    def initialOffset(self) -> Offset:  # noqa: N802  # Spark's name
        return dict(_START)

    def latestOffset(self) -> Offset:  # noqa: N802
        windows = self._windows()
        self._end(windows)
        if self._offered is not None and windows.open_window(self._offered[_TOKEN]) is not None:
            return self._offered
        self._runner = self._runner or str(uuid4())
        try:
            window = windows.take(self._runner, take_over=self._take_over)
        except BusyError as busy:
            _LOG.info("%s", busy)
            return self._seen
        self._take_over = False  # of a runner that was dead when the stream started
        self._offered = None if window is None else _offset_of(window, self._runner)
        return self._offered or self._seen

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        # When a query continues from its checkpoint, Spark passes the last offset as an empty span.
        self._seen, self._is_run = end, start != end
        self._runner = self._runner or end.get(_RUNNER)
        if start == end or not end.get(_TOKEN):
            return []
        table = self._table()
        window = windows_of(table, self._options).open_window(end[_TOKEN])
        if window is None:
            raise self._lost(end)
        window.renew_lease()
        return self._slices(window, table)

    def commit(self, end: Offset) -> None:
        window = self._windows().open_window(end[_TOKEN]) if end.get(_TOKEN) else None
        if window is not None:
            window.done()

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, _WindowSlice)
        yield from partition.batches()

    def _table(self) -> Table:
        return Table.open(self._path, self._options)

    def _windows(self) -> Windows:
        return windows_of(self._table(), self._options)

    def _end(self, windows: Windows) -> None:
        """Marks the window of the last offset as done. Raises WindowTakenError if another runner took it meanwhile."""
        if not self._seen.get(_TOKEN):
            return
        window = windows.open_window(self._seen[_TOKEN])
        if window is not None:
            window.done()
        elif self._is_run:
            raise self._lost(self._seen)
        self._is_run = False

    def _slices(self, window: Window, table: Table) -> Sequence[InputPartition]:
        # With the columns as they are now, so that all batches of a stream have the same ones.
        delivered, now = window.rows(), table.read_optimized()
        rows = replace(delivered, plan=replace(delivered.plan, shape=now.plan.shape))
        schema = with_window_columns(rows.schema)
        columns = chosen_columns(schema, self._schema)
        names = [name for name in columns if name in rows.schema.names]
        reading = rows.reading(names or rows.schema.names[:1])
        values = (window.begin, window.end, window.is_correction, window.token)
        own = {field.name: pa.scalar(value, field.type) for field, value in zip(_OWN, values, strict=True)}
        slices = reading.unskipped(rows.engine)
        return [_WindowSlice(one, reading.of_slices(), own, columns) for one in slices]

    def _lost(self, offset: Offset) -> WindowTakenError:
        return WindowTakenError(
            f"the window [{offset.get('begin')}, {offset.get('end')}) of the consumer {self._windows().consumer} is no "
            "longer this stream's: another runner has taken it, or it was marked as done; discard what this batch wrote. "
            "Start the stream again, and if that repeats the batch, with a new checkpoint: it goes on where the consumer is"
        )


def _offset_of(window: Window, runner: str) -> Offset:
    return {
        _TOKEN: window.token,
        _RUNNER: runner,
        "begin": format_timestamp(window.begin_ms),
        "end": format_timestamp(window.end_ms),
        "is_correction": window.is_correction,
    }


class _WindowSlice(InputPartition):
    """A slice with its reading. Executors hold the stream reader as it was when the query began."""

    def __init__(
        self, slice_read: SliceRead, reading: SliceReading, own: Mapping[str, Any], columns: Sequence[str]
    ) -> None:
        self.slice_read, self.reading, self.own, self.columns = slice_read, reading, own, columns

    def batches(self) -> Iterator[pa.RecordBatch]:
        for batch in batches_with_lists(self.reading(self.slice_read)):
            columns = [
                pa.repeat(self.own[name], len(batch)) if name in self.own else batch.column(name)
                for name in self.columns
            ]
            yield pa.RecordBatch.from_arrays(columns, list(self.columns))


def windows_of(table: Table, options: Mapping[str, str]) -> Windows:
    """The windows that the options ask for. Raises ConfigError."""
    typed = Options(options)
    every, consumer = typed.get(keys.EVERY), typed.get(keys.CONSUMER)
    if every is None or consumer is None:
        raise ConfigError(
            f"a stream of windows needs the options {keys.EVERY}, such as 1h, and {keys.CONSUMER}, a name"
        )
    return table.windows(
        every,
        consumer,
        time_zone=typed.get(keys.TIME_ZONE),
        since=typed.get(keys.SINCE),
        late=typed.get(keys.LATE),
        corrections_for=typed.get(keys.CORRECTIONS_FOR),
        lease=typed.get(keys.LEASE),
        keep=typed.get(keys.KEEP),
        renew=typed.get(keys.RENEW),
    )
