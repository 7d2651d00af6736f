"""A mutant, and the steps of the short histories that reveal it."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from eventide.bootstrap import Application
from eventide.rows.writer import arrow_records
from eventide.testing.histories import Commit, Layout, put, records
from eventide.testing.living_table.table import LivingTable
from eventide.testing.oracle import Order
from eventide_core.action.write.pending_write import PendingWrite
from eventide_core.config import LinkChoice
from eventide_core.ports import NoProgress
from eventide_core.service.write import instants as write_instants
from eventide_core.table.settings.write_shape import WriteOperation

BASE: Commit = (put("k0", 1, "base"), put("k1", 1, "base"))


BEFORE_T: Commit = (put("k1", 2, "before T"),)


AFTER_T: Commit = (put("k0", 8, "after T"),)


@dataclass(frozen=True, slots=True)
class Mutant:
    number: str
    name: str
    is_wrong: Callable[[pytest.MonkeyPatch], None]
    happens: Callable[[], None]


def living(version: int, order: Order = Order.EVENT_TIME, link: LinkChoice = LinkChoice.COPY) -> LivingTable:
    return LivingTable(Layout(version, order), link, "mutants")


def history(*steps: Callable[[LivingTable], None], of: Callable[[], LivingTable]) -> Callable[[], None]:
    def happens() -> None:
        table = of()
        for step in steps:
            step(table)
        table.inspect(whole=True)

    return happens


def writes(*commits: Commit) -> Callable[[LivingTable], None]:
    def step(table: LivingTable) -> None:
        for commit in commits:
            table.write(commit)

    return step


def compacts(cut_ms: int) -> Callable[[LivingTable], None]:
    def step(table: LivingTable) -> None:
        table.schedule(cut_ms)
        table.execute()

    return step


def plans(cut_ms: int) -> Callable[[LivingTable], None]:
    return lambda table: table.schedule(cut_ms)


def executes(table: LivingTable) -> None:
    table.execute()


def cleans(table: LivingTable) -> None:
    table.clean(1)


def begin(application: Application, changes: Commit) -> PendingWrite:
    pending = application.append.begin(
        WriteOperation.UPSERT, arrow_records(application, *records(changes)), NoProgress()
    )
    application.heartbeats.stop(pending.instant)
    return pending


PLAIN = (writes(BASE, BEFORE_T, AFTER_T), compacts(3))


def writer_unchecked(patch: pytest.MonkeyPatch) -> None:
    """A write as by a Hudi writer that expects to be alone: it checks for no conflict."""
    patch.setattr(write_instants, "check_plan", lambda *_: None)
    patch.setattr(write_instants, "check_write", lambda *_: None)
