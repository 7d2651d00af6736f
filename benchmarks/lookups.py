"""Filtered reads beside a full read: one key, a few keys, and an hour of event time; bytes, requests and time.

    PYTHONPATH=tests python -m benchmarks.lookups --rows 12000000

eventide makes a table of that many rows in `--slices` buckets, or as many file groups of a joined index (`--index SIMPLE`)
or of a record index (`--index RECORD_INDEX`), and upserts one row in a hundred into log files. Each query has the table's
state loaded. DuckDB, if it is installed, asks the same of the base files, and hudi-rs of the table. With `--stock`, so does
stock Hudi 1.1.1 on PySpark 3.5, in a session that has read the table. Prints JSON. With `--own`, only eventide is asked, and
only for keys.
"""

import argparse
import json
import shutil
import sys
import time
from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.beside_hudi import run_beside_hudi
from eventide import Table
from eventide.bootstrap import assemble
from eventide.rows.reader import Rows
from eventide_core.config import BUCKETS, CLOCK_SKEW_MS, INDEX_TYPE
from support.doubles.counting_storage import CountingStorage

HOUR_MS = 3_600_000
EPOCH_MS = 1_767_225_600_000
COLUMNS: "list[pa.Field[Any]]" = [
    pa.field("id", pa.string()),
    pa.field("ms", pa.int64()),
    pa.field("city", pa.string()),
    pa.field("fare", pa.float64()),
    pa.field("distance", pa.float64()),
    pa.field("note", pa.string()),
]
OPTIONS: dict[str, str] = {CLOCK_SKEW_MS: "1"}


@dataclass(frozen=True, slots=True)
class Answer:
    """The cost of a query: the best time of three, the least CPU time, and what the first one read of data files.

    `metadata_read` and `metadata_opened` are of the files below `.hoodie`.
    """

    rows: int
    seconds: float
    cpu_seconds: float
    bytes_read: int
    opened: int
    metadata_read: int
    metadata_opened: int


def id_of(number: int) -> str:
    """A key that says nothing of its neighbours, as a UUID."""
    return f"{number * 0x9E3779B97F4A7C15 % (1 << 64):016x}"


def rows_of(numbers: range, hour: int) -> pa.Table:
    """A row of that hour for each number."""
    drawn = np.random.default_rng(numbers.start)
    count = len(numbers)
    columns: list[Any] = [
        [id_of(number) for number in numbers],
        EPOCH_MS + hour * HOUR_MS + drawn.integers(0, HOUR_MS, count),
        np.array(["lima", "oslo", "quito", "turin"])[drawn.integers(0, 4, count)],
        drawn.random(count) * 100,
        drawn.random(count) * 30,
        [f"{value:x}" for value in drawn.integers(0, 1 << 62, count)],
    ]
    return pa.table(columns, schema=pa.schema(COLUMNS))


def made(place: Path, rows: int, index: str, slices: int) -> Table:
    """The table: base files of that many slices, and log files of the last hour in each."""
    table = Table.create(
        str(place),
        schema=pa.schema(COLUMNS),
        record_key="id",
        event_time="ms",
        options={**OPTIONS, INDEX_TYPE: index, BUCKETS: str(slices)},
    )
    share = rows // slices
    parts = (rows_of(range(part * share, (part + 1) * share), part) for part in range(slices))
    if index == "RECORD_INDEX":  # in one insert, because the record index says nothing of what later ones may repeat
        split = {"hoodie.copyonwrite.insert.auto.split": "false", "hoodie.copyonwrite.insert.split.size": str(share)}
        Table.open(str(place), {**OPTIONS, **split}).bulk_insert(pa.concat_tables(parts))
        table.rebuild_metadata_table(("record_index",))
    else:
        for one in parts:
            table.bulk_insert(one)
    if index == "BUCKET":
        table.compact(before=EPOCH_MS + (slices + 1) * HOUR_MS)
    table.upsert(rows_of(range(0, rows, 100), slices + 2))
    return table


