"""A disk that runs full during an action on a table whose metadata table has a record index: the same again ends it.

From one write on, each in turn, nothing more fits on the disk, but files can be removed, and on every second try those
without content made. Then there is room again. An action that the metadata table cannot follow was begun with an option
that drops it, and is ended without that option: it is refused only if nothing of it was begun.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TypeVar

import pytest

from eventide.bootstrap import Application
from eventide.testing.crash_enumeration import Bench, Moment, execute, pending_plan, writes_of
from eventide.testing.histories import EPOCH_MS, Layout, Story, at_epoch, put
from eventide.testing.oracle import Order
from eventide_adapters.format.metadata_table.records.records import file_group_number
from eventide_adapters.format.metadata_table.table import HudiMetadataTable
from eventide_adapters.storage.faulty import FaultyStorage
from eventide_core.action.compaction.request import CompactionRequest
from eventide_core.config import LinkChoice
from eventide_core.errors import InstantNotFoundError, StorageError, UnsupportedTableError
from eventide_core.ports import NoProgress, Storage
from support.pasts.served import (
    EARLY,
    Service,
    archive,
    clean,
    compact,
    restore,
    rows,
    undo_compaction,
    undo_completed,
    undo_failed,
)
from support.pauses.services import WRITTEN, ingest
from support.run.reach import reached

pytestmark = pytest.mark.slow

INDEXES = ("record_index", "column_stats")
OPTIONS = {**EARLY, "hoodie.metadata.compact.max.delta.commits": "3"}
DROP = {"eventide.metadata.table": "drop"}
_Answer = TypeVar("_Answer")


class FullDisk(FaultyStorage):
    """A storage on which nothing more fits from a write on."""

    def __init__(self, inner: Storage, number: int, *, has_empty_files: bool) -> None:
        super().__init__(inner)
        self._number, self._has_empty_files = number, has_empty_files
        self._is_empty = False

    def put(self, path: str, data: bytes) -> None:
        self._is_empty = not data
        super().put(path, data)

    def put_if_absent(self, path: str, data: bytes) -> bool:
        self._is_empty = not data
        return super().put_if_absent(path, data)

    def _write(self, kind: str, path: str, write: Callable[[], _Answer]) -> _Answer:
        is_empty = kind in ("put", "put_if_absent") and self._is_empty and self._has_empty_files
        if kind != "delete" and not is_empty and len(self.writes) >= self._number:
            raise StorageError(f"No space left on device: {kind} {path}")
        return super()._write(kind, path, write)


@dataclass(frozen=True, slots=True)
class Indexed:
    """A table with a record index, and an action on it. `first` has the options of the interrupted process."""

    bench: Bench
    start: Moment
    service: Service
    first: Bench

    def run(self, application: Application) -> None:
        self.service.run(application)


def write(story: Story, _: Bench) -> Service:
    after = story.oracle.copy()
    after.commit("9", [at_epoch(change) for change in WRITTEN])
    return Service(ingest, after)


def complete_compaction(story: Story, bench: Bench) -> Service:
    application = bench.process()
    application.scheduler.schedule(CompactionRequest(EPOCH_MS + 16, None, LinkChoice.COPY))
    return Service(execute(pending_plan(application).instant), story.oracle)


def begin(version: int, action: Callable[[Story, Bench], Service], first: dict[str, str]) -> Indexed:
    bench = Bench("full-disk", OPTIONS)
    story = Story.begin(Layout(version, Order.EVENT_TIME, has_metadata_table=True), bench.storage, bench.clock)
    story.commit((put("k0", 1, "base"), put("k1", 2, "base"), put("k2", 3, "base", partition="b")))
    bench.process().metadata_rebuilder.rebuild(INDEXES)
    story.commit((put("k0", 5, "early"), put("k2", 6, "early", partition="b")))
    story.commit((put("k1", 12, "left over"), put("k3", 13, "left over")))
    compact(bench, 10, story.oracle)
    compact(bench, 14, story.oracle)
    story.commit((put("k0", 20, "later"), put("k2", 21, "later", partition="b")))
    service = action(story, bench)
    return Indexed(bench, bench.moment(), service, replace(bench, options={**OPTIONS, **first}))


def cells() -> list[object]:
    """All actions on all versions. Those that the metadata table cannot follow begin with an option that drops it."""
    kept = (undo_failed, undo_compaction, clean, archive, write, complete_compaction)
    by_default = {(6, undo_failed), (9, archive)}
    broad = {(8, restore), (9, undo_completed)}
    return [
        pytest.param(
            version,
            action,
            {} if action in kept else DROP,
            id=f"v{version}-{action.__name__}",
            marks=[]
            if (version, action) in by_default
            else [pytest.mark.broad if (version, action) in broad else pytest.mark.proof],
        )
        for version in (6, 8, 9)
        for action in (*kept, undo_completed, restore)
    ]


@pytest.mark.parametrize(("version", "action", "first"), cells())
def test_the_same_again_ends_what_a_full_disk_interrupted(
    version: int, action: Callable[[Story, Bench], Service], first: dict[str, str]
) -> None:
    found = begin(version, action, first)
    expected = {row[:-1] for row in found.service.after.snapshot()}
    for number in range(len(writes_of(found.first, found.start, found.run))):
        left = interrupted(found, number, has_empty_files=number % 2 == 0)
        again(found, left.after_the_lock_expired())
        application = found.bench.process()
        assert {row[:-1] for row in rows(application)} == expected, f"write {number}"
        verified = application.verifier.verify(is_deep=True, progress=NoProgress())
        assert verified.ok, f"write {number}: {verified}"
        check_record_index(application)
        reached(f"full disk with a record index, {action.__name__}")


def interrupted(found: Indexed, number: int, *, has_empty_files: bool) -> Moment:
    found.first.load(found.start)
    storage = FullDisk(found.first.storage, number, has_empty_files=has_empty_files)
    with suppress(StorageError):
        found.run(found.first.process(storage))
    return found.first.moment()


def again(found: Indexed, left: Moment) -> None:
    """The same without the further options. It may refuse only what was never begun."""
    found.bench.load(left)
    try:
        with suppress(InstantNotFoundError):  # the first run had ended: there is nothing left to roll back
            found.run(found.bench.process())
    except UnsupportedTableError:
        assert left.visible == found.start.visible
        assert found.first.options != found.bench.options
        found.bench.load(found.first.run(left, found.run))


def check_record_index(application: Application) -> None:
    """If there is one, it has exactly the keys that the table shows."""
    index = HudiMetadataTable(application.files.storage).load().record_index()
    if index is None:
        assert "record_index" not in application.files.config().metadata_partitions
        return
    shown = {str(row[1]) for row in rows(application)}
    for key in sorted({*shown, "k7", "k8", "k9"}):
        located = index.locate(file_group_number(key, index.file_groups), [key])
        assert (key in located) == (key in shown), key
