"""What stock Hudi undoes, and what it cannot.

1. Stock Hudi restores a table of version 6 to a savepoint, and leaves the blocks of the writes that it undid.

Hudi 1.1.1 upgrades the table first. Its restore then looks for log files that are named by the undone writes, but
version 6 names them by their slice.
2. On version 9, it refuses to undo a compaction whose instant is earlier than a write that is left. eventide undoes
both, also after stock's restore has failed.
"""

from pathlib import Path

import pytest

from conformance.test_table_services import SETTINGS, do, write
from eventide import Table
from support.judge import HudiJudge
from support.judge.deeds import call_on
from support.pasts import golden
from support.pasts.hudi_continues import NEW_MS, snapshots
from support.run.command_line import run, run_json

STAYS = {"hoodie.write.auto.upgrade": "false", "hoodie.write.table.version": "6"}


@pytest.mark.broad
def test_blocks_that_a_restore_of_stock_left_count_for_no_verb(tmp_path: Path, judge_111: HudiJudge) -> None:
    path = golden.unpack("v6_111_avro_bucket", tmp_path)
    options = dict(golden.expected("v6_111_avro_bucket").options) | STAYS
    table = Table.open(str(path))
    saved = table.state().timeline.writes[-1].requested_time
    kept = snapshots(judge_111, path)
    table.savepoint(saved)
    do(judge_111, [write(path, options, "undone")])
    assert snapshots(judge_111, path) != kept
    do(judge_111, [call_on(path, "rollback_to_savepoint", SETTINGS, instant_time=saved)])

    restored = Table.open(str(path))
    assert restored.version == 9
    assert snapshots(judge_111, path) == kept
    assert run("verify", path, "--deep").exit_code == 0
    run_json("compact", path, "--before", NEW_MS + 10**6, "--engine", "local")
    assert snapshots(judge_111, path) == kept
    assert run("verify", path, "--deep").exit_code == 0


@pytest.mark.broad
def test_eventide_restores_over_a_compaction_at_a_quiet_moment_where_stock_fails(
    tmp_path: Path, judge_111: HudiJudge
) -> None:
    path = golden.unpack("v9_event_bucket", tmp_path)
    options = dict(golden.expected("v9_event_bucket").options)
    table = Table.open(str(path))
    saved = table.state().timeline.writes[-1].requested_time
    kept = snapshots(judge_111, path)
    table.savepoint(saved)
    do(judge_111, [write(path, options, "a"), write(path, options, "zzz")])
    plan = ("--before", NEW_MS + 200)  # between the event times of the two writes
    assert f"`eventide restore TABLE {saved}`" in run("plan", path, *plan).stdout
    done = run_json("compact", path, *plan, "--engine", "local")
    assert done["instant"] < Table.open(str(path)).state().timeline.writes[-1].requested_time
    failed = judge_111.together([[call_on(path, "rollback_to_savepoint", SETTINGS, instant_time=saved)]])
    assert "please rollback greater commits first" in str(failed)

    assert run("restore", path, saved).exit_code == 0
    assert snapshots(judge_111, path) == kept
    assert run("verify", path, "--deep").exit_code == 0
    do(judge_111, [write(path, options, "after")])
    assert snapshots(judge_111, path) != kept
