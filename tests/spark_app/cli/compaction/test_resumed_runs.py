"""A run first completes what a dead run left. It leaves a live run alone, and repeating it writes nothing."""

import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from eventide import Table
from eventide.bootstrap import Application, assemble
from eventide.rows.writer import incoming_records
from eventide_adapters.storage.local import LocalStorage
from eventide_core.config import CONCURRENCY_MODE, HEARTBEAT_INTERVAL_MS
from eventide_core.errors import BusyError, InvalidRecordError, NothingToDoError, RefusedError, StorageFullError
from eventide_core.ports import NoProgress
from eventide_core.service.common.transaction.outcome import Outcome, claim_outcome
from eventide_core.table.settings.write_shape import WriteOperation
from support.run.child_processes import environment
from support.run.command_line import content_of, run, run_json
from support.tables.on_disk import expire_heartbeats_of
from support.tables.small import LATER_MS, OPTIONS, make, rows, seen

SLOW_HEARTS: dict[str, str] = {HEARTBEAT_INTERVAL_MS: "600000"}
WORDS = ("--engine", "local", *OPTIONS, "--option", f"{HEARTBEAT_INTERVAL_MS}=600000")


@pytest.fixture(params=[6, 9])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Table:
    made = make(tmp_path / "t", request.param)
    made.upsert(rows(("k0", -9, "base"), ("k1", -9, "base")))
    made.upsert(rows(("k0", -3, "due")))
    return Table.open(made.uri, {**made.options, **SLOW_HEARTS})


def scheduled(table: Table) -> str:
    return table.schedule(table.plan_compaction(before=LATER_MS)).instant


def beating(table: Table, instant: str) -> Application:
    """A process of its own, as far as anyone sees, that lives and has begun the compaction."""
    owner = assemble(table.uri, table.options)
    owner.heartbeats.start(instant)
    return owner


def leave_heartbeat_of_dead_process(table: Table, instant: str) -> None:
    """As a process of this machine that has ended leaves it."""
    code = (
        "import sys\nfrom eventide.bootstrap import assemble\nassemble(sys.argv[1], {}).heartbeats.start(sys.argv[2])\n"
    )
    subprocess.run([sys.executable, "-c", code, table.uri, instant], check=True, env=environment())


def test_what_a_dead_run_left_is_ended_first_and_then_what_was_asked(table: Table) -> None:
    begun = scheduled(table)
    leave_heartbeat_of_dead_process(table, begun)
    table.upsert(rows(("k1", -2, "after the plan")))
    document = run_json("compact", table.uri, "--before", LATER_MS, *WORDS)
    assert (document["resumed"], document["rolled_back"], document["state"]) == ([begun], [], "completed")
    assert document["instant"] > begun
    assert seen(table.read_optimized().to_arrow()) == seen(table.snapshot().to_arrow())
    assert table.state().timeline.pending == ()
    assert not list((Path(table.uri) / ".hoodie/.heartbeat").glob("*"))


def test_a_plan_that_was_scheduled_and_nobody_has_begun_is_run_by_the_next_compact(table: Table) -> None:
    begun = scheduled(table)
    document = run_json("compact", table.uri, "--before", LATER_MS, *WORDS)
    assert (document["resumed"], document["instant"], document["already_reached"]) == ([begun], None, True)


def test_a_late_plan_says_that_others_were_faster(tmp_path: Path) -> None:
    """On version 6, a plan stays that its process put when it woke up."""
    table = make(tmp_path / "t", 6)
    table.upsert(rows(("k0", -9, "base")))
    table.upsert(rows(("k0", -3, "due")))
    late = scheduled(table)
    path = tmp_path / "t" / ".hoodie" / f"{late}.compaction.requested"
    plan = path.read_bytes()
    path.unlink()
    table.upsert(rows(("k0", -2, "after the plan")))
    done = run_json("compact", table.uri, "--before", LATER_MS, *WORDS)["instant"]
    assert done > late
    path.write_bytes(plan)
    copy = shutil.copytree(tmp_path / "t", tmp_path / "copy")
    document = run_json("compact", copy, "--execute", late, *WORDS)
    assert (document["instant"], document["already_reached"]) == (done, True)
    said = run("compact", table.uri, "--execute", late, *WORDS)
    assert (said.exit_code, said.stdout.splitlines()[0]) == (
        0,
        "nothing to do: others have compacted everything before T",
    )


def test_a_run_that_is_alive_is_named_and_left_alone(table: Table) -> None:
    begun = scheduled(table)
    owner = beating(table, begun)
    before = content_of(Path(table.uri))
    for words in (("--before", LATER_MS), ("--execute", begun)):
        answer = run("compact", table.uri, *words, *WORDS)
        assert answer.exit_code == 4
        assert f"host {socket.gethostname()}, process {os.getpid()}" in answer.stderr
        assert "s old" in answer.stderr
    with pytest.raises(BusyError, match="alive"):
        table.rollback(begun)
    assert content_of(Path(table.uri)) == before
    owner.heartbeats.end(begun)
    assert run_json("compact", table.uri, "--before", LATER_MS, *WORDS)["resumed"] == [begun]


