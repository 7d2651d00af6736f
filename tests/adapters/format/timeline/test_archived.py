"""Archived timelines: what Hudi archived is found with few reads, and torn files are named."""

import random
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eventide_adapters.format.timeline.archived_log import LogArchivedTimeline
from eventide_adapters.format.timeline.archived_lsm import LsmArchivedTimeline, open_archived_timeline
from eventide_adapters.storage.local import LocalStorage
from eventide_core.errors import CorruptTimelineError
from eventide_core.ports import ArchivedTimeline
from eventide_core.table.files.file_name import LogFileName
from eventide_core.table.settings.table_config import TableConfig
from eventide_core.table.timeline.instant import Action, Instant, instant_time
from support.doubles.counting_storage import CountingStorage
from support.pasts import archived as history
from support.pasts import golden

ALL = ("", "9" * 20)
FIRST_MS = 1_790_000_000_000
DIRECTORY = "history"


def opened(path: Path) -> ArchivedTimeline:
    storage = LocalStorage(str(path))
    properties = storage.read(".hoodie/hoodie.properties").decode()
    return open_archived_timeline(storage, TableConfig.parse(properties, str(path)))


def lsm(path: Path) -> tuple[LsmArchivedTimeline, CountingStorage]:
    storage = CountingStorage(str(path))
    return LsmArchivedTimeline(storage, DIRECTORY), storage


def time_of(nth: int) -> str:
    return instant_time(FIRST_MS + nth * 60_000)


@pytest.mark.parametrize("name", ["v6_archived", "v9_archived"])
def test_what_hudi_archived_is_found_with_its_metadata(name: str, tmp_path: Path) -> None:
    table = golden.unpack(name, tmp_path)
    expected = golden.expected(name)
    active = [instant["requested_time"] for instant in expected.instants]
    archived = list(opened(table).writes(*ALL))
    assert len(archived) + len(active) == len(expected.steps)
    assert [i.requested_time for i in archived] == sorted((i.requested_time for i in archived), reverse=True)
    assert max(i.requested_time for i in archived) < min(filter(None, active))

    schemas, written = set(), set()
    for instant in archived:
        commit = opened(table).commit(instant.requested_time)
        assert commit is not None
        schemas.add(commit.schema)
        written |= {stat.path for stat in commit.stats}
        assert opened(table).find(instant.requested_time) == instant
    assert len(schemas) == 1
    files = {str(file.relative_to(table)) for file in table.glob("part=*/*.parquet")}
    assert files <= written
    assert all((table / path).exists() for path in written)


def test_version_9_knows_when_an_archived_instant_completed(tmp_path: Path) -> None:
    table = golden.unpack("v9_archived", tmp_path)
    archive = opened(table)
    logs = [LogFileName.parse(file.name) for file in table.glob("part=*/.*.log.*")]
    active = {instant["requested_time"] for instant in golden.expected("v9_archived").instants}
    writers = {log.instant for log in logs if log is not None} - active
    assert len(writers) == 5  # all that is archived but the bulk insert
    instants = [archive.find(writer) for writer in sorted(writers)]
    # One writer after the other made the table, so each had ended before the next one began.
    for before, after in pairwise(instants):
        assert before is not None
        assert after is not None
        assert before.completion_time is not None
        assert before.requested_time < before.completion_time < after.requested_time


def test_version_6_records_no_completion_times(tmp_path: Path) -> None:
    archived = list(opened(golden.unpack("v6_archived", tmp_path)).writes(*ALL))
    assert {i.completion_time for i in archived} == {None}


@pytest.mark.parametrize("name", ["v6_archived", "v9_archived"])
def test_writes_are_those_requested_from_begin_to_end(name: str, tmp_path: Path) -> None:
    archive = opened(golden.unpack(name, tmp_path))
    times = [i.requested_time for i in archive.writes(*ALL)]
    assert [i.requested_time for i in archive.writes(times[3], times[1])] == times[1:4]
    assert archive.find(times[2][:-1] + "x") is None
    assert archive.commit("20000101000000000") is None


