"""The limit of writes through `format("eventide")`, whose rows all reach the driver."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from eventide import Table
from eventide.options.streams import STREAM_IDENTIFIER, WRITE_BYTES_MAX, WRITE_OPERATION
from eventide_core.errors import InvalidRecordError, RefusedError
from support.append_tables import make, rows, seen

pytest.importorskip("pyspark.sql.datasource")

from eventide.datasource.writers import StreamWriter, Writer

BATCH = rows(("a", "p", 1, "x"), ("b", "p", 2, "y")).to_batches()[0]


def batches(count: int) -> Iterator[pa.RecordBatch]:
    yield from [BATCH] * count


def bounded(table: Table, limit: int) -> dict[str, str]:
    return {**table.options, str(WRITE_BYTES_MAX): str(limit), str(STREAM_IDENTIFIER): "s"}


def test_a_task_with_too_many_rows_ends_at_once_and_names_the_call_for_more(tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    options = bounded(table, 2 * BATCH.nbytes)
    taken: list[int] = []

    def endless() -> Iterator[pa.RecordBatch]:
        while True:
            taken.append(1)
            yield BATCH

    with pytest.raises(RefusedError, match=rf"Table\.open\('{table.uri}'\)\.upsert\(frame\)"):
        Writer(table.uri, options).write(endless())
    assert len(taken) == 3
    with pytest.raises(RefusedError, match=rf"foreachBatch\(eventide\.stream_sink\('{table.uri}'\)\)"):
        StreamWriter(table.uri, options).write(endless())


def test_tasks_with_too_many_rows_together_write_nothing(tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    writer = Writer(table.uri, bounded(table, 3 * BATCH.nbytes))
    messages = [writer.write(batches(2)), writer.write(batches(2))]
    with pytest.raises(RefusedError, match=f"above {WRITE_BYTES_MAX}={3 * BATCH.nbytes}"):
        writer.commit(list(messages))
    assert seen(table) == []
    assert not table.state().timeline.instants
    writer.commit([messages[0]])
    assert seen(table) == [("a", "p", 1, "x"), ("b", "p", 2, "y")]


def test_an_overwrite_without_rows_is_refused_and_one_with_rows_replaces_its_partitions(tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    table.insert(rows(("c", "p", 1, "old"), ("d", "q", 1, "old")))
    writer = Writer(table.uri, {**table.options, str(WRITE_OPERATION): "insert_overwrite"})
    with pytest.raises(InvalidRecordError, match="an overwrite without rows"):
        writer.commit([writer.write(batches(0))])
    writer.commit([writer.write(batches(1))])
    assert seen(table) == [("a", "p", 1, "x"), ("b", "p", 2, "y"), ("d", "q", 1, "old")]
