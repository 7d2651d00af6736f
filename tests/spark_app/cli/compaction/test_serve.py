"""The table service, by its command line: what a round does, and what it ends. It is killed in test_random_kills."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from eventide import Table
from eventide.bootstrap import assemble
from eventide.cli.compaction.serve import _line
from eventide.rows.writer import incoming_records
from eventide.table.table_service import Round, Trouble
from eventide_core.config import DATA_LATENCY
from eventide_core.errors import BusyError, StorageAccessError
from eventide_core.ports import NoProgress
from eventide_core.service.common.transaction.outcome import Outcome, claim_outcome
from eventide_core.table.settings.write_shape import WriteOperation
from eventide_core.table.timeline.instant import Action
from support.run.child_processes import environment
from support.run.command_line import content_of, run, run_json
from support.tables.small import HOUR_MS, OPTIONS, SERVE, SOON, make, rows, seen

pytestmark = pytest.mark.slow


def die(table: Table, records: pa.Table) -> str:
    """A write whose files exist, and whose writer dies; its instant."""
    writer = assemble(table.uri, table.options)
    pending = writer.append.begin(
        WriteOperation.UPSERT, incoming_records(writer, WriteOperation.UPSERT, records), NoProgress()
    )
    writer.heartbeats.stop(pending.instant)
    return pending.instant


def serve(path: Path) -> dict[str, Any]:
    document: dict[str, Any] = run_json("serve", path, "--rounds", 1, *SERVE, *OPTIONS)
    return document


@pytest.mark.parametrize("version", [6, 9])
def test_a_round_finishes_pending_work_and_does_what_is_due(version: int, tmp_path: Path) -> None:
    table = make(tmp_path / "t", version)
    table.upsert(rows(("k0", -9, "base"), ("k1", -9, "base"), ("k2", 9, "base")))
    table.upsert(rows(("k0", -3, "due"), ("k1", 3, "left over")))
    begun = table.schedule(table.plan_compaction(data_latency_seconds=1800)).instant
    table.upsert(rows(("k3", -1, "after the plan"), ("k2", 9, "later")))
    dead = die(table, rows(("k3", -1, "never")))

    first = serve(tmp_path / "t")
    assert first["state"] == "compacted"
    assert (first["rolled_back"], first["resumed"]) == ([dead], [begun])
    assert first["instant"] > begun
    assert first["late_records"] == 0
    assert first["watermark_ms"] == first["cut_ms"] <= time.time_ns() // 1_000_000 - HOUR_MS // 2
    optimized, whole = seen(table.read_optimized().to_arrow()), seen(table.snapshot().to_arrow())
    assert {key: word for key, (_, word) in whole.items()} == {
        "k0": "due",
        "k1": "left over",
        "k2": "later",
        "k3": "after the plan",
    }
    assert {key: row for key, row in whole.items() if row[0] < first["cut_ms"]}.items() <= optimized.items()
    assert table.state().timeline.pending == ()

    for number in range(3):
        table.upsert(rows(("k0", -1, f"again {number}")))
        assert serve(tmp_path / "t")["state"] == "compacted"
    last = serve(tmp_path / "t")
    assert last["cut_ms"] > first["cut_ms"]
    assert last["troubles"] == []
    writes = table.state().timeline.writes
    assert len(writes) <= 4, "archived"
    assert any(i.action is Action.CLEAN for i in table.state().timeline.completed)


def test_a_round_that_finds_the_table_busy_reports_it_and_the_next_one_continues(tmp_path: Path) -> None:
    table = make(tmp_path / "t", 9)
    table.upsert(rows(("k0", -9, "base")))
    foreign = tmp_path / "t/.hoodie/timeline/20200101000000000.clustering.requested"
    foreign.touch()
    answer = run("serve", tmp_path / "t", "--rounds", 1, *SERVE)
    assert answer.exit_code == 4
    document = json.loads(answer.stdout)
    assert (document["state"], [t["step"] for t in document["troubles"]]) == ("busy", ["compact"])
    assert "clustering" in document["troubles"][0]["message"]
    foreign.unlink()
    assert serve(tmp_path / "t")["state"] == "compacted"


def test_a_plan_whose_rollback_was_interrupted_is_rolled_back_and_planned_again(tmp_path: Path) -> None:
    table = make(tmp_path / "t", 9)
    table.upsert(rows(("k0", -9, "base")))
    table.upsert(rows(("k0", -3, "due")))
    begun = table.schedule(table.plan_compaction(data_latency_seconds=1800)).instant
    claim_outcome(assemble(table.uri, {}).storage, Outcome(begun, None))
    document = serve(tmp_path / "t")
    assert (document["rolled_back"], document["resumed"], document["state"]) == ([begun], [], "compacted")
    assert seen(table.read_optimized().to_arrow()) == seen(table.snapshot().to_arrow())


def test_options_that_no_round_could_mend_end_the_service(tmp_path: Path) -> None:
    make(tmp_path / "t", 9).upsert(rows(("k0", -9, "base")))
    assert run("serve", tmp_path / "t", "--engine", "local").exit_code == 2
    assert run("serve", tmp_path / "none", *SERVE).exit_code == 2
    told = run("serve", tmp_path / "t", "--rounds", 1, "--every", "1s", "--data-latency", "30m", "--engine", "local")
    assert told.exit_code == 0
    assert "cut 20" in told.stdout


@pytest.mark.parametrize(
    ("threshold", "says"),
    [
        (
            "1795143600",
            "T must be epoch milliseconds of at least 100000000000 (1973), not 1795143600: epoch seconds? write 2026-11-20",
        ),
        ("-5", "T must be epoch milliseconds of at least 100000000000 (1973), not -5"),
        ("2026-11-20 03:00", "give ISO-8601 with a zone"),
        ("9999-01-01T00:00Z", "9999-01-01"),
    ],
)
def test_a_t_that_cannot_be_meant_is_refused(threshold: str, says: str, tmp_path: Path) -> None:
    table = make(tmp_path / "t", 9)
    table.upsert(rows(("k0", -9, "base")))
    table.upsert(rows(("k0", -3, "due")))
    said = f"hoodie.compaction.event.time.threshold={threshold}"
    told = run("serve", tmp_path / "t", "--rounds", 1, "--every", "1s", "--engine", "local", "--option", said)
    assert told.exit_code == 2, told
    assert says in told.stderr + told.stdout
    assert table.freshness().cut_ms is None


def test_where_t_stands_still_no_empty_commits_are_made(tmp_path: Path) -> None:
    table = make(tmp_path / "t", 9)
    table.upsert(rows(("k0", -9, "base")))
    words = (
        "--engine",
        "local",
        "--rounds",
        1,
        "--option",
        "hoodie.compaction.event.time.threshold=1970-01-01T00:00:01Z",
    )
    assert run_json("serve", tmp_path / "t", *words)["state"] == "compacted"
    before = content_of(tmp_path / "t")
    document = run_json("serve", tmp_path / "t", *words)
    assert (document["state"], document["instant"], document["cut_ms"]) == ("idle", None, 1000)
    assert content_of(tmp_path / "t") == before


def test_a_service_that_is_reported_to_end_begins_no_further_step(tmp_path: Path) -> None:
    table = make(tmp_path / "t", 9)
    table.upsert(rows(("k0", -9, "base")))
    before = content_of(tmp_path / "t")
    service = Table.open(table.uri, {**SOON, DATA_LATENCY: "1800"}).service()
    assert service.round(NoProgress(), is_leaving=lambda: True).freshness is None
    assert content_of(tmp_path / "t") == before


def test_sigterm_ends_a_service_that_waits(tmp_path: Path) -> None:
    make(tmp_path / "t", 9).upsert(rows(("k0", -9, "base")))
    command = [sys.executable, "-m", "eventide", "serve", str(tmp_path / "t"), *SERVE]
    with subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE, text=True) as service:
        assert service.stdout is not None
        assert json.loads(service.stdout.readline())["state"] == "compacted"
        service.send_signal(signal.SIGTERM)
        assert service.wait(60) == 0


def test_a_round_that_ends_before_its_first_step_says_so() -> None:
    assert _line(Round()) == "ended before its first step"


def test_a_line_says_one_refusal_of_several_steps_once() -> None:
    def refused(step: str, name: str) -> Trouble:
        return Trouble(step, StorageAccessError(f"cannot write '.hoodie/lock.{name}'; check the permissions"))

    lock, other = "144e64e82aa144b1aac1fa07774f3b2c", "a657bf919f664c1c975efedb10a3edd4"
    steps = (refused("rollback", lock), refused("compact", other), Trouble("clean", BusyError("a writer is active")))
    assert _line(Round(troubles=(*steps, refused("archive", other)))) == (
        f"rollback, compact, archive failed: cannot write '.hoodie/lock.{lock}'; check the permissions; "
        "clean busy: a writer is active"
    )
