"""End what is pending before anything new is begun: how a run of eventide goes on where one that died left off.

1. Writes whose writers are known to be dead are rolled back; rollbacks that were broken off are ended.
2. A compaction that eventide planned is run, whoever began it: same instant, same names. One whose process is alive is left
   to it (BusyError); one that nobody has started (`--schedule-only`) is run like one that was broken off.
3. One whose plan fits the table no more, which no run can complete, is rolled back. What was asked for is planned anew.

Re-runnable: a crash anywhere leaves what the next run finds. Where two do this at once, one of them runs the plan.
"""

from dataclasses import dataclass

from eventide_core.errors import InstantNotFoundError, PlanMismatchError
from eventide_core.ports import Progress
from eventide_core.service.compaction.run import CompactionRunner, Ended
from eventide_core.service.rollback.instant import Rollback
from eventide_core.service.state.table_files import TableFiles
from eventide_core.table.instant import Action, Instant
from eventide_core.table.plans import CompactionPlan
from eventide_core.table.table_config import TableConfig


@dataclass(frozen=True, slots=True)
class PendingCompactions:
    files: TableFiles
    runner: CompactionRunner
    rollback: Rollback

    def has_any(self) -> bool:
        """Whether `end` has something to do. Writes nothing."""
        config = self.files.config()
        timeline = self.files.timeline(config)
        return self.rollback.has_failed_writes(config, timeline) or any(
            self._is_to_run(config, pending) for pending in timeline.pending_plans
        )

    def end(self, progress: Progress) -> Ended:
        """Steps 1 to 3.

        Raises BusyError where a process is at work on what is pending, and whatever a compaction raises.
        """
        config = self.files.config()
        has_failed = self.rollback.has_failed_writes(config, self.files.timeline(config))
        undone = self.rollback.undo_failed_writes() if has_failed else ()
        compactions = self.end_compactions(progress)
        return Ended(compactions.resumed, (*undone, *compactions.rolled_back))

    def end_compactions(self, progress: Progress) -> Ended:
        """Steps 2 and 3."""
        config = self.files.config()
        resumed: list[str] = []
        rolled_back: list[str] = []
        for pending in self.files.timeline(config).pending_plans:
            instant = pending.requested_time
            if not self._is_to_run(config, pending):
                continue
            try:
                self.runner.execute(instant, progress)
                resumed.append(instant)
            except PlanMismatchError:
                self.rollback.undo(instant)
                rolled_back.append(instant)
            except InstantNotFoundError:
                continue  # another process was faster, and rolled it back
        return Ended(tuple(resumed), tuple(rolled_back))

    def _is_to_run(self, config: TableConfig, pending: Instant) -> bool:
        """Whether the pending plan is one that eventide runs by itself."""
        if pending.action is not Action.COMPACTION:
            return False
        try:
            return isinstance(self.files.plan(config, pending.requested_time), CompactionPlan)
        except InstantNotFoundError:
            return False  # it has ended in between
