"""The keys of lost and damaged files: exactly those that no query shows any longer, or none if nothing shows them."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from eventide import Table
from eventide_core.action.repair.lost_keys import KeySource, LostKeys
from eventide_core.errors import ConfigError, CorruptTimelineError
from support.pasts import golden
from support.run.command_line import run, run_json
from support.tables.small import make, rows

pytestmark = pytest.mark.slow

OLD = tuple((f"k{number}", -9, "base") for number in range(10))
"""Even keys are in the partition a, odd ones in b."""


@pytest.fixture(params=[6, 8, 9], ids=["v6", "v8", "v9"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Table:
    """Base files, and log files with an update, an insert and a delete in the partition a."""
    made = make(tmp_path / "t", request.param)
    made.upsert(rows(*OLD))
    made.compact(data_latency_seconds=1)
    made.upsert(rows(("k0", -8, "log"), ("k10", -8, "log")))
    made.delete(rows(("k2", -7, "log")))
    return made


def base_of(path: Path, partition: str) -> Path:
    return max((path / partition).glob("*.parquet"), key=lambda one: one.name.rpartition("_")[2])


def keys_of(lost: LostKeys) -> set[str]:
    assert list(lost.keys) == sorted(set(lost.keys))
    return set(lost.keys)


def test_a_sound_table_has_lost_nothing(table: Table) -> None:
    assert table.lost_keys() == ()


def test_the_record_index_tells_the_keys_of_a_lost_base_file(table: Table, tmp_path: Path) -> None:
    table.rebuild_metadata_table(["record_index"])
    base = base_of(tmp_path / "t", "part=a")
    base.unlink()
    (lost,) = table.lost_keys()
    assert (lost.partition, lost.source) == ("part=a", KeySource.RECORD_INDEX)
    assert lost.paths == (f"part=a/{base.name}",)
    assert keys_of(lost) == {"k4", "k6", "k8"}, "k2 is deleted; k0 and k10 are in the log file"


def test_the_record_index_follows_later_writes(table: Table, tmp_path: Path) -> None:
    table.rebuild_metadata_table(["record_index"])
    table.upsert(rows(("k12", -6, "later"), ("k13", -6, "later")))
    for path in (tmp_path / "t" / "part=a").glob(".*.log.*"):
        path.unlink()
    (lost,) = table.lost_keys()
    assert lost.source is KeySource.RECORD_INDEX
    assert keys_of(lost) == {"k10", "k12"}, "the base file still shows the others"


def test_a_damaged_base_file_is_as_lost(table: Table, tmp_path: Path) -> None:
    table.rebuild_metadata_table(["record_index"])
    base = base_of(tmp_path / "t", "part=b")
    base.write_bytes(base.read_bytes()[:-100])
    (lost,) = table.lost_keys()
    assert keys_of(lost) == {"k1", "k3", "k5", "k7", "k9"}


def test_without_an_index_the_previous_slice_tells_the_keys(table: Table, tmp_path: Path) -> None:
    table.compact(data_latency_seconds=1)
    table.upsert(rows(("k0", -5, "newest"), ("k14", -5, "newest")))
    base_of(tmp_path / "t", "part=a").unlink()
    (lost,) = table.lost_keys()
    assert lost.source is KeySource.PREVIOUS_SLICE
    assert keys_of(lost) == {"k10", "k4", "k6", "k8"}


def test_without_an_index_and_without_the_previous_slice_nothing_tells_them(table: Table, tmp_path: Path) -> None:
    for path in (tmp_path / "t" / "part=a").glob(".*.log.*"):
        path.unlink()
    (lost,) = table.lost_keys()
    assert (lost.source, lost.keys) == (None, ())
    assert len(lost.commits) >= 1


@pytest.mark.parametrize("name", ["v6_compacted", "v9_compacted"])
def test_a_base_file_that_hudi_compacted_and_whose_previous_slice_stands(name: str, tmp_path: Path) -> None:
    path = golden.unpack(name, tmp_path)
    table = Table.open(path)
    shown = {key: {row["_hoodie_file_name"]} for key, row in rows_of(table).items()}
    compaction = max(one.name.split("_")[-1] for one in path.rglob("*.parquet") if ".hoodie" not in one.parts)
    gone = {one.name for one in path.rglob(f"*_{compaction}")}
    for one in path.rglob(f"*_{compaction}"):
        one.unlink()
    found = table.lost_keys()
    assert {Path(file).name for lost in found for file in lost.paths} == gone
    assert {lost.source for lost in found} == {KeySource.PREVIOUS_SLICE}
    listed = {(lost.partition, key) for lost in found for key in keys_of(lost)}
    later = [one for one in path.rglob(".*.log.*") if one.name.split("_")[1] >= compaction.partition(".")[0]]
    logged = {
        partition: b"".join(one.read_bytes() for one in later if one.parent.name == partition) for partition, _ in shown
    }
    assert listed == {
        (partition, key)
        for (partition, key), names in shown.items()
        if names <= gone and key.encode() not in logged[partition]
    }


@pytest.mark.parametrize("name", ["v6_log_only", "v9_log_only"])
def test_file_slices_of_log_files_alone(name: str, tmp_path: Path) -> None:
    path = golden.unpack(name, tmp_path)
    table = Table.open(path)
    table.rebuild_metadata_table(["record_index"])
    shown = rows_of(table)
    groups: dict[str, list[Path]] = {}
    for one in sorted(path.rglob(".*.log.*")):
        if ".hoodie" not in one.relative_to(path).parts[:-1] and not one.name.endswith(".crc"):
            groups.setdefault(one.name.partition("_")[0].lstrip("."), []).append(one)
    file_id, logs = max(groups.items(), key=lambda found: len(found[1]))
    gone = logs.pop()
    gone.unlink()
    (lost,) = Table.open(path).lost_keys()
    assert (lost.file_id, lost.source) == (file_id, KeySource.RECORD_INDEX)
    left = b"".join(one.read_bytes() for one in logs)
    of_group = {key for (_, key), row in shown.items() if file_id in str(row["_hoodie_file_name"])}
    assert keys_of(lost) == {key for key in of_group if key.encode() not in left}


def rows_of(table: Table) -> dict[tuple[str, str], dict[str, object]]:
    found = table.snapshot().to_arrow().to_pylist()
    return {(row["_hoodie_partition_path"], row["_hoodie_record_key"]): row for row in found}


def test_the_command_line_writes_them_to_a_file(table: Table, tmp_path: Path) -> None:
    table.rebuild_metadata_table(["record_index"])
    base_of(tmp_path / "t", "part=a").unlink()
    done = run_json("repair", table.uri, "--lost-keys", tmp_path / "keys.parquet")
    assert (done["keys"], [one["source"] for one in done["file_groups"]]) == (3, ["record_index"])
    written = pq.read_table(tmp_path / "keys.parquet").to_pylist()
    assert [one["record_key"] for one in written] == ["k4", "k6", "k8"]
    assert {one["partition"] for one in written} == {"part=a"}
    told = run("repair", table.uri, "--lost-keys", tmp_path / "keys.json")
    assert "3 keys lost, by the record index" in told.stdout
    assert json.loads((tmp_path / "keys.json").read_text().splitlines()[0])["record_key"] == "k4"
    assert run("repair", table.uri, "--lost-keys", tmp_path / "keys.csv", "--apply").exit_code == 2
    assert run("repair", table.uri, "--lost-keys", tmp_path / "keys.txt").exit_code == ConfigError.exit_code


def test_a_damaged_timeline_comes_first(table: Table, tmp_path: Path) -> None:
    commit = max((tmp_path / "t" / ".hoodie").rglob("*.deltacommit"))
    commit.write_bytes(b"{")
    with pytest.raises(CorruptTimelineError, match="repair it first"):
        table.lost_keys()
