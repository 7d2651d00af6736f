"""Replays a stream with late records through the real services, and prints what each rule of a cut costs and gives.

    python -m benchmarks.lateness.run [--records 20000] [--commits 60] [--json FILE]

In memory, by the same code that runs on Spark: writer, planner, merge, readers. Every ten commits everything up to ten hours
ago is compacted. What the read-optimized table then holds is held against the stream itself.
"""

import argparse
import json
import statistics
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from benchmarks.lateness.read_counts import ReadCounts
from benchmarks.lateness.stream import HOUR_US, SCHEMA, START_US, Stream
from eventide import Table
from eventide.bootstrap import assemble

EVERY: Final = 10
LATENCY_HOURS: Final = 10
_WARM: Final = 20  # commits before which nothing is counted: the first compactions find few logs


@dataclass(frozen=True, slots=True)
class Case:
    """`bucket` is the span of log blocks, None for none; `deletes` the share of records that are deletes."""

    name: str
    cut: str
    bucket: str | None
    deletes: float = 0.0


CASES: Final = (
    Case("file", "file", None),
    Case("file, clustered", "file", "1h"),
    Case("exact", "exact", None),
    Case("exact, clustered", "exact", "1h"),
    Case("exact, deletes", "exact", None, 0.02),
    Case("exact, clustered, deletes", "exact", "1h", 0.02),
)


@dataclass(slots=True)
class Clock:
    """The stream's time: whoever waits moves it on."""

    ms: int = START_US // 1000

    def now_ms(self) -> int:
        self.ms += 1
        return self.ms

    def sleep(self, milliseconds: int) -> None:
        self.ms += milliseconds

    def local_offset_ms(self, _epoch_ms: int, /) -> int:
        return 0


@dataclass(slots=True)
class Seen:
    """What was counted from the commit on from which a case is warm."""

    ingested: int = 0
    copied: int = 0
    retired: list[float] = field(default_factory=list)
    after_t: list[float] = field(default_factory=list)
    wrong: list[float] = field(default_factory=list)
    lag_hours: list[float] = field(default_factory=list)
    left_over_logs: list[int] = field(default_factory=list)
    logs_max: int = 0
    carried: int = 0
    fallbacks: int = 0


