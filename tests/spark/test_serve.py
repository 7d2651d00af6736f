"""The table service, by its command line: what a round does, what it ends, and that killing it does no harm."""

from __future__ import annotations

import json
import os
import random
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
from eventide.progress import NoProgress
from eventide.writer import incoming_records
from eventide_core.config import BLOOM_ENTRIES, BUCKETS, CLOCK_SKEW_MS, DATA_LATENCY, HEARTBEAT_INTERVAL_MS
from eventide_core.service.outcome import Outcome, claim_outcome
from eventide_core.table.instant import Action
from eventide_core.table.write_shape import WriteOperation
from support.command_line import content_of, run, run_json
from support.reach import reached

KILLS = 3 * int(os.environ.get("EVENTIDE_CAMPAIGN", "1"))
HOUR_MS = 3_600_000
COLUMNS: list[pa.Field[Any]] = [
    pa.field("id", pa.string()),
    pa.field("part", pa.string()),
    pa.field("ms", pa.int64()),
    pa.field("word", pa.string()),
]
SCHEMA = pa.schema(COLUMNS)
# Everything soon: two commits on the timeline, one retained, and a writer is dead after some milliseconds without a sign.
SOON = {
    BLOOM_ENTRIES: "100",
    CLOCK_SKEW_MS: "1",
    HEARTBEAT_INTERVAL_MS: "1",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.cleaner.commits.retained": "1",
    "hoodie.compact.inline.max.delta.commits": "1",
}
SERVE = ("--engine", "local", "--every", "1h", "--data-latency", "30m", "--output", "json")
OPTIONS = tuple(word for key, value in SOON.items() for word in ("--option", f"{key}={value}"))


def make(path: Path, version: int) -> Table:
    return Table.create(
        str(path),
        schema=SCHEMA,
        record_key="id",
        partition="part",
        event_time="ms",
        version=version,
        options={BUCKETS: 1, **SOON},
    )


def rows(*values: tuple[str, int, str]) -> pa.Table:
    """Rows of two partitions; event times in hours from now."""
    now = time.time_ns() // 1_000_000
    found = [(key, "ab"[int(key[1:]) % 2], now + hours * HOUR_MS, word) for key, hours, word in values]
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in found], schema=SCHEMA)


def seen(rows: pa.Table) -> dict[str, tuple[int, str]]:
    return {row["id"]: (row["ms"], row["word"]) for row in rows.to_pylist()}


def die(table: Table, records: pa.Table) -> str:
    """A write whose files are there, and whose writer dies; its instant."""
    writer = assemble(table.uri, table.options)
    pending = writer.append.begin(
        WriteOperation.UPSERT, incoming_records(writer, WriteOperation.UPSERT, records), NoProgress()
    )
    writer.append.heartbeats.stop(pending.instant)
    return pending.instant


def serve(path: Path) -> dict[str, Any]:
    document: dict[str, Any] = run_json("serve", path, "--rounds", 1, *SERVE, *OPTIONS)
    return document


@pytest.mark.parametrize("version", [6, 9])
def test_a_round_ends_what_was_begun_and_does_what_is_due(version: int, tmp_path: Path) -> None:
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


def test_a_round_that_finds_the_table_busy_says_so_and_the_next_one_goes_on(tmp_path: Path) -> None:
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


def test_a_plan_whose_rollback_broke_off_is_rolled_back_and_planned_anew(tmp_path: Path) -> None:
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


def test_where_t_stands_still_no_empty_commits_are_made(tmp_path: Path) -> None:
    table = make(tmp_path / "t", 9)
    table.upsert(rows(("k0", -9, "base")))
    words = ("--engine", "local", "--rounds", 1, "--option", "hoodie.compaction.event.time.threshold=1000")
    assert run_json("serve", tmp_path / "t", *words)["state"] == "compacted"
    before = content_of(tmp_path / "t")
    document = run_json("serve", tmp_path / "t", *words)
    assert (document["state"], document["instant"], document["cut_ms"]) == ("idle", None, 1000)
    assert content_of(tmp_path / "t") == before


