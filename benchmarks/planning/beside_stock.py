"""Plans made tables beside stock Hudi: both plan the same files of a local disk, one after the other.

    PYTHONPATH=tests python -m benchmarks.planning.beside_stock [--groups 10000]

prints a table of CPU seconds. The start of a process isn't counted: neither the interpreter with its libraries nor the JVM
with its Spark session. Both read every commit, list every partition, and plan every slice. Stock Hudi also writes its plan.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.peers import HUDI, Place, stock_hudi
from benchmarks.planning.case import application_over
from benchmarks.planning.made_table import BASE_BYTES, PARTITION_MARK, MadeStorage, MadeTable
from benchmarks.planning.run import CASES
from benchmarks.processes import Server
from eventide.cli import spare_collector
from eventide_adapters.storage.local import LocalStorage
from eventide_core.action.compaction.request import CompactionRequest
from eventide_core.config import LinkChoice

_ROOT = Path(__file__).parents[2]
_TABLES = (
    "10,000 file groups",
    "the same, written by stock Hudi",
    "the same on version 6",
    "the same on version 6, written by stock Hudi",
)


def make(table: MadeTable, root: Path) -> None:
    """The table on a disk. Files with the same content are one file with many names; base files are holes."""
    timeline = root / table.timeline_path
    for directory in (timeline, root / "../blocks", *(root / table.partition(n) for n in range(table.partitions))):
        directory.mkdir(parents=True)
    (root / ".hoodie/hoodie.properties").write_text(table.properties())
    for name in table.timeline_names():
        (timeline / name).touch()
    MadeStorage(table, timeline).make()
    base = root / "../blocks/base"
    with base.open("wb") as file:
        file.truncate(BASE_BYTES)
    logs = [root / f"../blocks/{commit}" for commit in range(table.logs + 1)]
    for commit in range(1, table.logs + 1):
        logs[commit].write_bytes(table.log_bytes(commit))
    for number in range(table.partitions):
        partition = root / table.partition(number)
        (partition / PARTITION_MARK).write_text("commitTime=20260101000000000\npartitionDepth=1\n")
        for file_id in table.file_ids(number):
            os.link(base, partition / table.base_name(file_id))
        for commit in range(1, table.logs + 1):
            for file_id in table.file_ids(number, commit):
                os.link(logs[commit], partition / table.log_name(file_id, commit))


def plan_twice(table: MadeTable, root: Path) -> list[float]:
    """The CPU seconds of this process's first plan, and of its next one."""
    app = application_over(LocalStorage(root))
    found: list[float] = []
    for _ in range(2):
        cpu = time.process_time()
        draft = app.scheduler.plan(CompactionRequest(table.middle_ms, None, LinkChoice.AUTO))
        found.append(time.process_time() - cpu)
        assert len(draft.plan.operations) == table.groups, draft.idle
    return found


def _by_stock(server: Server, table: MadeTable, root: Path) -> Iterator[float]:
    """The same of stock Hudi. Its plans are removed."""
    server.measure("is_ready")  # what it costs to start
    for _ in range(2):
        cost, planned = server.measure("schedule_all", path=str(root), version=table.version)
        assert planned == table.groups, planned
        for file in (root / table.timeline_path).glob("*.compaction.*"):
            file.unlink()
        yield cost.cpu_s


def _measure(case: dict[str, Any]) -> tuple[list[float], list[float]]:
    table = MadeTable(**case)
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch) / "table"
        make(table, root)
        command = [sys.executable, "-m", "benchmarks.planning.beside_stock", "--of", json.dumps(case), str(root)]
        ours = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=_ROOT).stdout)
        with stock_hudi(Place(Path(scratch))) as server:
            return ours, list(_by_stock(server, table, root))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="what it costs to plan a compaction beside stock Hudi")
    parser.add_argument("--groups", type=int, default=10_000)
    parser.add_argument("--of", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.of:
        spare_collector()  # as the command line does
        print(json.dumps(plan_twice(MadeTable(**json.loads(given.of[0])), Path(given.of[1]))))
        sys.exit()
    print(f"| table | first plan | Hudi {HUDI} | share | plan again | Hudi {HUDI} | share |\n{'|---' * 7}|")
    for name in _TABLES:
        ours, stock = _measure(CASES[name] | {"groups": given.groups})
        pairs = (f"{mine:.2f} | {other:.2f} | {mine / other:.2f}" for mine, other in zip(ours, stock, strict=True))
        print(f"| {name} | {' | '.join(pairs)} |", flush=True)
