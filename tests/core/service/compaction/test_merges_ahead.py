"""Merges that begin while their plan gets its owner: when they read, and what becomes of them if the table has changed."""

import threading
from collections.abc import Callable
from concurrent.futures import CancelledError
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from eventide import Table
from eventide.bootstrap import Application, SystemClock, assemble
from eventide.engine_local import LocalEngine
from eventide_adapters.storage.faulty import FaultyStorage
from eventide_adapters.storage.local import LocalStorage
from eventide_core.action.compaction.request import CompactionRequest
from eventide_core.config import LinkChoice
from eventide_core.errors import InstantNotFoundError
from eventide_core.ports import NoProgress
from eventide_core.service.compaction.compact_slice import SliceCompactor
from eventide_core.service.compaction.merge_tasks import MergesAhead, merges_ahead
from support.tables.append import START_MS, make, rows, seen

pytestmark = pytest.mark.slow

REQUEST = CompactionRequest(START_MS + 50, None, LinkChoice.AUTO)
AHEAD = {".compaction.requested", "lock", ".heartbeat"}


class Watched(FaultyStorage):
    """A storage that signals when a base file has been opened."""

    def __init__(self, root: Path) -> None:
        super().__init__(LocalStorage(root))
        self.base_opened = threading.Event()

    def open_input(self, path: str) -> BinaryIO:
        stream = super().open_input(path)
        if path.endswith(".parquet"):
            self.base_opened.set()
        return stream


@dataclass
class Skew(SystemClock):
    """A clock of a process. While its owner waits after it has put a plan, a merge opens its base file, and more happens."""

    storage: Watched
    meanwhile: Callable[[], object]
    written: list[str] = field(default_factory=list[str])

    def sleep(self, milliseconds: int) -> None:
        super().sleep(milliseconds)
        is_put = any(path.endswith(".compaction.requested") for _, path in self.storage.writes)
        if is_put and not self.written:
            assert self.storage.base_opened.wait(60), "no merge has begun"
            self.written += [path for _, path in self.storage.writes]
            self.meanwhile()


@pytest.fixture(params=[6, 9])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Table:
    made = make(tmp_path / "t", request.param)
    made.upsert(rows(("k0", "a", 0, "base"), ("k1", "a", 1, "base")))
    made.compact(before=START_MS + 9)
    made.upsert(rows(("k0", "a", 10, "changed"), ("k1", "a", 11, "changed")))
    return made


def process(table: Table, meanwhile: Callable[[], object]) -> tuple[Application, Skew]:
    storage = Watched(Path(table.uri))
    clock = Skew(storage, meanwhile)
    return assemble(storage.root, table.options, storage=storage, clock=clock), clock


def compact(application: Application) -> str:
    draft = application.scheduler.schedule(REQUEST)
    return application.runner.execute(draft.plan.instant, NoProgress(), put=draft.put).instant


def base_files(table: Table) -> set[str]:
    return {path.name for path in Path(table.uri).rglob("*.parquet")}


def test_a_merge_reads_while_its_plan_gets_an_owner_and_writes_nothing(table: Table) -> None:
    before, rows_before = base_files(table), seen(table)
    application, clock = process(table, lambda: None)
    instant = compact(application)
    assert clock.written, "the process has slept"
    assert not [path for path in clock.written if not any(name in path for name in AHEAD)]
    assert all(f"_{instant}.parquet" in name for name in base_files(table) - before)
    assert len(base_files(table) - before) == 2
    assert seen(table) == rows_before


def test_a_merge_ends_if_its_slice_has_changed(table: Table) -> None:
    def write() -> None:
        table.upsert(rows(("k0", "a", 12, "changed again"), ("k2", "a", 13, "new")))

    application, clock = process(table, write)
    compact(application)
    assert clock.written
    expected = [("k0", "a", 12, "changed again"), ("k1", "a", 11, "changed"), ("k2", "a", 13, "new")]
    assert seen(table) == expected
    table.compact(before=START_MS + 60)
    assert seen(table) == expected
    assert table.verify(deep=True).ok


def test_a_merge_of_a_plan_that_is_rolled_back_leaves_nothing(table: Table) -> None:
    before = base_files(table)
    application, _ = process(table, lambda: None)
    draft = application.scheduler.schedule(REQUEST)
    table.rollback(draft.plan.instant)
    with pytest.raises(InstantNotFoundError):
        application.runner.execute(draft.plan.instant, NoProgress(), put=draft.put)
    assert base_files(table) == before
    assert table.verify(deep=True).ok


def test_an_engine_that_is_passed_merges_ahead_too(table: Table) -> None:
    class Counted(LocalEngine):
        begun = 0

        def begin(self, *given: Any, **named: Any) -> Any:
            self.begun += 1
            return super().begin(*given, **named)

    engine = Counted(2)
    table.compact(before=START_MS + 50, engine=engine)
    assert engine.begun == 1
    assert table.verify(deep=True).ok


def test_a_result_is_that_of_its_slice_whatever_the_engines_order(table: Table) -> None:
    """The commit states sizes and counts of each slice."""

    class Reversed(LocalEngine):
        reversed = 0

        def begin(self, *_: Any, **__: Any) -> Any:
            return None

        def map(self, function: Any, items: Any, **named: Any) -> Any:
            results = super().map(function, items, **named)
            if not isinstance(function, SliceCompactor):
                return results
            self.reversed = len(results)
            return results[::-1]

    engine = Reversed(2)
    table.upsert(
        rows(*((f"k{number}", part, 12, "more") for part in "bc" for number in range(2 if part == "b" else 9)))
    )
    table.compact(before=START_MS + 50, engine=engine)
    assert engine.reversed > 1
    assert table.verify(deep=True).ok


def test_an_abandoned_run_begins_no_other_merge() -> None:
    """As after Ctrl-C: the merges that write end, and the many that follow never write."""
    written = list[object]()
    is_writing, may_end = threading.Event(), threading.Event()

    def merge(task: object, /, may_write: Callable[[], object]) -> object:
        may_write()
        written.append(task)
        is_writing.set()
        assert may_end.wait(60)
        return task

    def finish(ahead: MergesAhead) -> None:
        with suppress(CancelledError):
            ahead.finished(tasks)

    tasks: Any = tuple(f"slice {number}" for number in range(50))
    merger: Any = merge
    with merges_ahead(LocalEngine(2), merger, tasks, NoProgress()) as ahead:
        assert ahead is not None
        run = threading.Thread(target=finish, args=(ahead,))
        run.start()
        assert is_writing.wait(60)
        for result in ahead._results:
            result.cancel()
        may_end.set()
    run.join(60)
    assert 1 <= len(written) <= 2
