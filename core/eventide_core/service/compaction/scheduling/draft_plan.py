"""What a compaction would do, before anything is written."""

from dataclasses import dataclass, field
from typing import TypeAlias

from eventide_core.action.compaction.trigger import Due
from eventide_core.action.freshness.freshness import Freshness
from eventide_core.action.query.offending_log_files import OffendingLogFile
from eventide_core.config import Options
from eventide_core.errors import format_timestamp
from eventide_core.service.common.facts.exact_view import Exactness
from eventide_core.service.common.state.table import TableState
from eventide_core.table.timeline.contents.plans import CompactionPlan
from eventide_core.table.timeline.instant import Instant


@dataclass(frozen=True, slots=True)
class HeldSlice:
    """A file slice whose log files still hold records before T when the plan has been run, from `earliest_ms` on."""

    partition: str
    file_id: str
    earliest_ms: int


PutPlan: TypeAlias = tuple[CompactionPlan, TableState]
"""A plan that this process has put on the timeline, and the table's state right after that."""


@dataclass(frozen=True, slots=True)
class DraftPlan:
    """A plan that is not on the timeline, the freshness it will reach, and what else its execution will do.

    `state` is the table's when it was drafted. `plan` has no operations if there is nothing to do. `strategy` is its
    name for people. `predicted` is the freshness once it has run, if nothing is written meanwhile. `untouched_slices` counts
    the slices with log files that it leaves as they are. `notes` are sentences for the user about what it can't do.

    `due` is the trigger's answer, None if the user requested a T. `is_reached`: everything before the T that was requested
    is compacted already, and nothing is planned. `offending` are log files with records of the future, which an exact cut
    can't retire. `is_for_later`: any engine may run the plan, Hudi too. `beside` are the writes that are open, or were since
    the plan's instant: what they wrote is for a later compaction. `waits_for` is what has to end before the plan can be
    made; its instant is a guess until then. `held` are the slices that keep the watermark below T, the earliest first.
    `nothing` states why the table never has anything to compact. `exactness` is the view's, if an exact cut is requested
    that the published cut has reached. `put` is what the scheduler has put, to be run at once. `options` are those that it
    follows.
    """

    state: TableState = field(repr=False, compare=False)
    plan: CompactionPlan
    strategy: str
    due: Due | None
    predicted: Freshness
    untouched_slices: int
    notes: tuple[str, ...]
    is_reached: bool = False
    offending: tuple[OffendingLogFile, ...] = ()
    is_for_later: bool = False
    beside: tuple[Instant, ...] = ()
    waits_for: str | None = None
    held: tuple[HeldSlice, ...] = ()
    nothing: str | None = None
    exactness: Exactness | None = None
    put: PutPlan | None = field(default=None, repr=False, compare=False)
    options: Options | None = field(default=None, repr=False, compare=False)

    @property
    def is_to_put(self) -> bool:
        """Whether it can be put on the timeline as it is."""
        return self.idle is None and self.waits_for is None

    @property
    def idle(self) -> str | None:
        """Why there is nothing to do now; None if there is."""
        if self.nothing is not None:
            return self.nothing
        if self.is_reached:
            reached = "already reached: everything before T is compacted"
            return reached if self.exactness is None else f"{reached}, and {self.exactness}"
        if self.due is not None and not self.due.is_due:
            return f"{self.due.trigger} is not due: {self.due.reason}"
        if not self.plan.operations and self.plan.cut_ms is None:
            return f"{self.strategy} finds nothing to compact"
        if not self.plan.operations and self.is_for_later:
            return (
                "no slice needs compacting, and Hudi can't run an empty plan; a compaction that runs at once "
                "publishes the cut"
            )
        if not self.plan.operations and self.plan.cut_ms == self.state.cut_ms:
            return f"everything before {format_timestamp(self.state.cut_ms)} is compacted, and the cut is published"
        if not self.plan.operations and self.waits_for is not None and self.state.cut_ms is not None:
            return f"nothing to merge, and a new cut must wait: {self.waits_for}"
        return None
