"""Writes that look keys up in the record index of the metadata table: the same table as by a search in its files."""

import shutil
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from eventide import Table
from eventide.bootstrap import assemble
from eventide_adapters.format.metadata_table.records.hudi_key_index import HudiKeyIndex
from eventide_adapters.format.metadata_table.records.reader import MetadataTableReader
from eventide_adapters.format.metadata_table.records.records import file_group_number
from eventide_core.ports import KeyIndex
from eventide_core.table.settings.metadata_table import RECORD_INDEX
from support.doubles.counting_storage import CountingStorage
from support.pasts.indexed import OPTIONS, indexed, own_rows
from support.run.campaign import IS_REPEATED, tries

pytestmark = pytest.mark.slow

GROUPS = 3
PARTS = ("a", "b", "new")
KEYS = ("k00000", "k00001", "k00004", "k00005", "new1", "new2")
BY_INDEX = {**OPTIONS, "hoodie.index.type": "RECORD_INDEX", "hoodie.metadata.compact.max.delta.commits": "3"}
MOVES = "hoodie.record.index.update.partition.path"


def key_index(path: Path) -> HudiKeyIndex:
    state = Table.open(str(path)).state()
    index = assemble(str(path), {}).metadata.record_index(state.config, state.timeline)
    assert isinstance(index, HudiKeyIndex)
    return index


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Tables whose record index has every key."""
    made: dict[str, Path] = {}
    for name in ("v6_mdt", "v9_mdt"):
        made[name] = indexed(name, tmp_path_factory.mktemp(name), GROUPS)
        table = Table.open(str(made[name]), OPTIONS)
        table.upsert(own_rows(table))
    return made


def searched(monkeypatch: pytest.MonkeyPatch) -> None:
    """From here on, writes search the table's files."""
    monkeypatch.setattr(MetadataTableReader, "record_index", lambda _self: None)


def written(rows: list[tuple[str, str, int]]) -> pa.Table:
    columns: dict[str, Any] = {
        "id": [key for key, _, _ in rows],
        "part": [part for _, part, _ in rows],
        "event_ts": pa.array([ts for _, _, ts in rows], pa.int64()),
        "val": [f"{part} {ts}" for _, part, ts in rows],
        "amount": pa.array([1.5] * len(rows), pa.float64()),
    }
    return pa.table(columns)


def shown(path: Path) -> list[tuple[Any, ...]]:
    columns = ["_hoodie_record_key", "_hoodie_partition_path", "event_ts", "val"]
    rows = Table.open(str(path)).snapshot().to_arrow().select(columns).to_pylist()
    return sorted(tuple(row.values()) for row in rows)


def check_index(path: Path) -> None:
    """The index has exactly the keys of the table, where they are."""
    rows = Table.open(str(path)).snapshot().to_arrow()
    columns = ("_hoodie_record_key", "_hoodie_partition_path", "_hoodie_file_name")
    expected = {
        key: (part, name) for key, part, name in zip(*(rows.column(c).to_pylist() for c in columns), strict=True)
    }
    assert len(expected) == len(rows), "a key is in the table twice"
    index = key_index(path)
    asked: dict[int, list[str]] = {}
    for key in (*expected, *KEYS):
        asked.setdefault(file_group_number(key, index.file_groups), []).append(key)
    places = {key: place for number, keys in asked.items() for key, place in index.locate(number, keys).items()}
    assert places.keys() == expected.keys()
    for key, (partition, file_id) in places.items():
        assert partition == expected[key][0]
        assert file_id in expected[key][1], "a name of a base or log file has its file id"


RECORDS = st.lists(st.tuples(st.sampled_from(KEYS), st.sampled_from(PARTS), st.integers(1, 4)), min_size=1, max_size=4)
STEPS = st.lists(st.tuples(st.booleans(), RECORDS), min_size=1, max_size=3)


