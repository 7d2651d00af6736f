"""A table with its services for a long time: nothing below `.hoodie` grows with its age, and archiving loses nothing.

`./run proof` (EVENTIDE_CAMPAIGN=1) makes 2,000 commits; `python -m benchmarks.years` draws the curve.
"""

import json
from collections import Counter

import pytest

from benchmarks.years import SERVICES_EVERY, Life, kinds_of, most_metadata_logs
from eventide.bootstrap import assemble
from eventide.table.table_service import TableService
from eventide.testing.histories import NoLock
from eventide.testing.inspection.metadata_listing import begin_metadata_table
from eventide_adapters.format.timeline.archived_lsm import open_archived_timeline
from eventide_adapters.storage.faulty import Fault, FaultPlan, FaultyStorage, SimulatedCrash
from eventide_adapters.storage.memory import MemoryFile, MemoryStorage
from eventide_core.action.compaction.request import CompactionRequest
from eventide_core.config import LinkChoice
from eventide_core.ports import NoProgress
from eventide_core.service.common.state.metadata_listing import committed_files
from eventide_core.service.common.transaction.outcome import instants_with_outcome
from support.run.campaign import IS_PROOF, tries

pytestmark = pytest.mark.slow

HOUR_MS = 60 * 60 * 1000
COMMITS = tries(test=100, proof=2000)
METADATA_LOGS_MAX = 10  # of a file group
ARCHIVE_FILE_BYTES = 20 * 1024**2  # version 6 merges archived files up to this size, and then begins another one
OPTIONS = {
    "hoodie.keep.min.commits": "11",
    "hoodie.keep.max.commits": "13",
    "hoodie.timeline.compaction.batch.size": "3",
    "hoodie.archive.merge.files.batch.size": "3",
    "hoodie.time.generator.max_expected_clock_skew_time_ms": "0",
}


def begun(version: int, *, has_metadata_table: bool) -> Life:
    life = Life(f"memory://years_{version}", MemoryStorage(f"years_{version}"), OPTIONS, commit_ms=HOUR_MS)
    life.storage = MemoryStorage.from_dump(f"years_{version}", {}, now_ms=life.clock.now_ms)
    life.create(version)
    if has_metadata_table:
        begin_metadata_table(life.storage, version)
    return life


def files_of(life: Life) -> dict[str, MemoryFile]:
    assert isinstance(life.storage, MemoryStorage)
    return life.storage.dump()


def grow(life: Life, commits: int) -> None:
    """That many commits. Each third compaction is planned and rolled back first, which leaves an outcome, too."""
    for _ in range(commits):
        if life.commits % (3 * SERVICES_EVERY) == SERVICES_EVERY - 1:
            table = life.table()
            plan = table.plan_compaction(before=life.clock.time_ms)
            table.rollback(table.schedule(plan).instant)
        life.commit()


@pytest.mark.parametrize("has_metadata_table", [True, False])
@pytest.mark.parametrize("version", [6, 9])
def test_idle_rounds_of_the_table_service_keep_both_timelines_short(version: int, *, has_metadata_table: bool) -> None:
    """Each publishes a cut and changes no file: nothing is to be cleaned, and the metadata table has nothing to merge."""
    life = begun(version, has_metadata_table=has_metadata_table)
    life.options = {
        **life.options,
        "hoodie.keep.min.commits": "4",
        "hoodie.keep.max.commits": "6",
        "hoodie.cleaner.commits.retained": "2",
        "hoodie.metadata.compact.max.delta.commits": "3",
    }
    grow(life, SERVICES_EVERY)
    counts: list[Counter[str]] = []
    for _ in range(24):
        life.clock.sleep(HOUR_MS)
        application = assemble(life.uri, life.options, storage=life.storage, clock=life.clock)
        done = TableService(application, CompactionRequest(None, 60, LinkChoice.COPY)).round(NoProgress())
        assert (done.compacted is not None, done.troubles) == (True, ())
        counts.append(kinds_of(files_of(life)))
    for timeline in ("active timeline", "active timeline of the metadata table"):
        early, late = ([count[timeline] for count in part] for part in (counts[:12], counts[12:]))
        assert max(late) <= max(early), timeline
    table, files = life.table(), assemble(life.uri, life.options, storage=life.storage, clock=life.clock).files
    listed = committed_files(files, files.config(), files.timeline(files.config()))
    assert (listed is not None) == has_metadata_table
    assert len(table.snapshot().to_arrow()) == 40
    assert table.verify().ok


