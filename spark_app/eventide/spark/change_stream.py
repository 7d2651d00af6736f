"""Streams a table's changes to Spark: each micro-batch has the changes of the commits between two offsets.

    spark.readStream.format("eventide").option("hoodie.datasource.streaming.startOffset", "earliest").load(TABLE)

1. An offset is a time of the table's timeline, `{"instant": "20261121..."}`: of completion on version 8 and later, of
   request on version 6, as `incremental` has it.
2. The latest one is the time up to which the span tells the same forever (`Table.settled_until`), and never one behind
   what the stream has seen: a restore moves the table back, not the stream.
3. A batch is `incremental(begin, end)`: the same rows whenever it is asked, so that a batch which Spark runs again after a
   failure brings nothing twice and leaves nothing out. Where cleaning has removed what the span needs, the query fails by
   CleanedHistoryError instead of passing rows over.
4. `latest` begins at the first batch's end. Spark asks for the first offset again when it runs the first batch again: so it
   is a word that stays the same, and that batch is empty each time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from eventide.options.streams import STREAM_START
from eventide.reader import SliceReading
from eventide.spark.datasource_schema import chosen_columns
from eventide.table import Table
from eventide_core.action.query_planner import parse_instant_time
from eventide_core.config import Options
from eventide_core.table.slice_read import SliceRead

LATEST = "latest"
_INSTANT = "instant"


class ChangeStream(DataSourceStreamReader):
    """Begins where `hoodie.datasource.streaming.startOffset` says: earliest (so by default), latest, or after an instant.

    Raises InstantNotFoundError for an offset that is no time.
    """

    def __init__(self, path: str, options: Mapping[str, str], schema: StructType) -> None:
        self._path, self._options, self._schema = path, options, schema
        start = Options(options).get(STREAM_START)
        self._start = LATEST if start.lower() == LATEST else parse_instant_time(start)
        self._seen = ""

    def initialOffset(self) -> dict[str, str]:  # noqa: N802  # Spark's name
        return {_INSTANT: self._start}

    def latestOffset(self) -> dict[str, str]:  # noqa: N802
        self._seen = max(self._seen, Table.open(self._path, self._options).settled_until())
        return {_INSTANT: self._seen}

    def partitions(self, start: dict[str, str], end: dict[str, str]) -> Sequence[InputPartition]:
        # When a query continues from its checkpoint, Spark tells the last offset by an empty span.
        begin, until = start[_INSTANT], end[_INSTANT]
        self._seen = max(self._seen, until)
        if begin == LATEST or begin >= until:
            return []
        rows = Table.open(self._path, self._options).incremental(begin, until)
        reading = rows.reading(chosen_columns(rows.schema, self._schema))
        return [_ChangedSlice(found, reading) for found in rows.plan.slices]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, _ChangedSlice)
        yield from partition.reading(partition.slice_read)


class _ChangedSlice(InputPartition):
    """A slice to read, with the means to: executors have the reader as it was when the query began."""

    def __init__(self, slice_read: SliceRead, reading: SliceReading) -> None:
        self.slice_read, self.reading = slice_read, reading
