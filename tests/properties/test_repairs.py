"""Each damage of support.faults.damages is repaired, so that the rows are as before, or it is reported that it isn't;
a repair that is interrupted anywhere is completed by the next one; and an undo brings every byte back.
"""

import itertools
import random
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from eventide.bootstrap import Application
from eventide.rows.reader import Rows
from eventide.testing.crash_enumeration import Bench, Moment, crash_states
from eventide_adapters.format.metadata_table.table import HudiMetadataTable
from eventide_adapters.storage.memory import MemoryFile
from eventide_core.action.repair.repairs import BACKUP_DIRECTORY
from eventide_core.config import LinkChoice
from eventide_core.errors import ConfigError, CorruptTimelineError, EventideError, NothingToDoError, RefusedError
from eventide_core.ports import NoProgress
from eventide_core.service.repair.repair import RepairResult
from support.faults import damages
from support.faults.damages import CELLS, DAMAGES, Damaged, table_to_damage
from support.run.campaign import CAMPAIGN, IS_REPEATED
from support.run.reach import reached

pytestmark = pytest.mark.slow

WHOLE: set[Callable[[Damaged], None]] = {
    damages.dangling_link,
    damages.link_out_of_the_table,
    damages.link_by_a_link,
    damages.link_to_another_left_over,
    damages.missing_copy,
    damages.missing_base,
    damages.unreadable_commit_of_a_compaction,
    damages.bit_flip_in_a_compacted_base_file,
    damages.cut_off_compacted_base_file,
    damages.watermark_beyond_the_cut,
    damages.cut_beyond_the_left_overs,
    damages.cut_off_copy,
    damages.orphaned_base_file,
    damages.second_base_file_in_one_place,
    damages.orphaned_log,
    damages.copies_after_a_rollback_that_knows_no_left_overs,
    damages.partition_without_its_mark,
    damages.unreadable_commit,
    damages.compaction_without_a_plan,
    damages.lost_completed_file,
    damages.other_record_key,
    damages.other_ordering_field,
    damages.torn_settings,
    damages.missing_settings,
    damages.copy_of_something_else,
}
"""The damages that a repair mends whole."""
RERUNS = {
    damages.missing_base,
    damages.unreadable_commit_of_a_compaction,
    damages.bit_flip_in_a_compacted_base_file,
    damages.cut_off_compacted_base_file,
    damages.watermark_beyond_the_cut,
    damages.cut_beyond_the_left_overs,
}
LINKS = {
    damages.dangling_link,
    damages.link_out_of_the_table,
    damages.link_by_a_link,
    damages.link_to_another_left_over,
}


@pytest.fixture(scope="module", params=CELLS, ids=[f"v{version}-{link}" for version, link in CELLS])
def written(request: pytest.FixtureRequest) -> tuple[Bench, Moment, Damaged]:
    return table_to_damage(*request.param)


def _damaged(written: tuple[Bench, Moment, Damaged], damage: Callable[[Damaged], None]) -> Moment:
    _, moment, table = written
    table = replace(table, files=dict(moment.files))
    damage(table)
    return Moment(table.files, moment.time_ms)


def _repair(application: Application) -> RepairResult:
    return application.repairer.apply((), is_deep=True, progress=NoProgress())


def _apply(application: Application) -> None:
    _repair(application)


def _is_mended(damage: Callable[[Damaged], None], version: int) -> bool:
    return damage in WHOLE or (damage is damages.instant_that_completed_twice and version < 8)


def rows_of(application: Application) -> list[tuple[Any, ...]]:
    """The snapshot."""
    rows = Rows(application.queries.snapshot(), application.reader, application.engine)
    columns = ("_hoodie_partition_path", "key", "ms", "word", "_hoodie_commit_time")
    found = (tuple(row[name] for name in columns) for batch in rows.to_batches() for row in batch.to_pylist())
    return sorted(found, key=repr)


def _of_table(files: Mapping[str, MemoryFile]) -> dict[str, tuple[bytes, str | None]]:
    """The files without the backups, which stay."""
    kept = {path: f for path, f in files.items() if not path.startswith((BACKUP_DIRECTORY, ".hoodie/lock"))}
    return {path: (f.data, f.link_target) for path, f in kept.items()}


def test_a_log_file_whose_content_is_there_twice_is_cut(written: tuple[Bench, Moment, Damaged]) -> None:
    bench, sound, table = written
    bench.load(_damaged(written, damages.doubled_log))
    assert _repair(bench.process()).verification.ok
    assert bench.moment().files[table.late_log].data == sound.files[table.late_log].data


