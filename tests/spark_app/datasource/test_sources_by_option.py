"""Writes with `format("eventide")` whose options say what their rows were made of."""

import json
from pathlib import Path
from typing import Any

import pytest

from eventide import ConfigError, Table, WindowTakenError
from support.tables.hourly import at, made, rows

pytest.importorskip("pyspark.sql.datasource")

from pyspark.sql.pandas.types import from_arrow_schema

from eventide.datasource.window_stream import WindowStream, with_window_columns
from eventide.datasource.writers import StreamWriter, Writer
from eventide.options.streams import SOURCES, STREAM_IDENTIFIER
from eventide.options.windows import CONSUMER, EVERY
from eventide_core.errors import format_timestamp


def write(table: Table, said: Any, **options: str) -> None:
    text = said if isinstance(said, str) else json.dumps(said)
    writer = Writer(table.uri, {**table.options, **options, SOURCES: text})
    writer.commit([writer.write(iter(rows(0).to_batches()))])


def test_a_write_notes_a_watermark_or_a_compaction_of_its_sources(tmp_path: Path) -> None:
    raw, derived = made(tmp_path, "raw"), made(tmp_path, "derived")
    raw.upsert(rows(0.5, 1.5, 2.5))
    compacted = raw.compact(before=at(2), cut="exact")
    write(derived, {raw.uri: format_timestamp(at(1))})
    derived.compact(before=at(9))
    assert derived.freshness().watermark_ms == at(1)
    write(derived, {raw.uri: compacted.instant})
    derived.compact(before=at(9))
    found = derived.freshness()
    assert found.watermark_ms == at(2)
    assert [(one.name, one.evidence.split()[-1]) for one in found.sources] == [(f"file://{raw.uri}", compacted.instant)]


def test_what_says_nothing_of_a_source_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    raw, derived = made(tmp_path, "raw"), made(tmp_path, "derived")
    raw.upsert(rows(0.5))
    raw.compact(before=at(1))
    refused: list[tuple[Any, str]] = [
        ({raw.uri: format_timestamp(at(5))}, "has published the watermark"),
        ({raw.uri: "20260303000000000"}, "has published a watermark at"),
        ({derived.uri: format_timestamp(at(1))}, "the table itself|has published"),
        ("raw", "is not JSON"),
        ("[1]", "is not JSON"),
        ({raw.uri: 1}, "is not JSON"),
        ({raw.uri: "consumer:c"}, STREAM_IDENTIFIER),
    ]
    for said, told in refused:
        with pytest.raises(ConfigError, match=told):
            write(derived, said)
    assert derived.state().timeline.writes == ()


def test_a_stream_notes_the_window_of_its_batch_and_no_other_runner_s(tmp_path: Path) -> None:
    raw, derived = made(tmp_path, "raw"), made(tmp_path, "derived")
    raw.upsert(rows(0.5, 1.5))
    raw.compact(before=at(2), cut="exact")
    name = {str(STREAM_IDENTIFIER): "hourly"}
    asked = from_arrow_schema(with_window_columns(raw.read_optimized().schema))
    source = WindowStream(raw.uri, {**raw.options, **name, EVERY: "1h", CONSUMER: "c"}, asked)
    said: dict[str, str] = {SOURCES: json.dumps({raw.uri: "consumer:c"})}
    reached = []
    for number in range(2):
        source.partitions({"token": 0}, source.latestOffset())
        other = StreamWriter(derived.uri, {**derived.options, **said, STREAM_IDENTIFIER: "another"})
        with pytest.raises(WindowTakenError, match="another holds no window"):
            other.commit([other.write(iter(rows(0).to_batches()))], number)
        sink = StreamWriter(derived.uri, {**derived.options, **said, **name})
        sink.commit([sink.write(iter(rows(0).to_batches()))], number)
        derived.compact(before=at(9))
        reached.append(derived.freshness().watermark_ms)
    assert reached == [at(1), at(2)]
