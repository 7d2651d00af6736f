"""The rollback of links: rolls back a pending compaction that eventide planned, and removes nothing of a writer.

Order, under the table lock: the outcome is claimed, so that no executor can complete the plan any longer. Then it
removes the left-overs (links and copies) in order, base files, markers, the metadata table's entries of another engine that
ran the plan, the heartbeat of the process that ran it, the inflight file, and finally the plan itself. A crash at any step
leaves a plan that is still pending, and that a second rollback removes. If a writer took the same instant, the metadata
table's entry and the heartbeat are the writer's, and stay.

On version 6, a writer may follow the plan after the claim: a rollback that was killed or paused there leaves a plan that
others see. With log files on top of it, it can't be undone anymore, and `resume` lets it be run again.
"""

from dataclasses import dataclass, replace

from eventide_core.access.timeline_files import delete_each
from eventide_core.action.compaction.trigger import check_pending_writes
from eventide_core.cure import Cure
from eventide_core.errors import BusyError, InstantNotFoundError, PlanMismatchError, RefusedError
from eventide_core.ports import Lease
from eventide_core.service.common.metadata_table.upkeep import MetadataTableUpkeep
from eventide_core.service.common.state.table import TableState
from eventide_core.service.common.state.table_files import TableFiles
from eventide_core.service.common.transaction.outcome import UNDONE_KEPT_MS, Outcome, claim_outcome, claimed_outcome
from eventide_core.service.rollback.compaction_files import made_files, remove_markers
from eventide_core.table.files.file_group_write import heartbeat_path
from eventide_core.table.timeline.contents.plans import CompactionPlan, require_ours
from eventide_core.table.timeline.instant import Action, Instant, State
from eventide_core.table.timeline.outcome_file import outcome_path


@dataclass(frozen=True, slots=True)
class CompactionRollback:
    files: TableFiles
    metadata: MetadataTableUpkeep

    def undo(self, state: TableState, instant: str, lease: Lease) -> tuple[str, ...]:
        """Rolls back the pending compaction at `instant`; returns the paths that were removed.

        Raises InstantNotFoundError; RefusedError where something would be lost; BusyError while a write is pending that
        may append to the slice the plan began (version 6).
        """
        plan = self._plan(state, instant)
        self._refuse_foreign_logs(state, plan)
        lease.check()
        if claim_outcome(self.files.storage, Outcome(instant, None)).completion_time is not None:
            raise BusyError(
                f"the compaction at {instant} is about to complete; complete it with {Cure.execute(instant)}"
            )
        deleted = delete_each(self.files.storage, made_files(plan), lease)
        remove_markers(self.files, plan)
        if not state.timeline.shares_its_time(instant):
            self.metadata.revert(state.config, lease, instant)
            self.files.storage.delete(heartbeat_path(instant))
        pending = [Instant(instant, Action.COMPACTION, step) for step in (State.INFLIGHT, State.REQUESTED)]
        deleted += delete_each(self.files.storage, map(self.files.on_timeline(state.config).path, pending), lease)
        return tuple(deleted)

    def resume(self, state: TableState, plan: CompactionPlan, lease: Lease, now_ms: int, *, is_alone: bool) -> None:
        """Takes the decision to undo a plan back if writers have followed the plan since. Nothing if nobody has decided so.

        A paused process that works on the rollback deletes one more file when it wakes up, perhaps one that was made
        again. So the decision stands for a day after it and the first such log file: no process is paused for as long.
        `is_alone`: a user knows that none is. Raises PlanMismatchError if the rollback can be completed; BusyError until
        the day is over.
        """
        claimed = claimed_outcome(self.files.storage, plan.instant) if plan.instant in state.ended else None
        if claimed is None or not claimed.is_undone:
            return
        logs = [log.path for log in state.logs_on_top_of(plan)]
        if not logs:
            raise PlanMismatchError(
                f"the plan at {plan.instant} is being rolled back; run rollback again to complete that"
            )
        decision, *followed = self.files.requests.each(self.files.storage.stat, [outcome_path(plan.instant), *logs])
        since_ms = max(decision.modified_ms if decision else 0, min(log.modified_ms for log in followed if log))
        if now_ms - since_ms < UNDONE_KEPT_MS and not is_alone:
            raise BusyError(
                f"a rollback of the plan at {plan.instant} was interrupted, and {logs[0]} was written into the plan's new "
                "slice since, so that the plan has to be completed. If that rollback is only paused, it could remove a file "
                "of the compaction, so eventide completes the plan a day after that. If no process of eventide is paused, "
                f"complete it now with {Cure.execute(plan.instant, force=True)}"
            )
        delete_each(self.files.storage, [outcome_path(plan.instant)], lease)

    def undo_request(self, state: TableState, request: Instant, lease: Lease) -> tuple[str, ...]:
        """Removes the request of a compaction whose plan is empty. Nobody can have run it or written on top of it.

        Raises RefusedError if someone has: then the plan was written once, and has been lost since.
        """
        instant = request.requested_time
        timeline = self.files.on_timeline(state.config)
        path = timeline.path(replace(request, state=State.REQUESTED))
        made = (file.path for file in state.listing if file.parsed is not None and file.parsed.instant == instant)
        is_inflight = request.state is State.INFLIGHT
        begun = timeline.path(request) if is_inflight else next(made, None)
        if begun is not None and not state.timeline.shares_its_time(instant):
            raise RefusedError(
                f"{path} is empty, but the compaction was begun: {begun} exists; restore the plan from a copy, then "
                f"complete it with {Cure.execute(instant)}"
            )
        lease.check()
        claim_outcome(self.files.storage, Outcome(instant, None))  # so that the instant is not used again
        return tuple(delete_each(self.files.storage, [path], lease))

    def _plan(self, state: TableState, instant: str) -> CompactionPlan:
        compaction = state.timeline.find_compaction(instant)
        if compaction is None:
            raise InstantNotFoundError(
                f"{self.files.storage.root}: there is no instant {instant}; {Cure.history()} lists the existing ones"
            )
        return require_ours(self.files.plan(state.config, instant))

    def _refuse_foreign_logs(self, state: TableState, plan: CompactionPlan) -> None:
        """A version 6 writer that saw the plan appends to the plan's slice; without the plan its log files are orphans."""
        if state.config.layout.writers_follow_plans:
            check_pending_writes(state.timeline, "9")
        for log in state.logs_on_top_of(plan):
            raise RefusedError(
                f"{log.path} was written into the new slice of the plan at {plan.instant} and would be lost "
                f"with it; complete the plan with {Cure.execute(plan.instant)} instead"
            )