@pytest.mark.parametrize("name", ["v6_no_deletes", "v9_no_deletes"])
def test_a_table_that_has_archived_nothing_has_an_empty_archive(name: str, tmp_path: Path) -> None:
    archive = opened(golden.unpack(name, tmp_path))
    assert list(archive.writes(*ALL)) == []
    assert archive.find(time_of(0)) is None
    assert archive.commit(time_of(0)) is None


@pytest.fixture(scope="module")
def ten_thousand(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("long")
    names = history.write_tree(root / DIRECTORY, history.instants(10_000, FIRST_MS))
    history.publish(root / DIRECTORY, names, version=1000)
    return root


def test_ten_thousand_instants_are_found_by_reading_the_times_of_each_file_once(ten_thousand: Path) -> None:
    archive, storage = lsm(ten_thousand)
    instants = [archive.find(time_of(nth)) for nth in range(10_000)]
    assert [i.completion_time for i in instants if i] == [
        instant_time(FIRST_MS + n * 60_000 + 30_000) for n in range(10_000)
    ]
    assert set(storage.opened.values()) == {1}
    stored = sum(file.stat().st_size for file in (ten_thousand / DIRECTORY).iterdir())
    assert sum(storage.bytes_read.values()) < stored / 5  # each file's footer, and the columns of the times


def test_a_question_about_one_of_ten_thousand_opens_one_file(ten_thousand: Path) -> None:
    archive, storage = lsm(ten_thousand)
    for nth in (9_999, 5_000, 0):
        storage.forget()
        assert archive.find(time_of(nth)) is not None
        assert sum(path.endswith(".parquet") for path in storage.opened) == 1


def test_the_newest_are_returned_before_older_files_are_opened(ten_thousand: Path) -> None:
    archive, storage = lsm(ten_thousand)
    newest = list(islice(archive.writes(*ALL), 3))
    assert [i.requested_time for i in newest] == [time_of(nth) for nth in (9_999, 9_998, 9_997)]
    assert sum(path.endswith(".parquet") for path in storage.opened) == 1


def test_metadata_of_neighbours_are_read_together(ten_thousand: Path) -> None:
    archive, storage = lsm(ten_thousand)
    for nth in range(2_000, 2_100):
        commit = archive.commit(time_of(nth))
        assert commit is not None
        assert commit.extra_metadata["number"] == str(nth)
    assert max(storage.opened.values()) <= 2  # once for the times, once for the metadata


def test_only_the_files_of_the_last_manifest_count(tmp_path: Path) -> None:
    directory, few = tmp_path / DIRECTORY, history.instants(4, FIRST_MS)
    small = [history.write_file(directory, few[:2]), history.write_file(directory, few[2:])]
    history.publish(directory, small, version=9)
    merged = history.write_file(directory, few, level=1)
    history.publish(directory, [merged], version=10)
    archive, storage = lsm(tmp_path)
    assert [i.requested_time for i in archive.writes(*ALL)] == [time_of(n) for n in (3, 2, 1, 0)]
    assert {path for path in storage.opened if path.endswith(".parquet")} == {f"{DIRECTORY}/{merged}"}


def test_without_a_version_file_the_last_manifest_counts(tmp_path: Path) -> None:
    directory, few = tmp_path / DIRECTORY, history.instants(2, FIRST_MS)
    history.publish(directory, [history.write_file(directory, few[:1])], version=9)
    history.publish(directory, [history.write_file(directory, few)], version=10)
    for is_there in (True, False):
        (directory / "_version_").write_text("") if is_there else (directory / "_version_").unlink()
        archive, _ = lsm(tmp_path)
        assert len(list(archive.writes(*ALL))) == 2


def test_what_is_archived_later_is_seen_after_a_refresh(tmp_path: Path) -> None:
    directory, few = tmp_path / DIRECTORY, history.instants(3, FIRST_MS)
    first = history.write_file(directory, few[:2])
    history.publish(directory, [first], version=1)
    archive, storage = lsm(tmp_path)
    assert archive.find(time_of(2)) is None
    assert archive.find(time_of(0)) is not None
    history.publish(directory, [first, history.write_file(directory, few[2:])], version=2)
    assert archive.find(time_of(2)) is None
    archive.refresh()
    assert archive.find(time_of(2)) is not None
    assert storage.opened[f"{DIRECTORY}/{first}"] == 1


def test_an_instant_that_was_archived_twice_is_one(tmp_path: Path) -> None:
    directory, few = tmp_path / DIRECTORY, history.instants(4, FIRST_MS)
    history.publish(directory, [history.write_file(directory, few[:3]), history.write_file(directory, few[1:])])
    assert [i.requested_time for i in lsm(tmp_path)[0].writes(*ALL)] == [time_of(n) for n in (3, 2, 1, 0)]


def test_files_that_overlap_are_reported_in_one_order(tmp_path: Path) -> None:
    directory, several = tmp_path / DIRECTORY, history.instants(12, FIRST_MS)
    names = [history.write_file(directory, part) for part in (several[::3], several[1::3], several[2::3])]
    history.publish(directory, names)
    assert [i.requested_time for i in lsm(tmp_path)[0].writes(*ALL)] == [time_of(n) for n in reversed(range(12))]


def test_only_writes_are_reported(tmp_path: Path) -> None:
    directory = tmp_path / DIRECTORY
    actions = ("clean", "commit", "rollback", "deltacommit", "savepoint", "replacecommit", "indexing", "clustering")
    rows = [history.Archived(time_of(n), time_of(n + 1), action) for n, action in enumerate(actions)]
    history.publish(directory, [history.write_file(directory, rows)])
    archive, _ = lsm(tmp_path)
    assert [i.action for i in archive.writes(*ALL)] == [Action.REPLACE_COMMIT, Action.DELTA_COMMIT, Action.COMMIT]
    assert archive.find(time_of(0)) is None
    assert archive.commit(time_of(2)) is None


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("_version_", b"seven"),
        ("_version_", b"7"),
        ("manifest_1", b""),
        ("manifest_1", b'{"files": [{"fileName": 1}]}'),
        ("manifest_1", b'{"files": [{"fileName": "../../x.parquet"}]}'),
        ("manifest_1", b'{"files": [{"fileName": "20260101000000000_20260101000000000_0.parquet"}]}'),
        ("*.parquet", b""),
        ("*.parquet", b"PAR1 nothing PAR1"),
    ],
)
def test_a_torn_file_of_version_9_is_named(name: str, data: bytes, tmp_path: Path) -> None:
    table = tmp_path / "t"
    history.publish(table / DIRECTORY, [history.write_file(table / DIRECTORY, history.instants(2, FIRST_MS))])
    (damaged,) = (table / DIRECTORY).glob(name)
    damaged.write_bytes(data)
    archive, _ = lsm(table)
    with pytest.raises(CorruptTimelineError, match=r"history/.* restore it from a copy"):
        list(archive.writes(*ALL))


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("completionTime", pa.nulls(2, pa.string())),
        ("completionTime", pa.array([1, 2])),
        ("instantTime", pa.nulls(2, pa.string())),
        ("action", pa.array([1, 2])),
    ],
)
def test_a_column_that_cannot_be_hudis_is_named(column: str, values: "pa.Array[Any]", tmp_path: Path) -> None:
    directory = tmp_path / DIRECTORY
    name = history.write_file(directory, history.instants(2, FIRST_MS))
    rows = pq.read_table(directory / name)
    pq.write_table(rows.set_column(rows.schema.get_field_index(column), column, values), directory / name)
    history.publish(directory, [name])
    with pytest.raises(CorruptTimelineError, match=name):
        list(lsm(tmp_path)[0].writes(*ALL))


