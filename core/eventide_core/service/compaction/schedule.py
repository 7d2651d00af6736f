"""Plan a compaction by the configured strategy and trigger, and put the plan on the timeline.

Order of writes, inside the table lock: the plan file `<instant>.compaction.requested`, put if absent, and nothing else.
A crash before it leaves nothing; after it a pending plan, which any engine may run, and which `rollback` undoes.
"""

from collections.abc import Container, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime

from eventide_core import config as keys
from eventide_core.action.compaction_planner import PlanTerms, plan_compaction, plan_whole_slices
from eventide_core.action.compaction_request import CompactionRequest
from eventide_core.action.compaction_strategy import EventTimeBasedCompactionStrategy
from eventide_core.action.compaction_trigger import (
    Due,
    Trigger,
    check_pending_writes,
    check_trigger,
    due,
    trigger_rule,
)
from eventide_core.action.freshness import freshness, publishable_cut
from eventide_core.action.link_choice import choose_link
from eventide_core.action.offending_logs import offending_logs
from eventide_core.action.slice_selection import (
    ExactCut,
    ReaderRules,
    Selection,
    SliceFacts,
    select,
)
from eventide_core.action.strategy_choice import ChosenStrategy, chosen_strategy
from eventide_core.config import LinkChoice, Options, ParquetCodec
from eventide_core.errors import BusyError, RefusedError
from eventide_core.ports import Capability, Clock, RowChange, TableLock
from eventide_core.service.compaction.draft_plan import DraftPlan
from eventide_core.service.compaction.split_judge import SplitJudge
from eventide_core.service.facts.event_time_field import are_stats_proof, event_time_field_of
from eventide_core.service.facts.freshness import FreshnessReader
from eventide_core.service.facts.logs import LogFactsReader
from eventide_core.service.facts.planning import (
    backdated_compactions,
    is_base_file_index,
    link_choice_facts,
    unused_instant,
)
from eventide_core.service.state.metadata_table import MetadataTableUpkeep
from eventide_core.service.state.table import TableState
from eventide_core.service.state.table_files import TableFiles
from eventide_core.table.event_time import EventTimeRange
from eventide_core.table.file_name import BaseFileName
from eventide_core.table.file_slice import FileSlice
from eventide_core.table.file_system_view import FileGroup
from eventide_core.table.plans import CompactionPlan, CutMode, FallbackReason
from eventide_core.table.record_shape import RecordShape
from eventide_core.table.schema import is_time

MAX_LEFT_OVERS_DEFAULT = 30


