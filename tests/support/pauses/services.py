"""Single actions of eventide on a table, with the rows before and after each."""

from dataclasses import dataclass
from functools import cache

from eventide.bootstrap import Application
from eventide.rows.writer import arrow_records
from eventide.testing.crash_enumeration import Moment, Protocol, execute, pending_plan
from eventide.testing.histories import EPOCH_MS, Commit, Layout, at_epoch, put, records
from eventide.testing.oracle import Rows
from eventide_core.action.compaction.request import CompactionRequest
from eventide_core.config import LinkChoice
from eventide_core.ports import NoProgress
from eventide_core.table.settings.write_shape import WriteOperation
from support.pasts.served import archive, begin_past, clean, restore, rows, undo_completed

WRITTEN: Commit = (put("k0", 70, "written"), put("k9", 71, "new"))
Shown = frozenset[tuple[object, ...]]


@dataclass(frozen=True, slots=True)
class Case:
    """A table, an action on it, and the rows before and after, without their commit times."""

    start: Moment
    run: Protocol
    before: Shown
    after: Shown


def ingest(application: Application) -> None:
    application.append.write(WriteOperation.UPSERT, arrow_records(application, *records(WRITTEN)), NoProgress())


def plan(application: Application) -> None:
    application.scheduler.schedule(CompactionRequest(EPOCH_MS + 16, None, LinkChoice.COPY))


_SERVICES = {"clean": clean, "roll back": undo_completed, "restore": restore, "archive": archive}
ACTIONS = ("ingest", "plan", "compact", *_SERVICES)


@cache
def case(action: str, layout: Layout) -> Case:
    past = begin_past(_SERVICES.get(action, clean), layout)
    before = _without_times(past.story.oracle.snapshot())
    match action:
        case "ingest":
            after = past.story.oracle.copy()
            after.commit("9", [at_epoch(change) for change in WRITTEN])
            return Case(past.start, ingest, before, _without_times(after.snapshot()))
        case "plan":
            return Case(past.start, plan, before, before)
        case "compact":
            scheduled = past.bench.run(past.start, plan)
            return Case(scheduled, execute(pending_plan(past.bench.process()).instant), before, before)
        case _:
            return Case(past.start, past.service.run, before, _without_times(past.service.after.snapshot()))


def shown(application: Application) -> Shown:
    """The rows of a snapshot."""
    return _without_times(rows(application))


def _without_times(found: Rows) -> Shown:
    return frozenset(row[:-1] for row in found)