def test_a_commit_without_metadata_is_named(tmp_path: Path) -> None:
    directory = tmp_path / DIRECTORY
    name = history.write_file(directory, history.instants(2, FIRST_MS))
    rows = pq.read_table(directory / name)
    pq.write_table(rows.set_column(3, "metadata", pa.nulls(2, pa.binary())), directory / name)
    history.publish(directory, [name])
    archive, _ = lsm(tmp_path)
    assert archive.find(time_of(1)) is not None
    with pytest.raises(CorruptTimelineError, match=name):
        archive.commit(time_of(1))


def archive_logs(table: Path) -> list[Path]:
    return sorted((table / ".hoodie/archived").glob(".commits_.archive.*_*-*-*"))


def answers(table: Path) -> list[tuple[Instant, object]]:
    archive = LogArchivedTimeline(LocalStorage(str(table)), ".hoodie/archived")
    return [(i, archive.commit(i.requested_time)) for i in archive.writes(*ALL)]


def test_a_torn_log_of_version_6_is_named_wherever_it_is_torn(tmp_path: Path) -> None:
    table = golden.unpack("v6_archived", tmp_path)
    damaged = archive_logs(table)[1]
    data = damaged.read_bytes()
    for length in range(1, len(data), 997):
        damaged.write_bytes(data[:length])
        # One that ends at a block's end is whole, as far as it shows.
        try:
            assert len(answers(table)) < 6
        except CorruptTimelineError as error:
            assert damaged.name in str(error)  # noqa: PT017 (either is right)


