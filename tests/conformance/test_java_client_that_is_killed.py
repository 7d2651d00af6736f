"""A stock writer that never pauses is killed and comes back, again and again; eventide compacts beside it and in between.

After each life, no instant is completed twice, and the read-optimized view has everything before the watermark. The truth
is what the writer has begun and Hudi's timeline has completed, which is more than what it could still acknowledge.
"""

from __future__ import annotations

import random
import re
import time
from collections import Counter
from pathlib import Path

import pytest

from eventide import Table
from support.command_line import run
from support.judge import HudiJudge
from support.reach import reached
from support.writers.batches import Batch
from support.writers.beside import check_all_readers, check_covered, compact_beside, rows_of
from support.writers.java_writer import JavaWriter

CLIENT = "1.2.1"
"""It has no bundle of its own, and on that of 1.2.0 it can't make a metadata table (NoSuchFieldError)."""
OPTIONS = {"hoodie.metadata.enable": "false"}
LIVES, CALLS = 3, 1
HOLD_SECONDS = 0.3


@pytest.mark.parametrize(
    "version", [pytest.param(9, marks=pytest.mark.broad), pytest.param(6, marks=pytest.mark.proof)]
)
def test_a_java_client_is_killed_and_comes_back(version: int, tmp_path: Path, judge_120: HudiJudge) -> None:
    path, moments = tmp_path / "table", random.Random(version)
    words = f"after a Java client of Hudi {CLIENT} (version {version}) that was killed"
    committed, first = set[Batch](), 0
    for life in range(LIVES):
        scratch = tmp_path / f"life-{life}"
        with JavaWriter(CLIENT, version, [path], scratch, options=OPTIONS, first=first, hold=HOLD_SECONDS) as writer:
            compact_beside(path, writer, CALLS, {})
            time.sleep(moments.uniform(0, 2 * HOLD_SECONDS))  # any moment of a batch
            writer.kill()
        begun, completed = writer.begun(), completions(path)
        assert all(count == 1 for count in completed.values()), f"life {life}: {completed}"
        committed |= {batch for instant, batch in begun.items() if instant in completed}
        first = max(batch.number for batch in begun.values()) + 1
        check_watermark(path, committed)
    with JavaWriter(CLIENT, version, [path], tmp_path / "last", options=OPTIONS, first=first) as writer:
        compact_beside(path, writer, CALLS, {})
        truth = sorted({*committed, *writer.stop()})
    completed = completions(path)
    assert all(count == 1 for count in completed.values()), completed
    check_all_readers(path, [judge_120], truth, OPTIONS, words)
    reached(f"{words}: lives", LIVES)


def check_watermark(path: Path, committed: set[Batch]) -> None:
    """Compacts once more, or is refused beside a write that may be alive; in both cases, the watermark must be true."""
    end_ms = max(batch.end_ms for batch in committed)
    wait = ("--option", "eventide.pending.write.wait_ms=0")
    answer = run("compact", path, "--before", end_ms, "--engine", "local", "--output", "json", *wait)
    assert answer.exit_code in (0, 4), answer.stderr
    table = Table.open(str(path))
    check_covered(rows_of(table.read_optimized().to_arrow()), committed, table.freshness().watermark_ms)


def completions(path: Path) -> Counter[str]:
    """How many completed files each instant has, whatever the action."""
    names = [file.name for directory in (".hoodie", ".hoodie/timeline") for file in (path / directory).glob("[0-9]*.*")]
    return Counter(match[1] for name in names if (match := re.fullmatch(r"(\d+)(?:_\d+)?\.[a-z]+", name)))
