"""Actions whose files others remove between the load of the table's state and the read: busy, or done, never damage."""

from collections.abc import Callable
from contextlib import suppress
from functools import partial

import pytest

from eventide.bootstrap import Application, assemble
from eventide.rows.writer import arrow_records
from eventide.table.table import Table
from eventide.testing.crash_enumeration import OPTIONS
from eventide.testing.histories import EPOCH_MS, put, records
from eventide.testing.simulation.actors import EXPECTED
from eventide_adapters.storage.faulty import FaultyStorage, SimulatedCrash
from eventide_core.action.compaction.request import CompactionRequest
from eventide_core.config import LinkChoice
from eventide_core.errors import EventideError
from eventide_core.ports import NoProgress
from eventide_core.table.settings.write_shape import WriteOperation
from eventide_core.table.timeline.instant import Action
from support.faults.damages import table_to_damage

pytestmark = pytest.mark.slow

_REQUEST = CompactionRequest(EPOCH_MS + 25, None, LinkChoice.COPY)
Verb = Callable[[Application], object]


def _plan(application: Application) -> None:
    application.scheduler.plan(_REQUEST)


def _compact(application: Application) -> None:
    _execute(application, _REQUEST)


def _execute(application: Application, request: CompactionRequest) -> None:
    draft = application.scheduler.schedule(request)
    if draft.put is not None:
        application.runner.execute(draft.plan.instant, NoProgress())


def _write(application: Application) -> None:
    incoming = arrow_records(application, *records((put("k0", 30, "new"), put("k9", 30, "new"))))
    application.append.write(WriteOperation.UPSERT, incoming, NoProgress())


def _measure(application: Application) -> None:
    table = _table(application)
    table.freshness()
    table.freshness_by_partition()
    table.unreadable_event_times()


def _take_a_window(application: Application) -> None:
    for consumer in ("new", "seen"):
        windows = _table(application).windows("1s", consumer)
        windows.progress()
        window = windows.take("runner")
        if window is not None:
            window.rows().to_arrow()


def _table(application: Application) -> Table:
    return Table(application.storage.root, OPTIONS, application)


class _KilledWhenItHasUndone(FaultyStorage):
    """The process of a restore or rollback dies before it completes it."""

    def put_if_absent(self, path: str, data: bytes) -> bool:
        if path.endswith((".restore", ".rollback")) or ".restore_" in path:
            raise SimulatedCrash(path)
        return super().put_if_absent(path, data)


def _restore(application: Application) -> None:
    saved = [i.requested_time for i in application.state().timeline.completed if i.action is Action.SAVEPOINT]
    application.restorer.restore(saved[0])


def _undo_the_last_write(application: Application) -> None:
    application.rollback.undo(application.state().timeline.writes[-1].requested_time)


def _half_a_restore(application: Application) -> None:
    _restore(_dying(application))


def _half_a_rollback(application: Application) -> None:
    _undo_the_last_write(_dying(application))


def _dying(application: Application) -> Application:
    storage = _KilledWhenItHasUndone(application.storage)
    return assemble(storage.root, OPTIONS, engine=application.engine, storage=storage, clock=application.clock)


def _compact_and_clean(application: Application) -> None:
    _compact(application)
    application.cleaner.clean(1)


class _Overtaken(FaultyStorage):
    """Others act before its read of that number, if the lock lets them."""

    others: Callable[[], object] = staticmethod(lambda: None)
    number = -1
    count = 0
    is_overtaken = False

    def _read(self, kind: str, path: str, read: Callable[[], bytes]) -> bytes:
        self.count += 1
        if self.count - 1 == self.number:
            with suppress(EventideError):
                with suppress(SimulatedCrash):
                    self.others()
                self.is_overtaken = True
        return super()._read(kind, path, read)


@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize(
    "act",
    [_restore, _half_a_restore, _undo_the_last_write, _half_a_rollback, _compact_and_clean],
    ids=lambda f: f.__name__,
)
@pytest.mark.parametrize("verb", [_plan, _compact, _write, _measure, _take_a_window], ids=lambda f: f.__name__)
def test_a_file_that_others_remove_before_it_is_read_is_no_damage(verb: Verb, act: Verb, version: int) -> None:
    bench, moment, damaged = table_to_damage(version, LinkChoice.COPY)
    bench.load(moment)
    bench.process().savepoints.save(damaged.plan.instant)
    for window in _table(bench.process()).windows("1s", "seen"):
        window.done()
    _write(bench.process())
    later = CompactionRequest(EPOCH_MS + 5_000, None, LinkChoice.COPY)
    _execute(bench.process(), later)
    moment = bench.moment()
    number, reads, overtaken = 0, 1, 0
    while number < reads:
        bench.load(moment)
        storage = _Overtaken(bench.storage)
        storage.number = number
        storage.others = partial(act, bench.process())
        application = bench.process(storage)
        try:
            verb(application)
        except EventideError as error:
            assert isinstance(error, EXPECTED), (number, storage.reads[-1], repr(error))  # noqa: PT017
        number, reads, overtaken = number + 1, storage.count, overtaken + storage.is_overtaken
    assert overtaken > 5
