"""Instants that eventide archives are found again, in both layouts, each once, beside what Hudi archived."""

from pathlib import Path

import fastavro
import pyarrow.parquet as pq
import pytest

from eventide.testing.histories import NoLock
from eventide_adapters.format.timeline.archived_lsm import open_archived_timeline
from eventide_adapters.format.timeline.codec import HudiMetadataCodec
from eventide_adapters.storage.local import LocalStorage
from eventide_core.errors import CorruptTimelineError
from eventide_core.ports import ArchivedAction, ArchivedFile, ArchivedTimeline
from eventide_core.table.settings.properties import PROPERTIES_PATH
from eventide_core.table.settings.table_config import TableConfig
from eventide_core.table.timeline.archived_timeline import MergeLimits
from eventide_core.table.timeline.contents.commit_metadata import CommitMetadata, WriteStat
from eventide_core.table.timeline.instant import Action, Instant, State
from support.pasts import golden

NAMES = ("v6_archived", "v9_archived")
STAT = WriteStat("f-0", "p=1/f-0_0-1-0_20301121000000000.parquet", "p=1", "null", num_writes=3, file_size_bytes=9)
METADATA = CommitMetadata({"p=1": (STAT,)}, {"schema": '"string"', "hoodie.ro.event.time.cut": "7"}, "UPSERT")
MERGE_PLAN = fastavro.parse_schema(
    {
        "type": "record",
        "name": "HoodieMergeArchiveFilePlan",
        "fields": [
            {"name": "version", "type": ["int", "null"], "default": 1},
            {"name": "candidate", "type": ["null", {"type": "array", "items": "string"}], "default": None},
            {"name": "mergedArchiveFileName", "type": ["null", "string"], "default": None},
        ],
    }
)


@pytest.fixture(params=NAMES)
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return golden.unpack(request.param, tmp_path)


def config_of(table: Path) -> TableConfig:
    return TableConfig.parse((table / PROPERTIES_PATH).read_text(), str(table))


def archive_of(table: Path) -> ArchivedTimeline:
    return open_archived_timeline(LocalStorage(table), config_of(table))


def write(table: Path, number: int) -> ArchivedAction:
    """A delta commit with its three files."""
    version = config_of(table).version
    time = f"203011210000000{number:02d}"
    completion = f"203011210000001{number:02d}" if version >= 8 else None
    completed = Instant(time, Action.DELTA_COMMIT, State.COMPLETED, completion)
    pending = [Instant(time, Action.DELTA_COMMIT, state) for state in (State.REQUESTED, State.INFLIGHT)]
    files = [ArchivedFile(instant, b"", 1_795_265_077_815) for instant in pending]
    data = HudiMetadataCodec().encode_commit(METADATA, version)
    return ArchivedAction(completed, (*files, ArchivedFile(completed, data, 1_795_265_077_815)))


def test_what_was_archived_is_found_beside_what_hudi_archived(table: Path) -> None:
    archive = archive_of(table)
    before = [instant.requested_time for instant in archive.writes("", "9")]
    assert before
    archive.append([write(table, 1), write(table, 2)], NoLock())
    archive.append([write(table, 3)], NoLock())
    for reader in (archive, archive_of(table)):
        times = [instant.requested_time for instant in reader.writes("", "9")]
        assert times == [write(table, n).completed.requested_time for n in (3, 2, 1)] + before
        archived = write(table, 2).completed
        assert reader.find(archived.requested_time) == archived
        metadata = reader.commit(archived.requested_time)
        assert metadata is not None
        assert dict(metadata.extra_metadata) == dict(METADATA.extra_metadata)
        (stat,) = metadata.stats
        assert (stat.path, stat.num_writes, stat.file_size_bytes) == (STAT.path, 3, 9)


def test_what_is_archived_again_after_a_crash_is_there_once(table: Path) -> None:
    archive = archive_of(table)
    archive.append([write(table, 1), write(table, 2)], NoLock())
    files = {path.name: path.read_bytes() for path in (table / config_of(table).archive_path).iterdir()}
    archive_of(table).append([write(table, 1), write(table, 2)], NoLock())
    assert {path.name: path.read_bytes() for path in (table / config_of(table).archive_path).iterdir()} == files
    archive_of(table).append([write(table, 2), write(table, 3)], NoLock())
    times = [i.requested_time[-2:] for i in archive_of(table).writes("2030", "9")]
    assert times == ["03", "02", "01"]


def test_a_first_archive_is_made(table: Path) -> None:
    for path in (table / config_of(table).archive_path).iterdir():
        path.unlink()
    archive_of(table).append([write(table, 1)], NoLock())
    assert len(list(archive_of(table).writes("", "9"))) == 1


