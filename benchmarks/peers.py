"""Who is measured at which task, and how each one is started and asked."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from benchmarks.processes import Cost, Server
from benchmarks.workloads import COMMIT_MS, FIRST_EVENT_MS, Workload

ROOT: Final = Path(__file__).parents[1]
_SOURCES: Final = os.pathsep.join([str(ROOT), *(str(ROOT / source) for source in ("core", "adapters", "spark_app"))])
HUDI: Final = "1.1.1"
WARM_RUNS: Final = 2


@dataclass(frozen=True, slots=True)
class Place:
    """Where tables and scratch files lie."""

    folder: Path

    def table(self, workload: Workload) -> Path:
        return self.folder / f"{workload.name}-{workload.records}"

    def merged(self, workload: Workload) -> Path:
        """The table after a compaction, made once: what the limit writes."""
        return self.folder / f"{workload.name}-{workload.records}-merged"

    @contextlib.contextmanager
    def copy_of(self, table: Path) -> Iterator[Path]:
        """The table to be changed. Data files are shared by hard links: whoever compacts makes new ones."""
        copy = self.folder / "scratch" / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(table, copy, copy_function=_link_data)
        try:
            yield copy
        finally:
            shutil.rmtree(copy)


@dataclass(frozen=True, slots=True)
class Peer:
    """One way to do a task: `method` of its server with these arguments, on a copy where it changes the table."""

    name: str
    task: str
    start: Callable[[Place], Server]
    method: str
    arguments: dict[str, Any]
    on_copy: bool = False
    first: str | None = None
    holds_merged: bool = False

    def run(self, place: Place, workload: Workload) -> Iterator[Cost]:
        """What it costs in a new process, and then what it costs again."""
        with self.start(place) as server:
            if self.first is not None:
                server.ask(self.first)
            if self.holds_merged:
                server.ask("hold_merged", path=str(place.merged(workload)))
            for _ in range(1 + WARM_RUNS):
                if not self.on_copy:
                    yield server.measure(self.method, path=str(place.table(workload)), **self.arguments)[0]
                    continue
                with place.copy_of(place.table(workload)) as copy:
                    yield server.measure(self.method, path=str(copy), **self.arguments)[0]


def stock_hudi(place: Place) -> Server:
    """Raises what starting the judge raises: no interpreter with PySpark 3.5, no Java, no jar."""
    from support.judge.hudi_judge import judge_environment, judge_python
    from support.judge.jars import BUNDLES
    from support.maven import maven_jar

    python, environment = judge_python(), judge_environment()
    jar = maven_jar(BUNDLES[HUDI], python=python, environment=environment)
    scratch = place.folder / "scratch"
    command = [str(python), "-m", "benchmarks.stock", str(jar), str(scratch)]
    return Server(command, environment | {"PYTHONPATH": str(ROOT)}, place.folder / "stock.log")


def contestant(place: Place) -> Server:
    environment = os.environ | {"PYTHONPATH": _SOURCES}
    return Server([sys.executable, "-m", "benchmarks.contestant"], environment, place.folder / "contestant.log")


def contestant_on_stocks_spark(place: Place) -> Server:
    """The same on the PySpark that stock Hudi runs on, so that the one is not ahead by its Spark."""
    from support.judge.hudi_judge import judge_environment, judge_python

    environment = judge_environment() | {"PYTHONPATH": _SOURCES, "PYSPARK_DRIVER_PYTHON": str(judge_python())}
    return Server([str(judge_python()), "-m", "benchmarks.contestant"], environment, place.folder / "contestant.log")


def build(place: Place, workload: Workload, stock: Server) -> None:
    """The workload's table by stock Hudi, and what it holds after a compaction, by eventide. Nothing where it is there."""
    table, merged = place.table(workload), place.merged(workload)
    if not table.exists():
        unfinished = table.with_name(f"{table.name}-unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        described = asdict(workload) | {"first_event_ms": FIRST_EVENT_MS, "commit_ms": COMMIT_MS}
        stock.ask("build", path=str(unfinished), workload=described)
        unfinished.rename(table)
    if not merged.exists():
        with contestant(place) as server, place.copy_of(table) as copy:
            server.ask("compact", path=str(copy), codec="zstd")
            copy.rename(merged)
            copy.mkdir()


def peers_of(workload: Workload) -> tuple[Peer, ...]:
    """Everybody at every task, those of one task beside each other."""
    found: list[Peer] = []
    for codec in ("gzip", "zstd"):
        task = f"compaction, {codec}"
        coded = {"codec": codec}
        found += [
            Peer("limit", task, contestant, "limit", coded, on_copy=True, holds_merged=True),
            Peer("eventide", task, contestant, "compact", coded, on_copy=True),
            Peer(
                f"stock Hudi {HUDI}", task, stock_hudi, "compact", coded | {"version": workload.version}, on_copy=True
            ),
        ]
    half = {"codec": "gzip", "before_ms": workload.half_way_ms}
    found.append(Peer("eventide, half of the logs", "compaction, gzip", contestant, "compact", half, on_copy=True))
    on_spark = partial(Peer, start=contestant_on_stocks_spark, first="start_spark", arguments={})
    stock_read = partial(Peer, f"stock Hudi {HUDI}", start=stock_hudi, method="read")
    found += [
        Peer("eventide", "snapshot to Arrow", contestant, "snapshot", {}),
        Peer("hudi-rs", "snapshot to Arrow", contestant, "hudi_rs", {}),
        on_spark(name="eventide", task="snapshot in Spark", method="snapshot_in_spark"),
        stock_read(task="snapshot in Spark", arguments={"query": "snapshot"}),
        on_spark(name="eventide", task="read-optimized in Spark", method="read_optimized_in_spark"),
        on_spark(name="Spark's parquet reader", task="read-optimized in Spark", method="parquet_in_spark"),
        stock_read(task="read-optimized in Spark", arguments={"query": "read_optimized"}),
    ]
    return tuple(found)


def _link_data(source: str, target: str) -> None:
    if f"{os.sep}.hoodie{os.sep}" in source:
        shutil.copy2(source, target)
    else:
        os.link(source, target)