def test_a_run_on_another_machine_is_dead_when_its_heartbeat_has_expired(table: Table) -> None:
    begun = scheduled(table)
    beating(table, begun).heartbeats.stop(begun)
    assert run("compact", table.uri, "--before", LATER_MS, *WORDS).exit_code == 4
    expire_heartbeats_of(Path(table.uri))
    assert run_json("compact", table.uri, "--before", LATER_MS, *WORDS)["resumed"] == [begun]


def test_a_plan_whose_rollback_was_decided_is_rolled_back_and_planned_again(table: Table) -> None:
    begun = scheduled(table)
    claim_outcome(assemble(table.uri, {}).storage, Outcome(begun, None))
    result = table.compact(before=LATER_MS)
    assert (result.ended.rolled_back, result.ended.resumed) == ((begun,), ())
    assert seen(table.read_optimized().to_arrow()) == seen(table.snapshot().to_arrow())


def test_repeating_a_compaction_writes_nothing(table: Table) -> None:
    first = run_json("compact", table.uri, "--before", LATER_MS, *WORDS)
    before = content_of(Path(table.uri))
    for asked in (LATER_MS, LATER_MS - 1, 100_000_000_000):
        document = run_json("compact", table.uri, "--before", asked, *WORDS)
        assert (document["instant"], document["state"], document["already_reached"]) == (None, "idle", True)
        assert document["watermark_ms"] == document["cut_ms"] == LATER_MS
    assert run_json("compact", table.uri, "--before", LATER_MS, "--schedule-only", *WORDS)["already_reached"]
    again = table.compact(before=LATER_MS)
    assert (again.instant, again.is_already_reached) == (first["instant"], True)
    assert set(again.metrics.values()) == {0}
    assert content_of(Path(table.uri)) == before
    by_strategy = Table.open(table.uri, {**table.options, "hoodie.compaction.strategy": "UnBoundedCompactionStrategy"})
    with pytest.raises(NothingToDoError):
        by_strategy.compact(by_strategy.plan_compaction())


def test_a_partition_value_too_long_for_a_directory_is_refused_before_any_write(table: Table) -> None:
    before = content_of(Path(table.uri))
    batch = rows(("k0", -1, "new")).set_column(1, "part", pa.array(["é" * 128]))
    with pytest.raises(InvalidRecordError, match="longer than the 255 bytes"):
        table.upsert(batch)
    assert content_of(Path(table.uri)) == before


def test_a_write_that_finds_the_disk_full_rolls_itself_back(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise StorageFullError("no space left; make room there")

    with monkeypatch.context() as patch:
        patch.setattr(LocalStorage, "open_output", full)
        with pytest.raises(StorageFullError):
            table.upsert(rows(("k0", -1, "never")))
    assert table.state().timeline.pending == ()
    assert run_json("compact", table.uri, "--before", LATER_MS, *WORDS)["rolled_back"] == []


def test_a_write_beside_a_pending_one_without_a_heartbeat_is_refused_with_the_cure(table: Table) -> None:
    """Its writer cleans eagerly: Hudi could not roll it back after a later commit."""
    owner = assemble(table.uri, table.options)
    dead = owner.append.begin(
        WriteOperation.UPSERT, incoming_records(owner, WriteOperation.UPSERT, rows(("k0", -1, "dead"))), NoProgress()
    )
    owner.heartbeats.end(dead.instant)
    with pytest.raises(RefusedError, match=rf'table.rollback\("{dead.instant}", force=True\)'):
        table.upsert(rows(("k1", -1, "ours")))
    several: dict[str, str] = {**table.options, CONCURRENCY_MODE: "optimistic_concurrency_control"}
    Table.open(table.uri, several).upsert(rows(("k1", -1, "ours")))
    assert run("rollback", table.uri, dead.instant).exit_code == 3
    assert run("rollback", table.uri, dead.instant, "--force").exit_code == 0
    table.upsert(rows(("k0", -1, "ours, too")))
    assert {word for _, word in seen(table.snapshot().to_arrow()).values()} == {"ours", "ours, too"}


def test_the_clean_of_another_engine_is_left_to_it_until_it_has_stood_for_long(table: Table) -> None:
    table.compact(before=LATER_MS)
    table.upsert(rows(("k0", 1, "later")))
    table.compact(data_latency_seconds=0, link_mode="copy")
    directory = table.state().config.timeline_path
    assert table.clean(1).instant is not None
    for path in (Path(table.uri) / directory).glob("*.clean"):
        path.unlink()  # as it stands before it completes, by an engine that keeps no heartbeat
    answer = run("clean", table.uri, *OPTIONS)
    assert (answer.exit_code, "of another engine" in answer.stderr) == (4, True)
    assert run("verify", table.uri).exit_code == 0
    for path in (Path(table.uri) / directory).glob("*.clean.*"):
        os.utime(path, (0, 0))
    assert run("clean", table.uri, *OPTIONS).exit_code == 0
    assert table.state().timeline.pending == ()
