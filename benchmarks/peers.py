"""The contestants of each task, and how each one is started and called."""

import contextlib
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from benchmarks.processes import Cost, Server
from benchmarks.workloads import COMMIT_MS, FIRST_EVENT_MS, LATE_COMMITS, Workload

ROOT: Final = Path(__file__).parents[1]
_SOURCES: Final = os.pathsep.join([str(ROOT), *(str(ROOT / source) for source in ("core", "adapters", "spark_app"))])
HUDI: Final = "1.1.1"
"""Builds the tables."""
HUDIS: Final = (HUDI, "1.2.0")
WARM_RUNS: Final = 5
ONE_CORE: Final = "eventide, one core"
"""Compacts a slice at a time, as a worker of one core does."""
LIMIT_ON_ONE_CORE: Final = "limit, one core"
"""What two cores cost each other, such as the memory that they share, is in neither of these two."""
ONE_SLICE: Final = "eventide, a slice at a time"
"""The same on two cores: what the second one is worth to a single slice."""
PLANNED: Final = ("avro-v6", "avro-v9")
"""The workloads on which a plan of stock Hudi is run."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where tables and scratch files lie."""

    directory: Path

    def table(self, workload: Workload) -> Path:
        return self.directory / f"{workload.name}-{workload.records}"

    def base_bytes(self, workload: Workload) -> int:
        """The size of the table's base files before a compaction."""
        return sum(
            file.stat().st_size for file in self.table(workload).rglob("*.parquet") if ".hoodie" not in file.parts
        )

    def merged(self, workload: Workload) -> Path:
        """The table after a compaction, made once: what the limit writes."""
        return self.directory / f"{workload.name}-{workload.records}-merged"

    def planned(self, workload: Workload) -> Path:
        """The table with a compaction of everything that stock Hudi has planned, and nobody begun."""
        return self.directory / f"{workload.name}-{workload.records}-planned"

    def changes(self, workload: Workload) -> Path:
        """The rows of its log files, decoded."""
        return self.directory / f"{workload.name}-{workload.records}-changes"

    def delta(self, workload: Workload) -> Path:
        """Its first commit as a Delta table."""
        return self.directory / f"{workload.name}-{workload.records}-delta"

    def vectors(self, workload: Workload) -> Path:
        """The Delta table after all commits, with deletion vectors."""
        return self.directory / f"{workload.name}-{workload.records}-vectors"

    @contextlib.contextmanager
    def copy_of(self, table: Path) -> Iterator[Path]:
        """The table to be changed. Data files are shared by hard links: whoever compacts makes new ones."""
        copy = self.directory / "scratch" / "copy"
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
    cores: int = 2
    holds_merged: bool = False
    table: Callable[[Place, Workload], Path] = Place.table
    wants_changes: bool = False

    def run(self, place: Place, workload: Workload) -> Iterator[Cost]:
        """What it costs in a new process, and then what it costs again."""
        with self.start(place) as server:
            if self.first is not None:
                server.ask(self.first, cores=self.cores)
            if self.holds_merged:
                server.ask("hold_merged", path=str(place.merged(workload)))
            table, arguments = self.table(place, workload), dict(self.arguments)
            if self.wants_changes:
                arguments["changes"] = str(place.changes(workload))
            for _ in range(1 + WARM_RUNS):
                if not self.on_copy:
                    yield server.measure(self.method, path=str(table), **arguments)[0]
                    continue
                with place.copy_of(table) as copy:
                    yield server.measure(self.method, path=str(copy), **arguments)[0]


def stock_hudi(place: Place, version: str = HUDI) -> Server:
    """Raises what starting the judge raises: no interpreter with PySpark 3.5, no Java, no jar."""
    from support.judge.hudi_judge import judge_environment, judge_python
    from support.judge.jars import BUNDLES
    from support.run.maven import maven_jar

    python, environment = judge_python(), judge_environment()
    jar = maven_jar(BUNDLES[version], python=python, environment=environment)
    scratch = place.directory / "scratch"
    command = [str(python), "-m", "benchmarks.stock", str(jar), str(scratch)]
    return Server(command, environment | {"PYTHONPATH": str(ROOT)}, place.directory / "stock.log")


