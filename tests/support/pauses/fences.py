"""The rules that make a paused process harmless, each taken out of the code, and the search that finds that.

To add one: a line of FENCES. The patch replaces a function of the code; the search holds without it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from eventide.testing.schedules.pauses import Dying
from eventide_core.service.common.transaction.action import Transaction
from eventide_core.service.common.transaction.outcome import Outcome
from eventide_core.service.compaction.run import CompactionRunner
from eventide_core.service.rollback import compaction as compaction_rollback
from eventide_core.service.write.instants import WriteInstants
from support.pauses.explored import Search

UNDONE = Search(("undo", "go on"), 2, dying=Dying.NOBODY, is_for_stock=True)
UNDONE_AND_WRITTEN = Search(("undo", "write"), 2, dying=Dying.NOBODY, is_for_stock=True)
UNDONE_BEFORE_A_DEATH = Search(("undo",), 1, dying=Dying.ANYWHERE, is_for_stock=True)


@dataclass(frozen=True, slots=True)
class Fence:
    """A rule, the patch that takes it out, and the kind of process, table version and search that find that."""

    name: str
    remove: Callable[[pytest.MonkeyPatch], None]
    kind: str
    version: int
    search: Search

    def __str__(self) -> str:
        return f"{self.name}, {self.kind} on version {self.version}"


def _never(*_: Any, **__: Any) -> bool:
    return False


def _nothing(*_: Any, **__: Any) -> None:
    """Does nothing."""


def _as_wanted(_storage: object, wanted: Outcome) -> Outcome:
    return wanted


FENCES = (
    Fence(
        "a write looks at what completed before it",
        lambda p: p.setattr(WriteInstants, "_check_fenced", _nothing),
        "write",
        9,
        UNDONE,
    ),
    Fence(
        "a write withdraws a late request",
        lambda p: p.setattr(Transaction, "_withdraw", _nothing),
        "write",
        9,
        UNDONE,
    ),
    Fence(
        "a write removes its files that were rolled back",
        lambda p: p.setattr(WriteInstants, "_sweep_after_rollback", _nothing),
        "write",
        9,
        UNDONE,
    ),
    Fence(
        "a compaction claims its outcome",
        lambda p: p.setattr("eventide_core.service.compaction.completion.claim_outcome", _as_wanted),
        "execute",
        9,
        UNDONE_BEFORE_A_DEATH,
    ),
    Fence(
        "a rollback claims the outcome",
        lambda p: p.setattr(compaction_rollback, "claim_outcome", _as_wanted),
        "execute",
        9,
        UNDONE_AND_WRITTEN,
    ),
    Fence(
        "a compaction removes its files that were rolled back",
        lambda p: p.setattr(CompactionRunner, "_sweep_after_rollback", _never),
        "execute",
        9,
        UNDONE_AND_WRITTEN,
    ),
    Fence(
        "a compaction removes its late inflight file",
        lambda p: p.setattr(Transaction, "_discard", _nothing),
        "execute",
        9,
        UNDONE_AND_WRITTEN,
    ),
    Fence(
        "a rollback withdraws its late files",
        lambda p: p.setattr(Transaction, "_discard", _nothing),
        "undo",
        9,
        UNDONE,
    ),
    Fence(
        "a plan is withdrawn if it is late",
        lambda p: p.setattr(Transaction, "_discard", _nothing),
        "plan",
        9,
        UNDONE,
    ),
)
