"""Completed commits: what Hudi wrote is understood, what eventide writes reads back, torn bytes are named."""

import io
import json
import pickle
import random
from pathlib import Path
from typing import Any

import fastavro
import pytest
from fastavro.schema import to_parsing_canonical_form
from hypothesis import given
from hypothesis import strategies as st

from eventide_adapters.format.timeline import container as avro_container
from eventide_adapters.format.timeline.codec import HudiMetadataCodec
from eventide_core.errors import CorruptTimelineError, EventideError, ResourceLimitError, UnsupportedTableError
from eventide_core.table.records.event_time import EventTimeRange
from eventide_core.table.timeline.contents.commit_metadata import CommitMetadata, WriteStat
from support.faults.edited_bytes import edited

DATA = Path(__file__).parent / "data"
CODEC = HudiMetadataCodec()

names = st.text(min_size=1, max_size=12)
counts = st.integers(0, 2**63 - 1)
times = st.none() | st.integers(-(2**63), 2**63 - 1)


@st.composite
def write_stats(draw: st.DrawFn, partition: str) -> WriteStat:
    is_log = draw(st.booleans())
    return WriteStat(
        file_id=draw(names),
        path=draw(names),
        partition=partition,
        prev_commit=draw(st.none() | names),
        num_writes=draw(counts),
        num_deletes=draw(counts),
        num_update_writes=draw(counts),
        num_inserts=draw(counts),
        total_write_bytes=draw(counts),
        file_size_bytes=draw(counts),
        total_log_records=draw(counts),
        total_log_files_compacted=draw(counts),
        total_log_size_compacted=draw(counts),
        total_updated_records_compacted=draw(counts),
        total_log_blocks=draw(counts),
        min_event_time_ms=draw(times),
        max_event_time_ms=draw(times),
        log_version=draw(st.integers(0, 2**31 - 1)) if is_log else None,
        base_file=draw(names) if is_log else None,
        prev_base_file=draw(st.none() | names),
        total_scan_time_ms=draw(counts),
        total_upsert_time_ms=draw(counts),
    )


@st.composite
def commits(draw: st.DrawFn) -> CommitMetadata:
    partitions = draw(st.lists(st.text(max_size=8), max_size=3, unique=True))
    return CommitMetadata(
        write_stats={p: tuple(draw(st.lists(write_stats(p), max_size=3))) for p in partitions},
        extra_metadata=draw(st.dictionaries(st.text(max_size=8), st.text(max_size=30), max_size=4)),
        operation_type=draw(names),
        is_compacted=draw(st.booleans()),
        replaced_file_ids=draw(st.dictionaries(names, st.lists(names, max_size=3).map(tuple), min_size=0, max_size=2)),
    )


def _read(name: str) -> bytes:
    return (DATA / name).read_bytes()


def _container(schema: Any, records: list[Any], codec: str = "null") -> bytes:
    stream = io.BytesIO()
    fastavro.writer(stream, schema, records, codec=codec)
    return stream.getvalue()


@given(commits(), st.sampled_from([6, 8, 9]))
def test_a_commit_reads_back_as_it_was_written(commit: CommitMetadata, version: int) -> None:
    assert CODEC.decode_commit(CODEC.encode_commit(commit, version), "t.commit") == commit


@pytest.mark.parametrize("version", [6, 9])
def test_the_names_of_log_files_are_written_and_not_read(version: int) -> None:
    stat = WriteStat("f", "p/.f", "p", log_version=1, base_file="", log_files=(".e", ".f"))
    data = CODEC.encode_commit(CommitMetadata({"p": (stat,)}, {}, "UPSERT"), version)
    assert b".e" in data
    assert CODEC.decode_commit(data, "t.deltacommit").stats == (stat._replace(log_files=()),)


def test_a_version_6_delta_commit_decodes_its_json() -> None:
    commit = CODEC.decode_commit(_read("v6.deltacommit"), "t.deltacommit")
    written = json.loads(_read("v6.deltacommit"))["partitionToWriteStats"]
    assert {p: [s.path for s in stats] for p, stats in commit.write_stats.items()} == {
        p: [s["path"] for s in stats] for p, stats in written.items()
    }
    first = commit.write_stats["part=b"][0]
    assert (first.partition, first.log_version, first.num_writes) == (
        "part=b",
        1,
        written["part=b"][0]["numWrites"],
    )
    assert first.base_file is not None
    assert first.base_file.endswith(".parquet")
    assert first.event_time_range is None
    assert commit.operation_type == "UPSERT"
    assert not commit.is_compacted
    assert commit.schema is not None
    assert commit.schema.parsed["type"] == "record"


def test_a_version_9_delta_commit_has_the_event_times_that_hudi_tracked() -> None:
    commit = CODEC.decode_commit(_read("v9.deltacommit"), "t.deltacommit")
    first = commit.write_stats["part=b"][0]
    assert first.path == "part=b/.00000000-0178-48db-ae05-664a3c5be7dc_20261121060413861.log.1_0-181-322"
    assert first.event_time_range == EventTimeRange(1700000934000, 1700004994000)
    assert (first.num_writes, first.file_size_bytes, first.total_upsert_time_ms) == (142, 20580, 70)
    assert len(commit.stats) == 4


