"""Filters on record keys by the record index: the rows of a full read, of few files, and of all where it may be wrong."""

import shutil
from collections.abc import Callable, Collection, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from eventide import Table
from eventide.bootstrap import assemble
from eventide.rows.reader import Rows
from eventide_adapters.format.metadata_table.records.hudi_key_index import HudiKeyIndex
from eventide_adapters.format.metadata_table.records.reader import MetadataTableReader
from eventide_adapters.format.metadata_table.table import HudiMetadataTable
from eventide_core.config import BLOOM_ENTRIES, CLOCK_SKEW_MS, INDEX_TYPE
from eventide_core.errors import UnsupportedTableError
from support.doubles.counting_storage import CountingStorage
from support.run.campaign import IS_REPEATED, tries
from support.values.columns import schema_of

pytestmark = pytest.mark.slow

SCHEMA = schema_of(id=pa.string(), part=pa.string(), ts=pa.int64(), note=pa.string())
EPOCH_MS = 1_700_000_000_000
OPTIONS: dict[str, str] = {
    CLOCK_SKEW_MS: "1",
    INDEX_TYPE: "RECORD_INDEX",
    BLOOM_ENTRIES: "100",
    "hoodie.parquet.max.file.size": "100",  # a file group for each key
    "hoodie.parquet.small.file.limit": "0",
    "hoodie.record.index.update.partition.path": "true",
}
BY_COMMIT, BY_EVENT_TIME = "COMMIT_TIME_ORDERING", "EVENT_TIME_ORDERING"
FIRST = tuple(f"k{number}" for number in range(12))
KEYS = (*FIRST[:4], "new1", "new2", "nobody")
METADATA_TIMELINE = {6: ".hoodie/metadata/.hoodie", 9: ".hoodie/metadata/.hoodie/timeline"}


def records(rows: list[tuple[str, str, int]]) -> pa.Table:
    columns: list[Any] = [
        [key for key, _, _ in rows],
        [part for _, part, _ in rows],
        [EPOCH_MS + ts for _, _, ts in rows],
        [f"{part} {ts}" for _, part, ts in rows],
    ]
    return pa.table(columns, schema=SCHEMA)


def made(
    path: Path,
    version: int = 9,
    order: str = BY_COMMIT,
    *,
    partition: str | None = "part",
    key: str | tuple[str, ...] = "id",
    options: Mapping[str, str] = OPTIONS,
) -> Path:
    """A table of twelve file groups with a record index over all of its keys."""
    table = Table.create(
        str(path),
        schema=SCHEMA,
        record_key=key,
        partition=partition,
        event_time="ts",
        version=version,
        options={**options, "hoodie.write.record.merge.mode": order},
    )
    table.bulk_insert(records([(key, "ab"[number % 2], 0) for number, key in enumerate(FIRST)]))
    table.rebuild_metadata_table(("record_index",))
    return path


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("plain") / "t")


@pytest.fixture
def table(plain: Path, tmp_path: Path) -> Table:
    shutil.copytree(plain, tmp_path / "t")
    return Table.open(str(tmp_path / "t"), OPTIONS)


def slices_read(rows: Rows, key: str) -> int:
    return len(rows.reading(None, f"id = '{key}'").slices)


def is_by_index(table: Table, key: str = "k1") -> bool:
    rows = table.snapshot()
    return slices_read(rows, key) < len(rows.plan.slices)


def check(rows: Rows, keys: Collection[str] = KEYS) -> None:
    """Each key, and several of them, have the rows that a full read has of them."""
    everything = rows.to_arrow()
    conditions = {f"id = '{key}'": [key] for key in keys} | {"id in ('k1', 'new1', 'nobody')": ["k1", "new1", "nobody"]}
    for condition, named in conditions.items():
        expected = everything.filter(pc.is_in(everything.column("id"), pa.array(named)))
        table = rows.to_arrow(None, condition)
        assert sorted(map(repr, table.to_pylist())) == sorted(map(repr, expected.to_pylist())), condition
        assert rows.count(condition) == expected.num_rows


RECORDS = st.lists(
    st.tuples(st.sampled_from(KEYS[:-1]), st.sampled_from("abc"), st.integers(-2, 4)), min_size=1, max_size=3
)
STEPS = st.lists(
    st.tuples(st.sampled_from(("upsert", "upsert", "delete", "insert", "compact", "rebuild", "drop")), RECORDS),
    min_size=1,
    max_size=4,
)
KINDS: Mapping[str, tuple[int, str, str | None, str | tuple[str, ...]]] = {
    "v6 by commit": (6, BY_COMMIT, "part", "id"),
    "v9 by event time": (9, BY_EVENT_TIME, "part", "id"),
    "v9 without partitions": (9, BY_COMMIT, None, "id"),
    "v8 of two key fields": (8, BY_COMMIT, "part", ("id", "part")),
}


@pytest.fixture(scope="module")
def kind_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    @cache
    def of(name: str) -> Path:
        version, order, partition, key = KINDS[name]
        return made(tmp_path_factory.mktemp("kind") / "t", version, order, partition=partition, key=key)

    return of