def test_a_log_file_is_not_cut_if_what_follows_is_something_else(written: tuple[Bench, Moment, Damaged]) -> None:
    bench, sound, table = written
    data = table.data(table.late_log)
    longer = data + data.replace(b"later", b"l4ter")
    assert len(longer) == 2 * len(data)
    bench.load(Moment({**sound.files, table.late_log: MemoryFile(longer, 1)}, sound.time_ms))
    done = _repair(bench.process())
    assert any("a person has to compare" in one.cure for one in done.unrepaired)
    assert bench.moment().files[table.late_log].data == longer


def test_a_lost_completed_file_of_logs_is_written_again(written: tuple[Bench, Moment, Damaged]) -> None:
    """Under another completion time from version 8 on, which keeps each log file in its slice."""
    bench, sound, table = written
    bench.load(sound)
    rows = rows_of(bench.process())
    bench.load(_damaged(written, damages.lost_completed_file_of_logs))
    done = _repair(bench.process())
    assert done.verification.ok
    assert done.unrepaired == ()
    assert rows_of(bench.process()) == rows
    repaired = replace(table, files=dict(bench.moment().files))
    before, after = table.commit(table.times[1])[1], repaired.commit(table.times[1])[1]
    assert [(s.path, s.num_writes) for s in after.stats] == [(s.path, s.num_writes) for s in before.stats]


def test_a_lost_commit_is_not_written_again_if_two_files_may_be_its_base_file(
    written: tuple[Bench, Moment, Damaged],
) -> None:
    bench, moment, table = written
    files = dict(moment.files)
    group, _, end = table.old_base.rpartition("/")[2].split("_")
    files[f"part=b/{group}_9-9-9_{end}"] = files[table.old_base]
    path, _ = table.commit(table.first)
    files[path] = MemoryFile(files[path].data[:80], 1)
    bench.load(Moment(files, moment.time_ms))
    done = _repair(bench.process())
    assert path in {one.path for one in done.unrepaired}
    assert bench.moment().files[path].data == files[path].data


def test_no_rollback_removes_a_write_that_others_built_on(written: tuple[Bench, Moment, Damaged]) -> None:
    bench, _, table = written
    damaged = _damaged(written, damages.lost_completed_file)
    bench.load(damaged)
    with pytest.raises(CorruptTimelineError, match="so it had completed"):
        bench.process().rollback.undo(table.first, force=True)
    assert _of_table(bench.moment().files) == _of_table(damaged.files)


@pytest.mark.parametrize(
    "damage", [damages.lost_completed_file_of_the_last_write, damages.lost_timeline_files_of_a_write]
)
def test_a_write_that_may_not_have_completed_is_not_completed(
    damage: Callable[[Damaged], None], written: tuple[Bench, Moment, Damaged]
) -> None:
    bench, _, _ = written
    damaged = _damaged(written, damage)
    bench.load(damaged)
    assert _repair(bench.process()).repairs == ()
    assert _of_table(bench.moment().files) == _of_table(damaged.files)


def test_no_file_moves_while_a_finding_on_the_timeline_stays(written: tuple[Bench, Moment, Damaged]) -> None:
    bench, moment, table = written
    table = replace(table, files=dict(moment.files))
    damages.orphaned_base_file(table)
    damages.timeline_file_without_an_instant(table)
    bench.load(Moment(table.files, moment.time_ms))
    done = _repair(bench.process())
    assert done.repairs == ()
    assert {one.cure for one in done.unrepaired if one.check == "orphan-files"} == {
        "repair first what the check of the timeline found: until then, it isn't known what counts"
    }
    assert _of_table(bench.moment().files) == _of_table(table.files)


def test_files_are_repaired_as_the_repaired_timeline_shows_them(written: tuple[Bench, Moment, Damaged]) -> None:
    bench, moment, table = written
    table = replace(table, files=dict(moment.files))
    damages.partition_without_its_mark(table)
    damages.unreadable_commit(table)
    bench.load(Moment(table.files, moment.time_ms))
    done = _repair(bench.process())
    assert [repair.check for repair in done.repairs] == ["timeline", "file-slices"]
    assert len(done.backups) == 2
    assert done.verification.ok


def test_inputs_are_repaired_before_their_compaction_runs_again(written: tuple[Bench, Moment, Damaged]) -> None:
    bench, moment, table = written
    table = replace(table, files=dict(moment.files))
    damages.partition_without_its_mark(table)
    damages.unreadable_commit_of_a_compaction(table)
    bench.load(Moment(table.files, moment.time_ms))
    done = _repair(bench.process())
    assert [repair.check for repair in done.repairs] == ["file-slices", "timeline"]
    assert done.verification.ok


