"""The limit of writes through `format("eventide")`, whose rows all reach the driver."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from eventide import Table
from eventide.options.streams import STREAM_IDENTIFIER, WRITE_BYTES_MAX, WRITE_OPERATION
from eventide_core.errors import ConfigError, InvalidRecordError, RefusedError
from support.tables.append import make, rows, seen

pytest.importorskip("pyspark.sql.datasource")

from pyspark.sql.types import StructType

from eventide.datasource.source import EventideSource
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


def test_an_overwrite_replaces_its_partitions_and_is_refused_without_rows(tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    table.insert(rows(("c", "p", 1, "old"), ("d", "q", 1, "old")))
    writer = Writer(table.uri, {**table.options, str(WRITE_OPERATION): "insert_overwrite"})
    with pytest.raises(InvalidRecordError, match="an overwrite without rows"):
        writer.commit([writer.write(batches(0))])
    writer.commit([writer.write(batches(1))])
    assert seen(table) == [("a", "p", 1, "x"), ("b", "p", 2, "y"), ("d", "q", 1, "old")]


@pytest.mark.parametrize(
    ("options", "left"),
    [
        ({}, [("c", "p", 3, "z")]),
        ({"partitionOverwriteMode": "static"}, [("c", "p", 3, "z")]),
        ({"partitionOverwriteMode": "Dynamic"}, [("b", "q", 2, "y"), ("c", "p", 3, "z")]),
        ({str(WRITE_OPERATION): "insert_overwrite"}, [("b", "q", 2, "y"), ("c", "p", 3, "z")]),
    ],
)
def test_mode_overwrite_replaces_the_table_or_the_partitions_of_its_rows(
    options: dict[str, str], left: list[tuple[str, str, int, str]], tmp_path: Path
) -> None:
    table = make(tmp_path / "t")
    table.upsert(rows(("a", "p", 1, "x"), ("b", "q", 2, "y")))
    source = EventideSource({**table.options, **options, "path": table.uri})
    writer: Any = source.writer(StructType(), overwrite=True)
    writer.commit([writer.write(iter(rows(("c", "p", 3, "z")).to_batches()))])
    assert sorted(seen(table)) == left


def test_mode_overwrite_of_an_operation_that_replaces_nothing_is_refused(tmp_path: Path) -> None:
    source = EventideSource({"path": str(tmp_path), str(WRITE_OPERATION): "upsert"})
    with pytest.raises(ConfigError, match=r'mode\("overwrite"\) with hoodie.datasource.write.operation=upsert'):
        source.writer(StructType(), overwrite=True)
    with pytest.raises(ConfigError, match='output mode "complete" is not possible'):
        source.streamWriter(StructType(), overwrite=True)


def test_a_table_of_sparks_catalog_names_the_view_to_create() -> None:
    with pytest.raises(ConfigError, match="CREATE TEMPORARY VIEW name USING eventide OPTIONS"):
        EventideSource({}).schema()


def test_the_first_batch_of_a_stream_creates_its_table_or_leaves_none(tmp_path: Path) -> None:
    path = tmp_path / "new"
    create = {
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "part",
        "hoodie.datasource.write.precombine.field": "ms",
        str(STREAM_IDENTIFIER): "s",
    }
    nulls = pa.table([pa.nulls(1, field.type) for field in BATCH.schema], names=BATCH.schema.names)
    broken = StreamWriter(str(path), create)
    with pytest.raises(InvalidRecordError, match="null"):
        broken.commit([broken.write(iter(nulls.to_batches()))], 0)
    assert not (path / ".hoodie" / "hoodie.properties").exists()

    writer = StreamWriter(str(path), create)
    messages: list[Any] = [writer.write(batches(1))]
    writer.commit(messages, 0)
    writer.commit(messages, 0)
    table = Table.open(str(path))
    assert seen(table) == [("a", "p", 1, "x"), ("b", "p", 2, "y")]
    assert len(table.state().timeline.writes) == 1
