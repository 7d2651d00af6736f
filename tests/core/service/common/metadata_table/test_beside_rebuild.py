"""A rebuild of the metadata table goes on, or stands still, between two reads of an action: the action ends, or is busy."""

from collections.abc import Callable
from contextlib import suppress

import pytest

from eventide.bootstrap import Application
from eventide.rows.writer import arrow_records
from eventide.testing.crash_enumeration import pending_plan, writes_of
from eventide.testing.histories import EPOCH_MS, put, records
from eventide_adapters.storage.faulty import Fault, FaultPlan, FaultyStorage, SimulatedCrash
from eventide_core.action.compaction.request import CompactionRequest
from eventide_core.config import LinkChoice
from eventide_core.errors import BusyError, LockError, RefusedError
from eventide_core.ports import NoProgress, Storage
from eventide_core.table.settings.properties import PROPERTIES_PATH
from eventide_core.table.settings.write_shape import WriteOperation
from support.faults.damages import table_to_damage

pytestmark = pytest.mark.slow


def _ingest(application: Application) -> None:
    incoming = arrow_records(application, *records((put("k0", 30, "new"), put("k9", 30, "new", partition="c"))))
    application.append.write(WriteOperation.UPSERT, incoming, NoProgress())


def _compact(application: Application) -> None:
    application.scheduler.schedule(CompactionRequest(EPOCH_MS + 25, None, LinkChoice.COPY))
    application.runner.execute(pending_plan(application).instant, NoProgress())


def _clean(application: Application) -> None:
    application.cleaner.clean(1)


def _rebuild(application: Application) -> None:
    application.metadata_rebuilder.rebuild()


class _BetweenReads(FaultyStorage):
    """Lets someone else act before the read of the table's settings with that number."""

    def __init__(self, inner: Storage, number: int, act: Callable[[], None]) -> None:
        super().__init__(inner)
        self.reads_of_settings = 0
        self._number, self._act = number, act

    def _read(self, kind: str, path: str, read: Callable[[], bytes]) -> bytes:
        if path == PROPERTIES_PATH:
            if self.reads_of_settings == self._number:
                self._act()
            self.reads_of_settings += 1
        return super()._read(kind, path, read)


@pytest.mark.parametrize("action", [_ingest, _compact, _clean])
@pytest.mark.parametrize("version", [6, 9])
def test_an_action_between_whose_reads_a_rebuild_goes_on_ends_or_is_busy(
    action: Callable[[Application], None], version: int
) -> None:
    bench, moment, _ = table_to_damage(version, LinkChoice.COPY, has_metadata_table=True)
    writes = len(writes_of(bench, moment, _rebuild))
    busy = 0
    for stopped_at in (2, writes // 2, writes):  # after it has taken the table out of the settings; amid; not at all
        number, is_past_the_end = 0, False
        while not is_past_the_end:
            bench.load(moment)
            plan = FaultPlan(writes={stopped_at: Fault.CRASH_BEFORE})

            def act(plan: FaultPlan = plan) -> None:
                with suppress(SimulatedCrash, LockError, BusyError):
                    _rebuild(bench.process(FaultyStorage(bench.storage, plan)))

            storage = _BetweenReads(bench.storage, number, act)
            try:
                action(bench.process(storage))
            except BusyError as error:
                busy += not isinstance(error, LockError)
            is_past_the_end = storage.reads_of_settings <= number
            number += 1
        assert number > 2
    assert busy > 0 or action is _clean, "only a clean reads everything under the lock"


class _BeforeCompletion(FaultyStorage):
    """Lets others act before the put of a write's completed file; the lock expires meanwhile."""

    def __init__(self, inner: Storage, act: Callable[[str], None]) -> None:
        super().__init__(inner)
        self._act = act

    def put_if_absent(self, path: str, data: bytes) -> bool:
        name = path.rpartition("/")[2]
        if path.startswith(".hoodie/2") and name.endswith(".deltacommit"):
            self._inner.delete(".hoodie/lock")
            self._act(name.partition(".")[0].partition("_")[0])
        return super().put_if_absent(path, data)


def test_a_woken_write_leaves_its_files_that_a_rebuilt_metadata_table_lists() -> None:
    bench, moment, _ = table_to_damage(6, LinkChoice.COPY, has_metadata_table=True)
    bench.load(moment)

    def others(instant: str) -> None:
        bench.clock.time_ms += 600_000
        awake = bench.process()
        awake.rollback.undo(instant, force=True)
        _rebuild(awake)

    with pytest.raises(RefusedError, match="rolled back"):
        _ingest(bench.process(_BeforeCompletion(bench.storage, others)))
    found = bench.process().verifier.verify(is_deep=True, progress=NoProgress())
    assert found.ok, [str(finding) for check in found.failed for finding in check.findings]


class _BeforeDelete(FaultyStorage):
    """Lets others act before the first data file is deleted."""

    def __init__(self, inner: Storage, act: Callable[[], None]) -> None:
        super().__init__(inner)
        self._acts = [act]

    def delete(self, path: str) -> bool:
        if path.endswith(".parquet") and self._acts:
            self._acts.pop()()
        return super().delete(path)


@pytest.mark.parametrize("version", [6, 9])
def test_a_clean_that_began_without_a_metadata_table_updates_the_one_made_since(version: int) -> None:
    bench, moment, _ = table_to_damage(version, LinkChoice.COPY, has_metadata_table=True)
    bench.load(moment)
    with suppress(SimulatedCrash):  # it has taken the table out of the settings
        _rebuild(bench.process(FaultyStorage(bench.storage, FaultPlan(writes={2: Fault.CRASH_BEFORE}))))
    bench.storage.delete(".hoodie/lock")
    _compact(bench.process())
    storage = _BeforeDelete(bench.storage, lambda: _rebuild(bench.process()))
    assert bench.process(storage).cleaner.clean(1).deleted
    found = bench.process().verifier.verify(is_deep=True, progress=NoProgress())
    assert found.ok, [str(finding) for check in found.failed for finding in check.findings]
