"""Tables whose schema evolves on read: names that stayed are carried on, renamed ordering columns are refused in time."""

import json
from pathlib import Path

import pytest

from eventide import Table
from eventide_core.errors import UnsupportedTableError, format_timestamp
from support.pasts import golden
from support.tables.thresholds import dividing_plan

COLUMNS = ("id", "part", "event_ts", "val", "amount")


def _internal_schema(version: int, *names: str) -> str:
    fields = [{"id": n, "name": name, "optional": True, "type": "string"} for n, name in enumerate(names)]
    return json.dumps({"max_column_id": 9, "version_id": version, "type": "record", "fields": fields})


def _evolving(directory: Path, *versions: str) -> Path:
    """A table whose last write says the last version, and whose history file holds all."""
    path = golden.unpack("v6_no_deletes", directory)
    last = max(path.glob(".hoodie/*.deltacommit"))
    metadata = json.loads(last.read_text())
    metadata["extraMetadata"]["latest_schema"] = versions[-1]
    last.write_text(json.dumps(metadata))
    (path / f".hoodie/.{last.name}.crc").unlink(missing_ok=True)
    history = path / f".hoodie/.schema/{last.name.removesuffix('.deltacommit')}.schemacommit"
    history.write_text(f'{{"schemas": [{",".join(reversed(versions))}]}}')
    return path


def test_a_compaction_carries_the_internal_schema_on(tmp_path: Path) -> None:
    schema = _internal_schema(0, *COLUMNS)
    path = _evolving(tmp_path, schema)
    table = Table.open(str(path))
    before = sorted(row["id"] for row in table.snapshot().to_arrow().to_pylist())
    result = table.compact(dividing_plan(table, "event_ts", "auto"))
    commit = json.loads((path / f".hoodie/{result.instant}.commit").read_text())
    assert commit["extraMetadata"]["latest_schema"] == schema
    assert sorted(row["id"] for row in table.snapshot().to_arrow().to_pylist()) == before


def test_a_renamed_ordering_column_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    old = _internal_schema(0, *(name.replace("event_ts", "ts") for name in COLUMNS))
    new = _internal_schema(29990101000000000, *COLUMNS)
    path = _evolving(tmp_path, old, new)
    files = sorted(path.rglob("*"))
    table = Table.open(str(path))
    with pytest.raises(UnsupportedTableError, match="the column event_ts had the name ts"):
        table.snapshot().to_arrow()
    with pytest.raises(UnsupportedTableError, match="let Hudi compact or cluster"):
        table.plan_compaction(format_timestamp(1))
    assert sorted(path.rglob("*")) == files
