"""`PYTHONPATH=tests python -m benchmarks.process_start [--runs N]`: what commands cost as whole processes on small tables.

One table is eventide's own: two slices with three log files each. The other two are golden tables that stock Hudi wrote.
Prints CPU seconds, user and system: the median of all runs, and the least and the greatest. The commands take turns, after
one round that compiles the modules. The floor is an interpreter that imports nothing, or only pyarrow.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Final

from benchmarks.growth import Point, grow
from support.pasts.golden import unpack

_BARE: Final = {
    "an empty interpreter": ["-c", ""],
    "an interpreter that imports pyarrow": ["-c", "import pyarrow"],
    "`--version`": ["-m", "eventide", "--version"],
    "`--help`": ["-m", "eventide", "--help"],
}
_ON_A_TABLE: Final = {"freshness": [], "show": [], "plan": ["--data-latency", "0s"]}
_GOLDEN: Final = {"stock Hudi's, version 6": "v6_no_deletes", "stock Hudi's, version 9": "v9_event_simple"}


def commands(tables: Mapping[str, Path]) -> dict[str, list[str]]:
    """The arguments of the interpreter, by what is measured."""
    found = dict(_BARE)
    for name, table in tables.items():
        for command, options in _ON_A_TABLE.items():
            found[f"`{command}`, {name}"] = ["-m", "eventide", command, str(table), *options]
    return found


def measured(processes: Mapping[str, Sequence[str]], runs: int) -> dict[str, list[float]]:
    """The CPU seconds of each process, run by run."""
    found: dict[str, list[float]] = {name: [] for name in processes}
    for round_number in range(1 + runs):
        for name, words in processes.items():
            before = os.times()
            subprocess.run([sys.executable, *words], check=True, stdout=subprocess.DEVNULL)
            after = os.times()
            if round_number:
                used = after.children_user - before.children_user + after.children_system - before.children_system
                found[name].append(used)
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.process_start", description=__doc__)
    parser.add_argument("--runs", type=int, default=15)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        grown = Path(scratch) / "grown"
        grow(grown, Point(records=400, slices=2, logs=3, columns=2, share=0.1))
        tables = {"eventide's": grown}
        for words, golden in _GOLDEN.items():
            tables[words] = unpack(golden, Path(scratch))
        print("| process | CPU s, median | spread |\n|---|---|---|")
        for name, seconds in measured(commands(tables), chosen.runs).items():
            print(f"| {name} | {median(seconds):.2f} | {min(seconds):.2f}-{max(seconds):.2f} |")
