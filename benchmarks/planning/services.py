"""Measures what else goes over a whole table, on made tables: what a query, a report or a table service costs the driver.

    python -m benchmarks.planning.services [--json FILE]

Each table in a process of its own, each service as that process's first over the table, so nothing is known from the one
before; CPU seconds, and how many requests the storage got. `python -m benchmarks.planning.services '{...}' verify` measures
one table, see case.py, and prints the profile of one service.
"""

import argparse
import functools
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.planning.case import Meter, application_over
from benchmarks.planning.made_table import MadeStorage, MadeTable, requested
from eventide.bootstrap import Application
from eventide.cli import spare_collector
from eventide.report import gather
from eventide.results.show import describe
from eventide_core.ports import NoProgress

_OURS: dict[str, Any] = {"version": 9, "logs": 10, "has_ranges": True, "is_ours": True}
CASES: dict[str, dict[str, Any]] = {
    "2,500 file groups": {**_OURS, "groups": 2500, "partitions": 25},
    "10,000 file groups": {**_OURS, "groups": 10_000, "partitions": 100},
    "2,500 file groups on version 6": {**_OURS, "version": 6, "groups": 2500, "partitions": 25},
    "10,000 file groups on version 6": {**_OURS, "version": 6, "groups": 10_000, "partitions": 100},
}


# So that there is something to clean, and to archive.
_OPTIONS = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", "hoodie.clean.commits.retained": "1"}


def _services(table: MadeTable) -> dict[str, Callable[[Application], object]]:
    return {
        "load": lambda app: app.state(),
        "snapshot plan": lambda app: app.queries.snapshot(),
        "show": describe,
        "freshness": lambda app: app.freshness.now(app.state()),
        "freshness by partition": lambda app: app.freshness.by_partition(app.state()),
        "report": gather,
        "verify": lambda app: app.verifier.verify(is_deep=False, progress=NoProgress()),
        "clean": lambda app: app.cleaner.plan(1),
        "archive": lambda app: app.archiver.archive(),
        "rollback": lambda app: app.rollback.undo(requested(table.logs)),
    }


def measure(table: MadeTable, profiled: str | None) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as directory:
        storage = MadeStorage(table, Path(directory))
        storage.make()
        meter = Meter(storage, profiled)
        for name, service in _services(table).items():
            app = application_over(storage, _OPTIONS)
            meter.run(name, functools.partial(service, app))
        return meter.found


def _line(name: str, found: dict[str, Any]) -> str:
    cells = (f"{cost['cpu_s']:.2f} / {sum(cost['calls'].values()):,}" for cost in found.values())
    return f"| {name} | {' | '.join(cells)} | {max(cost['peak_mb'] for cost in found.values())} |"


def _measured(case: dict[str, Any]) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.planning.services", json.dumps(case)]
    found: dict[str, Any] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="what services cost over a large table")
    parser.add_argument("case", nargs="?", help="one made table, as JSON")
    parser.add_argument("service", nargs="?", help="whose profile goes to stderr")
    parser.add_argument("--json", type=Path, help="where to write all figures")
    given = parser.parse_args()
    if given.case is not None:
        spare_collector()  # as the command line does
        print(json.dumps(measure(MadeTable(**json.loads(given.case)), given.service)))
    else:
        results = {name: _measured(case) for name, case in CASES.items()}
        names = list(next(iter(results.values())))
        print(f"| table | {' | '.join(names)} | peak MB |")
        print("|---" * (2 + len(names)) + "|")
        for name, found in results.items():
            print(_line(name, found))
        if given.json is not None:
            given.json.write_text(json.dumps(results, indent=2) + "\n")
