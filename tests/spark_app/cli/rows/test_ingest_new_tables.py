"""`eventide ingest --create`: the table appears with its first commit, or agrees with what is stated; and dry runs."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from eventide import Table
from eventide.bootstrap import assemble
from eventide_adapters.storage.faulty import Fault, FaultPlan, FaultyStorage, SimulatedCrash
from eventide_adapters.storage.local import LocalStorage
from eventide_core.errors import ConfigError, StorageFullError
from eventide_core.table.settings.properties import PROPERTIES_PATH
from support.run.command_line import content_of, run, run_json

NEW = ("--create", "--record-key", "id", "--event-time", "at", "--partition", "city")
ROWS = "id,city,fare,at\na,Oslo,1.5,2026-03-01T10:00Z\nb,Lima,2,2026-03-01T11:00Z\n"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "x.csv"
    path.write_text(ROWS)
    return path


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ("c,Oslo,3,\n", "row 3: ordering field 'at' is null, and no reader could order such a record: give it a value"),
        (",Oslo,3,2026-03-01T10:00Z\n", "row 3: record key field 'id'"),
    ],
)
def test_a_first_write_that_fails_leaves_no_table(bad: str, said: str, source: Path, tmp_path: Path) -> None:
    source.write_text(ROWS + bad)
    answer = run("ingest", tmp_path / "t", source, *NEW)
    assert (answer.exit_code, list(tmp_path.iterdir())) == (2, [source])
    assert f"source '{source}', {said}" in answer.stderr


@pytest.mark.parametrize("word", ["--record-key", "--partition"])
def test_a_field_that_is_named_twice_is_refused(word: str, source: Path, tmp_path: Path) -> None:
    answer = run("ingest", tmp_path / "t", source, *NEW, word, "city, id,city")
    assert (answer.exit_code, list(tmp_path.iterdir())) == (2, [source])
    assert "field 'city' is named twice in 'city,id,city': name it once" in answer.stderr


def test_a_bad_row_of_the_second_file_is_named_by_that_file(source: Path, tmp_path: Path) -> None:
    run_json("ingest", tmp_path / "t", source, *NEW)
    other = tmp_path / "y.jsonl"
    other.write_text(
        '{"id":"c","city":"Oslo","fare":3,"at":"2026-03-01T10:00Z"}\n{"id":"d","city":"Oslo","fare":3,"at":null}\n'
    )
    answer = run("ingest", tmp_path / "t", source, other)
    assert answer.exit_code == 2
    assert f"source '{other}', row 2: ordering field 'at' is null" in answer.stderr


@pytest.mark.parametrize("version", [6, 9])
def test_a_process_that_dies_leaves_no_table_and_the_next_one_creates_it(
    version: int, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = (source, *NEW, "--option", f"hoodie.write.table.version={version}", "--op", "insert")
    counted = FaultyStorage(LocalStorage(tmp_path / "counted"), FaultPlan())
    storage: list[FaultyStorage] = [counted]
    monkeypatch.setattr(
        "eventide.table.creation.assemble", lambda *a, **k: assemble(*a, **{**k, "storage": storage[0]})
    )
    assert run("ingest", tmp_path / "counted", *words).exit_code == 0
    created = next(number for number, operation in enumerate(counted.writes) if operation.path == PROPERTIES_PATH)
    assert counted.writes[created + 1].path.endswith("deltacommit")
    for number in (1, created - 1, created, created + 1):
        path = tmp_path / f"t{number}"
        storage[0] = FaultyStorage(LocalStorage(path), FaultPlan(writes={number: Fault.CRASH_BEFORE}))
        with pytest.raises(SimulatedCrash):
            run("ingest", path, *words)
        assert (path / PROPERTIES_PATH).exists() == (number > created)
        for lock in path.glob(".hoodie/lock*"):  # of a process that is dead
            lock.unlink()
        storage[0] = FaultyStorage(LocalStorage(path), FaultPlan())
        assert run("ingest", path, *words).exit_code == 0
        assert len(Table.open(str(path)).snapshot().to_arrow()) == 2


def test_a_full_disk_at_the_first_commit_leaves_no_table(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = LocalStorage.put_if_absent

    def full(storage: LocalStorage, path: str, data: bytes) -> bool:
        if path.endswith(".deltacommit") and data:
            raise StorageFullError("the disk is full")
        return put(storage, path, data)

    monkeypatch.setattr(LocalStorage, "put_if_absent", full)
    assert run("ingest", tmp_path / "t", source, *NEW).exit_code == 5
    assert not (tmp_path / "t" / PROPERTIES_PATH).exists()
    monkeypatch.undo()
    run_json("ingest", tmp_path / "t", source, *NEW)
    assert len(Table.open(str(tmp_path / "t")).snapshot().to_arrow()) == 2


def test_commits_without_settings_are_not_taken_over(source: Path, tmp_path: Path) -> None:
    run_json("ingest", tmp_path / "t", source, *NEW)
    (tmp_path / "t" / PROPERTIES_PATH).unlink()
    answer = run("ingest", tmp_path / "t", source, *NEW)
    assert answer.exit_code == 3
    assert "`eventide repair TABLE`" in answer.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--record-key", "id,city"), "--record-key id,city: the table exists, and has id"),
        (("--record-key", "id", "--partition", "fare"), "--partition fare: the table exists, and has city"),
        (("--record-key", "id", "--ordering", "fare"), "--ordering fare: the table exists, and has at"),
        (("--record-key", "id", "--event-time", "fare"), "--event-time fare: the table exists, and has at"),
        (("--record-key", "id", "--option", "hoodie.write.table.version=6"), "version=6: the table exists, and has 9"),
        (("--record-key", "id", "--option", "hoodie.table.name=x"), "hoodie.table.name=x: the table exists, and has t"),
        (
            ("--record-key", "id", "--option", "hoodie.datasource.write.table.type=COPY_ON_WRITE"),
            "table.type=COPY_ON_WRITE: the table exists, and has MERGE_ON_READ",
        ),
        (
            ("--record-key", "id", "--option", "hoodie.table.cdc.enabled=true"),
            "hoodie.table.cdc.enabled=true: the table exists, and has false",
        ),
        (("--record-key", "id", "--option", "hoodie.index.type=BLOOM"), "hoodie.index.type=BLOOM: the table exists"),
        (("--record-key", "id", "--option", "hoodie.bucket.index.num.buckets=9"), "num.buckets=9: the table exists"),
        (
            ("--record-key", "id", "--option", "hoodie.write.record.merge.mode=COMMIT_TIME_ORDERING"),
            "merge.mode=COMMIT_TIME_ORDERING: the table exists, and has EVENT_TIME_ORDERING",
        ),
        (
            ("--record-key", "id", "--option", "hoodie.datasource.write.hive_style_partitioning=false"),
            "hive_style_partitioning=false: the table exists, and has true",
        ),
    ],
)
def test_what_contradicts_a_table_that_exists_is_refused_by_name(
    words: tuple[str, ...], said: str, source: Path, tmp_path: Path
) -> None:
    run_json("ingest", tmp_path / "t", source, *NEW)
    before = content_of(tmp_path / "t")
    answer = run("ingest", tmp_path / "t", source, "--create", *words)
    assert answer.exit_code == 2
    assert said in answer.stderr
    assert content_of(tmp_path / "t") == before


def test_the_same_command_again_is_an_ordinary_write(source: Path, tmp_path: Path) -> None:
    words = (source, *NEW, "--option", "hoodie.index.type=bucket", "--option", "hoodie.write.table.version=9")
    for _ in range(2):
        assert run_json("ingest", tmp_path / "t", *words)["rows"] == 2


AVRO = {
    "type": "record",
    "name": "trip",
    "fields": [
        {"name": "id", "type": "string", "doc": "the key"},
        {"name": "zip", "type": ["null", "string"], "default": None},
        {"name": "at", "type": ["null", {"type": "long", "logicalType": "timestamp-millis"}], "default": None},
    ],
}


@pytest.mark.parametrize("kind", ["avro", "arrow", "lines"])
def test_a_new_table_has_the_stated_schema(kind: str, tmp_path: Path) -> None:
    schema, source = tmp_path / "schema", tmp_path / "x.csv"
    fields: list[pa.Field[Any]] = [pa.field("id", pa.string(), nullable=False), pa.field("zip", pa.string())]
    arrow = pa.schema([*fields, pa.field("at", pa.timestamp("ms", "UTC"))])
    if kind == "avro":
        schema.write_text(json.dumps(AVRO))
    elif kind == "arrow":
        with pa.OSFile(str(schema), "wb") as sink, pa.ipc.new_file(sink, arrow):
            pass
    else:
        schema.write_text("id text not null\nzip VARCHAR,\nat timestamp\n")
    source.write_text("id,zip,at\n1,007,2026-03-01T10:00:00Z\n")
    run_json("ingest", tmp_path / "t", source, "--create", "--record-key", "id", "--schema", schema)
    table = Table.open(str(tmp_path / "t"))
    (row,) = table.snapshot().to_arrow().select(["id", "zip"]).to_pylist()
    assert row == {"id": "1", "zip": "007"}
    assert (table.schema.field("id").nullable, table.schema.field("zip").nullable) == (False, True)
    if kind == "avro":
        assert '"doc":"the key"' in table.properties["hoodie.table.create.schema"].replace(": ", ":")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("id string\nfare money\n", "line 2: 'fare money' is not `name type`"),
        ("id\n", "line 1: 'id' is not `name type`"),
        ("id string\nid int\n", "line 2: the column 'id' comes twice"),
        ("\n", "has no column"),
        ('{"type": "record"', "isn't an Avro schema of a record"),
        ('{"type": "long"}', "isn't an Avro schema of a record"),
        ("a decimal(50, 2)", "line 1"),
    ],
)
def test_a_schema_that_cannot_be_read_is_refused(text: str, said: str, source: Path, tmp_path: Path) -> None:
    schema = tmp_path / "schema"
    schema.write_text(text)
    answer = run("ingest", tmp_path / "t", source, *NEW, "--schema", schema)
    assert (answer.exit_code, len(answer.stderr.splitlines())) == (2, 1)
    assert said in answer.stderr
    assert not (tmp_path / "t").exists()


def test_a_stated_type_that_is_not_the_tables_is_refused_and_a_wider_one_widens_it(tmp_path: Path) -> None:
    schema, source = tmp_path / "schema", tmp_path / "x.csv"
    source.write_text("id,n\n1,7\n")
    schema.write_text("id int\nn int\n")
    words = ("ingest", tmp_path / "t", source, "--schema", schema)
    run_json(*words, "--create", "--record-key", "id")
    schema.write_text("n string\n")
    assert "column 'n' is string, and int32 in the table" in run(*words).stderr
    schema.write_text("n long\n")
    source.write_text("id,n\n1,12345678901\n")
    assert "column 'n' is int64, and int32 in the table" in run(*words).stderr
    assert run_json(*words, "--add-columns")["widened_columns"] == ["n"]


def test_a_dry_run_of_a_new_table_shows_types_nulls_and_unreadable_times(tmp_path: Path) -> None:
    source = tmp_path / "x.csv"
    source.write_text("id,fare,at\na,1.5,2026-03-01T10:00Z\nb,,soon\nc,2,2026-03-01 10:00\n")
    words = ("ingest", tmp_path / "t", source, "--create", "--record-key", "id", "--event-time", "at", "--dry-run")
    answer = run(*words)
    assert (answer.exit_code, list(tmp_path.iterdir())) == (0, [source])
    assert max(map(len, answer.stdout.splitlines()[:5])) <= 80
    assert "2 event times in 'at' cannot be read" in answer.stdout
    document = run_json(*words)
    assert [(c["name"], c["type"], c["nulls"]) for c in document["columns"]] == [
        ("id", "string", 0),
        ("fare", "double", 1),
        ("at", "string", 0),
    ]
    assert document["unreadable_event_times"] == 2
    assert document["unreadable_examples"][0].endswith("x.csv', row 2: 'soon'")


def test_a_dry_run_beside_a_table_names_new_and_missing_columns(source: Path, tmp_path: Path) -> None:
    run_json("ingest", tmp_path / "t", source, *NEW)
    before = content_of(tmp_path / "t")
    source.write_text("id,city,at,tip\na,Oslo,2026-03-01T10:00Z,1\n")
    document = run_json("ingest", tmp_path / "t", source, "--dry-run")
    assert [c["name"] for c in document["columns"] if c["table_type"] is None] == ["tip"]
    assert (document["missing_columns"], document["event_time"]) == (["fare"], "at")
    assert content_of(tmp_path / "t") == before


def test_a_dry_run_reads_the_first_rows_only(tmp_path: Path) -> None:
    source = tmp_path / "x.csv"
    source.write_text("id,n\n" + "".join(f"{n},1\n" for n in range(1_200_000)) + "torn\n")
    document = run_json("ingest", tmp_path / "t", source, "--create", "--record-key", "id", "--dry-run")
    assert document["rows_read"] == 10_000


def test_a_dry_run_refuses_what_the_new_table_would(source: Path, tmp_path: Path) -> None:
    answer = run("ingest", tmp_path / "t", source, "--create", "--record-key", "key", "--dry-run")
    assert (answer.exit_code, list(tmp_path.iterdir())) == (2, [source])
    assert "field 'key' is not in the schema" in answer.stderr


def test_a_table_in_a_table_or_around_tables_is_refused_before_anything_is_written(
    source: Path, tmp_path: Path
) -> None:
    lake = tmp_path / "lake"
    run_json("ingest", lake / "trips", source, *NEW)
    before = content_of(lake)
    for place, said in (
        (lake, f"{lake} holds the Hudi table trips: choose a path beside it"),
        (lake / "trips" / "city=Oslo", f"is in the Hudi table {lake / 'trips'}: write to that table"),
        (lake / "trips" / "a" / "b", f"is in the Hudi table {lake / 'trips'}"),
    ):
        answer = run("ingest", place, source, *NEW)
        assert answer.exit_code == 2
        assert said in answer.stderr
        with pytest.raises(ConfigError, match="the Hudi table"):
            Table.create(str(place), schema=pa.schema([("id", pa.string())]), record_key="id")
    assert content_of(lake) == before
    run_json("ingest", lake / "others", source, *NEW)
