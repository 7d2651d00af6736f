"""A metadata table made from nothing: it names the files that exist, finds every key, and is read only when it is whole."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eventide import Table
from eventide.bootstrap import Application, assemble
from eventide.testing.histories import NoLock
from eventide_adapters.format.metadata_table.records.reader import MetadataTableReader
from eventide_adapters.format.metadata_table.records.records import bloom_filter_key, file_group_number
from eventide_adapters.format.metadata_table.stats import SourceFile, known_statistics
from eventide_adapters.storage.faulty import FaultyStorage
from eventide_adapters.storage.local import LocalStorage
from eventide_core.errors import BusyError, CorruptBaseFileError, UnsupportedTableError
from eventide_core.ports import Storage
from eventide_core.service.common.metadata_table.drop import BEING_MADE
from eventide_core.table.files.file_name import BaseFileName
from eventide_core.table.settings.metadata_table import BLOOM_FILTERS
from golden.histories import PLAIN
from support.files.metadata_updates import crashed_copies, listed, on_disk, opened
from support.pasts import golden
from support.run.command_line import content_of, run, run_json

pytestmark = pytest.mark.slow

INDEXES = ("bloom_filters", "column_stats", "record_index")
OPTIONS = {"hoodie.bucket.index.num.buckets": "2"}
Rows = list[dict[str, Any]]


def rows(path: Path) -> Rows:
    return sorted(Table.open(str(path)).snapshot().to_arrow().to_pylist(), key=repr)


def columns(path: Path) -> Rows:
    return [{name: row[name] for name in PLAIN.names} for row in rows(path)]


def partitions(path: Path) -> tuple[str, ...]:
    return MetadataTableReader.load(LocalStorage(path)).facts.partitions


def made_of(path: Path) -> tuple[str, ...]:
    """The partitions that a rebuild with all INDEXES makes."""
    has_partition_stats = Table.open(str(path)).version > 6
    return tuple(sorted(("files", *INDEXES, *(["partition_stats"] if has_partition_stats else []))))


def application(path: Path, storage: Storage) -> Application:
    return assemble(str(path), OPTIONS, storage=storage, lock=NoLock())


@pytest.mark.parametrize("name", ["v6_mdt", "v9_mdt", "v6_log_only", "v8_event_bucket", "v9_event_bloom"])
def test_it_names_every_file_and_finds_every_key(name: str, tmp_path: Path) -> None:
    path = golden.unpack(name, tmp_path)
    before = rows(path)

    made = run_json("metadata", path, "--rebuild", *(word for name in INDEXES for word in ("--index", name)))

    assert tuple(sorted(made["partitions"])) == partitions(path) == made_of(path)
    assert listed(path) == on_disk(path)
    assert rows(path) == before
    index = opened(path).load().record_index()
    assert index is not None
    places: dict[str, tuple[str, str]] = {}
    for row in before:
        key = row["_hoodie_record_key"]
        number = file_group_number(key, index.file_groups)
        places[key] = index.locate(number, [key])[key]
    # Some writers of logs leave the column of the file's name empty.
    assert {key: partition for key, (partition, _) in places.items()} == {
        row["_hoodie_record_key"]: row["_hoodie_partition_path"] for row in before
    }
    of_groups = {(found.partition, found.file_id) for found in Table.open(str(path)).state().view.latest_slices()}
    assert set(places.values()) == of_groups
    verified = run_json("verify", path, "--deep")
    assert verified["ok"]
    assert {c["name"]: c["status"] for c in verified["checks"]}["metadata-table"] == "passed"


def test_a_bloom_filter_is_that_of_the_footer(tmp_path: Path) -> None:
    path = golden.unpack("v9_event_bloom", tmp_path)
    Table.open(str(path)).rebuild_metadata_table(["bloom_filters"])
    reader = MetadataTableReader.load(LocalStorage(path))
    slices = reader.slices(BLOOM_FILTERS)
    found = {key: versions[0]["BloomFilterMetadata"] for s in slices for key, versions in reader.records(s).items()}
    bases = [file for file in path.glob("part=*/*.parquet") if BaseFileName.parse(file.name)]
    assert bases
    assert set(found) == {bloom_filter_key(file.parent.name, file.name) for file in bases}
    for file in bases:
        footer = pq.read_metadata(file).metadata
        assert footer is not None
        filtered = found[bloom_filter_key(file.parent.name, file.name)]
        assert filtered["bloomFilter"] == footer[b"org.apache.hudi.bloomfilter"]


@pytest.mark.parametrize("name", ["v6_mdt", "v9_mdt"])
def test_a_broken_one_is_made_again_and_followed_from_then_on(name: str, tmp_path: Path) -> None:
    path = golden.unpack(name, tmp_path)
    before = rows(path)
    for file in (path / ".hoodie/metadata/files").iterdir():
        if file.name.startswith("files-0000"):
            file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(CorruptBaseFileError):
        listed(path)

    done = Table.open(str(path), OPTIONS).rebuild_metadata_table()

    assert (done.partitions, done.dropped) == (("files",), ())
    assert rows(path) == before
    shown = Table.open(str(path)).snapshot().to_arrow(PLAIN.names).sort_by("id").slice(0, 3).to_pylist()
    changed = [{**row, "val": "after", "event_ts": 2 * 10**12} for row in shown]
    Table.open(str(path), OPTIONS).upsert(pa.Table.from_pylist(changed, schema=PLAIN))
    Table.open(str(path), OPTIONS).compact(before=2 * 10**12 + 1)
    assert listed(path) == on_disk(path)
    assert sum(row["val"] == "after" for row in rows(path)) == 3
    assert run_json("verify", path, "--deep")["ok"]


@pytest.mark.parametrize(
    ("name", "step"),
    [
        pytest.param("v6_mdt", 5, marks=pytest.mark.proof),  # the removal of the old one has many steps
        pytest.param("v9_mdt", 5, marks=pytest.mark.broad),
        ("v8_event_bucket", 4),
    ],
)
def test_before_whatever_write_it_crashes_readers_are_right_and_a_second_run_ends_it(
    name: str, step: int, tmp_path: Path
) -> None:
    path = golden.unpack(name, tmp_path / "original")
    before, files = rows(path), on_disk(path)
    crashes = 0
    for copy, has_crashed in crashed_copies(
        path, tmp_path, lambda copy, storage: application(copy, storage).metadata_rebuilder.rebuild(INDEXES), step=step
    ):
        assert partitions(copy) in ((), ("files",)) or not has_crashed
        if partitions(copy):  # the old one, of which nothing is gone yet; or the new one
            assert listed(copy) == files
        assert rows(copy) == before
        application(copy, LocalStorage(copy)).metadata_rebuilder.rebuild(INDEXES)
        assert partitions(copy) == made_of(copy)
        assert listed(copy) == files
        assert rows(copy) == before
        crashes += has_crashed
    assert crashes * step > 12


@pytest.mark.parametrize("name", ["v6_no_deletes", "v9_no_deletes"])
def test_a_plan_may_be_pending_and_is_run_afterwards(name: str, tmp_path: Path) -> None:
    path = golden.unpack(name, tmp_path)
    table = Table.open(str(path), OPTIONS)
    everything = table.snapshot().to_arrow(PLAIN.names).sort_by("id").to_pylist()
    shown, last_ms = everything[:3], max(row["event_ts"] for row in everything)
    run_json("compact", path, "--before", last_ms + 1, "--schedule-only", "--engine", "local")
    changed = [{**row, "val": "on top", "event_ts": 2 * 10**12} for row in shown]
    table.upsert(pa.Table.from_pylist(changed, schema=PLAIN))
    before = columns(path)
    table.rebuild_metadata_table()
    assert listed(path) == on_disk(path)
    assert columns(path) == before
    (plan,) = table.state().timeline.pending_plans
    run_json("compact", path, "--execute", plan.requested_time, "--engine", "local")
    assert listed(path) == on_disk(path)
    assert columns(path) == before


@pytest.mark.parametrize("name", ["v6_inflight", "v9_inflight"])
def test_beside_a_pending_write_it_is_refused_and_nothing_is_written(name: str, tmp_path: Path) -> None:
    path = golden.unpack(name, tmp_path)
    before = content_of(path)
    refused = run("metadata", path, "--rebuild")
    assert refused.exit_code == 4, refused.stderr
    assert "is pending at" in refused.stderr
    assert content_of(path) == before


def test_statistics_leave_out_blocks_that_another_log_file_of_the_slice_rolls_back(tmp_path: Path) -> None:
    path = golden.unpack("v6_rolled_back", tmp_path)
    before = rows(path)
    Table.open(str(path)).rebuild_metadata_table(["column_stats"])
    assert partitions(path) == ("column_stats", "files")
    assert rows(path) == before
    dead = [SourceFile(found.parent.name, found.name) for found in path.glob("part=*/.*.log.3_2-*")]
    said = known_statistics(MetadataTableReader.load(LocalStorage(path)), dead, ["event_ts"])
    assert list(said.values()) == [{} for _ in dead], "the only block of such a log file is rolled back by the next one"
    assert dead


class DisturbedStorage(FaultyStorage):
    """A storage on which a writer that shares no lock begins while the metadata table is made."""

    def __init__(self, path: Path, disturb: tuple[str, bytes]) -> None:
        super().__init__(LocalStorage(path))
        self._plain, self._disturb = LocalStorage(path), disturb

    def put(self, path: str, data: bytes) -> None:
        super().put(path, data)
        if path.endswith("metadata/.hoodie/hoodie.properties"):
            self._plain.put(*self._disturb)


def test_a_writer_that_begins_meanwhile_keeps_it_from_being_used(tmp_path: Path) -> None:
    path = golden.unpack("v9_mdt", tmp_path)
    before = rows(path)
    begun = ".hoodie/timeline/20991231235959999.deltacommit.requested"
    with pytest.raises(BusyError, match="does not share the table lock"):
        application(path, DisturbedStorage(path, (begun, b""))).metadata_rebuilder.rebuild()
    assert partitions(path) == ()
    assert not list((path / ".hoodie/metadata").rglob("*.hfile"))
    assert not (path / BEING_MADE).exists()
    (path / begun).unlink()
    assert rows(path) == before


def test_a_metadata_table_that_a_writer_makes_meanwhile_is_left_alone(tmp_path: Path) -> None:
    path = golden.unpack("v9_mdt", tmp_path)
    settings = (path / ".hoodie/hoodie.properties").read_bytes() + b"hoodie.table.metadata.partitions=files\n"
    with pytest.raises(BusyError, match="does not share the table lock"):
        application(path, DisturbedStorage(path, (".hoodie/hoodie.properties", settings))).metadata_rebuilder.rebuild()
    assert (path / ".hoodie/hoodie.properties").read_bytes() == settings
    assert list((path / ".hoodie/metadata").rglob("*.hfile"))
    assert not (path / BEING_MADE).exists()


def test_what_it_cannot_make_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    path = golden.unpack("v9_mdt", tmp_path)
    virtual = golden.unpack("v9_virtual_keys", tmp_path)
    before = content_of(path), content_of(virtual)
    with pytest.raises(UnsupportedTableError, match="cannot make the index expr_index_by_hour"):
        Table.open(str(path)).rebuild_metadata_table(["expr_index_by_hour"])
    with pytest.raises(UnsupportedTableError, match=r"hoodie\.populate\.meta\.fields=false"):
        Table.open(str(virtual)).rebuild_metadata_table(["record_index"])
    assert (content_of(path), content_of(virtual)) == before


def test_its_state_is_shown(tmp_path: Path) -> None:
    with_one, without = golden.unpack("v9_mdt", tmp_path), golden.unpack("v8_event_bucket", tmp_path)
    assert run_json("metadata", with_one)["partitions"] == ["files"]
    assert run_json("metadata", without) == {
        "partitions": [],
        "logs": None,
        "delta_commits": None,
        "last_compaction": None,
    }
    assert Table.open(str(without)).metadata_table() is None


def test_a_record_index_by_partition_is_left_out_because_it_is_not_made_again(tmp_path: Path) -> None:
    path = golden.unpack("v9_mdt", tmp_path)
    Table.open(str(path)).rebuild_metadata_table(INDEXES)
    for file in (path / ".hoodie/metadata/record_index").iterdir():
        file.rename(file.with_name(file.name.replace("record-index-", "record-index-part%3Da-")))
    done = Table.open(str(path)).rebuild_metadata_table()
    assert set(done.partitions) == {"files", "bloom_filters", "column_stats", "partition_stats"}
    assert done.dropped == ("record_index",)


def test_a_repair_makes_a_broken_one_again_with_its_indexes(tmp_path: Path) -> None:
    path = golden.unpack("v9_mdt", tmp_path)
    Table.open(str(path)).rebuild_metadata_table(["column_stats"])
    before, made = rows(path), partitions(path)
    (broken,) = (path / ".hoodie/metadata/files").glob("*.hfile")
    broken.write_bytes(broken.read_bytes()[:100])
    broken.with_name(f".{broken.name}.crc").unlink(missing_ok=True)
    found = run("verify", path)
    assert found.exit_code == 1
    assert "eventide metadata TABLE --rebuild" in found.stdout

    done = run_json("repair", path, "--apply")

    assert [repair["check"] for repair in done["repairs"]] == ["metadata-table"]
    assert done["ok"]
    assert partitions(path) == made
    assert listed(path) == on_disk(path)
    assert rows(path) == before
    again = run_json("repair", path, "--apply")
    assert not again["repairs"]