@dataclass(frozen=True, slots=True)
class CompactionScheduler:
    files: TableFiles
    splits: SplitJudge
    facts: LogFactsReader
    freshness: FreshnessReader
    metadata: MetadataTableUpkeep
    lock: TableLock
    clock: Clock
    options: Options

    def plan(self, request: CompactionRequest) -> DraftPlan:
        """A dry run: what `schedule` would plan now. Writes nothing."""
        return self._draft(TableState.load(self.files), request)

    def schedule(self, request: CompactionRequest, *, is_for_later: bool = False) -> DraftPlan:
        """Plans, and puts the plan on the timeline; a draft that says why it is idle is not put there.

        `is_for_later`: the plan is not executed at once, and so must be one that Hudi can run, too.
        Raises BusyError where something pending excludes a plan, or another scheduler was faster.
        """
        if request.link_choice is LinkChoice.HARDLINK and Capability.HARDLINK not in self.files.storage.capabilities:
            raise RefusedError(
                f"link mode hardlink: the storage of {self.files.storage.root} has no hard links; use copy"
            )
        before = TableState.load(self.files)
        # Warms the facts of the logs, so that the lock is held for a short time.
        draft = replace(self._draft(before, request), is_for_later=is_for_later)
        if draft.idle is not None:
            return draft
        with self.lock.acquire() as lease:
            state = TableState.load(self.files)
            draft = replace(self._draft(state, request), is_for_later=is_for_later)
            if draft.idle is not None:
                return draft
            path = f"{state.config.timeline_path}/{draft.plan.instant}.compaction.requested"
            lease.check()
            if not self.files.storage.put_if_absent(path, self.files.codec.encode_plan(draft.plan)):
                raise BusyError(f"another plan took the instant {draft.plan.instant}; try again")
            return draft

    def replan_in_full(self, state: TableState, plan: CompactionPlan) -> CompactionPlan:
        """The plan for the same instant with every slice compacted in full, as it now is (docs/invariants.md, step 2).

        It takes the place of a plan that is already visible and may not be withdrawn: a writer may have appended to the
        slice that the plan begins.
        """
        groups = {(op.partition, op.file_id) for op in plan.operations}
        slices = [
            replace(found, log_files=tuple(log for log in found.log_files if log.name.instant != plan.instant))
            for found in state.view.latest_slices()
            if found.file_group in groups
        ]
        terms = PlanTerms(
            plan.cut_ms,
            plan.cut,
            plan.event_time_field,
            state.schema,
            state.config.version,
            plan.partitions_with_logs,
        )
        return plan_whole_slices(
            slices,
            plan.instant,
            terms,
            reason="a write changed the slice after it was planned",
            fallback=FallbackReason.CHANGED_AFTER_PLANNING,
            attempt=1 + max((_attempt(op.new_base_name) for op in plan.operations), default=0),
        )

    def _draft(self, state: TableState, request: CompactionRequest) -> DraftPlan:
        check_trigger(state.timeline)
        self.options.choice(
            keys.PARQUET_CODEC, ParquetCodec.AS_BEFORE
        )  # a bad value is said before anything is written
        notes = self.metadata.check(state.config, RowChange.NONE)
        strategy = chosen_strategy(self.options, self._today())
        now = unused_instant(state, self.clock)
        is_due = None if request.is_for_t else self._due(state, strategy, now)
        if not strategy.is_by_event_time:
            request.check_strategy(str(strategy))
            return self._whole_slices(state, strategy, now, is_due, notes)
        published_ms = state.cut_ms
        asked_ms = request.asked_at(self.clock.now_ms())
        threshold_ms = request.threshold_at(self.clock.now_ms(), published_ms)
        event_time_field = event_time_field_of(state, self.options)
        shape = state.shape(event_time_field)
        slices = [s for s in state.view.latest_slices() if s.log_files]
        facts = self._slice_facts(state, shape, slices)
        ranges = {fact.log.path: fact.event_times for found in facts for fact in found.logs}
        latest_ms = max((times.max_ms for times in ranges.values() if times.max_ms is not None), default=None)
        request.check_reach(threshold_ms, self.clock.now_ms(), published_ms, latest_ms)
        is_reached = False
        if request.is_for_t and published_ms is not None and event_time_field == state.cut_field:
            now_ms = freshness(
                published_ms, [fact.uncompacted for found in facts for fact in found.logs], 0
            ).watermark_ms
            is_reached = now_ms is not None and asked_ms <= now_ms
            if is_reached:
                facts = []
            elif asked_ms < published_ms:
                notes += (
                    f"T {asked_ms} lies before the published cut: late records are compacted up to {published_ms}",
                )
        by_event_time = EventTimeBasedCompactionStrategy(threshold_ms, lambda log: ranges[log.path], request.cut)
        exact = self._exact_cut(threshold_ms) if request.cut is CutMode.EXACT else None
        found = [
            s for s in (select(fact, by_event_time, now, state.timeline, exact) for fact in facts) if s is not None
        ]
        by_group = {selection.facts.file_slice.file_group: selection for selection in found}
        chosen = strategy.choose(_partitions(state), [selection.facts.file_slice for selection in found])
        rules = ReaderRules(
            state.config.merge_rule,
            state.config.reader_rules,
            is_base_file_index(slices, self.options),
            orders_by_event_time=shape.ordering_fields == (event_time_field,)
            and is_time(shape.schema, event_time_field),
        )
        blocks = state.blocks()
        selections = self.splits.judged([by_group.pop(found.file_group) for found in chosen], rules, shape, blocks)
        doubtful = [s.facts.file_slice for s in selections if any(fact.needs_check for fact in s.facts.logs)]
        self.facts.check((found.log_files for found in doubtful), blocks)
        cut_ms = publishable_cut(
            threshold_ms,
            [fact.uncompacted for left_out in by_group.values() for fact in left_out.facts.logs],
            published_ms,
        )
        if by_group:
            notes += (_held_back(strategy, len(by_group), cut_ms, published_ms),)
        link = choose_link(
            selections, link_choice_facts(state, self.files.storage, self.options, request.link_choice, now)
        )
        if not is_reached:
            check_pending_writes(state.timeline, link.instant)
        emptied = {s.facts.file_slice.file_group for s in selections if not s.left_overs}
        terms = PlanTerms(
            cut_ms,
            request.cut,
            event_time_field,
            state.schema,
            state.config.version,
            _partitions_with_logs(slices, emptied),
        )
        plan = plan_compaction(selections, link, terms)
        left = _left_uncompacted(facts, selections)
        predicted = freshness(published_ms if cut_ms is None else cut_ms, left, 0)
        untouched = len(slices) - len(selections)
        offending = () if exact is None else offending_logs(facts, threshold_ms, self.clock.now_ms())
        return DraftPlan(plan, str(strategy), is_due, predicted, untouched, notes, published_ms, is_reached, offending)

    def _whole_slices(
        self, state: TableState, strategy: ChosenStrategy, now: str, is_due: Due | None, notes: tuple[str, ...]
    ) -> DraftPlan:
        """The draft of a strategy that knows no event time: no cut is published, the one that is stays true."""
        slices = [s for s in state.view.latest_slices() if s.log_files]
        chosen = strategy.choose(_partitions(state), slices)
        self.facts.check((found.log_files for found in chosen), state.blocks())
        check_pending_writes(state.timeline, now)
        with_logs = _partitions_with_logs(slices, {found.file_group for found in chosen})
        terms = PlanTerms(None, CutMode.FILE, None, state.schema, state.config.version, with_logs)
        plan = plan_whole_slices(chosen, now, terms, reason=f"{strategy} takes the whole slice")
        predicted = self.freshness.after(state, plan)
        return DraftPlan(plan, str(strategy), is_due, predicted, len(slices) - len(chosen), notes, state.cut_ms)

    def _exact_cut(self, threshold_ms: int) -> ExactCut:
        return ExactCut(threshold_ms, self.options.integer(keys.MAX_LEFT_OVERS, MAX_LEFT_OVERS_DEFAULT))

    def _due(self, state: TableState, strategy: ChosenStrategy, now: str) -> Due:
        default = Trigger.EVENT_TIME if strategy.is_by_event_time else Trigger.NUM_COMMITS
        return due(trigger_rule(self.options, default), state.timeline, now, backdated_compactions(state))

    def _today(self) -> date:
        """The day in the local time zone, which Hudi's strategies by day go by."""
        local_ms = self.clock.now_ms() + self.clock.local_offset_ms()
        return datetime.fromtimestamp(local_ms // 1000, UTC).date()

    def _slice_facts(self, state: TableState, shape: RecordShape, slices: Sequence[FileSlice]) -> list[SliceFacts]:
        assert shape.event_time_field is not None
        facts = self.facts.read(
            state,
            shape,
            [log for s in slices for log in s.log_files],
            are_stats_proof=are_stats_proof(shape.schema, shape.event_time_field, self.options),
        )
        return [SliceFacts(s, tuple(facts[log.path] for log in s.log_files)) for s in slices]


def _left_uncompacted(facts: Sequence[SliceFacts], selections: Sequence[Selection]) -> list[EventTimeRange]:
    """The ranges of what will still be in no base file."""
    compacted = {fact.log.path for s in selections for fact in s.compacted}
    until = {fact.log.path: s.exact_ms for s in selections for fact in s.early}
    found: list[EventTimeRange] = []
    for fact in (fact for of_slice in facts for fact in of_slice.logs if fact.log.path not in compacted):
        merged_until = until.get(fact.log.path)
        found.append(fact.uncompacted if merged_until is None else fact.uncompacted.since(merged_until))
    return found


def _partitions(state: TableState) -> set[str]:
    return {found.partition for found in state.view.latest_slices()}


def _partitions_with_logs(slices: Sequence[FileSlice], emptied: Container[FileGroup]) -> tuple[str, ...]:
    """The partitions that have logs when the slices of `emptied` have none any more."""
    return tuple(sorted({found.partition for found in slices if found.file_group not in emptied}))


def _held_back(strategy: ChosenStrategy, left_out: int, cut_ms: int | None, published_ms: int | None) -> str:
    told = f"{strategy} leaves out {left_out} slices with records before T"
    if cut_ms is not None:
        return f"{told}: the cut goes no further than {cut_ms}"
    return f"{told}: no cut is published" + ("" if published_ms is None else f", {published_ms} stays")


def _attempt(base_name: str) -> int:
    name = BaseFileName.parse(base_name)
    return 0 if name is None else int(name.write_token.split("-")[1])