@pytest.mark.slow
@pytest.mark.campaign
@pytest.mark.parametrize(("name", "moves"), [("v6_mdt", True), ("v9_mdt", True), ("v9_mdt", False)])
@settings(
    max_examples=tries(2, 100),
    derandomize=IS_REPEATED,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(steps=STEPS)
def test_the_record_index_places_records_where_a_search_of_the_files_places_them(
    name: str,
    moves: bool,
    steps: list[tuple[bool, list[tuple[str, str, int]]]],
    tables: dict[str, Path],
    tmp_path: Path,
) -> None:
    by_index, by_search = tmp_path / "by_index", tmp_path / "by_search"
    for made in (by_index, by_search):
        shutil.rmtree(made, ignore_errors=True)
        shutil.copytree(tables[name], made)
    latest = max(row["event_ts"] for row in own_rows(Table.open(str(by_index))).select(["event_ts"]).to_pylist())
    options = {**BY_INDEX, MOVES: str(moves).lower()}
    for is_delete, rows in steps:
        records = written([(key, part, latest - 2 + ts) for key, part, ts in rows])
        for made in (by_index, by_search):
            with pytest.MonkeyPatch.context() as patch:
                if made is by_search:
                    searched(patch)
                table = Table.open(str(made), options)
                if is_delete:
                    table.delete(records.select(["id", "part"]))
                else:
                    table.upsert(records)
        assert shown(by_index) == shown(by_search)
        check_index(by_index)


def test_an_upsert_of_three_keys_reads_only_the_slices_that_have_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = indexed("v9_mdt", tmp_path, GROUPS)
    small = {"hoodie.parquet.max.file.size": "100", "hoodie.parquet.small.file.limit": "0"}
    plain = Table.open(str(path), {**OPTIONS, **small})
    plain.upsert(own_rows(plain))
    plain.insert(written([(f"many{number}", "many", 1) for number in range(60)]))
    slices = [file_slice for file_slice in plain.state().view.latest_slices() if file_slice.partition == "part=many"]
    assert len(slices) >= 50
    storage = CountingStorage(str(path))
    opened = Table(str(path), BY_INDEX, assemble(str(path), BY_INDEX, storage=storage))
    storage.forget()
    keys = ("many7", "many8", "many9")
    opened.upsert(written([(key, "many", 2) for key in keys]))
    bases = {path for path in storage.opened if path.endswith(".parquet")}
    homes = key_index(path)
    places = [homes.locate(file_group_number(key, homes.file_groups), [key])[key] for key in keys]
    assert {base for base in bases if not any(file_id in base for _, file_id in places)} == set()
    monkeypatch.undo()
    assert [row[3] for row in shown(path) if row[0] in keys] == ["many 2"] * 3


@pytest.mark.parametrize("lie", ["a slice of a later moment", "commits that it has not followed"])
def test_an_index_of_another_moment_than_the_table_is_not_used(
    lie: str, tables: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "t"
    shutil.copytree(tables["v9_mdt"], path)
    if lie == "a slice of a later moment":

        def elsewhere(self: KeyIndex, number: int, keys: Collection[str]) -> dict[str, tuple[str, str]]:
            del self, number
            return dict.fromkeys(keys, ("part=a", "of-a-later-write-0"))

        monkeypatch.setattr(HudiKeyIndex, "locate", elsewhere)
    else:
        metadata = path / ".hoodie" / "metadata" / ".hoodie" / "timeline"
        last = max(metadata.glob("*.deltacommit"), key=lambda file: file.name)
        data = {file.name[:17] for file in (path / ".hoodie" / "timeline").glob("*.deltacommit")}
        assert last.name[:17] in data
        last.unlink()
    before = shown(path)
    located: list[int] = []
    if lie != "a slice of a later moment":
        monkeypatch.setattr(HudiKeyIndex, "locate", lambda _self, number, _keys: located.append(number))
    table = Table.open(str(path), BY_INDEX)
    table.upsert(own_rows(table).slice(0, 3))
    assert shown(path) == before
    assert located == []


@pytest.mark.parametrize("name", ["v6_mdt", "v9_mdt"])
def test_a_key_is_found_in_base_files_and_logs_of_the_index_and_not_after_its_delete(
    name: str, tables: dict[str, Path], tmp_path: Path
) -> None:
    path = tmp_path / "t"
    shutil.copytree(tables[name], path)
    table = Table.open(str(path), {**BY_INDEX, MOVES: "true"})
    table.upsert(written([("new1", "a", 5), ("new2", "b", 5)]))
    table.delete(pa.table({"id": ["k00000", "new2"], "part": ["a", "b"]}))
    for _ in range(3):  # the metadata table is compacted
        table.upsert(written([("new1", "b", 6)]))
        check_index(path)
    assert list((path / ".hoodie/metadata" / RECORD_INDEX).glob("*.hfile"))
    table.upsert(written([("k00000", "b", 7), ("new2", "a", 7)]))
    check_index(path)
    assert {row[:2] for row in shown(path)} >= {("k00000", "part=b"), ("new1", "part=b"), ("new2", "part=a")}


@pytest.mark.parametrize("moves", [False, True])
def test_a_write_without_rows_asks_the_index_for_no_key(moves: bool, tables: dict[str, Path], tmp_path: Path) -> None:
    path = tmp_path / "t"
    shutil.copytree(tables["v9_mdt"], path)
    before = shown(path)
    table = Table.open(str(path), {**BY_INDEX, MOVES: str(moves).lower()})
    assert table.upsert(written([])).rows == 0
    assert table.delete(where="id = 'nobody'").rows == 0
    assert table.update({"val": "'new'"}, where="id = 'nobody'").rows == 0
    assert shown(path) == before
