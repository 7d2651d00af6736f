"""An update of the metadata table of a small real table, at an unused instant."""

import itertools
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from eventide.engine_local import LocalEngine
from eventide_adapters.format.metadata_table.table import HudiMetadataTable
from eventide_adapters.format.timeline.codec import HudiMetadataCodec
from eventide_adapters.storage.faulty import Fault, FaultPlan, FaultyStorage, SimulatedCrash
from eventide_adapters.storage.local import LocalStorage
from eventide_core.config import Options
from eventide_core.ports import AddedFile, Engine, FileChanges, Storage
from eventide_core.service.common.metadata_table.compaction import MetadataCompactor
from eventide_core.service.common.metadata_table.update import write_update
from eventide_core.service.common.metadata_table.upkeep import MetadataTableUpkeep
from eventide_core.table.settings.metadata_table import RowChange
from eventide_core.table.settings.table_config import TableConfig

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


def listed(path: Path) -> dict[str, dict[str, int]]:
    """The sizes of the data files by partition and name, as the metadata table lists them."""
    listing = opened(path).listing(())
    assert listing is not None
    return {partition: dict(files) for partition, files in listing.items()}


def on_disk(path: Path) -> dict[str, dict[str, int]]:
    """The sizes of the data files by partition and name, as the file system lists them."""
    listed: dict[str, dict[str, int]] = {}
    for file in path.glob("part=*/*"):
        if (".log." in file.name or file.suffix == ".parquet") and file.suffix != ".crc":
            listed.setdefault(file.parent.name, {})[file.name] = file.stat().st_size
    return listed


def check_files(path: Path) -> None:
    """The metadata table names the files that exist, and no others."""
    assert {partition: files for partition, files in listed(path).items() if files} == on_disk(path)


def set_property(path: Path, key: str, value: str) -> None:
    properties = path / ".hoodie" / "hoodie.properties"
    lines = [line for line in properties.read_text().splitlines() if not line.startswith(f"{key}=")]
    properties.write_text("\n".join([*lines, f"{key}={value}", ""]))
    properties.with_name(".hoodie.properties.crc").unlink(missing_ok=True)


def crashed_copies(
    table: Path,
    directory: Path,
    act: Callable[[Path, Storage], object],
    *,
    fault: Fault = Fault.CRASH_BEFORE,
    step: int = 1,
) -> Iterator[tuple[Path, bool]]:
    """A copy of a table for each write of `act`, or for each one in `step`, with whether it crashed at it: not the last."""
    for number in itertools.count(step=step):
        copy = directory / f"crash{number}" / table.name
        shutil.copytree(table, copy)
        try:
            act(copy, FaultyStorage(LocalStorage(copy), FaultPlan(writes={number: fault})))
        except SimulatedCrash:
            yield copy, True
            shutil.rmtree(copy)
        else:
            yield copy, False
            return


def update(metadata: HudiMetadataTable, instant: str, changes: FileChanges, completed: str) -> None:
    """An update at an instant of the table, whose commit completes at that time."""
    write_update(metadata.storage, metadata, HudiMetadataCodec(), metadata.prepare(instant, changes), completed)


def compactor(storage: Storage, engine: Engine | None = None) -> MetadataCompactor:
    return MetadataCompactor(storage, HudiMetadataTable(storage), HudiMetadataCodec(), engine or LocalEngine(1))


def check(path: Path, rows: RowChange) -> None:
    """Checks that an action of that kind could keep the metadata table up to date."""
    storage = LocalStorage(path)
    config = TableConfig.parse((path / ".hoodie" / "hoodie.properties").read_text(), str(path))
    MetadataTableUpkeep(compactor(storage), Options({})).check(config, rows)


def write(metadata: HudiMetadataTable, removed: Mapping[str, tuple[str, ...]] | None = None) -> None:
    update(metadata, INSTANT, FileChanges(RowChange.NONE, ADDED, removed or {}), COMPLETED)


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
    timeline_of(path).joinpath(f"{INSTANT}.compaction.requested").write_bytes(b"")


def timeline_of(path: Path) -> Path:
    new = path / ".hoodie" / "timeline"
    return new if new.exists() else path / ".hoodie"
