"""Continues the work on a table with Hudi after eventide, and compares all readers."""

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa

from eventide import Table
from golden.histories import EPOCH_MS, PLAIN
from golden.readings import as_json
from support.judge import HudiJudge, hudi_rs

LATE_MS = EPOCH_MS + 60_000
NEW_MS = EPOCH_MS + 9_000_000


def rows(found: pa.Table) -> Counter[tuple[str, ...]]:
    return Counter(tuple(repr(as_json(row[name])) for name in PLAIN.names) for row in found.to_pylist())


def snapshots(judge: HudiJudge, path: Path) -> Counter[tuple[str, ...]]:
    """The rows that Hudi reads. Checks that hudi-rs and eventide read the same."""
    seen = rows(judge.read(path))
    assert rows(hudi_rs.read(path)) == seen
    assert rows(Table.open(str(path)).snapshot().to_arrow()) == seen
    return seen


def row(key: int, event_ts: int, val: str) -> dict[str, Any]:
    return {"id": f"k{key:05d}", "part": "ab"[key % 2], "event_ts": event_ts, "val": val, "amount": float(key)}


def write_on(judge: HudiJudge, path: Path, options: dict[str, str]) -> None:
    """Writes newer and late versions of keys of the base file, new keys, and deletes."""
    schema = pa.schema([*PLAIN, pa.field("_hoodie_is_deleted", pa.bool_())]) if _has_ordered_deletes(path) else PLAIN
    late = [row(key, LATE_MS + key, "late") for key in range(20, 40, 3)]
    newer = [row(key, NEW_MS + key, "newer") for key in range(40, 70, 3)]
    inserts = [row(key, NEW_MS + key, "new") for key in range(50_000, 50_006)]
    changes = [{"_hoodie_is_deleted": False, **found} for found in (*late, *newer, *inserts)]
    judge.write(path, pa.Table.from_pylist(changes, schema=schema), options=options)
    gone = [{"_hoodie_is_deleted": False, **row(key, NEW_MS, "gone")} for key in (41, 43, 50_001)]
    judge.write(path, pa.Table.from_pylist(gone, schema=schema), options=options, operation="delete")


def _has_ordered_deletes(path: Path) -> bool:
    return "ordered_deletes" in path.name
