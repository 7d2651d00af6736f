"""A stock writer that never pauses is killed and comes back, again and again; eventide compacts beside it and in between.

After each life, no instant is completed twice, and the read-optimized view has everything before the watermark. The truth
is what the writer has begun and Hudi's timeline has completed, which is more than what it could still acknowledge.
"""

import os
import random
import re
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import pytest

from eventide import Table
from support.judge import HudiJudge, hudi_rs
from support.run.campaign import tries
from support.run.command_line import run
from support.run.reach import reached
from support.writers.batches import Batch, merged
from support.writers.beside import check_all_readers, check_covered, compact_beside, rows_of
from support.writers.java_writer import JavaWriter
from support.writers.spark_writers import NON_BLOCKING, OCC

CLIENT, CLIENT_WITH_METADATA = "1.2.1", "1.2.0"
"""The newest has no bundle of its own, and on 1.2.0's it can't make a metadata table (NoSuchFieldError)."""
# After its own compaction of the metadata table, this client can't write to it (ArrayIndexOutOfBoundsException).
METADATA_TABLE = {"hoodie.metadata.compact.max.delta.commits": "1000"}
EXPIRED_SECONDS = 600
BUCKET_INDEX = {
    "hoodie.index.type": "BUCKET",
    "hoodie.bucket.index.num.buckets": "2",
    # Non-blocking writers must have a bucket index, which the Java client lacks: this index knows where each record lies.
    "hoodie.index.class": "org.apache.hudi.index.inmemory.HoodieInMemoryHashIndex",
}
CALLS = 1
HOLD_SECONDS = 0.3


class Case(NamedTuple):
    version: int
    is_non_blocking: bool = False
    has_metadata_table: bool = False
    lives: tuple[int, int] = (2, 12)
    """In `broad` and in one proof."""

    @property
    def client(self) -> str:
        return CLIENT_WITH_METADATA if self.has_metadata_table else CLIENT

    @property
    def options(self) -> dict[str, str]:
        mode = NON_BLOCKING | BUCKET_INDEX if self.is_non_blocking else {}
        shared = OCC | METADATA_TABLE if self.has_metadata_table else {}
        return {"hoodie.metadata.enable": str(self.has_metadata_table).lower()} | mode | shared

    @property
    def words(self) -> str:
        how = ", non-blocking" * self.is_non_blocking + ", metadata table" * self.has_metadata_table
        return f"after a Java client of Hudi {self.client} (version {self.version}{how}) that was killed"


CASES = [
    pytest.param(Case(9), marks=pytest.mark.broad),
    pytest.param(Case(6), marks=pytest.mark.proof),
    pytest.param(Case(9, is_non_blocking=True), marks=pytest.mark.proof),
    pytest.param(Case(8, is_non_blocking=True), marks=pytest.mark.proof),
    pytest.param(Case(6, has_metadata_table=True), marks=pytest.mark.proof),
    pytest.param(Case(8, has_metadata_table=True), marks=pytest.mark.proof),
]


@pytest.mark.campaign
@pytest.mark.parametrize("case", CASES)
def test_a_java_client_is_killed_and_comes_back(case: Case, tmp_path: Path, judge_120: HudiJudge) -> None:
    path, moments, lives = tmp_path / "table", random.Random(case.version), tries(*case.lives)
    committed, first, ended = set[Batch](), 0, 0
    for life in range(lives):
        scratch = tmp_path / f"life-{life}"
        with JavaWriter(
            case.client, case.version, [path], scratch, options=case.options, first=first, hold=HOLD_SECONDS
        ) as writer:
            compact_beside(path, writer, CALLS)
            time.sleep(moments.uniform(0, 2 * HOLD_SECONDS))  # any moment of a batch
            writer.kill()
        # Hudi's lock of a process that died stays: somebody who knows that it died has to remove it.
        (path / ".hoodie" / "lock").unlink(missing_ok=True)
        begun, completed = writer.begun(), completions(path)
        assert all(count == 1 for count in completed.values()), f"life {life}: {completed}"
        dead = [instant for instant in begun if instant not in completed]
        ended += len(dead)
        committed |= {batch for instant, batch in begun.items() if instant in completed}
        first = max(batch.number for batch in begun.values()) + 1
        check_watermark(path, committed)
        if "hoodie.cleaner.policy.failed.writes" in case.options:
            undo(path, dead)
    with JavaWriter(case.client, case.version, [path], tmp_path / "last", options=case.options, first=first) as writer:
        compact_beside(path, writer, CALLS)
        truth = sorted({*committed, *writer.stop()})
    completed = completions(path)
    assert all(count == 1 for count in completed.values()), completed
    check_all_readers(path, [judge_120], truth, case.options, case.words)
    reached(f"{case.words}: lives", lives)
    reached(f"{case.words}: writes that it left open", ended)


@pytest.mark.proof
@pytest.mark.parametrize("version", [8, 9])
def test_a_java_client_that_commits_again_completes_its_instant_twice(version: int, tmp_path: Path) -> None:
    """Beside no eventide at all. Its queries read such a write once, its compactions merge it, and `verify` names it."""
    path, options = tmp_path / "t", Case(version, is_non_blocking=True).options
    with JavaWriter(CLIENT, version, [], tmp_path / "writer", options=options, dying={path: "twice"}, whole=1):
        pass
    assert sorted(completions(path).values()) == [1, 2]
    expected = merged(row for number in range(2) for row in Batch(number).rows)
    assert rows_of(Table.open(str(path)).snapshot().to_arrow()) == expected
    answer = run("compact", path, "--before", Batch(1).end_ms, "--engine", "local")
    assert answer.exit_code == 0, answer.stderr
    assert rows_of(Table.open(str(path)).read_optimized().to_arrow()) == expected
    verified = run("verify", path, "--deep")
    assert verified.exit_code == 1, verified.stderr
    assert "has completed 2 times" in verified.stdout


def check_watermark(path: Path, committed: set[Batch]) -> None:
    """Compacts once more, or is refused beside a write that may be alive; in both cases, the watermark must be true."""
    end_ms = max(batch.end_ms for batch in committed)
    wait = ("--option", "eventide.pending.write.wait_ms=0")
    answer = run("compact", path, "--before", end_ms, "--engine", "local", "--output", "json", *wait)
    assert answer.exit_code in (0, 4), answer.stderr
    table = Table.open(str(path))
    watermark_ms = table.freshness().watermark_ms
    check_covered(rows_of(table.read_optimized().to_arrow()), committed, watermark_ms)
    check_covered(rows_of(hudi_rs.read(path, "read_optimized")), committed, watermark_ms, "hudi-rs")


def undo(path: Path, dead: Iterable[str]) -> None:
    """Rolls back what a lazy writer left, as the table service does once the heartbeat has expired."""
    for instant in dead:
        heartbeat = path / ".hoodie" / ".heartbeat" / instant
        if heartbeat.exists():
            expired = time.time() - EXPIRED_SECONDS
            os.utime(heartbeat, (expired, expired))
        answer = run("rollback", path, instant, "--force")
        assert answer.exit_code == 0, answer.stderr


def completions(path: Path) -> Counter[str]:
    """How many completed files each instant has, whatever the action."""
    names = [file.name for directory in (".hoodie", ".hoodie/timeline") for file in (path / directory).glob("[0-9]*.*")]
    return Counter(match[1] for name in names if (match := re.fullmatch(r"(\d+)(?:_\d+)?\.[a-z]+", name)))