def test_torn_metadata_is_not_archived(tmp_path: Path) -> None:
    table = golden.unpack("v6_archived", tmp_path)
    action = write(table, 1)
    torn = ArchivedAction(action.completed, (ArchivedFile(action.completed, b"{", 0),))
    with pytest.raises(CorruptTimelineError):
        archive_of(table).append([torn], NoLock())


def test_an_archived_plan_stands_beside_its_instant(tmp_path: Path) -> None:
    table = golden.unpack("v9_archived", tmp_path)
    time = "20301121000000001"
    completed = Instant(time, Action.COMMIT, State.COMPLETED, "20301121000000009")
    files = (
        ArchivedFile(Instant(time, Action.COMPACTION, State.REQUESTED), b"the plan", 0),
        ArchivedFile(Instant(time, Action.COMPACTION, State.INFLIGHT), b"", 0),
        ArchivedFile(completed, HudiMetadataCodec().encode_commit(METADATA, 9), 0),
    )
    archive_of(table).append([ArchivedAction(completed, files)], NoLock())
    (written,) = (table / ".hoodie/timeline/history").glob(f"{time}_*.parquet")
    (row,) = pq.read_table(written).to_pylist()
    assert (row["plan"], row["action"], row["completionTime"]) == (b"the plan", "commit", "20301121000000009")
    assert b"parquet.avro.schema" in (pq.read_metadata(written).metadata or {})


LIMITS = MergeLimits(level_files=2, level_bytes_max=2**20, log_files=2, small_log_bytes_max=2**20)


def times(archive: ArchivedTimeline) -> list[str]:
    return [instant.requested_time for instant in archive.writes("", "9" * 20)]


def test_files_of_hudi_and_of_eventide_are_merged_and_old_ones_removed(table: Path) -> None:
    """A reader that has read the manifest, or listed the log files, before finds everything afterwards."""
    archive, reader, slow = archive_of(table), archive_of(table), archive_of(table)
    known = times(reader)
    walk = slow.writes("", "9" * 20)
    first = next(walk)
    metadata = {time: reader.commit(time) for time in known}
    names = {path.name for path in (table / config_of(table).archive_path).iterdir()}
    for number in range(1, 9):
        archive.append([write(table, number)], NoLock())
        archive.merge(LIMITS, NoLock())
    left = {path.name for path in (table / config_of(table).archive_path).iterdir() if path.suffix != ".crc"}
    assert len(left) <= 12
    assert len(names - left) > 1
    expected = [write(table, n).completed.requested_time for n in range(8, 0, -1)] + known
    assert times(archive_of(table)) == times(archive) == expected
    assert [first.requested_time, *(i.requested_time for i in walk)] == known
    assert {time: reader.commit(time) for time in known} == metadata
    assert {time: archive_of(table).commit(time) for time in known} == metadata


def test_a_file_that_the_manifest_still_names_is_missed(tmp_path: Path) -> None:
    table = golden.unpack("v9_archived", tmp_path)
    next((table / ".hoodie/timeline/history").glob("*.parquet")).unlink()
    with pytest.raises(CorruptTimelineError, match="its manifest names a file that is missing"):
        times(archive_of(table))


