"""Version 6: how a plan ends whose rollback has claimed its outcome and was interrupted, while writers go on.

Writers of version 6 append to the slice that a pending plan begins. Once one has, the plan can't be undone anymore.
"""

from collections.abc import Callable

import pytest

from eventide.rows.writer import arrow_records
from eventide.testing.crash_enumeration import Bench, pending_plan
from eventide.testing.histories import EPOCH_MS, put, records
from eventide_adapters.storage.faulty import FaultyStorage, SimulatedCrash
from eventide_core.action.compaction.request import CompactionRequest
from eventide_core.config import LinkChoice
from eventide_core.errors import BusyError, LockError, PlanMismatchError, RefusedError
from eventide_core.ports import FileInfo, NoProgress
from eventide_core.table.settings.write_shape import WriteOperation
from eventide_core.table.timeline.outcome_file import OUTCOME_DIRECTORY
from support.faults.damages import table_to_damage
from support.pasts.served import rows

pytestmark = pytest.mark.slow

DAY_MS = 24 * 60 * 60 * 1000
REQUESTED, INFLIGHT = ".compaction.requested", ".compaction.inflight"


class _AsStock(FaultyStorage):
    """What an engine sees that knows nothing of the outcomes of instants."""

    def list(self, directory: str) -> tuple[FileInfo, ...]:
        return () if directory == OUTCOME_DIRECTORY else super().list(directory)

    def stat(self, path: str) -> FileInfo | None:
        return None if path.startswith(OUTCOME_DIRECTORY) else super().stat(path)


class _Interrupted(FaultyStorage):
    """`interrupt` runs before the first delete of a path with that end, and the delete happens if it returns."""

    ending = ""
    interrupt: Callable[[], None] | None = None

    def delete(self, path: str) -> bool:
        if path.endswith(self.ending) and (interrupt := self.interrupt) is not None:
            self.interrupt = None
            interrupt()
        return super().delete(path)


class _OthersBeforeClaim(FaultyStorage):
    """Others act before the outcome is claimed."""

    act: Callable[[], None] | None = None

    def put_if_absent(self, path: str, data: bytes) -> bool:
        if path.startswith(OUTCOME_DIRECTORY) and (act := self.act) is not None:
            self.act = None
            act()
        return super().put_if_absent(path, data)


def _planned() -> tuple[Bench, str]:
    """A table with a plan whose files are there, but for the commit: its process was killed."""
    bench, moment, _ = table_to_damage(6, LinkChoice.COPY)
    bench.load(moment)
    bench.process().scheduler.schedule(CompactionRequest(EPOCH_MS + 25, None, LinkChoice.COPY))
    instant = pending_plan(bench.process()).instant
    bench.storage.put(f".hoodie/{instant}{INFLIGHT}", b"")
    return bench, instant


def _die() -> None:
    raise SimulatedCrash


def _undo_until(bench: Bench, instant: str, ending: str, interrupt: Callable[[], None]) -> None:
    storage = _Interrupted(bench.storage)
    storage.ending, storage.interrupt = ending, interrupt
    bench.process(storage).rollback.undo(instant)


def _killed(ending: str) -> tuple[Bench, str]:
    """A table in which a rollback of the plan was killed before it deleted a file with that end."""
    bench, instant = _planned()
    with pytest.raises(SimulatedCrash):
        _undo_until(bench, instant, ending, _die)
    bench.storage.delete(".hoodie/lock")
    return bench, instant


def _write(bench: Bench, word: str, *, as_stock: bool = False) -> None:
    bench.clock.time_ms += 600_000
    application = bench.process(_AsStock(bench.storage) if as_stock else None)
    incoming = arrow_records(application, *records((put("k0", 30, word), put(word, 31, word))))
    application.append.write(WriteOperation.UPSERT, incoming, NoProgress())


def _check(bench: Bench, *words: str) -> None:
    assert {row[1] for row in rows(bench.process())} >= {"k0", "k1", "k2", "k3", "k4", *words}
    assert bench.process().verifier.verify(is_deep=True, progress=NoProgress()).ok


@pytest.mark.parametrize("ending", ["", INFLIGHT, REQUESTED])
def test_a_writer_ends_the_interrupted_rollback_of_a_plan_before_it_writes(ending: str) -> None:
    bench, instant = _killed(ending)
    _write(bench, "new")
    assert bench.process().state().timeline.find(instant) is None
    _check(bench, "new")
    assert bench.process().pending.end_compactions(NoProgress()).resumed == ()


@pytest.mark.parametrize("ending", ["", INFLIGHT, REQUESTED])
def test_no_row_is_lost_of_a_stock_write_that_follows_a_plan_whose_rollback_died(ending: str) -> None:
    bench, instant = _killed(ending)
    _write(bench, "of stock", as_stock=True)
    _write(bench, "of eventide")
    with pytest.raises(BusyError, match=rf'execute\("{instant}", force=True\)'):
        bench.process().pending.end_compactions(NoProgress())
    with pytest.raises(RefusedError, match=rf'execute\("{instant}"\)'):
        bench.process().rollback.undo(instant)
    _check(bench, "of stock", "of eventide")
    bench.process().runner.execute(instant, NoProgress(), may_take_over=True)
    _check(bench, "of stock", "of eventide")
    _write(bench, "after it")
    _check(bench, "of stock", "of eventide", "after it")


def test_a_plan_that_writers_follow_is_run_a_day_after_its_rollback_died() -> None:
    bench, instant = _killed("")
    _write(bench, "of stock", as_stock=True)
    bench.clock.time_ms += DAY_MS
    assert bench.process().pending.end_compactions(NoProgress()).resumed == (instant,)
    _check(bench, "of stock")


def test_a_rollback_that_wakes_up_leaves_a_plan_that_writers_follow() -> None:
    bench, instant = _planned()

    def pause() -> None:
        bench.storage.delete(".hoodie/lock")
        _write(bench, "of stock", as_stock=True)

    with pytest.raises(LockError):
        _undo_until(bench, instant, "", pause)
    _check(bench, "of stock")
    bench.process().runner.execute(instant, NoProgress(), may_take_over=True)
    _check(bench, "of stock")


def test_a_woken_compaction_removes_no_file_of_a_plan_that_can_still_be_run() -> None:
    bench, instant = _planned()

    def others() -> None:
        bench.storage.delete(".hoodie/lock")
        bench.storage.delete(f".hoodie/.heartbeat/{instant}")
        with pytest.raises(SimulatedCrash):
            _undo_until(bench, instant, "", _die)
        bench.storage.delete(".hoodie/lock")
        _write(bench, "of stock", as_stock=True)

    storage = _OthersBeforeClaim(bench.storage)
    storage.act = others
    with pytest.raises(PlanMismatchError):
        bench.process(storage).runner.execute(instant, NoProgress())
    made = {path for op in pending_plan(bench.process()).operations for path in op.made_paths}
    assert made <= {file.path for file in bench.process().files.data_files()}
    _check(bench, "of stock")
