"""Small tables of four columns that eventide writes, and their rows in the form that tests compare."""

from pathlib import Path
from typing import Any

import pyarrow as pa

from eventide import Table
from eventide_core.config import BLOOM_ENTRIES, BUCKETS, INDEX_TYPE
from support.values.columns import schema_of

SCHEMA = schema_of(id=pa.string(), part=pa.string(), ms=pa.int64(), word=pa.string())
START_MS = 1_700_000_000_000
ROWS = (("k0", "a", 10, "zero"), ("k1", "a", 20, "one"), ("k2", "b", 30, "two"))


def rows(*values: tuple[str, str, int, str]) -> pa.Table:
    shifted = [(key, part, START_MS + ms, word) for key, part, ms, word in values]
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in shifted], schema=SCHEMA)


def make(path: Path, version: int = 9, index: str = "BUCKET", **options: Any) -> Table:
    small: dict[str, object] = {BLOOM_ENTRIES: 100, INDEX_TYPE: index, **({BUCKETS: 2} if index == "BUCKET" else {})}
    return Table.create(
        str(path),
        schema=SCHEMA,
        record_key="id",
        partition="part",
        event_time="ms",
        version=version,
        options={**small, **{f"hoodie.{key.replace('_', '.')}": value for key, value in options.items()}},
    )


def filled(path: Path, version: int = 9, **options: Any) -> Table:
    """A table of ROWS."""
    table = make(path, version, **options)
    table.upsert(rows(*ROWS))
    return table


def seen(table: Table) -> list[tuple[str, str, int, str]]:
    found = table.snapshot().to_arrow().to_pylist()
    return sorted((row["id"], row["part"], row["ms"] - START_MS, row["word"]) for row in found)
