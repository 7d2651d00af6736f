"""The keys of a large write: tasks leave them in a staging directory for later tasks, and the driver sees none."""

import os
import shutil
from pathlib import Path

import pytest

from eventide import Table
from eventide.bootstrap import assemble
from eventide.testing.histories import NoLock
from eventide_adapters.format.metadata_table import group_records
from eventide_adapters.format.metadata_table.file_contents import Question, keys_of_rows, keys_of_slice
from eventide_adapters.format.metadata_table.group_records import EncodedLog, KeyPlaces, staged_keys
from eventide_adapters.format.metadata_table.records.reader import MetadataTableReader
from eventide_adapters.format.metadata_table.secondary_index import pairs_of_slice
from eventide_adapters.storage.faulty import Fault, FaultPlan, FaultyStorage, SimulatedCrash
from eventide_adapters.storage.local import LocalStorage
from eventide_core.errors import EventideError
from eventide_core.ports import Capability, Storage
from eventide_core.table.files.file_group_write import MARKERS, STAGING
from support.doubles.pickled_tasks import PickledTasks
from support.pasts.indexed import OPTIONS, SECONDARY, indexed, own_rows, with_ids

pytestmark = pytest.mark.slow

LARGEST_ANSWER_BYTES = 1000  # a path, and two ranges for each of two file groups
ROWS = 2000


class NoHardLinks(LocalStorage):
    @property
    def capabilities(self) -> Capability:
        return super().capabilities & ~Capability.HARDLINK


def opened(path: Path, storage: Storage | None = None, engine: PickledTasks | None = None) -> Table:
    made = assemble(str(path), OPTIONS, storage=storage or LocalStorage(path), engine=engine, lock=NoLock())
    return Table(str(path), OPTIONS, made)


def index_of(path: Path, partition: str) -> dict[str, tuple[object, ...]]:
    """What the metadata table says of each key, without file IDs and times, which no two writes share."""
    reader = MetadataTableReader.load(LocalStorage(path))
    index: dict[str, tuple[object, ...]] = {}
    for group in reader.slices(partition):
        for key, versions in reader.records(group).items():
            value = versions[-1]
            place = value["recordIndexMetadata"]
            index[key] = (group.file_id, value.get("SecondaryIndexMetadata"), place and place["partitionName"])
    return index


def staged(path: Path) -> list[str]:
    return [entry.path for entry in LocalStorage(path).list(MARKERS) if entry.path.endswith(STAGING)]


@pytest.fixture
def twins(tmp_path: Path, request: pytest.FixtureRequest) -> tuple[Path, Path]:
    """Two copies of a table of Hudi with a record index of two file groups, and on version 9 a secondary index."""
    (tmp_path / "made").mkdir()
    made = indexed(
        request.param, tmp_path / "made", record_index_groups=2, has_secondary_index=request.param == "v9_mdt"
    )
    shutil.copytree(made, tmp_path / "twin")
    return made, tmp_path / "twin"


VERSIONS = pytest.mark.parametrize("twins", ["v6_mdt", "v9_mdt"], indirect=True)


def life(table: Table) -> None:
    """Inserts many rows, changes and moves some of them, deletes others, and replaces a partition."""
    rows = own_rows(table).slice(0, 4)
    many = with_ids(rows.take([number % 4 for number in range(ROWS)]), "new")
    table.insert(many)
    table.upsert(many.slice(0, 5))
    table.delete(many.slice(ROWS - 3))
    table.insert_overwrite(with_ids(rows.slice(0, 1), "over"))


@VERSIONS
@pytest.mark.parametrize("storage", [LocalStorage, NoHardLinks])
def test_staged_keys_give_the_same_indexes_and_none_passes_through_the_driver(
    twins: tuple[Path, Path], storage: type[LocalStorage], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, twin = twins
    life(opened(twin))
    tasks = PickledTasks()
    monkeypatch.setattr(group_records, "STAGED_ABOVE_BYTES", 0)
    life(opened(path, storage(str(path)), tasks))
    partitions = ["record_index", *([SECONDARY] if (path / ".hoodie/metadata" / SECONDARY).exists() else [])]
    for partition in partitions:
        assert index_of(path, partition) == index_of(twin, partition)
        assert len(index_of(path, partition)) > ROWS / 3
    for kind in (KeyPlaces, EncodedLog):
        assert max(tasks.sizes[kind]) < LARGEST_ANSWER_BYTES
    asked = {question.ask for question in tasks.asked if isinstance(question, Question)}
    assert staged_keys in asked
    assert not asked & {keys_of_slice, keys_of_rows, pairs_of_slice}
    assert staged(path) == []
    assert opened(path).verify(deep=True).ok


@VERSIONS
@pytest.mark.parametrize(
    "fault",
    [
        Fault.CRASH_AFTER,
        Fault.REPLY_LOST,
        *(
            pytest.param(fault, marks=pytest.mark.proof)
            for fault in (Fault.CRASH_BEFORE, Fault.ERROR, Fault.DUPLICATED)
        ),
    ],
)
def test_whatever_write_fails_the_index_follows_and_nothing_stays_staged(
    twins: tuple[Path, Path], fault: Fault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, twin = twins
    monkeypatch.setattr(group_records, "STAGED_ABOVE_BYTES", 0)
    rows = with_ids(own_rows(opened(made)).slice(0, 4), "new")
    counting = FaultyStorage(LocalStorage(twin))
    opened(twin, counting).insert(rows)
    of_index = [
        n for n, made_by in enumerate(counting.writes) if STAGING in made_by.path or "record_index" in made_by.path
    ]
    assert len(of_index) > 6
    expected = {f"new{at}" for at in range(4)}
    for number in of_index:
        path = tmp_path / "left"
        shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(made, path)
        failure: BaseException | None = None
        try:
            opened(path, FaultyStorage(LocalStorage(path), FaultPlan(writes={number: fault}))).insert(rows)
        except (EventideError, SimulatedCrash) as raised:
            failure = raised
        for heartbeat in (path / ".hoodie/.heartbeat").glob("*"):
            os.utime(heartbeat, (0, 0))  # its process has died long ago
        table = opened(path)
        for pending in table.state().timeline.pending:
            table.rollback(pending.requested_time, force=True)
        ids = table.snapshot().to_arrow().column("id").to_pylist()
        shown = {text for text in map(str, ids) if text.startswith("new")}
        assert shown in (set(), expected), number
        assert shown or failure is not None, number
        assert {key for key in index_of(path, "record_index") if key.startswith("new")} == shown, number
        table.clean()
        assert staged(path) == [], number
