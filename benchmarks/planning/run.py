"""Measures planning on made tables, each in a process of its own, and prints a table.

    python -m benchmarks.planning.run [--json FILE] [--largest]

`--largest` adds the table of a million log files, which takes some minutes and 2 GB.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

_OURS: dict[str, Any] = {
    "version": 9,
    "groups": 10_000,
    "logs": 10,
    "partitions": 100,
    "has_ranges": True,
    "is_ours": True,
}
CASES: dict[str, dict[str, Any]] = {
    "2,500 file groups": {**_OURS, "groups": 2500, "partitions": 25},
    "5,000 file groups": {**_OURS, "groups": 5000, "partitions": 50},
    "10,000 file groups": _OURS,
    "the same, written by stock Hudi": {**_OURS, "is_ours": False},
    "the same on version 6": {**_OURS, "version": 6},
    "the same on version 6, written by stock Hudi": {**_OURS, "version": 6, "has_ranges": False, "is_ours": False},
    "1,000 file groups x 100 logs": {**_OURS, "groups": 1000, "logs": 100, "partitions": 10},
}
LARGEST = {"100,000 file groups": {**_OURS, "groups": 100_000, "partitions": 1000}}
_ROOT = Path(__file__).parents[2]
_SERVICES = ("plan", "plan again", "schedule", "freshness", "clean")


def measure(case: dict[str, Any]) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.planning.case", json.dumps(case)]
    found: dict[str, Any] = json.loads(
        subprocess.run(command, check=True, capture_output=True, text=True, cwd=_ROOT).stdout
    )
    return found


def _line(name: str, case: dict[str, Any], found: dict[str, Any]) -> str:
    plan = found["plan"]
    ranges = plan["calls"].get("read_range", 0)
    seconds = " | ".join(f"{found[service]['cpu_s']:.2f}" for service in _SERVICES)
    return (
        f"| {name} | {case['groups'] * case['logs']:,} | {plan['calls']['list']} / {ranges:,} | {seconds} | "
        f"{plan['peak_mb']} | {found['encode plan']['cpu_s']:.2f} | {found['encode commit']['cpu_s']:.2f} |"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="what it costs to plan a compaction of a large table")
    parser.add_argument("--json", type=Path, help="where to write all figures")
    parser.add_argument("--largest", action="store_true", help="a million log files, too")
    given = parser.parse_args()
    print(
        f"| table | logs | listings / ranges read | {' | '.join(_SERVICES)} | plan's peak MB | plan file | commit file |"
    )
    print("|---" * (6 + len(_SERVICES)) + "|")
    results = {}
    for name, case in (CASES | (LARGEST if given.largest else {})).items():
        results[name] = measure(case)
        print(_line(name, case, results[name]), flush=True)
    if given.json is not None:
        given.json.write_text(json.dumps(results, indent=2) + "\n")
