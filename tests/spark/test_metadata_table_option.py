"""A table that has Hudi's metadata table: updated, or dropped, or refused, at every step that would make it stale."""

from __future__ import annotations

from pathlib import Path

import pytest

from eventide import Table
from eventide_adapters.format.metadata_table import HudiMetadataTable
from eventide_adapters.storage.local import LocalStorage
from eventide_core.errors import RefusedError, UnsupportedTableError
from support import golden
from support.thresholds import dividing_plan

DROP = {"eventide.metadata.table": "drop"}
REFUSE = {"eventide.metadata.table": "refuse"}
TABLES = ["v6_mdt", "v9_mdt"]
LINK_MODES = [("v6_mdt", "copy"), ("v9_mdt", "copy"), ("v9_mdt", "hardlink")]


def files(path: Path) -> dict[str, bytes]:
    return {str(found.relative_to(path)): found.read_bytes() for found in path.rglob("*") if found.is_file()}


def on_disk(path: Path) -> dict[str, dict[str, int]]:
    return {
        folder.name: {
            file.name: file.stat().st_size
            for file in folder.iterdir()
            if (".log." in file.name or file.suffix == ".parquet") and file.suffix != ".crc"
        }
        for folder in path.glob("part=*")
    }


@pytest.mark.parametrize(("name", "mode"), LINK_MODES)
def test_it_is_updated_unless_told_otherwise(name: str, mode: str, tmp_path: Path) -> None:
    path = golden.unpack(name, tmp_path)
    metadata = HudiMetadataTable(LocalStorage(path))
    before = metadata.read_files()
    table = Table.open(str(path))
    plan = dividing_plan(table, "event_ts", mode)
    assert any("will be updated" in note for note in plan.draft.notes)
    scheduled = table.schedule(plan)
    assert any(operation.remaining for operation in scheduled.operations)
    assert metadata.read_files() == before
    table.execute(scheduled.instant)
    assert metadata.read_files() == on_disk(path) != before


@pytest.mark.parametrize("name", TABLES)
def test_a_plan_made_with_leave_to_drop_is_not_run_against_a_refusal(name: str, tmp_path: Path) -> None:
    path = golden.unpack(name, tmp_path)
    with pytest.raises(RefusedError, match=r"eventide\.metadata\.table=drop"):
        Table.open(str(path), REFUSE).plan_compaction(0)
    table = Table.open(str(path), DROP)
    plan = dividing_plan(table, "event_ts", "copy")
    assert any("dropped" in note for note in plan.draft.notes)
    scheduled = table.schedule(plan)
    with pytest.raises(RefusedError, match=r"eventide\.metadata\.table=drop"):
        Table.open(str(path), REFUSE).execute(scheduled.instant)
    assert (path / ".hoodie" / "metadata").is_dir()
    table.execute(scheduled.instant)
    assert not (path / ".hoodie" / "metadata").exists()
    assert "hoodie.table.metadata.partitions" not in (path / ".hoodie" / "hoodie.properties").read_text()


@pytest.mark.parametrize("name", TABLES)
def test_an_index_of_an_unknown_kind_is_refused_before_anything_is_written(name: str, tmp_path: Path) -> None:
    path = golden.unpack(name, tmp_path)
    table = Table.open(str(path))
    plan = dividing_plan(table, "event_ts", "copy")
    scheduled = table.schedule(plan)
    properties = path / ".hoodie" / "hoodie.properties"
    known = properties.read_text()
    unknown = known.replace("metadata.partitions=files", "metadata.partitions=expr_index_by_day,files")
    assert unknown != known
    properties.write_text(unknown)
    before = files(path)
    with pytest.raises(UnsupportedTableError, match=r"expr_index_by_day.*eventide\.metadata\.table=drop"):
        table.execute(scheduled.instant)
    assert files(path) == before
    properties.write_text(known)
    table.rollback(scheduled.instant)
    properties.write_text(unknown)
    before = files(path)
    with pytest.raises(UnsupportedTableError, match="expr_index_by_day"):
        table.schedule(plan)
    assert files(path) == before