def delta(place: Place) -> Server:
    """Raises as `stock_hudi` does."""
    from support.judge.hudi_judge import judge_environment, judge_python
    from support.judge.jars import DELTA
    from support.run.maven import maven_jar

    python, environment = judge_python(), judge_environment()
    jars = ",".join(str(maven_jar(jar, python=python, environment=environment)) for jar in DELTA)
    command = [str(python), "-m", "benchmarks.delta", jars, str(place.directory / "scratch")]
    return Server(command, environment | {"PYTHONPATH": str(ROOT)}, place.directory / "delta.log")


def contestant(place: Place) -> Server:
    environment = os.environ | {"PYTHONPATH": _SOURCES}
    return Server([sys.executable, "-m", "benchmarks.contestant"], environment, place.directory / "contestant.log")


def python_of_the_judges(place: Place) -> Server:
    """The same on the PySpark that stock Hudi runs on, so that the one is not ahead by its Spark."""
    from support.judge.hudi_judge import judge_environment, judge_python

    environment = judge_environment() | {"PYTHONPATH": _SOURCES, "PYSPARK_DRIVER_PYTHON": str(judge_python())}
    return Server([str(judge_python()), "-m", "benchmarks.contestant"], environment, place.directory / "contestant.log")


def build(place: Place, workload: Workload) -> None:
    """The workload's table by stock Hudi, and what it holds after a compaction, by eventide. Nothing where it exists."""
    table, merged = place.table(workload), place.merged(workload)
    if not table.exists():
        unfinished = table.with_name(f"{table.name}-unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        with stock_hudi(place) as stock:
            stock.ask("build", path=str(unfinished), workload=_described(workload))
        unfinished.rename(table)
    if not merged.exists():
        with contestant(place) as server, place.copy_of(table) as copy:
            server.ask("compact", path=str(copy), codec="zstd")
            copy.rename(merged)
            copy.mkdir()


def build_for(place: Place, workload: Workload, peers: Sequence[Peer]) -> None:
    """What these peers begin with beside the table, where it is not there: a plan, decoded changes, Delta's two tables."""
    planned = place.planned(workload)
    if any(peer.table is Place.planned for peer in peers) and not planned.exists():
        with stock_hudi(place) as stock, place.copy_of(place.table(workload)) as copy:
            stock.ask("schedule", path=str(copy), version=workload.version)
            copy.rename(planned)
            copy.mkdir()
    if any(peer.wants_changes or peer.table is Place.vectors for peer in peers):
        _make(place, place.changes(workload), "write_changes", workload=_described(workload))
    if any(peer.table in (Place.delta, Place.vectors) for peer in peers):
        _make(place, place.delta(workload), "build", workload=_described(workload))
    if any(peer.table is Place.vectors for peer in peers):
        wanted = {"begun": str(place.delta(workload)), "changes": str(place.changes(workload))}
        _make(place, place.vectors(workload), "build_vectors", **wanted)


def _make(place: Place, directory: Path, method: str, **arguments: object) -> None:
    if not directory.exists():
        unfinished = directory.with_name(f"{directory.name}-unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        with delta(place) as server:
            server.ask(method, path=str(unfinished), **arguments)
        unfinished.rename(directory)


def peers_of(workload: Workload) -> tuple[Peer, ...]:
    """Everybody at every task, the peers of one task beside each other."""
    if workload.is_for_halves:
        return tuple(_halves(workload))
    found: list[Peer] = []
    for codec in ("gzip", "zstd"):
        compacting = partial(Peer, task=f"compaction, {codec}", on_copy=True)
        coded = {"codec": codec}
        found += [
            compacting("limit", start=contestant, method="limit", arguments=coded, holds_merged=True),
            compacting("eventide", start=contestant, method="compact", arguments=coded),
        ]
        versioned = coded | {"version": workload.version}
        found += [compacting(name, start=start, method="compact", arguments=versioned) for name, start in _stocks()]
        ours = partial(compacting, method="compact", arguments=coded)
        by_slice = partial(compacting, start=contestant, arguments=coded, first="compact_by_slice")
        found += [
            by_slice(LIMIT_ON_ONE_CORE, method="limit", cores=1, holds_merged=True),
            by_slice(ONE_CORE, method="compact", cores=1),
        ]
        if workload.slices == 1:
            found.append(by_slice(ONE_SLICE, method="compact"))
        if workload.same_rows_as is None:
            on_spark = partial(ours, start=python_of_the_judges, first="start_spark")
            found += [
                on_spark("eventide on Spark"),
                on_spark("eventide on Spark, one core", cores=1),
            ]
            changed = partial(compacting, arguments=coded, wants_changes=True)
            found += [
                changed("DuckDB", start=python_of_the_judges, method="duckdb"),
                changed("Delta, MERGE", start=delta, method="merge", table=Place.delta),
                compacting("Delta, OPTIMIZE", start=delta, method="optimize", arguments=coded, table=Place.vectors),
            ]
    if workload.name in PLANNED:
        found += _running_a_plan(workload)
    found += [
        Peer("eventide", "snapshot to Arrow", contestant, "snapshot", {}),
        Peer("hudi-rs", "snapshot to Arrow", contestant, "hudi_rs", {}),
    ]
    reading = partial(Peer, start=python_of_the_judges, first="start_spark", arguments={})
    snapshot, read_optimized = "snapshot in Spark", "read-optimized in Spark"
    found += [
        reading("eventide", snapshot, method="snapshot_in_spark"),
        *(Peer(name, snapshot, start, "read", {"query": "snapshot"}) for name, start in _stocks()),
        reading("eventide", read_optimized, method="read_optimized_in_spark"),
        reading("Spark's parquet reader", read_optimized, method="parquet_in_spark"),
        *(Peer(name, read_optimized, start, "read", {"query": "read_optimized"}) for name, start in _stocks()),
    ]
    return tuple(found)


def _stocks() -> Iterator[tuple[str, Callable[[Place], Server]]]:
    for version in HUDIS:
        yield f"stock Hudi {version}", partial(stock_hudi, version=version)


def _running_a_plan(workload: Workload) -> Iterator[Peer]:
    """The same plan of stock Hudi, run by whoever can."""
    coded = {"codec": "zstd"}
    running = partial(Peer, task="a plan of Hudi, zstd", method="run_plan", on_copy=True, table=Place.planned)
    yield running("eventide", start=contestant, arguments=coded)
    yield running("eventide on Spark", start=python_of_the_judges, first="start_spark", arguments=coded)
    for name, start in _stocks():
        yield running(name, start=start, arguments=coded | {"version": workload.version})


def _halves(workload: Workload) -> Iterator[Peer]:
    """eventide alone: all of the logs, and the half that an event time retires."""
    for codec in ("gzip", "zstd"):
        compacting = partial(Peer, task=f"compaction, {codec}", start=contestant, method="compact", on_copy=True)
        yield compacting("eventide", arguments={"codec": codec})
        half = {"codec": codec, "before_ms": workload.half_way_ms}
        yield compacting("eventide, half of the logs", arguments=half)


def _described(workload: Workload) -> dict[str, Any]:
    return asdict(workload) | {"first_event_ms": FIRST_EVENT_MS, "commit_ms": COMMIT_MS, "late_commits": LATE_COMMITS}


def _link_data(source: str, target: str) -> None:
    if any(f"{os.sep}{metadata}{os.sep}" in source for metadata in (".hoodie", "_delta_log")):
        shutil.copy2(source, target)
    else:
        os.link(source, target)
