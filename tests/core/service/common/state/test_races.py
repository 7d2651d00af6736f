"""What is reported of files that others remove between a listing and a read."""

import pytest

from eventide.testing.crash_enumeration import Bench
from eventide_adapters.storage.faulty import FaultyStorage
from eventide_core.config import LinkChoice
from eventide_core.errors import BusyError, TagNotFoundError
from eventide_core.service.common.state.table import TableState
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
