"""`python -m benchmarks.changes --rows 1000000`: four costs of changes, as ratios of CPU time to what they can't do without.

insert of Arrow rows      of pyarrow, which writes the same rows with Hudi's columns, in the same codec
update where              of reading the rows that it changes, by the same condition
full read                 of a slice with one updated row, of the read after it is compacted
short rows                the compaction of one slice in gzip, 60 % of its rows changed, of pyarrow, which reads the base
                          file and writes the merged rows

Each cost is the median of `--rounds` runs, after one that doesn't count; both sides of a ratio take turns in this process.
"""

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from eventide import Table
from eventide_core.config import CLOCK_SKEW_MS, INDEX_TYPE

EPOCH_MS: Final = 1_767_225_600_000
CODEC: Final = "hoodie.parquet.compression.codec"
HUDI: Final = ("_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_record_key", "_hoodie_partition_path")
LEVELS: Final = {"gzip": 6, "zstd": 1}


@dataclass(frozen=True, slots=True)
class Ratio:
    """The CPU seconds of both sides. `goal` is what the ratio should be at most; None if there is none."""

    name: str
    ours: float
    floor: float
    goal: float | None

    def line(self) -> str:
        goal = "" if self.goal is None else f"{self.goal:g}"
        return f"| {self.name} | {goal} | {self.ours / self.floor:.2f} | {self.ours:.2f} | {self.floor:.2f} |"


def drawn(rows: int, first: int = 0) -> pa.Table:
    """Rows of eight short columns with keys from `first` on, which say nothing of their neighbours."""
    numbers, random = np.arange(first, first + rows), np.random.default_rng(first)
    columns: dict[str, Any] = {
        "id": [f"{number * 0x9E3779B97F4A7C15 % (1 << 64):016x}" for number in numbers.tolist()],
        "ms": EPOCH_MS + numbers,
        "city": np.array(["lima", "oslo", "quito", "turin"])[random.integers(0, 4, rows)],
        "fare": random.random(rows) * 100,
        "seats": random.integers(1, 7, rows).astype(np.int32),
        "is_paid": random.random(rows) < 0.5,
        "zone": random.integers(0, 300, rows),
        "tip": random.random(rows) * 10,
    }
    return pa.table(columns)


def made(place: Path, rows: pa.Table, codec: str) -> Table:
    """A table of one file group."""
    options = {INDEX_TYPE: "SIMPLE", CODEC: codec, CLOCK_SKEW_MS: "1"}
    table = Table.create(str(place), schema=rows.schema, record_key="id", event_time="ms", options=options)
    one = {"hoodie.copyonwrite.insert.auto.split": "false", "hoodie.copyonwrite.insert.split.size": str(len(rows))}
    table = Table.open(str(place), {**options, **one})
    table.bulk_insert(rows)
    return table


def taking_turns(rounds: int, ours: Callable[[], object], other: Callable[[], object]) -> tuple[float, float]:
    """The median CPU time of each side."""
    spent: tuple[list[float], list[float]] = ([], [])
    for number in range(rounds + 1):
        for side, times in zip((ours, other), spent, strict=True):
            begun = time.process_time()
            side()
            if number:
                times.append(time.process_time() - begun)
    return statistics.median(spent[0]), statistics.median(spent[1])


def inserts(place: Path, rows: int, rounds: int) -> Iterator[Ratio]:
    new, made_of = drawn(rows), iter(range(1 << 30))
    with_hudi = new
    for name in HUDI:
        with_hudi = with_hudi.append_column(name, new.column("id"))
    for codec, goal in (("zstd", 2.0), ("gzip", None)):
        schema = new.schema

        def insert(codec: str = codec, schema: pa.Schema = schema) -> None:
            path, options = place / f"insert-{next(made_of)}", {INDEX_TYPE: "SIMPLE", CODEC: codec}
            Table.create(str(path), schema=schema, record_key="id", event_time="ms", options=options)
            Table.open(str(path), options).bulk_insert(new)

        def write(codec: Any = codec) -> None:
            pq.write_table(with_hudi, place / "plain.parquet", compression=codec, compression_level=LEVELS[codec])

        yield Ratio(f"insert of {rows:,} Arrow rows in {codec}: of pyarrow", *taking_turns(rounds, insert, write), goal)


def updates(place: Path, rows: int, rounds: int) -> Iterator[Ratio]:
    new = drawn(rows)
    table = made(place / "update", new, "zstd")
    key, zone = new.column("id")[rows // 2].as_py(), new.column("zone")[0].as_py()
    for what, where in (("one key", f"id = '{key}'"), ("a value in 300", f"zone = {zone}")):

        def read(where: str = where) -> None:
            table.snapshot().to_arrow(None, where)

        def update(where: str = where) -> None:
            table.update({"tip": "tip + 1"}, where)

        yield Ratio(f"update where, {what}: of reading these rows", *taking_turns(rounds, update, read), None)


def reads(place: Path, rows: int, rounds: int) -> Iterator[Ratio]:
    new = drawn(rows)
    before, after = (made(place / name, new, "zstd") for name in ("read-before", "read-after"))
    for table in (before, after):
        table.upsert(drawn(1, rows // 2))
    after.compact(before=EPOCH_MS + rows + 1)
    costs = taking_turns(rounds, before.snapshot().to_arrow, after.snapshot().to_arrow)
    yield Ratio(f"full read of {rows:,} rows with one update: of the read after a compaction", *costs, 1.5)


def short_rows(place: Path, rows: int, rounds: int) -> Iterator[Ratio]:
    new, made_of = drawn(rows), iter(range(1 << 30))
    tables: list[Table] = []
    for _ in range(rounds + 1):
        table = made(place / f"short-{next(made_of)}", new, "gzip")
        table.upsert(new.slice(0, rows * 6 // 10))
        tables.append(table)
    base = next(Path(tables[0].uri).rglob("*.parquet"))
    merged = pq.read_table(base)

    def limit() -> None:
        pq.read_table(base)
        pq.write_table(merged, place / "limit.parquet", compression="gzip", compression_level=LEVELS["gzip"])

    costs = taking_turns(rounds, lambda: tables.pop().compact(before=EPOCH_MS + rows + 1), limit)
    yield Ratio(f"compaction of {rows:,} short rows in gzip, 60 % changed: of the limit", *costs, 0.6)


def main(*arguments: str) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.changes", description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    chosen: Any = parser.parse_args(arguments)
    say = sys.stdout.write
    say("| work | goal | ratio | eventide, CPU s | the other, CPU s |\n|---|---|---|---|---|\n")
    with tempfile.TemporaryDirectory() as scratch:
        place, rows, rounds = Path(scratch), chosen.rows, chosen.rounds
        for measured in (inserts, updates, short_rows):
            for ratio in measured(place, rows, rounds):
                say(f"{ratio.line()}\n")
        for ratio in reads(place, rows * 3 // 10, rounds):
            say(f"{ratio.line()}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