@pytest.mark.parametrize("gone", range(4))
def test_a_merge_of_version_6_that_hudi_left_is_ended(gone: int, tmp_path: Path) -> None:
    """Undone while all its log files exist, which Hudi may have merged in part; else completed."""
    table = golden.unpack("v6_archived", tmp_path)
    known = times(archive_of(table))
    directory = table / ".hoodie/archived"
    archive_of(table).append([write(table, 1)], NoLock())
    logs = sorted(path for path in directory.iterdir() if path.name.startswith(".commits_.archive."))
    merged = directory / ".commits_.archive.99_1-0-1"
    content = b"".join(path.read_bytes() for path in logs)
    merged.write_bytes(content if gone else content[: len(content) // 2])
    plan = {"version": 1, "candidate": [path.as_uri() for path in logs], "mergedArchiveFileName": merged.name}
    with (directory / "mergeArchivePlan").open("wb") as file:
        fastavro.writer(file, MERGE_PLAN, [plan])
    for path in logs[:gone]:
        path.unlink()
    archive_of(table).append([write(table, 2)], NoLock())
    assert times(archive_of(table)) == [write(table, n).completed.requested_time for n in (2, 1)] + known
    assert not (directory / "mergeArchivePlan").exists()
    assert merged.exists() == bool(gone)
    assert not any(path.exists() for path in logs) or not gone


def test_a_torn_plan_of_a_merge_merged_nothing(tmp_path: Path) -> None:
    table = golden.unpack("v6_archived", tmp_path)
    known, plan = times(archive_of(table)), table / ".hoodie/archived/mergeArchivePlan"
    plan.write_bytes(b"Obj")
    archive_of(table).append([write(table, 1)], NoLock())
    assert not plan.exists()
    assert times(archive_of(table)) == [write(table, 1).completed.requested_time, *known]


def test_a_manifest_after_the_named_one_counts_and_the_next_archival_names_it(tmp_path: Path) -> None:
    """Its writer has died before it named it, or a writer that had slept named its own."""
    table = golden.unpack("v9_archived", tmp_path)
    version = table / config_of(table).archive_path / "_version_"
    old = version.read_text()
    archive_of(table).append([write(table, 1)], NoLock())
    expected, last = times(archive_of(table)), version.read_text()
    version.write_text(old)
    assert times(archive_of(table)) == expected
    archive_of(table).append([write(table, 1)], NoLock())
    assert version.read_text() == last
    version.write_text(old)
    archive_of(table).append([write(table, 2)], NoLock())
    assert version.read_text() == str(int(last) + 1)
    assert times(archive_of(table)) == [write(table, 2).completed.requested_time, *expected]


def test_a_torn_manifest_that_hudi_has_not_named_does_not_count(tmp_path: Path) -> None:
    table = golden.unpack("v9_archived", tmp_path)
    directory = table / config_of(table).archive_path
    expected, number = times(archive_of(table)), int((directory / "_version_").read_text())
    (directory / f"manifest_{number + 1}").write_bytes(b"{")
    assert times(archive_of(table)) == expected
    archive_of(table).append([write(table, 1)], NoLock())
    assert times(archive_of(table)) == [write(table, 1).completed.requested_time, *expected]


def test_no_file_of_another_archival_is_replaced(tmp_path: Path) -> None:
    """A crash left a file of that name: with the same content it is used, with another one it stays as it is."""
    table = golden.unpack("v9_archived", tmp_path)
    directory, archive = table / config_of(table).archive_path, archive_of(table)
    first, last = write(table, 1), write(table, 3)
    path = directory / f"{first.completed.requested_time}_{last.completed.requested_time}_0.parquet"
    path.write_bytes(archive.encode([first, last]))
    archive.append([first, write(table, 2), last], NoLock())
    assert path.read_bytes() == archive.encode([first, last])
    assert times(archive_of(table))[:3] == [write(table, n).completed.requested_time for n in (3, 2, 1)]
    archive.merge(MergeLimits(level_files=9, level_bytes_max=1, log_files=None, small_log_bytes_max=1), NoLock())
    assert times(archive_of(table))[:3] == [write(table, n).completed.requested_time for n in (3, 2, 1)]


def test_a_late_plan_of_a_merge_of_version_6_loses_nothing(tmp_path: Path) -> None:
    """Its writer slept; meanwhile another archival put a file of the name that the plan has for the merged one."""
    table = golden.unpack("v6_archived", tmp_path)
    directory = table / ".hoodie/archived"
    logs = sorted(path for path in directory.iterdir() if path.name.startswith(".commits_.archive."))
    archive_of(table).append([write(table, 1)], NoLock())
    expected = times(archive_of(table))
    (other,) = {path for path in directory.iterdir() if path.name.startswith(".commits_.archive.")} - {*logs}
    for gone in range(len(logs)):
        candidates = [path.as_uri() for path in (*logs[gone:], directory / ".commits_.archive.90_1-0-1")]
        plan = {"version": 1, "candidate": candidates, "mergedArchiveFileName": other.name}
        with (directory / "mergeArchivePlan").open("wb") as file:
            fastavro.writer(file, MERGE_PLAN, [plan])
        archive_of(table).append([write(table, 1)], NoLock())
        assert not (directory / "mergeArchivePlan").exists()
        assert times(archive_of(table)) == expected


def test_a_log_of_version_6_that_came_late_is_no_trace_of_a_lost_one(tmp_path: Path) -> None:
    table = golden.unpack("v6_archived", tmp_path)
    directory, archive = table / ".hoodie/archived", archive_of(table)
    for path in directory.glob(".commits_.archive.*"):
        path.unlink()
    for number in (4, 5, 6):
        archive.append([write(table, number)], NoLock())
    archive.merge(LIMITS, NoLock())
    (merged,) = directory.glob(".commits_.archive.*")
    (directory / ".commits_.archive.2_1-0-1").write_bytes(archive.encode([write(table, 5)]))
    assert merged.name == ".commits_.archive.4_1-0-1"
    assert not archive.lost_files()
    (directory / ".commits_.archive.2_1-0-1").write_bytes(archive.encode([write(table, 9)]))
    assert list(archive.lost_files()) == [".hoodie/archived/.commits_.archive.3_1-0-1"]
