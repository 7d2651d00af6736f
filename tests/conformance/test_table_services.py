"""After eventide has rolled back, cleaned, restored or archived, stock Hudi reads the same and continues; and vice versa.

On a copy of the table Hudi does the same instead: the files that are left, and the rows of all readers, are the same.
"""

import shutil
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from eventide import Table
from golden.histories import PLAIN
from support.judge import HudiJudge
from support.judge.deeds import Deed, Statements, Write, call_of, call_on, pairs
from support.judge.options import ARCHIVED_EARLY
from support.pasts import golden
from support.pasts.hudi_continues import NEW_MS, row, snapshots
from support.tables.thresholds import dividing_plan

# Hudi's procedures make a metadata table unless their session says that there is none.
SETTINGS = {"hoodie.metadata.enable": "false"}
CLEANED = {
    "hoodie.clean.automatic": "true",
    "hoodie.cleaner.commits.retained": "1",
    "hoodie.clean.commits.retained": "1",
}


@pytest.fixture
def judge(request: pytest.FixtureRequest, bundle: str) -> HudiJudge:
    found: HudiJudge = request.getfixturevalue({"0.15.0": "judge_015", "1.1.1": "judge_111"}[bundle])
    return found


def do(judge: HudiJudge, *turns: Sequence[Deed]) -> None:
    assert judge.together(turns) == [None] * len(turns)


def turn(*deeds: Deed) -> tuple[Deed, ...]:
    return deeds


def write(path: Path, options: dict[str, str], word: str) -> Write:
    """Newer versions of keys of the base, and a new key of that word alone."""
    keys = [*range(20, 30, 3), 50_000 + sum(word.encode())]
    rows = [row(key, NEW_MS + sum(word.encode()) + key, word) for key in keys]
    return Write(path, pa.Table.from_pylist(rows, schema=PLAIN), options)


def compact(path: Path, options: dict[str, str]) -> Statements:
    chosen = pairs({"hoodie.compact.inline.max.delta.commits": "1", **options})
    steps = (call_of("run_compaction", op=step, path=path, options=chosen) for step in ("schedule", "run"))
    return Statements(tuple(steps), SETTINGS)


def data_files(path: Path) -> set[str]:
    return {str(found.relative_to(path)) for found in path.glob("part=*/*") if not found.name.endswith(".crc")}


def opened(path: Path, options: dict[str, str]) -> Table:
    known = ("hoodie.index.type", "hoodie.cleaner.policy", "hoodie.cleaner.fileversions.retained")
    return Table.open(str(path), ARCHIVED_EARLY | {key: options[key] for key in known if key in options})


@pytest.mark.broad
@pytest.mark.parametrize(
    ("name", "bundle"), [pytest.param("v6_inflight", "0.15.0", marks=pytest.mark.proof), ("v9_inflight", "1.1.1")]
)
def test_hudi_continues_after_eventide_rolled_back_a_failed_and_a_completed_write(
    name: str, tmp_path: Path, judge: HudiJudge
) -> None:
    path, twin = golden.unpack(name, tmp_path / "ours"), golden.unpack(name, tmp_path / "twin")
    options = dict(golden.expected(name).options)
    table = Table.open(str(path))
    table.rollback(table.state().timeline.pending[0].requested_time, force=True)
    # Hudi 0.15 reads past its own rollback, which the first write begins with, from the next commit on.
    do(judge, *(turn(write(found, options, "a"), write(found, options, "b")) for found in (path, twin)))
    both = snapshots(judge, path)
    assert both == snapshots(judge, twin)

    last = [i.requested_time for i in judge.timeline(twin) if i.action == "deltacommit"][-1]
    table.rollback(table.state().timeline.writes[-1].requested_time)
    do(judge, [call_on(twin, "rollback_to_instant", SETTINGS, instant_time=last)])
    do(judge, *(turn(write(found, options, "c"), compact(found, options)) for found in (path, twin)))
    after = snapshots(judge, path)
    assert after == snapshots(judge, twin)
    assert after != both


@pytest.mark.broad
@pytest.mark.parametrize(
    ("name", "bundle"), [pytest.param("v6_no_deletes", "0.15.0", marks=pytest.mark.proof), ("v9_no_deletes", "1.1.1")]
)
def test_hudi_continues_after_a_clean_a_restore_and_an_archival(name: str, tmp_path: Path, judge: HudiJudge) -> None:
    path = golden.unpack(name, tmp_path / "ours")
    options = dict(golden.expected(name).options)
    table = opened(path, options)
    table.compact(dividing_plan(table, "event_ts", "copy"))
    do(judge, [compact(path, options), write(path, options, "kept")])
    saved = table.state().timeline.writes[-1].requested_time
    kept = snapshots(judge, path)
    table.savepoint(saved, tag="before/what-is-undone", comments="kept")
    do(judge, [write(path, options, "undone"), compact(path, options)])
    everything = snapshots(judge, path)
    assert everything != kept

    twin = Path(shutil.copytree(path, tmp_path / "twin"))
    cleaned = table.clean(1)
    assert any(".log." in found for found in cleaned.deleted)
    do(judge, [call_on(twin, "run_clean", SETTINGS, retain_commits=1)])
    assert data_files(path) == data_files(twin)
    assert snapshots(judge, path) == everything

    assert table.restore(saved)
    do(judge, [call_on(twin, "rollback_to_savepoint", SETTINGS, instant_time=saved)])
    assert data_files(path) == data_files(twin)
    assert snapshots(judge, path) == snapshots(judge, twin) == kept
    for place in (path, twin):
        (tag,) = opened(place, options).tags()
        assert (tag.name, tag.instant, tag.savepoint.remarks) == ("before/what-is-undone", saved, "kept")

    # Each ends the savepoint on the other's table, and continues.
    opened(twin, options).delete_savepoint(saved)
    archived = table.archive()
    assert archived
    delete = call_on(path, "delete_savepoint", SETTINGS, instant_time=saved)
    do(judge, [delete, write(path, options | CLEANED | ARCHIVED_EARLY, "on")], [write(twin, options, "on")])
    do(judge, *(turn(compact(found, options), write(found, options, "and on")) for found in (path, twin)))
    after = snapshots(judge, path)
    assert after == snapshots(judge, twin)
    assert after != kept
    found = opened(path, options)
    later = {instant.requested_time for instant in found.state().archive.writes("", "9")}
    assert later >= set(archived), "Hudi's archival has lost what eventide had archived"
    by_versions = {"hoodie.cleaner.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.cleaner.fileversions.retained": "1"}
    assert opened(path, options | by_versions).clean().deleted
    one = call_on(twin, "run_clean", SETTINGS, clean_policy="KEEP_LATEST_FILE_VERSIONS", file_versions_retained=1)
    do(judge, [one])
    left = [Counter(".log." in name for name in data_files(cleaned)) for cleaned in (path, twin)]
    assert left[0] == left[1]
    assert snapshots(judge, path) == snapshots(judge, twin) == after
