"""A clean of eventide that a stock cleaner completes: it deletes nothing, whatever the table needs by then.

Hudi runs every pending clean as it is planned, and looks at no savepoint. A process decides on a clean and is paused before
its request, or before the inflight file, while others keep the table as it is with a savepoint; it wakes, puts the file,
and dies. Or it dies when it has deleted some of its files, as any process may, or none.
"""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pytest

from conformance.test_table_services import CLEANED, compact, do, opened, write
from conformance.test_undone_by_stock import STAYS
from eventide import Table
from eventide.bootstrap import assemble
from eventide_adapters.storage.faulty import SimulatedCrash
from eventide_core.config import BUCKETS, COMMITS_RETAINED, INDEX_TYPE
from eventide_core.errors import BusyError
from golden.histories import PLAIN
from support.doubles.dying_storage import DyingStorage
from support.files.metadata_updates import listed, on_disk
from support.judge import HudiJudge
from support.judge.deeds import Write
from support.judge.options import ARCHIVED_EARLY, METADATA_TABLE
from support.pasts import golden
from support.pasts.hudi_continues import NEW_MS, row, rows, snapshots
from support.run.command_line import run

TABLES = [
    pytest.param("v6_no_deletes", "judge_015", {}, marks=pytest.mark.broad),
    ("v6_111_avro_bucket", "judge_111", STAYS),
    ("v9_event_bucket", "judge_111", {}),
]
WITH_METADATA_TABLE = [
    pytest.param("v6_mdt", "judge_015", METADATA_TABLE, marks=pytest.mark.broad),
    ("v9_mdt", "judge_111", METADATA_TABLE),
]


def begun(judge: HudiJudge, name: str, chosen: Mapping[str, str], directory: Path) -> tuple[Path, dict[str, str], str]:
    """A table with old slices to clean, its options, and its last write before them."""
    path = golden.unpack(name, directory)
    options = dict(golden.expected(name).options) | dict(chosen)
    saved = Table.open(str(path)).state().timeline.writes[-1].requested_time
    for word in "ab":
        do(judge, [compact(path, options), write(path, options, word)])
    return path, options, saved


@pytest.mark.parametrize(("name", "bundle", "chosen"), TABLES)
@pytest.mark.parametrize("state", ["requested", "inflight"])
def test_a_stock_cleaner_deletes_nothing_by_a_late_request(
    name: str, bundle: str, chosen: dict[str, str], state: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    judge: HudiJudge = request.getfixturevalue(bundle)
    path, options, saved = begun(judge, name, chosen, tmp_path)
    asleep, cleaned = Path(shutil.copytree(path, tmp_path / "asleep")), tmp_path / "cleaned"
    deleted = opened(path, options).clean(1).deleted
    assert deleted
    path.rename(cleaned)
    asleep.rename(path)
    opened(path, options).savepoint(saved)
    for late in cleaned.glob(".hoodie/**/*.clean.*"):
        if late.suffix in (".requested", f".{state}"):
            shutil.copy(late, path / late.relative_to(cleaned))

    do(judge, [write(path, options | CLEANED, "c")])
    assert [gone for gone in deleted if not (path / gone).exists()] == []
    assert run("verify", path, "--deep").exit_code == 0
    table = opened(path, options)
    assert not [i for i in table.state().timeline.pending if i.action == "clean"]
    assert table.restore(saved)
    assert snapshots(judge, path)


@pytest.mark.parametrize(("name", "bundle", "chosen"), WITH_METADATA_TABLE)
def test_what_a_clean_removed_is_recorded_though_hudi_completed_it(
    name: str, bundle: str, chosen: dict[str, str], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Hudi completes it without its files. Until the next clean of eventide has removed the rest, nobody relies on them."""
    judge: HudiJudge = request.getfixturevalue(bundle)
    path, options, saved = begun(judge, name, chosen, tmp_path)
    before = on_disk(path)
    dying = DyingStorage(path, r"^part=b/.*\.parquet$")
    with pytest.raises(SimulatedCrash):
        assemble(str(path), {COMMITS_RETAINED: "1"}, storage=dying).cleaner.clean(1)
    assert on_disk(path) != before == listed(path)
    for heartbeat in (path / ".hoodie/.heartbeat").iterdir():
        os.utime(heartbeat, (0, 0))

    do(judge, [write(path, options | CLEANED, "c")])
    assert on_disk(path) != listed(path)
    assert run("verify", path, "--deep").exit_code == 0
    table = opened(path, options)
    with pytest.raises(BusyError, match="a clean is pending"):
        table.savepoint(saved)
    deleted = table.clean(1).deleted
    assert {found.partition("/")[0] for found in deleted} == {"part=a", "part=b"}
    assert on_disk(path) == listed(path)
    assert not table.clean(1).deleted
    assert run("verify", path, "--deep").exit_code == 0
    do(judge, [write(path, options | CLEANED, "d"), compact(path, options)])
    assert on_disk(path) == listed(path)
    assert snapshots(judge, path)


@pytest.mark.parametrize(("name", "bundle", "chosen"), TABLES)
def test_stock_archives_no_overwrite_whose_files_a_dead_clean_has_left(
    name: str, bundle: str, chosen: dict[str, str], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Its archival passes what was overwritten before the limit of the last clean, and the old rows would be shown."""
    judge: HudiJudge = request.getfixturevalue(bundle)
    path = golden.unpack(name, tmp_path)
    options = dict(golden.expected(name).options) | dict(chosen)
    now = pa.Table.from_pylist([row(2, NEW_MS, "over")], schema=PLAIN)
    writer: dict[str, object] = {key: options[key] for key in (INDEX_TYPE, BUCKETS) if key in options}
    Table.open(str(path), writer).insert_overwrite(now)
    later = [pa.Table.from_pylist([row(21, NEW_MS + number, "b")], schema=PLAIN) for number in range(8)]
    do(judge, [Write(path, records, options) for records in later[:4]])
    dying = DyingStorage(path, r"\.clean\.inflight$")
    with pytest.raises(SimulatedCrash):
        assemble(str(path), {COMMITS_RETAINED: "1"}, storage=dying).cleaner.clean(1)

    before = snapshots(judge, path)
    do(judge, [Write(path, records, options | CLEANED | ARCHIVED_EARLY) for records in later[4:]])
    assert not list(path.glob(".hoodie/**/*.replacecommit"))
    after = snapshots(judge, path)
    assert sorted(after - before) == sorted(rows(later[-1]))
    assert run("verify", path, "--deep").exit_code == 0
