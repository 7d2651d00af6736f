"""The numbered batches of every stock writer, so that the expected table is a list of numbers.

Keys repeat. Every seventh row is late by more than a batch, and no two rows have the same event time.
"""

import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from support.values.columns import schema_of

KEYS = 40
ROWS = 20
START_MS = 1_700_000_000_000
STEP_MS = 1000
LATE_MS = 25_000
SCHEMA = schema_of(id=pa.string(), part=pa.string(), event_ts=pa.int64(), word=pa.string())


class Row(NamedTuple):
    id: str
    part: str
    event_ts: int
    word: str


class Batch(NamedTuple):
    """The rows of one commit. A numbered writer writes to a separate partition."""

    number: int
    writer: int | None = None

    @property
    def rows(self) -> list[Row]:
        return [_row(value, self.writer) for value in range(self.number * ROWS, (self.number + 1) * ROWS)]

    @property
    def end_ms(self) -> int:
        """The lowest T that is after all rows of this batch and of the previous ones, in epoch milliseconds."""
        return START_MS + (self.number + 1) * ROWS * STEP_MS

    @property
    def least_ms(self) -> int:
        """The lowest event time in this batch and in all later batches of its writer."""
        following = range(self.number, self.number + 3)
        return min(row.event_ts for number in following for row in self._replace(number=number).rows)


def merged(rows: Iterable[Row]) -> dict[str, Row]:
    """The row of each key with the latest event time."""
    best: dict[str, Row] = {}
    for row in rows:
        if row.id not in best or best[row.id].event_ts < row.event_ts:
            best[row.id] = row
    return best


def table_of(batch: Batch) -> pa.Table:
    """The rows of a batch, as Spark reads them."""
    return pa.Table.from_pylist([row._asdict() for row in batch.rows], schema=SCHEMA)


def put_parquet(directory: Path, batches: Sequence[Batch]) -> list[Path]:
    """Writes batches as files. Later batches have later modification times, and all are old."""
    directory.mkdir(parents=True)
    files = [directory / f"{place:04}.parquet" for place in range(len(batches))]
    for place, (file, batch) in enumerate(zip(files, batches, strict=True)):
        pq.write_table(table_of(batch), file)
        os.utime(file, (START_MS // 1000 + place, START_MS // 1000 + place))
    return files


def put_json_lines(file: Path, count: int) -> None:
    """Writes the first `count` batches as one line each."""
    file.write_text("".join(json.dumps(Batch(number).rows) + "\n" for number in range(count)))


def _row(value: int, writer: int | None) -> Row:
    key = value * 7 % KEYS
    event_ms = START_MS + value * STEP_MS - (LATE_MS - 1 if value % 7 == 6 else 0)
    if writer is None:
        return Row(f"k{key:02}", "ab"[key % 2], event_ms, f"v{value}")
    return Row(f"w{writer}k{key:02}", "ab"[writer], event_ms, f"w{writer}v{value}")
