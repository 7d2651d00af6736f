"""What is reported of files that others remove between a listing and a read."""

import pytest

from eventide.rows.writer import arrow_records
from eventide.testing.crash_enumeration import Bench, pending_plan
from eventide.testing.histories import EPOCH_MS, put, records
from eventide_adapters.storage.faulty import FaultyStorage
from eventide_core.action.compaction.request import CompactionRequest
from eventide_core.config import LinkChoice
from eventide_core.errors import BusyError, TagNotFoundError
from eventide_core.ports import NoProgress
from eventide_core.service.common.state.table import TableState
from eventide_core.table.settings.write_shape import WriteOperation
from support.faults.damages import table_to_damage

pytestmark = pytest.mark.slow


def _bench(version: int) -> Bench:
    bench, moment, _ = table_to_damage(version, LinkChoice.COPY)
    bench.load(moment)
    return bench


class _WithoutSavepoint(FaultyStorage):
    """Others delete a savepoint before it is read."""

    def read(self, path: str) -> bytes:
        if path.endswith(".savepoint"):
            self._inner.delete(path)
        return super().read(path)


def test_a_tag_that_is_deleted_before_it_is_read_is_not_found() -> None:
    bench = _bench(9)
    bench.process().savepoints.save_tag("t", instant=None, threshold_ms=None, comments="")
    racing = bench.process(_WithoutSavepoint(bench.storage))
    with pytest.raises(TagNotFoundError):
        racing.savepoints.tagged("t")
    assert racing.savepoints.tags() == ()


def test_a_file_that_is_missing_amid_a_restore_is_busy() -> None:
    bench = _bench(9)
    application = bench.process()
    base_file = application.state().view.latest_base_files()[0].base_file
    assert base_file is not None
    bench.storage.delete(base_file.path)
    bench.storage.put(".hoodie/timeline/29991231000000000.restore.requested", b"")
    with pytest.raises(BusyError, match="restore is in progress"):
        TableState.load(bench.process().files)


def test_of_two_plans_that_exclude_each_other_the_late_one_is_rolled_back() -> None:
    bench = _bench(6)
    request = CompactionRequest(EPOCH_MS + 25, None, LinkChoice.COPY)
    bench.process().scheduler.schedule(request)
    late = pending_plan(bench.process()).instant
    path = f".hoodie/{late}.compaction.requested"
    data = bench.storage.read(path)
    bench.storage.delete(path)
    _write(bench)
    bench.process().scheduler.schedule(request)
    planned = pending_plan(bench.process()).instant
    bench.storage.put(path, data)
    ended = bench.process().pending.end_compactions(NoProgress())
    assert (ended.rolled_back, ended.resumed) == ((late,), (planned,))
    assert bench.process().verifier.verify(is_deep=True, progress=NoProgress()).ok


def _write(bench: Bench) -> None:
    bench.clock.time_ms += 600_000
    incoming = arrow_records(bench.process(), *records((put("k0", 30, "new"),)))
    bench.process().append.write(WriteOperation.UPSERT, incoming, NoProgress())