@pytest.mark.campaign
@pytest.mark.parametrize("version", [6, 9])
def test_nothing_below_hoodie_grows_with_the_age_of_a_table(version: int) -> None:
    life = begun(version, has_metadata_table=True)
    counts: list[Counter[str]] = []
    for _ in range(COMMITS // SERVICES_EVERY):
        grow(life, SERVICES_EVERY)
        counts.append(kinds_of(path for path, file in files_of(life).items() if len(file.data) < ARCHIVE_FILE_BYTES))
        assert most_metadata_logs(life.storage) <= METADATA_LOGS_MAX
    levels = 0 if version == 6 else tries(test=4, proof=8)  # the archived timeline grows with its logarithm
    early, late = counts[2 : len(counts) // 2], counts[len(counts) // 2 :]
    for kind in counts[0]:
        most, now = (max(count[kind] for count in part) for part in (early, late))
        assert now <= most + (levels if kind.startswith("archived timeline") else 0), (
            f"{kind}: {[count[kind] for count in counts]}"
        )
    assert all(count["markers"] == count["heartbeats"] == count["temporary files"] == 0 for count in counts)
    assert max(count["outcomes"] for count in counts) <= 6  # a day's, the active timeline's, and the last archived
    assert life.table().verify().ok
    assert len(everything(life)) == COMMITS + COMMITS // SERVICES_EVERY


def everything(life: Life) -> set[str]:
    """The requested times of all writes, active and archived."""
    state = life.table().state()
    archive = open_archived_timeline(life.storage, state.config)
    archived = [i.requested_time for i in archive.writes("", "9" * 20)]
    assert len(archived) == len(set(archived))
    return {*archived, *(i.requested_time for i in state.timeline.writes)}


def seen(life: Life) -> tuple[object, ...]:
    """What no archival may change: the writes, what each archived one says, the cut, and the freshness."""
    state = life.table().state()
    archived = {i.requested_time: state.commit(i).extra_metadata for i in state.archived_writes()}
    metadata = archived | {time: commit.extra_metadata for time, commit in state.commits.items()}
    return everything(life), metadata, state.cut_ms, state.published_cut.instant, life.table().freshness()


@pytest.mark.parametrize("version", [6, 9])
def test_whatever_write_of_an_archival_a_crash_precedes_nothing_is_lost(version: int) -> None:
    life = begun(version, has_metadata_table=False)
    grow(life, 4 * SERVICES_EVERY - 1)
    life.write()
    life.table().compact(before=life.clock.time_ms)
    last = life.table().state().published_cut.instant
    for _ in range(SERVICES_EVERY + 4):
        life.write()
    life.table().clean()
    start, now_ms, name = files_of(life), life.clock.time_ms, f"years_{version}"

    def at_start() -> MemoryStorage:
        life.clock.time_ms = now_ms
        storage = MemoryStorage.from_dump(name, start, now_ms=life.clock.now_ms)
        life.storage = storage
        return storage

    life.lock = NoLock()
    expected = seen(life)
    undisturbed = FaultyStorage(at_start())
    life.storage = undisturbed
    assert life.table().archive()
    life.storage = MemoryStorage(name)
    assert seen(life) == expected
    assert last is not None
    assert life.table().state().timeline.is_archived(last)  # the cut is known only from its outcome
    assert all(published not in instants_with_outcome(life.storage) for published in outcomes(start)[:-3])
    merges = ("mergeArchivePlan", "_1.parquet", "_2.parquet")
    assert any(made.path.endswith(merges) for made in undisturbed.writes)
    ended = archived_names(files_of(life))
    removals = [n for n, made in enumerate(undisturbed.writes) if kinds_of([made.path])["active timeline"]]
    left_out = set() if IS_PROOF else set(removals[2:-2])  # each is like the one before
    for number in sorted(set(range(len(undisturbed.writes))) - left_out):
        storage = at_start()
        life.storage = FaultyStorage(storage, FaultPlan(writes={number: Fault.CRASH_BEFORE}))
        with pytest.raises(SimulatedCrash):
            life.table().archive()
        life.storage = storage
        assert seen(life) == expected, number
        life.table().archive()
        assert seen(life) == expected, number
        if version == 9:
            check_manifests(storage)
        # An archival that finds nothing to archive merges and removes nothing.
        assert len(archived_names(files_of(life))) <= max(len(archived_names(start)) + 3, len(ended)), number


def outcomes(files: dict[str, MemoryFile]) -> list[str]:
    names = (path.rpartition("/")[2] for path in files if path.endswith(".outcome"))
    return sorted(name.removesuffix(".outcome") for name in names)


def archived_names(files: dict[str, MemoryFile]) -> list[str]:
    return [path for path in files if kinds_of([path])["archived timeline"]]


def check_manifests(storage: MemoryStorage) -> None:
    """No manifest names a file that doesn't exist: a reader may have read any of them."""
    names = {entry.path.rpartition("/")[2]: entry for entry in storage.list(".hoodie/timeline/history")}
    manifests = [name for name in names if name.startswith("manifest_")]
    assert 0 < len(manifests) <= 6
    for manifest in manifests:
        for file in json.loads(storage.read(names[manifest].path))["files"]:
            assert names[file["fileName"]].size == file["fileLen"], manifest