@pytest.mark.parametrize("damage", DAMAGES, ids=[damage.__name__ for damage in DAMAGES])
def test_each_damage_is_repaired_or_named(
    damage: Callable[[Damaged], None], written: tuple[Bench, Moment, Damaged]
) -> None:
    bench, sound, table = written
    damaged = _damaged(written, damage)
    bench.load(sound)
    rows = rows_of(bench.process())
    bench.load(damaged)
    planned = bench.process().repairer.plan((), is_deep=True, progress=NoProgress())
    assert bench.moment().files == damaged.files, "a dry run has written something"
    assert planned.repairs or planned.unrepaired
    done = _repair(bench.process())
    if _is_mended(damage, table.version):
        assert done.verification.ok
        assert done.unrepaired == ()
        assert len(done.backups) >= 1
        if damage is not damages.copies_after_a_rollback_that_knows_no_left_overs:
            assert rows_of(bench.process()) == rows
    else:
        assert not done.verification.ok
        assert {one.check for one in done.unrepaired} == {check.name for check in done.verification.failed}
        assert all(one.cure for one in done.unrepaired)


@pytest.mark.parametrize("damage", [damage for damage in DAMAGES if damage in WHOLE])  # in one order
def test_an_undo_brings_every_byte_back(
    damage: Callable[[Damaged], None], written: tuple[Bench, Moment, Damaged]
) -> None:
    bench, _, _ = written
    damaged = _damaged(written, damage)
    bench.load(damaged)
    backups = _repair(bench.process()).backups
    if damage in RERUNS:
        with pytest.raises(NothingToDoError, match="has no repair to undo"):
            bench.process().repairer.undo()
        assert bench.process().repairer.plan((), is_deep=True, progress=NoProgress()).verification.ok
        return
    for instant in reversed(backups):
        assert bench.process().repairer.undo().instant == instant
    expected = _of_table(damaged.files)
    if damage in LINKS:  # the copy stays
        _, _, table = written
        changed = {path for path, content in _of_table(bench.moment().files).items() if expected[path] != content}
        assert changed <= {op.path_of(left.new_name or "") for op in table.plan.operations for left in op.left_overs}
        assert len(changed) == 1
    else:
        assert _of_table(bench.moment().files) == expected
    with pytest.raises(NothingToDoError, match="has no repair to undo"):
        bench.process().repairer.undo()


@pytest.mark.parametrize(
    "damage",
    [
        damages.cut_off_copy,
        damages.unreadable_commit,
        damages.lost_completed_file,
        damages.torn_settings,
        *(
            pytest.param(damage, marks=pytest.mark.broad)
            for damage in (damages.orphaned_log, damages.partition_without_its_mark, damages.other_record_key)
        ),
    ],
)
def test_a_repair_and_an_undo_are_completed_after_a_crash_anywhere(
    damage: Callable[[Damaged], None], written: tuple[Bench, Moment, Damaged]
) -> None:
    bench, _, _ = written
    damaged = _damaged(written, damage)
    crashes = 0
    for _, crashed in crash_states(bench, damaged, _apply):
        bench.load(crashed.after_the_lock_expired())
        assert _repair(bench.process()).verification.ok
        crashes += 1
    repaired = bench.run(damaged, _apply)
    for _, crashed in crash_states(bench, repaired, _undo):
        bench.load(crashed.after_the_lock_expired())
        with suppress(NothingToDoError):  # died after the last write
            _undo(bench.process())
        assert _of_table(bench.moment().files) == _of_table(damaged.files)
        crashes += 1
    assert crashes > 8


def test_a_repair_that_was_interrupted_leaves_what_others_mended(written: tuple[Bench, Moment, Damaged]) -> None:
    bench, sound, _ = written
    damaged = _damaged(written, damages.unreadable_commit)
    (commit,) = (path for path, file in sound.files.items() if file.data != damaged.files[path].data)
    mended = 0
    for _, crashed in crash_states(bench, damaged, _apply):
        if crashed.files[commit] == damaged.files[commit]:
            bench.load(replace(crashed.after_the_lock_expired(), files={**crashed.files, commit: sound.files[commit]}))
            assert _repair(bench.process()).verification.ok
            assert bench.moment().files[commit].data == sound.files[commit].data
            mended += any(path.endswith("repair.json") for path in crashed.files)
    assert mended


def _undo(application: Application) -> None:
    application.repairer.undo()


