"""Plan a compaction again in place: a plan that version 6 made visible can't be rolled back, not even after an upgrade.

A writer may have appended to the slice that the plan begins (docs/invariants.md, step 2). It writes in the order
of the run, which puts the new plan over the old one: `service/compaction/run.py`, step 2.
"""

from dataclasses import dataclass, replace

from eventide_core.action.compaction.change_capture import with_change_logs
from eventide_core.action.compaction.link_choice import LinkDecision
from eventide_core.action.compaction.planner import partial_slice, whole_slice
from eventide_core.action.compaction.slice_selection import Selection
from eventide_core.service.common.state.table import TableState
from eventide_core.service.compaction.scheduling.planned_slices import is_in_new_slice
from eventide_core.service.compaction.scheduling.slice_facts import SliceFactsReader
from eventide_core.service.compaction.scheduling.split_judge import SplitJudge
from eventide_core.table.files.file_name import BaseFileName
from eventide_core.table.files.file_slice import FileSlice
from eventide_core.table.timeline.contents.plans import CompactionPlan, CutMode, FallbackReason, PlannedOperation
from eventide_core.table.timeline.layout import layout_of

# After an upgrade, too: left-overs come before the log files that writers have named by the plan's slice.
_LAYOUT = layout_of(6)
_CHANGED = "a write changed the slice after it was planned"


@dataclass(frozen=True, slots=True)
class Replanner:
    facts: SliceFactsReader
    splits: SplitJudge

    def replan(self, state: TableState, plan: CompactionPlan) -> CompactionPlan:
        """The plan for the same instant over the current slices.

        What writers that had not seen the plan have added to an old slice since is left over, because their instants
        are later than the plan's. If a reader would see a difference, the slice is compacted in full.
        """
        attempt = 1 + max((_attempt_of(op.new_base_name) for op in plan.operations), default=0)
        slices = {file_slice.file_group: file_slice for file_slice in state.view.latest_slices()}
        operations: list[PlannedOperation] = []
        for number, op in enumerate(plan.operations):
            file_slice = slices.get((op.partition, op.file_id))
            if file_slice is None:
                continue
            old = replace(
                file_slice,
                log_files=tuple(log for log in file_slice.log_files if not is_in_new_slice(state, plan.instant, log)),
            )
            token = f"{number}-{attempt}-0"
            selection = self.grown(state, plan, op, old)
            if selection is None:
                operations.append(
                    whole_slice(old, plan.instant, token, _CHANGED, FallbackReason.CHANGED_AFTER_PLANNING)
                )
            else:
                link = LinkDecision(plan.link_mode, plan.instant, plan.link_reason)
                operations.append(partial_slice(selection, link, _LAYOUT, token))
        again = replace(plan, operations=tuple(operations))
        return with_change_logs(again) if any(op.captures_changes for op in plan.operations) else again

    def grown(self, state: TableState, plan: CompactionPlan, op: PlannedOperation, old: FileSlice) -> Selection | None:
        """The operation's split with the slice's new log files left over; None if it has to be compacted in full."""
        planned = [log.path for log in (*op.compacted, *(left.log_file for left in op.left_overs))]
        paths = [log.path for log in old.log_files]
        if paths[: len(planned)] != planned or old.base_instant != op.base_instant or plan.event_time_field is None:
            return None
        shape = state.shape(plan.event_time_field)
        (facts,) = self.facts.read(state, shape, [old], plan.instant)
        facts = replace(facts, above=max(facts.above, len(paths) - len(planned)))
        doubtful = any(fact.rolled_back or fact.has_merged_block for fact in facts.log_facts[len(facts.below) :])
        completed = state.blocks_of_slices()
        if doubtful or not all(completed.accepts(instant) for fact in facts.log_facts for instant in fact.instants):
            return None
        threshold_ms = plan.cut_ms if plan.cut is CutMode.EXACT else None
        selection = Selection(facts, len(op.compacted), op.fallback, op.reason, threshold_ms)
        slices = [s for s in state.view.latest_slices() if s.log_files]
        rules = self.facts.reader_rules(state, shape, slices)
        checked = self.facts.checked([selection], completed, shape)
        (judged,) = self.splits.judged(checked, rules, shape, completed)
        return None if judged.has_to_wait else judged


def _attempt_of(base_name: str) -> int:
    name = BaseFileName.parse(base_name)
    return 0 if name is None else int(name.write_token.split("-")[1])