def measured(path: Path, rows: int, *, is_own: bool = False, jar: str | None = None) -> dict[str, Any]:
    """Each query of the snapshot and of the read-optimized view; with `is_own`, for keys, and not of others.

    `jar` is stock Hudi's.
    """
    keys = ", ".join(f"'{id_of(number)}'" for number in range(7, rows, rows // 5))
    begin = EPOCH_MS + HOUR_MS
    conditions = {
        "all": None,
        "one key": f"id = '{id_of(rows // 3 + 1)}'",
        "a key that is not there": "id = 'nobody'",
        "five keys": f"id in ({keys})",
        "an hour": f"ms >= {begin} and ms < {begin + HOUR_MS}",
    }
    if is_own:
        conditions = {words: asked for words, asked in conditions.items() if asked is not None and "id" in asked}
    storage = CountingStorage(str(path))
    table = Table(str(path), OPTIONS, assemble(str(path), OPTIONS, storage=storage))
    found: dict[str, Any] = {}
    for name, query in {"snapshot": table.snapshot(), "read optimized": table.read_optimized()}.items():
        found[name] = {
            words: asdict(answer(partial(_count, query, asked), storage)) for words, asked in conditions.items()
        }
    if is_own:
        return found
    found["DuckDB on base files"] = by_duckdb(table, conditions)
    found["hudi-rs, snapshot"] = by_hudi_rs(str(path.resolve()), rows)
    if jar is not None:
        found |= by_stock(jar, path, conditions)
    return found


def _count(query: Rows, condition: str | None) -> int:
    return query.to_arrow(None, condition).num_rows


def answer(ask: Callable[[], int], storage: CountingStorage | None) -> Answer:
    seconds: list[float] = []
    cpu_seconds: list[float] = []
    rows = 0
    costs = (0, 0, 0, 0)
    for attempt in range(3):
        if storage is not None:
            storage.forget()
        began, used = time.perf_counter(), time.process_time()
        rows = ask()
        seconds.append(time.perf_counter() - began)
        cpu_seconds.append(time.process_time() - used)
        if storage is not None and attempt == 0:
            metadata = {path for path in storage.opened if ".hoodie/" in path}
            costs = (*_costs(storage, storage.opened.keys() - metadata), *_costs(storage, metadata))
    return Answer(rows, round(min(seconds), 4), round(min(cpu_seconds), 4), *costs)


def _costs(storage: CountingStorage, paths: Collection[str]) -> tuple[int, int]:
    """The bytes read of these files, and how often they were opened."""
    return sum(storage.bytes_read[path] for path in paths), sum(storage.opened[path] for path in paths)


def by_duckdb(table: Table, conditions: dict[str, str | None]) -> dict[str, Any] | None:
    try:
        import duckdb
    except ModuleNotFoundError:
        return None
    paths = [str(Path(table.uri) / one.base_path) for one in table.read_optimized().plan.slices if one.base_path]
    source = f"select * from read_parquet({paths!r})"

    def ask(condition: str | None) -> Callable[[], int]:
        sql = source if condition is None else f"{source} where {condition}"
        found: Any = duckdb
        return lambda: int(found.sql(sql).to_arrow_table().num_rows)

    return {words: asdict(answer(ask(condition), None)) for words, condition in conditions.items()}


def by_hudi_rs(path: str, rows: int) -> dict[str, Any] | None:
    """Its filters take one value, and bounds of a range."""
    try:
        from hudi import HudiReadOptions, HudiTable
    except ModuleNotFoundError:
        return None
    begin = EPOCH_MS + HOUR_MS
    filters = {
        "all": [],
        "one key": [("id", "=", id_of(rows // 3 + 1))],
        "a key that is not there": [("id", "=", "nobody")],
        "an hour": [("ms", ">=", str(begin)), ("ms", "<", str(begin + HOUR_MS))],
    }
    table = HudiTable(path)

    def ask(chosen: list[tuple[str, str, str]]) -> Callable[[], int]:
        return lambda: sum(batch.num_rows for batch in table.read(HudiReadOptions(filters=chosen)))

    return {words: asdict(answer(ask(chosen), None)) for words, chosen in filters.items()}


def by_stock(jar: str, path: Path, conditions: dict[str, str | None]) -> dict[str, Any]:
    from pyspark.sql import functions

    from benchmarks.peer_spark import spark_with
    from benchmarks.stock import SETTINGS

    spark = spark_with(jar, str(path.parent), SETTINGS)
    counts = [functions.count(column.name) for column in COLUMNS]

    def ask(kind: str, condition: str | None) -> Callable[[], int]:
        frame = spark.read.format("hudi").option("hoodie.datasource.query.type", kind).load(str(path))
        chosen = frame if condition is None else frame.where(condition)
        return lambda: int(chosen.agg(*counts).collect()[0][0])

    return {
        f"stock Hudi, {kind}": {words: asdict(answer(ask(kind, asked), None)) for words, asked in conditions.items()}
        for kind in ("snapshot", "read_optimized")
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_200_000)
    parser.add_argument("--slices", type=int, default=12)
    parser.add_argument("--index", choices=["BUCKET", "SIMPLE", "RECORD_INDEX"], default="BUCKET")
    parser.add_argument("--own", action="store_true", help="ask only eventide, and only for keys")
    parser.add_argument("--stock", action="store_true", help="ask stock Hudi, too, in the environment of the judges")
    parser.add_argument("--jar", help=argparse.SUPPRESS)
    parser.add_argument("--place", type=Path, default=Path("build/benchmarks/lookups"))
    given = parser.parse_args()
    if given.stock:
        chosen = ["--rows", str(given.rows), "--slices", str(given.slices), "--index", given.index]
        sys.exit(run_beside_hudi("benchmarks.lookups", given.place.absolute(), chosen))
    path = given.place / f"{given.index.lower()}_{given.rows}_{given.slices}"
    if not path.exists():
        shutil.rmtree(unfinished := path.with_suffix(".unfinished"), ignore_errors=True)
        made(unfinished, given.rows, given.index, given.slices)
        unfinished.rename(path)
    print(json.dumps(measured(path, given.rows, is_own=given.own, jar=given.jar), indent=2))


if __name__ == "__main__":
    main()