@pytest.mark.parametrize(
    "damage", [damages.missing_base, damages.unreadable_commit_of_a_compaction, damages.unreadable_commit]
)
@pytest.mark.parametrize("version", damages.LAYOUTS)
def test_the_metadata_table_agrees_with_a_repaired_table(version: int, damage: Callable[[Damaged], None]) -> None:
    bench, sound, table = table_to_damage(version, LinkChoice.COPY, has_metadata_table=True)
    damaged = _damaged((bench, sound, table), damage)
    bench.load(sound)
    rows = rows_of(bench.process())
    bench.load(damaged)
    done = _repair(bench.process())
    assert done.verification.ok
    assert "metadata-table" not in {check.name for check in done.verification.not_checked}
    assert rows_of(bench.process()) == rows


def _torn_metadata_table(damaged: Damaged) -> None:
    path = max(path for path in damaged.files if path.startswith(".hoodie/metadata/files/") and ".log." in path)
    damaged.put(path, damaged.files[path].data[:-20])


def _listed(bench: Bench) -> Mapping[str, Mapping[str, int]] | None:
    return HudiMetadataTable(bench.storage).listing(())


@pytest.mark.parametrize("version", damages.LAYOUTS)
def test_a_broken_metadata_table_is_made_again(version: int) -> None:
    bench, sound, table = table_to_damage(version, LinkChoice.COPY, has_metadata_table=True)
    bench.load(sound)
    rows, listing = rows_of(bench.process()), _listed(bench)
    damaged = _damaged((bench, sound, table), _torn_metadata_table)
    bench.load(damaged)
    planned = bench.process().repairer.plan((), is_deep=False, progress=NoProgress())
    assert [repair.check for repair in planned.repairs] == ["metadata-table"]
    assert bench.moment().files == damaged.files
    done = _repair(bench.process())
    assert [repair.check for repair in done.repairs] == ["metadata-table"]
    assert done.verification.ok
    assert _listed(bench) == listing
    assert rows_of(bench.process()) == rows
    with pytest.raises(NothingToDoError, match="no repair to undo"):
        _undo(bench.process())
    crashes = 0
    for _, crashed in crash_states(bench, damaged, _apply):
        bench.load(crashed.after_the_lock_expired())
        assert rows_of(bench.process()) == rows
        again = _repair(bench.process())
        assert again.verification.ok
        assert bench.process().files.config().metadata_partitions == ("files",)
        assert _listed(bench) == listing
        crashes += 1
    assert crashes > 8


def test_beside_a_pending_write_the_metadata_table_is_left_as_it_is() -> None:
    bench, sound, table = table_to_damage(9, LinkChoice.COPY, has_metadata_table=True)
    damaged = _damaged((bench, sound, table), _torn_metadata_table)
    bench.load(damaged)
    bench.storage.put(".hoodie/timeline/20991231235959999.deltacommit.requested", b"")
    before = bench.moment().files
    done = _repair(bench.process())
    assert not done.repairs
    assert [left.check for left in done.unrepaired] == ["metadata-table"]
    assert "`table.rebuild_metadata_table()`" in done.unrepaired[0].cure
    assert _of_table(bench.moment().files) == _of_table(before)


def test_the_metadata_table_of_a_damaged_table_is_left_as_it_is() -> None:
    """It may be all that still names a file."""
    bench, sound, table = table_to_damage(9, LinkChoice.COPY, has_metadata_table=True)
    damaged = _damaged((bench, sound, table), _torn_metadata_table)
    base = max(path for path in damaged.files if path.endswith(".parquet") and not path.startswith(".hoodie/"))
    files = {path: file for path, file in damaged.files.items() if path != base}
    bench.load(Moment(files, damaged.time_ms))
    chosen = bench.process().repairer.apply(("metadata-table",), is_deep=False, progress=NoProgress())
    assert not chosen.repairs
    assert "metadata-table" in {left.check for left in chosen.unrepaired}


def test_a_file_that_someone_changed_meanwhile_stops_an_undo(written: tuple[Bench, Moment, Damaged]) -> None:
    bench, _, table = written
    damaged = _damaged(written, damages.cut_off_copy)
    bench.run(damaged, _apply)
    bench.storage.put(table.left_over, b"of someone else")
    with pytest.raises(RefusedError, match="has changed since the repair"):
        bench.process().repairer.undo()
    assert bench.storage.read(table.left_over) == b"of someone else"


def test_checks_are_chosen_by_name(written: tuple[Bench, Moment, Damaged]) -> None:
    bench, _, _ = written
    damaged = _damaged(written, damages.orphaned_log)
    bench.load(damaged)
    done = bench.process().repairer.apply(("links",), is_deep=False, progress=NoProgress())
    assert not done.repairs
    assert not done.unrepaired
    assert not done.verification.ok
    with pytest.raises(ConfigError, match="there is no check 'orphans'"):
        bench.process().repairer.apply(("orphans",), is_deep=False, progress=NoProgress())
    assert bench.moment().files == damaged.files


