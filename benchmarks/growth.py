"""`python -m benchmarks.growth`: what a compaction costs as one thing grows and everything else stays.

The tables are eventide's own, made for each point and thrown away, for fifty commits by Spark take longer than all else.
Prints a table, and draws a picture for each curve below `--to`: the processor's seconds, and the most memory.
"""

import argparse
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.peers import Place, contestant
from benchmarks.picture import Curve, picture
from benchmarks.workloads import COMMIT_MS, FIRST_EVENT_MS


@dataclass(frozen=True, slots=True)
class Point:
    """A table: `records` keys over all slices, `columns` beside the four that each has, `logs` upserts of `share`."""

    records: int = 200_000
    slices: int = 1
    logs: int = 6
    columns: int = 8
    share: float = 0.1


@dataclass(frozen=True, slots=True)
class Axis:
    """What grows: the name of a Point's field, and its values."""

    name: str
    values: tuple[float, ...]
    start: Point = Point()

    def points(self, scale: float) -> Iterator[tuple[float, Point]]:
        """Each value and its table, whose records are the curve's times `scale`."""
        for value in self.values:
            changed: dict[str, Any] = {self.name: value if self.name == "share" else int(value)}
            point = replace(self.start, **changed)
            yield value, replace(point, records=max(100, int(point.records * scale)))


AXES = (
    Axis("logs", (2, 6, 12, 50), Point(share=0.02)),
    Axis("records", (50_000, 200_000, 1_000_000, 3_000_000, 10_000_000), Point(logs=2, share=0.01)),
    Axis("columns", (8, 32, 100, 200), Point(records=100_000)),
    Axis("share", (0.0, 0.002, 0.02, 0.1, 0.5), Point(logs=2)),
    Axis("slices", (1, 4, 16, 64), Point(records=640_000, logs=2)),
)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.growth", description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="of the number of records in every table")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", action="append", choices=[axis.name for axis in AXES])
    parser.add_argument("--place", type=Path, default=Path("build/benchmarks"))
    parser.add_argument("--to", type=Path, default=Path("build/benchmarks"), help="where the pictures go")
    chosen = parser.parse_args()
    place = Place(chosen.place.resolve())
    (place.directory / "scratch").mkdir(parents=True, exist_ok=True)
    for axis in AXES:
        if chosen.only and axis.name not in chosen.only:
            continue
        costs: list[tuple[float, float, int]] = []
        for value, point in axis.points(chosen.scale):
            cpu_s, peak_mb = measured(place, point, chosen.rounds)
            costs.append((value, cpu_s, peak_mb))
            print(f"| {axis.name} | {value:g} | {cpu_s:.2f} | {peak_mb} |", flush=True)
        drawn = picture(
            f"Compaction as the {axis.name} grow" if axis.name != "share" else "Compaction as more is touched",
            [value for value, *_ in costs],
            [Curve("CPU, s", [cpu_s for _, cpu_s, _ in costs]), Curve("peak, MB", [mb for *_, mb in costs])],
        )
        (chosen.to / f"growth_{axis.name}.svg").write_text(drawn, encoding="utf-8")


def measured(place: Place, point: Point, rounds: int) -> tuple[float, int]:
    """The processor's seconds of a warm compaction with zstd, the least of all rounds, and the most memory of any."""
    table = place.directory / "scratch" / "growing"
    shutil.rmtree(table, ignore_errors=True)
    grow(table, point)
    try:
        with contestant(place) as server:
            with place.copy_of(table) as copy:  # the first one loads the libraries
                server.measure("compact", path=str(copy), codec="zstd")
            costs = []
            for _ in range(rounds):
                with place.copy_of(table) as copy:
                    costs.append(server.measure("compact", path=str(copy), codec="zstd")[0])
        return min(cost.cpu_s for cost in costs), max(cost.peak_mb for cost in costs)
    finally:
        shutil.rmtree(table)


def grow(path: Path, point: Point) -> None:
    """Makes the table, on one thread's memory: the records come in portions."""
    from eventide import Table

    keys = np.arange(point.records)
    table = Table.create(
        str(path),
        schema=_rows(keys[:1], point, 0).schema,
        record_key="id",
        event_time="event_ts",
        options={"hoodie.bucket.index.num.buckets": point.slices, "hoodie.parquet.compression.codec": "zstd"},
    )
    table.bulk_insert(_rows(keys, point, 0))
    drawn = np.random.default_rng(7)
    for log in range(1, point.logs + 1):
        touched = np.sort(drawn.choice(keys, max(1, int(point.share * point.records)), replace=False))
        table.upsert(_rows(touched, point, log))


def _rows(keys: Any, point: Point, commit: int) -> pa.Table:
    drawn = np.random.default_rng(commit)
    columns: dict[str, Any] = {
        "id": pa.array(keys).cast(pa.string()),
        "event_ts": FIRST_EVENT_MS + commit * COMMIT_MS + drawn.integers(0, COMMIT_MS, len(keys)),
        "city": pa.array([f"city-{number}" for number in range(500)]).take(drawn.integers(0, 500, len(keys))),
        "note": pa.array(drawn.integers(0, 1 << 62, len(keys))).cast(pa.string()),
    }
    for number in range(point.columns):
        values = drawn.random(len(keys)) if number % 2 else drawn.integers(0, 100_000, len(keys))
        columns[f"c{number:03}"] = values
    return pa.table(columns)


if __name__ == "__main__":
    main()
