"""What commands take on large tables: seconds, and the most memory of the process.

    PYTHONPATH=tests python -m benchmarks.large_tables slices 1 200 2000 10000
    PYTHONPATH=tests python -m benchmarks.large_tables rows 200000 1000000
    PYTHONPATH=tests python -m benchmarks.large_tables commits 300 1000 3000
    PYTHONPATH=tests python -m benchmarks.large_tables sigterm 10000

Each prints a line for each command and size. `slices`: eight rows and two log files in each of that many slices. `rows`: so
many rows in one slice, a tenth of them in each of two log files. `commits`: as many commits that were never archived, with
66.7 files each. `sigterm`: how long `serve --grace 1s` takes to end if it gets SIGTERM in the middle of a compaction of that
many slices. Each command is a process of its own, with threads and without Spark.
"""

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.growth import Point, grow
from benchmarks.planning.beside_stock import make
from benchmarks.planning.made_table import MadeTable
from benchmarks.workloads import FIRST_EVENT_MS
from eventide import Table

_BEFORE = str(FIRST_EVENT_MS + 10**10)  # later than every record
_QUIET = ("--engine", "local", "--output", "json", "--quiet")
_DUE = ("--rounds", "1", "--data-latency", "1s", "--option", "hoodie.compact.inline.max.delta.commits=1")
# The peak in kB as the kernel has it: what `wait4` says is at least the peak of the process that started this one.
_MEASURED = r"""
import atexit, re, sys
from eventide.__main__ import main

noted = sys.argv.pop(1)

@atexit.register
def note_peak():
    with open("/proc/self/status") as status, open(noted, "w") as peak:
        peak.write(re.search(r"VmHWM:\s+(\d+)", status.read())[1])

main()
"""
_IDLE = (
    "hoodie.keep.min.commits=1000000",
    "hoodie.keep.max.commits=1000001",
)


def commands(before: str) -> dict[str, tuple[str, ...]]:
    """The command lines by their names, without the table."""
    no_work = tuple(part for option in _IDLE for part in ("--option", option))
    return {
        "plan": ("plan", "--before", before),
        "freshness": ("freshness",),
        "status": ("status",),
        "serve, idle": ("serve", "--rounds", "1", "--data-latency", "3650d", *no_work),
        "verify": ("verify",),
        "compact": ("compact", "--before", before),
    }


def run(table: Path, words: Sequence[str]) -> tuple[float, float, int]:
    """Seconds by the clock, CPU seconds, and the peak in MB of one command."""
    verb, *more = words
    peak = table.parent / "peak"
    began = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-c", _MEASURED, str(peak), verb, str(table), *more, *_QUIET], stdout=subprocess.DEVNULL
    )
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, f"{words} ended with {process.returncode}"
    return time.monotonic() - began, used.ru_utime + used.ru_stime, int(peak.read_text()) // 1024


@dataclass(frozen=True, slots=True)
class Interruption:
    """Of a service in the middle of a compaction: when it got SIGTERM, how it ended, and the round that completes it."""

    merged: int
    "The slices whose base files were complete as it ended."
    halfway_s: float
    ended_s: float
    exit_code: int
    next_s: float


def interrupted(table: Path, grace_s: int = 1) -> Interruption:
    """A service gets SIGTERM when half of the base files are there. Fails unless the next round leaves a sound table."""
    served = (*_DUE, "--grace", f"{grace_s}s")
    slices = _base_files(table)
    command = [sys.executable, "-m", "eventide", "serve", str(table), *served, *_QUIET]
    began = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while _base_files(table) < slices * 1.5:
        assert process.poll() is None, "the compaction was faster"
        time.sleep(0.2)
    halfway = time.monotonic()
    process.send_signal(signal.SIGTERM)
    code = process.wait()
    ended = time.monotonic()
    merged = _base_files(table) - slices
    next_s = run(table, ("serve", *served))[0]
    run(table, ("verify",))
    assert not Table.open(table).has_pending_runs()
    return Interruption(merged, halfway - began, ended - halfway, code, next_s)


def _base_files(table: Path) -> int:
    return sum(entry.name.endswith(".parquet") for entry in os.scandir(table))


@contextmanager
def made(kind: str, size: int, place: Path) -> Iterator[tuple[Path, str]]:
    """The table, and a T for its plans."""
    root = place / f"{kind}-{size}" / "table"
    root.parent.mkdir()
    if kind == "commits":
        # Each commit writes to three or four file groups of each of 20 partitions. Each file group gets 30 log files.
        table = MadeTable(9, size * 20 // 9, size, 20, has_ranges=True, is_ours=True, spread=size // 30)
        make(table, root)
        (root / "../blocks/base").write_bytes(table.base_bytes())
        before = str(table.middle_ms)
    else:
        point = Point(size * 8, size, logs=2, columns=4, share=1) if kind != "rows" else Point(size, logs=2, share=0.1)
        grow(root, point)
        before = _BEFORE
    yield root, before
    shutil.rmtree(root.parent)


def main() -> None:
    parser = argparse.ArgumentParser(description="what commands take on large tables")
    parser.add_argument("kind", choices=("slices", "rows", "commits", "sigterm"))
    parser.add_argument("sizes", type=int, nargs="+")
    parser.add_argument("--place", type=Path, default=Path(tempfile.gettempdir()))
    chosen = parser.parse_args()
    for size in chosen.sizes:
        with made(chosen.kind, size, chosen.place) as (root, before):
            if chosen.kind == "sigterm":
                print(interrupted(root))
                continue
            for name, words in commands(before).items():
                if chosen.kind == "commits" and name in ("verify", "compact"):
                    continue  # its base files have no content
                wall, cpu, peak = run(root, words)
                print(f"| {chosen.kind} | {size} | {name} | {wall:.2f} | {cpu:.2f} | {peak} |", flush=True)


if __name__ == "__main__":
    main()