def test_a_service_that_is_told_to_end_begins_no_further_step(tmp_path: Path) -> None:
    table = make(tmp_path / "t", 9)
    table.upsert(rows(("k0", -9, "base")))
    before = content_of(tmp_path / "t")
    service = Table.open(table.uri, {**SOON, DATA_LATENCY: "1800"}).service()
    assert service.round(NoProgress(), is_leaving=lambda: True).freshness is None
    assert content_of(tmp_path / "t") == before


def process(*words: object, code: str = "from eventide.cli import main; main()") -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    command = [sys.executable, "-c", code, *(str(word) for word in words)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_sigterm_ends_a_service_that_waits(tmp_path: Path) -> None:
    make(tmp_path / "t", 9).upsert(rows(("k0", -9, "base")))
    with process("serve", tmp_path / "t", *SERVE) as service:
        assert service.stdout is not None
        assert json.loads(service.stdout.readline())["state"] == "compacted"
        service.send_signal(signal.SIGTERM)
        assert service.wait(60) == 0


# Kills its process in front of the n-th change that it makes to a file system; says at the end how many there were.
KILLED = """
import os, signal, sys
at, changes = int(sys.argv.pop(1)), 0
CHANGES = {"os.rename", "os.remove", "os.link", "os.symlink", "os.mkdir", "os.rmdir", "os.truncate", "os.utime"}
def count(event, arguments):
    global changes
    if event in CHANGES or event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR):
        changes += 1
        if changes == at:
            os.kill(os.getpid(), signal.SIGKILL)
from eventide.cli import main
sys.dont_write_bytecode = True
sys.addaudithook(count)
try:
    main()
finally:
    print(changes, file=sys.stderr)
"""


def serve_until_killed(path: Path, at: int) -> int | None:
    """Serves a round, and is killed in front of a change; None, or how many there were where it came to its end."""
    with process(at, "serve", path, "--rounds", 1, *SERVE, *OPTIONS, code=KILLED) as service:
        said = service.communicate()[1]
        if service.returncode == -signal.SIGKILL:
            return None
        assert service.returncode == 0, said
        return int(said.split()[-1])


@pytest.mark.parametrize("version", [6, 9])
def test_a_service_killed_at_any_change_loses_and_doubles_nothing_and_the_next_goes_on(
    version: int, tmp_path: Path
) -> None:
    table = make(tmp_path / "t", version)
    chance = random.Random(version)
    truth: dict[str, tuple[int, str]] = {}

    def write(number: int) -> None:
        chosen = rows(*((f"k{chance.randrange(8)}", chance.randrange(-9, 6), f"{number}.{i}") for i in range(4)))
        table.upsert(chosen)
        for key, row in ((r["id"], (r["ms"], r["word"])) for r in chosen.to_pylist()):
            truth[key] = max(truth.get(key, row), row, key=lambda r: r[0])

    write(0)
    write(1)
    changes = serve_until_killed(tmp_path / "t", 1_000_000_000)
    assert changes is not None
    killed = 0
    while killed < KILLS:
        write(2 * killed + 2)
        write(2 * killed + 3)
        die(table, rows(("k99", -1, "never")))
        while serve_until_killed(tmp_path / "t", 1 + chance.randrange(changes)) is None:
            killed += 1
            assert seen(table.snapshot().to_arrow()) == truth
            if chance.random() < 0.5:  # else what ends it is killed, too
                break
        document = serve(tmp_path / "t")
        assert document["troubles"] == []
        assert table.snapshot().to_arrow().num_rows == len(truth)
        assert seen(table.snapshot().to_arrow()) == truth
        optimized = seen(table.read_optimized().to_arrow())
        assert {key: row for key, row in truth.items() if row[0] < document["cut_ms"]}.items() <= optimized.items()
        assert table.state().timeline.pending == ()
    reached("kills of the table service", killed)
