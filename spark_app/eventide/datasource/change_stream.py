"""Streams a table's changes to Spark: each micro-batch contains the changes of the commits between two offsets.

    spark.readStream.format("eventide").option("hoodie.datasource.streaming.startOffset", "earliest").load(TABLE)

1. An offset is a time on the table's timeline, `{"instant": "20261121..."}`. As for `incremental`, it is a completion time
   on version 8 and later, and a requested time on version 6.
2. The latest offset is the time up to which the answer is final (`Table.settled_until`), and never earlier than an offset
   that the stream has seen: a restore moves the table back, but not the stream.
3. A batch is `incremental(begin, end)`, which returns the same rows each time. If Spark runs a batch again after a failure,
   no row is doubled or lost. If cleaning has removed files that the span needs, the query raises CleanedHistoryError
   instead of skipping rows.
4. `latest` begins at the end of the first batch. When Spark runs the first batch again, it requests the first offset again.
   That offset is therefore the constant word `latest`, and the first batch is always empty.
"""

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from eventide.options.streams import STREAM_START
from eventide.rows.reader import SliceReading
from eventide.spark.datasource_schema import chosen_columns
from eventide.spark.types import batches_with_lists
from eventide.table.table import Table
from eventide_core.action.query.planner import parse_time
from eventide_core.config import Options
from eventide_core.table.files.slice_read import SliceRead

LATEST = "latest"
_INSTANT = "instant"


class ChangeStream(DataSourceStreamReader):
    """Begins at `hoodie.datasource.streaming.startOffset`: earliest (the default), latest, or after an instant.

    Raises InstantNotFoundError for an offset that is not a time.
    """

    def __init__(self, path: str, options: Mapping[str, str], schema: StructType) -> None:
        self._path, self._options, self._schema = path, options, schema
        start = Options(options).get(STREAM_START)
        is_latest = start.lower() == LATEST
        if not is_latest:
            parse_time(start)  # refuses what isn't a time, before Spark asks for an offset
        self._start = LATEST if is_latest else start
        self._seen = ""

    def initialOffset(self) -> dict[str, str]:  # noqa: N802  # Spark's name
        if self._start == LATEST:
            return {_INSTANT: LATEST}
        return {_INSTANT: Table.open(self._path, self._options).instant_time(self._start)}

    def latestOffset(self) -> dict[str, str]:  # noqa: N802
        self._seen = max(self._seen, Table.open(self._path, self._options).settled_until())
        return {_INSTANT: self._seen}

    def partitions(self, start: dict[str, str], end: dict[str, str]) -> Sequence[InputPartition]:
        # When a query continues from its checkpoint, Spark passes the last offset as an empty span.
        begin, until = start[_INSTANT], end[_INSTANT]
        self._seen = max(self._seen, until)
        if begin == LATEST or begin >= until:
            return []
        rows = Table.open(self._path, self._options).incremental(begin, until)
        reading = rows.reading(chosen_columns(rows.schema, self._schema)).of_slices()
        return [_ChangedSlice(slice_read, reading) for slice_read in rows.plan.slices]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, _ChangedSlice)
        yield from batches_with_lists(partition.reading(partition.slice_read))


class _ChangedSlice(InputPartition):
    """A slice with its reading. Executors hold the stream reader as it was when the query began."""

    def __init__(self, slice_read: SliceRead, reading: SliceReading) -> None:
        self.slice_read, self.reading = slice_read, reading
