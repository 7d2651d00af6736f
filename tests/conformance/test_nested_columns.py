"""Tables with structs, maps and lists of structs, created by eventide: Hudi reads them, writes on, and compacts."""

from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from eventide import Table
from eventide_core.errors import format_timestamp
from support.judge import HudiJudge, hudi_rs

PLACE = pa.struct([pa.field("lat", pa.float64()), pa.field("name", pa.string())])
FARE = pa.struct(
    [pa.field("amount", pa.decimal128(9, 2)), pa.field("tips", pa.list_(pa.int64())), pa.field("at", PLACE)]
)
# No time in it: hudi-rs 0.5 refuses times in a list of structs.
STOP = pa.struct([pa.field("number", pa.int32()), pa.field("reached", pa.date32())])
COLUMNS: "list[pa.Field[Any]]" = [
    pa.field("id", pa.string(), nullable=False),
    pa.field("part", pa.string(), nullable=False),
    pa.field("ms", pa.int64(), nullable=False),
    pa.field("fare", FARE),
    pa.field("tags", pa.map_(pa.string(), pa.int64())),
    pa.field("stops", pa.list_(STOP)),
]
SCHEMA = pa.schema(COLUMNS)


def rows(ms: int, *keys: str) -> pa.Table:
    """No list has a null: Hudi 0.15 writes base files with a list structure that has none."""

    def row(key: str) -> dict[str, Any]:
        at = {"lat": 59.9, "name": f"stop {key}"}
        fare = None if key == "k3" else {"amount": Decimal("1.25"), "tips": [1, 2], "at": None if key == "k4" else at}
        stops = [{"number": 1, "reached": date(2026, 3, 2)}]
        return {"id": key, "part": "a", "ms": ms, "fare": fare, "tags": [("a", ms), ("b", None)], "stops": stops}

    return pa.Table.from_pylist([row(key) for key in keys], schema=SCHEMA)


def shown(found: pa.Table) -> list[str]:
    """In the order of keys. A map is a list of pairs or a dict, as the reader has it."""
    kept = found.select(SCHEMA.names).to_pylist()
    for row in kept:
        row["tags"] = sorted(dict(row["tags"]).items())
    return [repr(row) for row in sorted(kept, key=lambda row: str(row["id"]))]


@pytest.mark.broad
@pytest.mark.parametrize(
    ("version", "bundle"),
    [(6, "judge_015"), pytest.param(9, "judge_111", marks=pytest.mark.broad)],
)
def test_hudi_goes_on_with_nested_columns(
    version: int, bundle: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    judge: HudiJudge = request.getfixturevalue(bundle)
    path = tmp_path / "nested"
    table = Table.create(
        str(path),
        schema=SCHEMA,
        record_key="id",
        partition="part",
        event_time="ms",
        version=version,
        options={"hoodie.bucket.index.num.buckets": 1},
    )
    table.upsert(rows(1000, "k1", "k2", "k3", "k4"))
    table.upsert(rows(2000, "k1", "k5"))
    table.upsert(rows(9000, "k2"))
    table.compact(before=format_timestamp(5000))
    seen = shown(table.snapshot().to_arrow())
    assert len(seen) == 5
    assert shown(judge.read(path)) == seen == shown(hudi_rs.read(path))
    assert shown(judge.read(path, "read_optimized")) == shown(table.read_optimized().to_arrow())

    options = {
        "hoodie.table.name": "nested",
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "part",
        "hoodie.datasource.write.precombine.field": "ms",
        "hoodie.datasource.write.hive_style_partitioning": "true",
        "hoodie.index.type": "BUCKET",
        "hoodie.bucket.index.num.buckets": "1",
        "hoodie.metadata.enable": "false",
    }
    judge.write(path, rows(10_000, "k3", "k6").to_pylist(), SCHEMA, options=options)
    seen = shown(table.snapshot().to_arrow())
    assert len(seen) == 6
    assert shown(judge.read(path)) == seen
    judge.schedule_compaction(path, options)
    judge.run_compaction(path, options)
    table.upsert(rows(11_000, "k1"))
    assert shown(judge.read(path)) == shown(table.snapshot().to_arrow())
    assert table.verify(deep=True).ok