def test_no_damage_to_a_log_of_version_6_ends_in_a_foreign_error(tmp_path: Path) -> None:
    table = golden.unpack("v6_archived", tmp_path)
    whole = answers(table)
    damaged = archive_logs(table)[0]
    data = damaged.read_bytes()
    chances = random.Random(74)
    seen = 0
    for _ in range(300):
        torn = bytearray(data)
        for place in chances.choices(range(len(data)), k=3):
            torn[place] = chances.randrange(256)
        damaged.write_bytes(torn)
        try:
            answers(table)
        except CorruptTimelineError as error:
            seen += damaged.name in str(error)
    assert seen > 10
    damaged.write_bytes(data)
    assert answers(table) == whole


def test_no_damage_to_a_file_of_version_9_ends_in_a_foreign_error(tmp_path: Path) -> None:
    directory = tmp_path / DIRECTORY
    name = history.write_file(directory, history.instants(3, FIRST_MS))
    history.publish(directory, [name])
    data = (directory / name).read_bytes()
    for length in range(0, len(data), 101):
        (directory / name).write_bytes(data[:length])
        with pytest.raises(CorruptTimelineError, match=name):
            list(lsm(tmp_path)[0].writes(*ALL))


def merge_plan(table: Path, name: str) -> None:
    schema = {
        "type": "record",
        "name": "HoodieMergeArchiveFilePlan",
        "fields": [
            {"name": "version", "type": ["int", "null"], "default": 1},
            {"name": "candidate", "type": ["null", {"type": "array", "items": "string"}], "default": None},
            {"name": "mergedArchiveFileName", "type": ["null", "string"], "default": None},
        ],
    }
    plan = {"version": 1, "candidate": [log.name for log in archive_logs(table)], "mergedArchiveFileName": name}
    with (table / ".hoodie/archived/mergeArchivePlan").open("wb") as file:
        fastavro.writer(file, schema, [plan])


def test_a_merge_of_archive_logs_that_died_half_way_loses_nothing(tmp_path: Path) -> None:
    table = golden.unpack("v6_archived", tmp_path)
    whole = answers(table)
    merged = archive_logs(table)[-1].with_name(".commits_.archive.9_1-0-1")
    content = b"".join(log.read_bytes() for log in archive_logs(table))
    merge_plan(table, merged.name)
    for data in (content[: len(content) // 2 + 7], content):
        merged.write_bytes(data)
        assert answers(table) == whole
    merge_plan(table, "another")
    merged.write_bytes(content[:-5])
    with pytest.raises(CorruptTimelineError, match=merged.name):
        answers(table)


def test_version_6_reads_each_archive_log_once_until_it_changes(tmp_path: Path) -> None:
    table = golden.unpack("v6_archived", tmp_path)
    storage = CountingStorage(str(table))
    archive = LogArchivedTimeline(storage, ".hoodie/archived")
    assert storage.bytes_read == {}
    for _ in range(3):
        archive.refresh()
        assert len(list(archive.writes(*ALL))) == 6
    assert storage.bytes_read == {str(log.relative_to(table)): log.stat().st_size for log in archive_logs(table)}
