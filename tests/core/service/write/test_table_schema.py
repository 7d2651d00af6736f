"""The schema in a write's commit, beside others that change it, and on tables whose schema evolves on read."""

import json
from pathlib import Path

import pyarrow as pa
import pytest

from eventide import Table
from eventide.bootstrap import assemble
from eventide.rows.writer import incoming_records
from eventide_core.action.write.pending_write import PendingWrite
from eventide_core.config import SCHEMA_MODE
from eventide_core.errors import WriteConflictError
from eventide_core.ports import NoProgress
from eventide_core.service.write.append import Append
from eventide_core.table.schema.avro_schema import META_FIELDS
from eventide_core.table.schema.internal_schema import LATEST_SCHEMA_KEY
from eventide_core.table.settings.write_shape import WriteOperation
from support.tables.append import make, rows


def _wide(*values: tuple[str, str, int, str], column: str = "fare") -> pa.Table:
    table = rows(*values)
    return table.append_column(column, pa.array([1.5] * len(table)))


def _begun(path: Path, records: pa.Table) -> tuple[Append, PendingWrite]:
    """A write of eventide that has made its files."""
    application = assemble(str(path), {SCHEMA_MODE: "merge"})
    append = application.append
    incoming = incoming_records(application, WriteOperation.UPSERT, records)
    return append, append.begin(WriteOperation.UPSERT, incoming, NoProgress())


@pytest.mark.parametrize("version", [6, 9])
def test_a_write_that_began_before_a_column_came_does_not_take_it_away(version: int, tmp_path: Path) -> None:
    table = make(tmp_path / "t", version, "SIMPLE")
    table.upsert(rows(("k1", "a", 1, "old"), ("k2", "b", 1, "old")))
    append, begun = _begun(tmp_path / "t", rows(("k1", "a", 2, "new")))
    table.upsert(_wide(("k2", "b", 2, "wide")), schema_mode="merge")
    append.complete(begun)
    values = {row["id"]: (row["word"], row["fare"]) for row in table.snapshot().to_arrow().to_pylist()}
    assert values == {"k1": ("new", None), "k2": ("wide", 1.5)}
    assert table.verify(deep=True).ok


def test_of_two_writes_that_change_the_schema_the_later_one_conflicts(tmp_path: Path) -> None:
    table = make(tmp_path / "t", 9, "SIMPLE")
    table.upsert(rows(("k1", "a", 1, "old"), ("k2", "b", 1, "old")))
    append, begun = _begun(tmp_path / "t", _wide(("k1", "a", 2, "new"), column="tip"))
    table.upsert(_wide(("k2", "b", 2, "wide")), schema_mode="merge")
    with pytest.raises(WriteConflictError, match=r"changes the table's schema, which .* has changed in the meantime"):
        append.complete(begun)
    assert [row["word"] for row in table.snapshot().to_arrow().sort_by("id").to_pylist()] == ["old", "wide"]
    assert table.verify(deep=True).ok


def _evolves_on_read(path: Path, table: Table) -> None:
    """Gives the last write the internal schema, and the meta fields in its schema, that an ALTER TABLE of Hudi leaves."""
    names = table.state().schema.field_names
    fields = [
        {"id": n, "name": name, "optional": True, "type": "string"} for n, name in enumerate((*META_FIELDS, *names))
    ]
    latest = {"max_column_id": 8, "version_id": 0, "type": "record", "fields": fields}

    last = max(path.glob(".hoodie/*.deltacommit"))
    metadata = json.loads(last.read_text())
    extra = metadata["extraMetadata"]
    schema = json.loads(extra["schema"])
    meta = [{"name": name, "type": ["null", "string"], "default": None} for name in META_FIELDS]
    extra["schema"] = json.dumps({**schema, "fields": [*meta, *schema["fields"]]})
    extra[LATEST_SCHEMA_KEY] = json.dumps(latest)
    last.write_text(json.dumps(metadata))


def test_a_write_carries_the_internal_schema_on_with_its_history(tmp_path: Path) -> None:
    path = tmp_path / "t"
    table = make(path, 6, "SIMPLE")
    table.upsert(rows(("k1", "a", 1, "old")))
    _evolves_on_read(path, table)
    table = Table.open(str(path))  # which remembers no commits
    before = table.state().internal_schema
    assert before is not None

    result = table.upsert(rows(("k1", "a", 2, "new")))
    state = table.state()
    commit = state.commits[result.instant]
    assert commit.extra_metadata[LATEST_SCHEMA_KEY] == before
    assert state.schema.field_names == ("id", "part", "ms", "word")
    history = path / f".hoodie/.schema/{result.instant}.schemacommit"
    assert json.loads(history.read_text()) == {"schemas": [json.loads(before)]}

    wider = table.upsert(_wide(("k2", "a", 2, "wide")), schema_mode="merge")
    latest = json.loads(table.state().commits[wider.instant].extra_metadata[LATEST_SCHEMA_KEY])
    assert latest["version_id"] == int(wider.instant)
    assert latest["fields"][-1] == {"id": 9, "name": "fare", "optional": True, "type": "double"}
    history = path / f".hoodie/.schema/{wider.instant}.schemacommit"
    assert [schema["version_id"] for schema in json.loads(history.read_text())["schemas"]] == [int(wider.instant), 0]
