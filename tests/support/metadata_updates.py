"""An update of the metadata table of a small real table, at an unused instant."""

from collections.abc import Mapping
from pathlib import Path

from eventide_adapters.format.metadata_table.table import HudiMetadataTable
from eventide_adapters.storage.local import LocalStorage
from eventide_core.ports import AddedFile, FileChanges, RowChange

TABLES = ["v6_mdt", "v9_mdt"]
INSTANT = "20261122000000000"
COMPLETED = "20261122000000123"
COMPLETED_BEFORE = "20261122000000122"  # the update itself, from version 8 on
ADDED = (
    AddedFile("part=a", f"new_0-7-7_{INSTANT}.parquet", 1234, ()),
    AddedFile("part=b", f".old_{INSTANT}.log.1_0-1-2", 77, ("left.log",)),
    AddedFile("part=d", f"other_0-7-7_{INSTANT}.parquet", 5, ()),
)


def opened(path: Path) -> HudiMetadataTable:
    return HudiMetadataTable(LocalStorage(path))


def write(metadata: HudiMetadataTable, removed: Mapping[str, tuple[str, ...]] | None = None) -> None:
    metadata.prepare(INSTANT, FileChanges(RowChange.NONE, ADDED, removed or {})).write(COMPLETED)


def metadata_files(path: Path) -> dict[str, bytes]:
    """The files by name, without the random marker that ends an Avro container."""
    directory = path / ".hoodie" / "metadata"
    return {
        str(found.relative_to(directory)): _without_marker(found.read_bytes())
        for found in directory.rglob("*")
        if found.is_file() and found.suffix != ".crc"
    }


def _without_marker(data: bytes) -> bytes:
    return data.replace(data[-16:], b"") if data.startswith(b"Obj") else data


def begin(path: Path) -> None:
    timeline = path / ".hoodie" / "timeline"
    (timeline if timeline.exists() else path / ".hoodie").joinpath(f"{INSTANT}.compaction.requested").write_bytes(b"")
