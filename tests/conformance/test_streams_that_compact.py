"""Beside a stream of Hudi that compacts, eventide stays out of its way; beside one that doesn't, eventide compacts.

A stream queues every pending plan as it starts, and stops without an error if another process works on the plan or has
completed it. The last test shows that with Hudi alone to blame: once it fails, eventide need not refuse any longer.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from eventide import Table
from support.judge import HudiJudge, hudi_judge
from support.run.campaign import IS_PROOF
from support.run.command_line import run
from support.run.reach import reached
from support.writers.beside import check_all_readers
from support.writers.restarted_stream import RestartedStream, wait_until
from support.writers.spark_writers import OCC

METADATA = {"hoodie.metadata.enable": "false"}
WRITER = {
    **OCC,
    **METADATA,
    # A killed service leaves its lock, and the next one removes it.
    "hoodie.write.lock.client.num_retries": "600",
    "hoodie.compact.inline.max.delta.commits": "2",
}
ASYNC = {**WRITER, "hoodie.datasource.compaction.async.enable": "true"}
NOT_ASYNC = {**WRITER, "hoodie.datasource.compaction.async.enable": "false"}
STATED = "eventide.streams.compact=false"
SOAK_SECONDS = 900 if IS_PROOF else 0
LIVES = 2
FILES = 2000
FED = 3
STANDSTILL_SECONDS = 60


def pending_plans(path: Path) -> tuple[object, ...]:
    return Table.open(str(path)).state().timeline.pending_plans


@contextmanager
def serving(path: Path, log: Path, *options: str) -> Iterator[None]:
    """The table service in a process that is killed at the end of the block."""
    words = ["serve", str(path), "--every", "1s", "--data-latency", "1s", "--engine", "local"]
    given = [word for option in options for word in ("--option", option)]
    with log.open("ab") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", "eventide", *words, *given],
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@pytest.mark.campaign
@pytest.mark.parametrize("is_async", [True, False], ids=["the stream compacts", "eventide compacts"])
@pytest.mark.broad
def test_a_stream_goes_on_beside_the_service_though_both_are_killed(
    is_async: bool, judge_120: HudiJudge, tmp_path: Path
) -> None:
    path, log = tmp_path / "table", tmp_path / "log"
    stream = RestartedStream(9, path, tmp_path, FILES)
    options = [] if is_async else [STATED]
    lives, services, until = 0, 0, time.monotonic() + SOAK_SECONDS
    while lives < LIVES or time.monotonic() < until:
        with hudi_judge("1.2.0") as judge:
            stream.feed(1)
            stream.begin(judge, ASYNC if is_async else NOT_ASYNC)
            assert wait_until(stream.has_taken_all), f"{stream.taken} at its start {judge.end_of_log()}"
            for _ in range(2):
                with serving(path, log, *options):
                    stream.feed(FED)
                    assert wait_until(stream.has_taken_all), f"{stream.taken} {judge.failures()} {judge.end_of_log()}"
                services += 1
            # A stream of 1.2.0 that is killed at its own compaction can't start again until its heartbeat has expired.
            assert not is_async or wait_until(lambda: not pending_plans(path)), pending_plans(path)
            stream.feed(1)  # a batch that is open when the process is killed
        (path / ".hoodie" / "lock").unlink(missing_ok=True)
        lives += 1
    with hudi_judge("1.2.0") as judge:
        stream.begin(judge, ASYNC if is_async else NOT_ASYNC)
        assert wait_until(stream.has_taken_all), f"{stream.taken} at its end {judge.end_of_log()}"
        assert not is_async or wait_until(lambda: not pending_plans(path)), pending_plans(path)
        assert not (failed := judge.end_writers()), failed

    words = f"a stream that {'compacts' if is_async else 'does not compact'}, beside serve"
    reached(f"{words}: starts of the stream", lives + 1)
    reached(f"{words}: kills of serve", services)
    said = log.read_text()
    reached(f"{words}: rounds that refused to plan", said.count("a stream of Hudi wrote"))
    reached(f"{words}: compactions of eventide", said.count("compacted at"))
    assert ("a stream of Hudi wrote" in said) == is_async, said[-2000:]
    assert ("compacted at" in said) != is_async, said[-2000:]
    cut = run("compact", path, "--before", stream.truth[0].end_ms, "--engine", "local", "--option", STATED)
    assert cut.exit_code == 0, cut.stderr
    check_all_readers(path, [judge_120], stream.truth, METADATA, words)


@pytest.mark.proof
def test_a_stream_of_hudi_that_starts_beside_a_compaction_at_work_stops(tmp_path: Path) -> None:
    path = tmp_path / "table"
    stream = RestartedStream(9, path, tmp_path, FILES)
    with hudi_judge("1.2.0") as judge:
        stream.feed(2)
        stream.begin(judge, NOT_ASYNC)
        assert wait_until(stream.has_taken_all), judge.end_of_log()
        assert not (failed := judge.end_writers()), failed
        refused = run("compact", path, "--before", stream.truth[-1].end_ms, "--engine", "local")
        assert (refused.exit_code, pending_plans(path)) == (3, ()), refused.stderr

        table = Table.open(str(path), {"eventide.streams.compact": "false"})
        plan = table.schedule(table.plan_compaction(before=stream.truth[-1].end_ms))
        heartbeats = path / ".hoodie" / ".heartbeat"
        heartbeats.mkdir(exist_ok=True)
        (heartbeats / plan.instant).touch()  # as a compaction at work keeps it
        stream.feed(2)
        stream.begin(judge, ASYNC)
        assert wait_until(lambda: "Compactor executor failed" in judge.end_of_log()), judge.end_of_log()
        assert not wait_until(stream.has_taken_all, STANDSTILL_SECONDS)
        assert judge.failures() == [], "now it says so"
        reached("streams of Hudi that stopped without an error beside a compaction at work")