def rebuild(table: Table) -> None:
    """Rebuilds the record index, which is refused for a key of several rows: an insert makes them."""
    keys = table.snapshot().to_arrow(table.state().config.record_key_fields).to_pylist()
    if any(keys.count(key) > 1 for key in keys):
        with pytest.raises(UnsupportedTableError, match="several rows have the record key"):
            table.rebuild_metadata_table(("record_index",))
    else:
        table.rebuild_metadata_table(("record_index",))


def take(table: Table, step: str, rows: list[tuple[str, str, int]]) -> Table:
    unique = list({key: (key, part, ts) for key, part, ts in rows}.values())
    if step == "upsert":
        table.upsert(records(unique))
    elif step == "delete":
        table.delete(records(unique).select(["id", "part", "ts"]))
    elif step == "insert":
        table.insert(records(rows))
    elif step == "compact":
        table.compact(before=EPOCH_MS + 2)
    elif step == "rebuild":
        rebuild(table)
    else:
        dropping = Table.open(table.uri, {**OPTIONS, "eventide.metadata.table": "drop"})
        dropping.upsert(records(unique))
    return table


@pytest.mark.campaign
@pytest.mark.parametrize(
    "kind",
    [
        "v6 by commit",
        "v9 by event time",
        pytest.param("v9 without partitions", marks=pytest.mark.broad),
        pytest.param("v8 of two key fields", marks=pytest.mark.broad),
    ],
)
@settings(
    max_examples=tries(2, 60),
    derandomize=IS_REPEATED,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(steps=STEPS)
def test_a_filter_on_keys_gives_the_rows_of_a_full_read(
    kind: str, steps: list[tuple[str, list[tuple[str, str, int]]]], kind_of: Callable[[str], Path], tmp_path: Path
) -> None:
    path = tmp_path / "t"
    shutil.rmtree(path, ignore_errors=True)
    shutil.copytree(kind_of(kind), path)
    table = Table.open(str(path), OPTIONS)
    assert KINDS[kind][3] != "id" or is_by_index(table)
    for step, rows in steps:
        take(table, step, rows)
        for query in (table.snapshot(), table.read_optimized()):
            check(query)


def test_two_key_fields_are_looked_up_together(tmp_path: Path) -> None:
    table = Table.open(str(made(tmp_path / "t", partition=None, key=("id", "part"))), OPTIONS)
    rows = table.snapshot()
    assert len(rows.reading(None, "id = 'k1' and part = 'b'").slices) == 1
    assert rows.to_arrow(["note"], "id = 'k1' and part = 'b'").to_pylist() == [{"note": "b 0"}]
    assert rows.to_arrow(None, "id = 'k1' and part = 'a'").num_rows == 0
    assert len(rows.reading(None, "id = 'k1'").slices) == len(rows.plan.slices), "half of a key"


def test_one_key_of_a_hundred_file_groups_is_one_data_file_and_a_few_requests(tmp_path: Path) -> None:
    path = tmp_path / "t"
    table = Table.create(
        str(path), schema=SCHEMA, record_key="id", event_time="ts", options={**OPTIONS, BLOOM_ENTRIES: "1000"}
    )
    table.bulk_insert(records([(f"k{number}", "a", 0) for number in range(100)]))
    table.rebuild_metadata_table(("record_index",))
    table.upsert(records([("k7", "a", 1)]))
    storage = CountingStorage(str(path))
    rows = Table(str(path), OPTIONS, assemble(str(path), OPTIONS, storage=storage)).snapshot()
    assert len(rows.plan.slices) == 100
    storage.forget()
    assert rows.to_arrow(["note"], "id = 'k7'").to_pylist() == [{"note": "a 1"}]
    index = {path for path in storage.opened if ".hoodie/" in path}
    assert len({path.rpartition("/")[2].lstrip(".").partition("_")[0] for path in storage.opened.keys() - index}) == 1
    assert sum(storage.opened.values()) <= 16
    assert sum(storage.bytes_read[path] for path in index) < 60_000


def test_a_key_that_moved_is_read_where_it_is_now(table: Table) -> None:
    table.upsert(records([("k1", "a", 5)]))
    assert is_by_index(table)
    rows = table.snapshot().to_arrow(["part", "note"], "id = 'k1'").to_pylist()
    assert rows == [{"part": "a", "note": "a 5"}]


def test_read_optimized_files_decide_while_log_files_have_deleted_or_moved_keys(table: Table) -> None:
    rows = table.read_optimized()
    assert slices_read(rows, "k1") == 1
    table.delete(records([("k1", "b", 5)]).select(["id", "part", "ts"]))
    rows = table.read_optimized()
    assert slices_read(rows, "k1") == len(rows.plan.slices)
    assert rows.to_arrow(None, "id = 'k1'").num_rows == 1
    assert table.snapshot().to_arrow(None, "id = 'k1'").num_rows == 0


def test_past_queries_are_not_by_the_index(table: Table) -> None:
    before = table.state().timeline.writes[-1].requested_time
    table.upsert(records([("k1", "a", 5)]))
    for rows in (table.as_of(before), table.incremental("earliest")):
        assert slices_read(rows, "k1") == len(rows.plan.slices)
    assert table.as_of(before).to_arrow(["note"], "id = 'k1'").to_pylist() == [{"note": "b 0"}]


def move(table: Table) -> None:
    """Moves a key into a file group that the table has."""
    larger = {"hoodie.parquet.max.file.size": "1000000", "hoodie.parquet.small.file.limit": "900000"}
    Table.open(table.uri, {**OPTIONS, **larger}).upsert(records([("k1", "a", 5)]))


def overwrite(table: Table) -> None:
    Table.open(table.uri, OPTIONS).insert_overwrite_table(records([("k1", "a", 5)]))


@pytest.mark.parametrize("change", [move, overwrite])
def test_a_write_after_the_plan_leaves_the_plan_to_files(table: Table, change: Callable[[Table], None]) -> None:
    rows = table.snapshot()
    assert slices_read(rows, "k1") == 1
    groups = {one.file_id for one in rows.plan.slices}
    change(table)
    assert change is overwrite or {one.file_id for one in table.snapshot().plan.slices} == groups
    assert slices_read(rows, "k1") == len(rows.plan.slices)
    assert rows.to_arrow(["note"], "id = 'k1'").to_pylist() == [{"note": "b 0"}]


@pytest.mark.parametrize("change", [move, overwrite])
def test_a_write_during_the_lookup_leaves_it_to_files(
    table: Table, change: Callable[[Table], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = table.snapshot()
    opened, waiting = HudiMetadataTable.load, [change]

    def beside(self: HudiMetadataTable) -> MetadataTableReader:
        while waiting:
            waiting.pop()(table)
        return opened(self)

    monkeypatch.setattr(HudiMetadataTable, "load", beside)
    assert slices_read(rows, "k1") == len(rows.plan.slices)
    assert waiting == []
    assert rows.to_arrow(["note"], "id = 'k1'").to_pylist() == [{"note": "b 0"}]


def test_a_place_that_the_plan_does_not_have_leaves_it_to_files(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HudiKeyIndex, "locate", lambda _self, _number, keys: dict.fromkeys(keys, ("b", "of-others-0")))
    check(table.snapshot())


@pytest.mark.parametrize("version", [6, 9])
def test_an_index_that_lacks_a_commit_is_not_used(version: int, tmp_path: Path) -> None:
    path = made(tmp_path / "t", version)
    table = Table.open(str(path), OPTIONS)
    table.upsert(records([("k1", "a", 5)]))
    assert is_by_index(table)
    last = table.state().timeline.writes[-1].requested_time
    for file in (path / METADATA_TIMELINE[version]).glob(f"{last}*"):
        file.unlink()
    assert not is_by_index(table)
    check(table.snapshot())


def test_an_index_that_is_being_built_or_has_left_the_settings_is_not_used(table: Table) -> None:
    properties = Path(table.uri) / ".hoodie/hoodie.properties"
    text = properties.read_text()
    key = "hoodie.table.metadata.partitions"
    for left in (
        f"{key}=files\n{key}.inflight=record_index\n",
        f"{key}=files\n",
        f"{key}=files,record_index\n{key}.inflight=record_index\n",
    ):
        lines = [line for line in text.splitlines(keepends=True) if not line.startswith(key)]
        properties.write_text("".join(lines) + left)
        assert not is_by_index(table), left
        check(table.snapshot())
    properties.write_text(text)
    assert is_by_index(table)


def test_a_record_index_by_partition_is_not_used(table: Table) -> None:
    for file in (Path(table.uri) / ".hoodie/metadata/record_index").iterdir():
        file.rename(file.with_name(file.name.replace("record-index-", "record-index-b-")))
    assert not is_by_index(table)
    check(table.snapshot())


def test_a_damaged_index_is_not_used(table: Table) -> None:
    for file in (Path(table.uri) / ".hoodie/metadata/record_index").glob("*.hfile"):
        file.write_bytes(b"no HFile" * 1000)
    assert not is_by_index(table)
    check(table.snapshot())


def test_a_table_whose_writers_look_keys_up_elsewhere_is_read_by_files(tmp_path: Path) -> None:
    """Such a writer has put a key into a second partition, of which the index has the last place alone."""
    options = {key: value for key, value in OPTIONS.items() if key != INDEX_TYPE}
    table = Table.open(str(made(tmp_path / "t", options={**options, str(INDEX_TYPE): "SIMPLE"})), options)
    table.upsert(records([("k1", "a", 5)]))
    assert not is_by_index(table)
    assert table.snapshot().to_arrow(None, "id = 'k1'").num_rows == 2


def test_keys_that_an_insert_may_have_repeated_are_read_by_files(table: Table) -> None:
    table.insert(records([("k1", "a", 5)]))
    assert not is_by_index(table)
    assert table.snapshot().to_arrow(None, "id = 'k1'").num_rows == 2


def test_a_slice_of_no_sought_key_has_no_task_in_the_plan_of_another_engine(table: Table) -> None:
    reading = table.snapshot().reading(None, "id = 'k1'")
    assert [batch.num_rows for one in reading.slices for batch in reading(one)] == [1]
