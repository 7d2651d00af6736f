"""Who reads data files: tasks of the engine, before the table lock is taken. The driver reads none of them."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Self, TypeVar

import pyarrow as pa
import pytest

from eventide import Table
from eventide.bootstrap import Application, assemble
from eventide.rows.writer import incoming_records
from eventide_adapters.format.metadata_table import group_records
from eventide_adapters.format.metadata_table.group_records import GroupRecords, LogForm
from eventide_adapters.format.metadata_table.records.reader import MetadataTableReader
from eventide_adapters.storage.local import LocalStorage
from eventide_core.errors import EngineError
from eventide_core.ports import NoProgress
from eventide_core.table.settings.write_shape import WriteOperation
from eventide_core.table.timeline.instant import Action
from support.pasts.indexed import INDEXES, OPTIONS, SECONDARY, indexed, own_rows, with_ids
from support.tables.thresholds import dividing_plan

pytestmark = pytest.mark.slow

T = TypeVar("T")
R = TypeVar("R")


@dataclass
class Watch:
    """Where the process is, and the data files that it has read so far: (path, in a task, under the lock)."""

    in_task: bool = False
    under_lock: bool = False
    fails: bool = False
    reads: list[tuple[str, bool, bool]] = field(default_factory=list[tuple[str, bool, bool]])

    # ports.Engine
    def map(
        self,
        function: Callable[[T], R],
        items: Sequence[T],
        *,
        sizes: Sequence[int] | None = None,  # noqa: ARG002
        on_done: Callable[[], None] | None = None,
    ) -> list[R]:
        if self.fails and not self.under_lock:
            raise EngineError("a task failed")
        with self._inside():
            answers = [function(item) for item in items]
        for _ in items if on_done is not None else ():
            assert on_done is not None
            on_done()
        return answers

    @contextmanager
    def _inside(self) -> Iterator[None]:
        self.in_task = True
        try:
            yield
        finally:
            self.in_task = False

    # ports.TableLock
    def acquire(self) -> Self:
        return self

    def __enter__(self) -> Self:
        self.under_lock = True
        return self

    def __exit__(self, *_: object) -> None:
        self.under_lock = False

    def check(self) -> None:
        """Nobody takes it away."""

    def by_driver(self) -> list[str]:
        return [path for path, in_task, _ in self.reads if not in_task]

    def under_the_lock(self) -> list[str]:
        return [path for path, _, under_lock in self.reads if under_lock]


class WatchedStorage(LocalStorage):
    def __init__(self, root: str, watch: Watch) -> None:
        super().__init__(root)
        self._watch = watch

    def open_input(self, path: str) -> BinaryIO:
        self._note(path)
        return super().open_input(path)

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        self._note(path)
        return super().read_range(path, offset, length)

    def _note(self, path: str) -> None:
        if not path.startswith(".hoodie/") and not path.endswith(".hoodie_partition_metadata"):
            self._watch.reads.append((path, self._watch.in_task, self._watch.under_lock))


def watched(path: Path, watch: Watch) -> Application:
    return assemble(str(path), OPTIONS, storage=WatchedStorage(str(path), watch), engine=watch, lock=watch)


def last_files(table: Table) -> set[str]:
    state = table.state()
    return {stat.path for stat in state.commits[state.timeline.writes[-1].requested_time].stats}


def entries(path: Path, partition: str) -> int:
    reader = MetadataTableReader.load(LocalStorage(path))
    return sum(len(dict(reader.records(part))) for part in reader.slices(partition))


@pytest.mark.parametrize("operation", ["upsert", "insert", "bulk_insert", "delete"])
@pytest.mark.parametrize("name", ["v6_mdt", "v9_mdt"])
def test_a_write_reads_data_files_in_tasks_alone_and_none_under_the_lock(
    name: str, operation: str, tmp_path: Path
) -> None:
    path = indexed(name, tmp_path, has_secondary_index=name == "v9_mdt")
    watch = Watch()
    table = Table(str(path), OPTIONS, watched(path, watch))
    rows = own_rows(Table.open(str(path))).slice(0, 4)
    before = {partition: entries(path, partition) for partition in INDEXES}
    if operation == "upsert":
        table.upsert(pa.concat_tables([rows.slice(0, 2), with_ids(rows.slice(2), "new")]))
    elif operation == "delete":
        table.delete(rows)
    else:
        getattr(table, operation)(with_ids(rows, "new"))
    assert last_files(table) <= {read for read, _, _ in watch.reads}, "the indexes say what is in the new files"
    assert watch.by_driver() == []
    assert watch.under_the_lock() == []
    grown = {partition for partition in INDEXES if entries(path, partition) > before[partition]}
    assert {"column_stats"} <= grown
    assert operation == "delete" or "record_index" in grown
    assert name == "v6_mdt" or entries(path, SECONDARY) > 0


@pytest.mark.parametrize("most_here", [0, 1_000_000])
def test_a_writes_record_index_is_encoded_before_the_lock_and_by_tasks_if_large(
    most_here: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = indexed("v9_mdt", tmp_path)
    watch = Watch()
    table = Table(str(path), OPTIONS, watched(path, watch))
    calls: list[tuple[bool, bool]] = []
    encoded = GroupRecords.encoded

    def noted(records: GroupRecords, form: LogForm) -> tuple[int, bytes]:
        calls.append((watch.in_task, watch.under_lock))
        return encoded(records, form)

    monkeypatch.setattr(GroupRecords, "encoded", noted)
    monkeypatch.setattr(group_records, "ENCODED_HERE", most_here)
    table.insert(with_ids(own_rows(table).slice(0, 4), "new"))
    assert set(calls) == {(most_here == 0, False)}
    assert entries(path, "record_index") == 4


@pytest.mark.parametrize("name", ["v6_mdt", "v9_mdt"])
def test_a_write_whose_files_could_not_be_read_ahead_reads_them_under_the_lock(name: str, tmp_path: Path) -> None:
    path = indexed(name, tmp_path)
    watch = Watch()
    application = watched(path, watch)
    rows = with_ids(own_rows(Table.open(str(path))).slice(0, 4), "new")
    records = incoming_records(application, WriteOperation.INSERT, rows)
    pending = application.append.begin(WriteOperation.INSERT, records, NoProgress())
    watch.fails = True
    application.append.complete(pending)
    assert set(watch.under_the_lock()) == last_files(Table.open(str(path)))
    assert watch.by_driver() == []
    assert entries(path, "record_index") == 4


def test_a_compaction_reads_data_files_in_tasks_alone_and_none_under_the_lock(tmp_path: Path) -> None:
    path = indexed("v9_mdt", tmp_path)
    plain = Table.open(str(path), OPTIONS)
    plain.upsert(own_rows(plain))  # all files have statistics from here on
    watch = Watch()
    table = Table(str(path), OPTIONS, watched(path, watch))
    table.compact(dividing_plan(plain, "event_ts", "copy"))
    state = table.state()
    assert state.timeline.writes[-1].action is Action.COMMIT
    bases = {path for path in last_files(table) if path.endswith(".parquet")}
    assert bases
    assert bases <= {read for read, _, _ in watch.reads}
    assert watch.by_driver() == []
    assert watch.under_the_lock() == []