def replay(case: Case, records: int, commits: int) -> dict[str, Any]:
    storage, clock, stream = ReadCounts(case.name), Clock(), Stream(records, case.deletes, seed=1)
    options = {
        "hoodie.bucket.index.num.buckets": "1",
        "hoodie.compaction.event.time.cut": case.cut,
        **({} if case.bucket is None else {"hoodie.log.block.event.time.bucket": case.bucket}),
    }
    Table.create(storage.root, schema=SCHEMA, record_key="id", event_time="at", options=options)
    table = Table(storage.root, options, assemble(storage.root, options, storage=storage, clock=clock))
    table.upsert(stream.next())
    seen, cpu = Seen(), 0.0
    for number in range(2, commits + 1):
        is_warm = number > _WARM
        clock.ms = max(clock.ms, (START_US + number * HOUR_US) // 1000)
        before = _log_bytes(table)
        table.upsert(stream.next())
        logs = _logs(table)
        if is_warm:
            seen.ingested += sum(logs.values()) - before
            seen.logs_max = max(seen.logs_max, len(logs))
        if number % EVERY:
            continue
        t_us = START_US + (number - LATENCY_HOURS) * HOUR_US
        storage.phase, begun = ("plan" if is_warm else None), time.process_time()
        plan = table.plan_compaction(before=t_us // 1000)
        if plan.idle is None:
            instant = table.schedule(plan).instant
            storage.phase = "execution" if is_warm else None
            table.execute(instant)
        storage.phase, spent = None, time.process_time() - begun
        if is_warm:
            cpu += spent
            seen.retired.append(
                sum(log.size for op in plan.operations for log in op.compacted) / max(1, sum(logs.values()))
            )
            seen.copied += sum(left.log_file.size for op in plan.operations for left in op.left_overs if left.new_name)
            seen.fallbacks += sum(op.fallback is not None for op in plan.operations)
            seen.left_over_logs.append(len(_logs(table)))
            _look(table, stream, t_us, clock, seen)
    read = {f"{phase} {kind}": size for (phase, kind), size in sorted(storage.bytes_read.items())}
    log_bytes = sum(size for (_, kind), size in storage.bytes_read.items() if kind == "log")
    return {
        "case": case.name,
        "retired": statistics.mean(seen.retired),
        "read_per_ingested": log_bytes / seen.ingested,
        "plan_read_per_ingested": storage.bytes_read["plan", "log"] / seen.ingested,
        "copied_per_ingested": seen.copied / seen.ingested,
        "rows_after_t": statistics.mean(seen.after_t),
        "rows_not_exact": statistics.mean(seen.wrong),
        "lag_hours": statistics.mean(seen.lag_hours),
        "logs_max": seen.logs_max,
        "left_over_logs": statistics.mean(seen.left_over_logs),
        "fallbacks": seen.fallbacks,
        "log_bytes": seen.ingested // (commits - _WARM),
        "cpu_s": cpu,
        "bytes_read": read,
        "requests": {f"{phase} {kind}": count for (phase, kind), count in sorted(storage.requests.items())},
    }


def _look(table: Table, stream: Stream, t_us: int, clock: Clock, seen: Seen) -> None:
    rows = table.read_optimized().to_arrow().select(["id", "at"])
    ids: list[Any] = rows.column("id").to_pylist()
    times: list[Any] = rows.column("at").cast(pa.int64()).to_pylist()
    shown = dict(zip(ids, times, strict=True))
    wanted = stream.before(t_us)
    seen.after_t.append(sum(us >= t_us for us in times) / max(1, len(times)))
    seen.wrong.append(sum(shown.get(key) != wanted.get(key) for key in shown.keys() | wanted) / max(1, len(wanted)))
    watermark_ms = table.freshness().watermark_ms
    if watermark_ms is not None:
        seen.lag_hours.append((clock.ms * 1000 - watermark_ms * 1000) / HOUR_US)


def _logs(table: Table) -> dict[str, int]:
    return {log.path: log.size for found in table.state().view.latest_slices() for log in found.log_files}


def _log_bytes(table: Table) -> int:
    return sum(_logs(table).values())


_HEADER: Final = (
    "| cut | retired | log bytes read / ingested | of it to plan | copied / ingested | rows at or after T | "
    "rows not exact | lag | logs left over | logs at most | CPU s |\n|---|---|---|---|---|---|---|---|---|---|---|"
)


def _line(found: dict[str, Any]) -> str:
    return (
        f"| {found['case']} | {found['retired']:.0%} | {found['read_per_ingested']:.3f} | "
        f"{found['plan_read_per_ingested']:.3f} | {found['copied_per_ingested']:.2f} | {found['rows_after_t']:.1%} | "
        f"{found['rows_not_exact']:.2%} | {found['lag_hours']:.1f} h | {found['left_over_logs']:.0f} | "
        f"{found['logs_max']} | {found['cpu_s']:.1f} |"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="what a cut costs and gives on a stream with late records")
    parser.add_argument("--records", type=int, default=20_000, help="records a commit (20000)")
    parser.add_argument("--commits", type=int, default=60, help="commits, an hour each (60)")
    parser.add_argument("--case", help="only the cases with this in their names")
    parser.add_argument("--json", type=Path, help="where to write all figures")
    given = parser.parse_args()
    print(_HEADER)
    results = []
    for case in CASES:
        if given.case is None or given.case in case.name:
            results.append(replay(case, given.records, given.commits))
            print(_line(results[-1]), flush=True)
    if given.json is not None:
        given.json.write_text(json.dumps(results, indent=2) + "\n")