def _at_random(chance: random.Random, sound: Mapping[str, MemoryFile]) -> tuple[str, dict[str, MemoryFile]]:
    """What was done to which file, and the files after it."""

    def content(path: str) -> bytes:
        target = sound[path].link_target
        return sound[path if target is None else target].data

    path, other = (chance.choice(sorted(sound)) for _ in range(2))
    data = content(path)
    kind = chance.choice(("removed", "emptied", "cut in half", "flipped", "flipped", "doubled", "replaced"))
    files = dict(sound)
    del files[path]
    if kind == "emptied":
        files[path] = MemoryFile(b"", 1)
    elif kind == "cut in half":
        files[path] = MemoryFile(data[: len(data) // 2], 1)
    elif kind == "flipped" and data:
        # Not in a footer: pyarrow 26 ends the process where the size statistics of a column contradict its schema.
        end = int.from_bytes(data[-8:-4], "little") + 8 if path.endswith(".parquet") else 0
        changed = bytearray(data)
        changed[chance.randrange(len(data) - end)] ^= 1 << chance.randrange(8)
        files[path] = MemoryFile(bytes(changed), 1)
    elif kind == "doubled":
        files[path] = MemoryFile(data + data, 1)
    elif kind == "replaced":
        files[path] = MemoryFile(content(other), 1)
    return f"{path} {kind}" + (f" by {other}" if kind == "replaced" else ""), files


def _rows_or_error(application: Application) -> object:
    try:
        return rows_of(application)
    except (EventideError, UnicodeDecodeError) as error:  # Arrow takes any bytes for a text
        return type(error)


def test_no_repair_harms(written: tuple[Bench, Moment, Damaged]) -> None:
    """Whatever happened to a file, the rows after a repair are those from before the damage or from before the repair."""
    bench, sound, table = written
    bench.load(sound)
    rows = rows_of(bench.process())
    seed = f"{table.version} {table.left_over}"
    chance = random.Random(seed if IS_REPEATED else None)
    outcomes: Counter[str] = Counter()
    for _ in range(25 * max(1, 20 * CAMPAIGN)):
        what, files = _at_random(chance, sound.files)
        bench.load(Moment(files, sound.time_ms))
        damaged = _rows_or_error(bench.process())
        try:
            done = _repair(bench.process())
        except EventideError as error:
            outcomes[f"refused as {type(error).__name__}"] += 1
            assert _rows_or_error(bench.process()) == damaged, what
            continue
        after = _rows_or_error(bench.process())
        if done.verification.ok and done.repairs:
            outcomes["repaired"] += 1
            assert after == rows, what
        else:
            outcomes["named" if done.unrepaired else "nothing found"] += 1
            assert after in (rows, damaged), what
    for outcome, count in outcomes.items():
        reached(f"files damaged at random and repaired: {outcome}", count)
    assert outcomes["repaired"]
    assert outcomes["named"]


def test_no_repair_takes_files_whose_commit_was_overwritten_by_another(written: tuple[Bench, Moment, Damaged]) -> None:
    """On version 6, the log files that the wrong commit names may have the instant of this write's slice in their names."""
    bench, sound, _ = written
    bench.load(sound)
    rows = rows_of(bench.process())
    commits = [path for path in sound.files if path.endswith(".deltacommit")]
    for path, other in itertools.permutations(commits, 2):
        bench.load(replace(sound, files={**sound.files, path: sound.files[other]}))
        before = _rows_or_error(bench.process())
        with suppress(EventideError):
            done = _repair(bench.process())
            assert not done.repairs or _rows_or_error(bench.process()) == rows, (path, other)
        assert _rows_or_error(bench.process()) in (rows, before), (path, other)


def test_a_torn_clean_goes_and_the_next_one_finds_what_it_found(written: tuple[Bench, Moment, Damaged]) -> None:
    bench, sound, table = written
    bench.load(sound)
    rows = rows_of(bench.process())
    assert bench.process().cleaner.clean(1).deleted
    cleaned = bench.moment()
    (torn,) = (path for path in cleaned.files if path.startswith(table.directory) and path.endswith(".clean"))
    bench.storage.put(torn, cleaned.files[torn].data[:40])
    done = _repair(bench.process())
    assert done.verification.ok
    assert not [path for path in bench.moment().files if path.startswith(table.directory) and ".clean" in path]
    assert rows_of(bench.process()) == rows
    assert bench.process().cleaner.clean(1).deleted == ()