@pytest.mark.parametrize("version", [6, 9])
def test_a_compaction_commit_of_ours_has_the_fields_of_hudis(version: int) -> None:
    theirs = _read(f"v{version}.commit")
    ours = CODEC.encode_commit(CODEC.decode_commit(theirs, "t.commit"), version)
    assert _shape(ours) == _shape(theirs)


@pytest.mark.parametrize("version", [6, 9])
def test_a_log_file_of_ours_has_the_fields_of_hudis_delta_commit(version: int) -> None:
    theirs = _read(f"v{version}.deltacommit")
    ours = CODEC.encode_commit(CODEC.decode_commit(theirs, "t.deltacommit"), version)
    assert _shape(ours) == _shape(theirs)


def _shape(data: bytes) -> tuple[set[str], set[str], str]:
    """The keys of a commit and of its write stats, and the schema they are written by."""
    schema = ""
    if data.startswith(b"Obj\x01"):
        reader = fastavro.reader(io.BytesIO(data))
        document: Any = next(iter(reader))
        schema = json.dumps(to_parsing_canonical_form(reader.writer_schema or {}))
    else:
        document = json.loads(data)
    stats = [stat for stats in document["partitionToWriteStats"].values() for stat in stats]
    return set(document), {key for stat in stats for key in stat}, schema


def test_a_replacecommit_names_the_file_groups_that_it_replaced() -> None:
    replaced = {"part=a": ("f1", "f2")}
    commit = CommitMetadata({}, {}, "INSERT_OVERWRITE", replaced_file_ids=replaced)
    data = CODEC.encode_commit(commit, 9)
    schema: Any = fastavro.reader(io.BytesIO(data)).writer_schema
    assert schema["name"] == "org.apache.hudi.avro.model.HoodieReplaceCommitMetadata"
    by_json = b'{"partitionToWriteStats": {}, "partitionToReplaceFileIds": {"part=a": ["f1", "f2"]}}'
    assert CODEC.decode_commit(by_json, "t.replacecommit").replaced_file_ids == replaced


@pytest.mark.parametrize("name", ["partitionToWriteStats", "extraMetadata", "operationType", "compacted"])
@pytest.mark.parametrize("is_null", [True, False])
def test_a_commit_may_lack_what_hudi_may_leave_out(name: str, is_null: bool) -> None:
    document = json.loads(_read("v6.deltacommit"))
    del document[name]
    if is_null:
        document[name] = None
    commit = CODEC.decode_commit(json.dumps(document).encode(), "t.commit")
    lacks = {
        "partitionToWriteStats": commit.stats == (),
        "extraMetadata": commit.schema is None,
        "operationType": commit.operation_type == "UNKNOWN",
        "compacted": not commit.is_compacted,
    }
    assert lacks[name]


def test_a_write_stat_without_a_path_stands_for_no_file() -> None:
    stats = [{"fileId": "f", "path": None}, {"fileId": "g", "path": "p/g"}]
    data = json.dumps({"partitionToWriteStats": {"p": stats}}).encode()
    assert [stat.file_id for stat in CODEC.decode_commit(data, "t.commit").stats] == ["g"]


@pytest.mark.parametrize("name", ["numWrites", "logVersion", "prevCommit", "runtimeStats"])
@pytest.mark.parametrize("value", ["", [], {}, False, 0, 2**63, [1]], ids=repr)
def test_a_field_of_a_wrong_type_is_named_also_among_many(name: str, value: Any) -> None:
    expected = {"numWrites": 0, "logVersion": 0, "prevCommit": "", "runtimeStats": {}}
    stats = [{"fileId": "f", "path": "p/f"}, {"fileId": "g", "path": "p/g", name: value}]
    data = json.dumps({"partitionToWriteStats": {"p": stats}}).encode()
    if repr(value) == repr(expected[name]):
        assert len(CODEC.decode_commit(data, "t.commit").stats) == 2
    else:
        with pytest.raises(CorruptTimelineError, match=name):
            CODEC.decode_commit(data, "t.commit")


def test_an_extra_value_of_null_is_as_good_as_none() -> None:
    data = b'{"extraMetadata": {"schema": null, "a": "b"}}'
    assert CODEC.decode_commit(data, "t.commit").extra_metadata == {"a": "b"}


def test_a_deflated_commit_is_read() -> None:
    reader = fastavro.reader(io.BytesIO(_read("v9.deltacommit")))
    deflated = _container(reader.writer_schema, list(reader), "deflate")
    plain = CODEC.decode_commit(_read("v9.deltacommit"), "t.commit")
    assert CODEC.decode_commit(deflated, "t.commit") == plain


def test_another_compression_is_refused_by_name() -> None:
    reader = fastavro.reader(io.BytesIO(_read("v9.deltacommit")))
    with pytest.raises(UnsupportedTableError, match="bzip2"):
        CODEC.decode_commit(_container(reader.writer_schema, list(reader), "bzip2"), "t.commit")


