"""The write stats of Avro commits, read column by column: the same as value by value, or not read at all."""

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventide_adapters.format.timeline.codec import HudiMetadataCodec, avro_commit
from eventide_adapters.format.timeline.container import MAGIC, unwrapped
from eventide_adapters.format.timeline.stat_columns import read_stat_columns
from eventide_core.errors import EventideError
from eventide_core.table.schema.avro_schema import AvroSchema
from eventide_core.table.timeline.contents.commit_metadata import CommitMetadata, WriteStat
from support.faults.changed_bytes import EDITS, Edit, edited
from support.pasts import golden

pytestmark = pytest.mark.slow

CODEC = HudiMetadataCodec()
_NEVER = 1 << 62
_INSTANT = "20261121060413861"

counts = st.integers(0, 300) | st.integers(0, 2**63 - 1)
times = st.none() | st.integers(-(2**63), 2**63 - 1)
file_ids = st.uuids().map(lambda found: f"{found}-0") | st.text("abc-09", min_size=8, max_size=70)
texts = st.none() | st.text(max_size=80) | st.just(_INSTANT)


@st.composite
def _write_stats(draw: st.DrawFn, partition: str) -> WriteStat:
    file_id = draw(file_ids)
    name = draw(st.sampled_from([f".{file_id}_{_INSTANT}.log.1_0-1-2", f"{file_id}_0-1-2_{_INSTANT}.parquet"]))
    values: list[Any] = [file_id, f"{partition}/{name}" if partition else name, partition, draw(texts)]
    values += [draw(counts) for _ in range(11)]
    values += [draw(times), draw(times), draw(st.none() | st.integers(0, 2**31 - 1)), draw(texts), draw(texts)]
    return WriteStat._make([*values, draw(counts), draw(counts), (), None, None])


@st.composite
def _commits(draw: st.DrawFn) -> CommitMetadata:
    partitions = draw(st.lists(st.text(max_size=8) | st.just("day=2026-11-21"), max_size=3, unique=True))
    return CommitMetadata(
        write_stats={p: tuple(draw(st.lists(_write_stats(p), max_size=5))) for p in partitions},
        extra_metadata=draw(st.dictionaries(st.text(max_size=8), st.text(max_size=30), max_size=2)),
        operation_type=draw(st.sampled_from(["UPSERT", "COMPACT"])),
        replaced_file_ids=draw(st.dictionaries(st.text(max_size=3), st.lists(file_ids).map(tuple), max_size=1)),
    )


log_files = st.lists(st.text(max_size=70), max_size=3).map(tuple)


@given(_commits(), log_files)
def test_columns_have_the_same_stats(commit: CommitMetadata, names: tuple[str, ...]) -> None:
    named = {p: tuple(stat._replace(log_files=names) for stat in stats) for p, stats in commit.write_stats.items()}
    data = CODEC.encode_commit(replace(commit, write_stats=named), 9)
    assert avro_commit(data, "t.commit", 0) == avro_commit(data, "t.commit", _NEVER) == commit


@given(_commits(), EDITS)
def test_columns_of_damaged_bytes_have_the_same_stats_or_the_same_error(
    commit: CommitMetadata, edits: list[Edit]
) -> None:
    data = edited(CODEC.encode_commit(commit, 9), edits)
    assert _outcome(data, 0) == _outcome(data, _NEVER)


def _outcome(data: bytes, columns_bytes_min: int) -> CommitMetadata | type[EventideError]:
    try:
        return avro_commit(data, "t.commit", columns_bytes_min)
    except EventideError as error:
        return type(error)


@pytest.mark.parametrize("name", [name for name in golden.names() if name.startswith(("v8", "v9"))])
def test_commits_of_hudi_are_read_by_columns(name: str, tmp_path: Path) -> None:
    timeline = golden.unpack(name, tmp_path) / ".hoodie" / "timeline"
    files = [path for path in timeline.iterdir() if path.suffix in (".commit", ".deltacommit", ".replacecommit")]
    commits = {path.name: data for path in files if (data := path.read_bytes()).startswith(MAGIC)}
    assert commits
    for file_name, data in commits.items():
        record = unwrapped(data, file_name)
        by_values = avro_commit(data, file_name, _NEVER)
        columns = read_stat_columns(record.content, record.schema)
        assert columns is not None, file_name
        assert columns.write_stats == by_values.write_stats
        assert avro_commit(data, file_name, 0) == by_values


def test_a_large_commit_of_ours_is_read_by_columns() -> None:
    stats = [WriteStat(f"{n:08}-0000-0000-0000-000000000000-{n}", "", "", log_version=1) for n in range(1000)]
    named = [stat._replace(path=f".{stat.file_id}_{_INSTANT}.log.1", log_files=("a", "b")) for stat in stats]
    commit = CommitMetadata({"": tuple(named)}, {"schema": "{}"}, "UPSERT")
    record = unwrapped(CODEC.encode_commit(commit, 9), "t.commit")
    columns = read_stat_columns(record.content, record.schema)
    assert columns is not None
    assert columns.write_stats == {"": tuple(stat._replace(base_file=None, log_files=()) for stat in named)}


def _with_stats(change: Any) -> tuple[bytes, AvroSchema]:
    """The record and the schema of a commit whose schema is changed."""
    stat = WriteStat("f" * 36, f"p/{'f' * 36}_0-1-2_{_INSTANT}.parquet", "p", num_writes=5)
    record = unwrapped(CODEC.encode_commit(CommitMetadata({"p": (stat,)}, {}, "UPSERT"), 9), "t.commit")
    schema = json.loads(record.schema.text)
    change(schema["fields"][0]["type"][1]["values"]["items"]["fields"])
    stream = io.BytesIO()
    values: Any = fastavro.schemaless_reader(io.BytesIO(record.content), json.loads(record.schema.text), None)
    fastavro.schemaless_writer(stream, fastavro.parse_schema(schema), values)
    return stream.getvalue(), AvroSchema.of_json(schema)


@pytest.mark.parametrize(("name", "type_", "is_read"), [("numWrites", "int", True), ("numWrites", "double", False)])
def test_fields_of_other_types_are_left_to_the_reader_of_values(name: str, type_: str, is_read: bool) -> None:
    def change(fields: list[Any]) -> None:
        next(field for field in fields if field["name"] == name)["type"] = ["null", type_]

    assert (read_stat_columns(*_with_stats(change)) is not None) == is_read


def test_stats_that_begin_with_another_field_are_left_to_the_reader_of_values() -> None:
    assert read_stat_columns(*_with_stats(lambda fields: fields.reverse())) is None
