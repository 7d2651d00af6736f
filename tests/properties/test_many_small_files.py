"""Ten thousand small files in one partition: every verb goes on, and no row is lost or doubled."""

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from eventide import Table
from eventide_core.config import BLOOM_ENTRIES, BUCKETS
from support.tables.small import SCHEMA

FILE_GROUPS = 5_000
"""Each has a base file and a log file."""
KEYS = 3 * FILE_GROUPS
OLD_MS, NEW_MS = 1_700_000_000_000, 1_700_001_000_000
T_MS = NEW_MS + KEYS // 2


def rows(first_ms: int, word: str) -> pa.Table:
    values: dict[str, list[Any]] = {
        "id": [f"k{number}" for number in range(KEYS)],
        "part": ["a"] * KEYS,
        "ms": list(range(first_ms, first_ms + KEYS)),
        "word": [word] * KEYS,
    }
    return pa.table(values, SCHEMA)


def files_of(path: Path) -> list[Path]:
    return [one for one in (path / "part=a").iterdir() if one.suffix == ".parquet" or ".log." in one.name]


@pytest.mark.proof
@pytest.mark.parametrize("version", [6, 9])
def test_ten_thousand_small_files_in_a_partition(version: int, tmp_path: Path) -> None:
    path = tmp_path / "t"
    table = Table.create(
        str(path),
        schema=SCHEMA,
        record_key="id",
        partition="part",
        event_time="ms",
        version=version,
        options={BUCKETS: FILE_GROUPS, BLOOM_ENTRIES: "100", "hoodie.cleaner.commits.retained": "1"},
    )
    table.upsert(rows(OLD_MS, "old"))
    table.upsert(rows(NEW_MS, "new"))
    groups = len({one.name.lstrip(".").partition("_")[0] for one in files_of(path)})
    assert groups > 0.9 * FILE_GROUPS, "a bucket may have no key"
    assert len(files_of(path)) == 2 * groups

    plan = table.plan_compaction(T_MS)
    assert len(plan.operations) > 0.4 * groups
    table.compact(plan)
    assert table.freshness().watermark_ms == T_MS
    early = {row["id"] for row in table.read_optimized().to_arrow().to_pylist() if row["word"] == "new"}
    assert early >= {f"k{number}" for number in range(T_MS - NEW_MS)}

    found = table.snapshot().to_arrow()
    assert Counter(found["id"].to_pylist()) == Counter(f"k{number}" for number in range(KEYS))
    assert set(found["word"].to_pylist()) == {"new"}
    assert table.verify().ok
    before = len(files_of(path))
    table.compact(before=NEW_MS + KEYS)
    assert table.clean().deleted
    assert len(files_of(path)) < before + groups
    assert table.snapshot().to_arrow().num_rows == KEYS