@pytest.mark.parametrize("name", ["v6.deltacommit", "v9.deltacommit"])
def test_a_torn_commit_is_named_with_its_cure(name: str) -> None:
    whole = _read(name)
    for length in range(len(whole)):
        with pytest.raises(CorruptTimelineError, match=r"dir/t\.commit .*; restore it"):
            CODEC.decode_commit(whole[:length], "dir/t.commit")


@pytest.mark.parametrize(
    "data",
    [
        b"null",
        b"[]",
        b"1",
        b'"a"',
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"partitionToWriteStats": []}',
        b'{"partitionToWriteStats": {"p": {}}}',
        b'{"partitionToWriteStats": {"p": [1]}}',
        b'{"partitionToWriteStats": {"p": [{"path": "p/f"}]}}',
        b'{"partitionToWriteStats": {"p": [{"path": "p/f", "fileId": "f", "numWrites": 1.5}]}}',
        b'{"partitionToWriteStats": {"p": [{"path": "p/f", "fileId": "f", "numWrites": true}]}}',
        b'{"partitionToWriteStats": {"p": [{"path": "p/f", "fileId": "f", "numWrites": -1}]}}',
        b'{"partitionToWriteStats": {"p": [{"path": "p/f", "fileId": "f", "numWrites": 9223372036854775808}]}}',
        b'{"extraMetadata": {"schema": 1}}',
        b'{"compacted": "true"}',
        b'{"a": ' + b"1" * 5000 + b"}",
    ],
)
def test_a_commit_of_wrong_types_is_corrupt(data: bytes) -> None:
    with pytest.raises(CorruptTimelineError, match=r"t\.commit"):
        CODEC.decode_commit(data, "t.commit")


def test_a_commit_above_the_cap_is_refused_before_it_is_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(avro_container, "TIMELINE_FILE_BYTES_MAX", 4000)
    for name in ("v6.deltacommit", "v9.deltacommit"):
        with pytest.raises(ResourceLimitError, match="more than 4000 bytes"):
            CODEC.decode_commit(_read(name), "t.commit")


def test_a_small_file_that_inflates_to_a_huge_one_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(avro_container, "TIMELINE_FILE_BYTES_MAX", 100_000)
    bomb = _container("bytes", [b"\0" * 10_000_000], "deflate")
    assert len(bomb) < 100_000
    with pytest.raises(ResourceLimitError, match="more than 100000, the most"):
        CODEC.decode_commit(bomb, "t.commit")


RECURSIVE = {
    "type": "record",
    "name": "Node",
    "fields": [{"name": "next", "type": ["null", "Node"]}],
}
NOTHINGS = {
    "type": "record",
    "name": "R",
    "fields": [
        {
            "name": "a",
            "type": {
                "type": "array",
                "items": {"type": "record", "name": "E", "fields": [{"name": "n", "type": "null"}]},
            },
        }
    ],
}


def test_a_schema_that_expands_to_many_values_is_refused() -> None:
    deep: dict[str, Any] = {"next": None}
    for _ in range(50):
        deep = {"next": deep}
    for schema, record in ((RECURSIVE, deep), (NOTHINGS, {"a": [{"n": None}] * 3})):
        with pytest.raises(CorruptTimelineError, match="its schema"):
            CODEC.decode_commit(_container(schema, [record]), "t.commit")


def test_a_container_of_two_commits_is_corrupt() -> None:
    reader = fastavro.reader(io.BytesIO(_read("v9.deltacommit")))
    record = next(iter(reader))
    with pytest.raises(CorruptTimelineError, match="2 records"):
        CODEC.decode_commit(_container(reader.writer_schema, [record, record]), "t.commit")


def test_bytes_gone_wrong_anywhere_bring_a_typed_error_or_a_commit() -> None:
    random_bytes = random.Random(74)
    wholes = [_read(name) for name in ("v6.deltacommit", "v9.deltacommit", "v9.commit")]
    errors: list[str] = []
    for _ in range(2000):
        data = edited(random_bytes, random_bytes.choice(wholes))
        try:
            assert isinstance(CODEC.decode_commit(data, "t.commit"), CommitMetadata)
        except EventideError as error:
            errors.append(str(error))
    assert len(errors) > 500
    assert all("t.commit" in error for error in errors)


def test_the_codec_travels_to_executors() -> None:
    assert isinstance(pickle.loads(pickle.dumps(CODEC)), HudiMetadataCodec)


def test_a_commit_that_hudi_1_0_archived_as_it_upgraded_the_table_stands_alone() -> None:
    data = (DATA / "v8.upgraded_by_1.0.2.deltacommit").read_bytes()
    commit = CODEC.decode_archived_commit(data, "archived")
    assert [stat.path.rpartition(".log.")[2] for stat in commit.stats] == ["1_0-18-28", "1_1-18-29"]
    for torn in (data[:-1], data + b"\0", data[:40]):
        with pytest.raises(CorruptTimelineError, match="neither JSON nor a record of Avro"):
            CODEC.decode_archived_commit(torn, "archived")
