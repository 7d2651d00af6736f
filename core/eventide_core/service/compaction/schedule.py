"""Plan a compaction by the configured strategy and trigger, and put the plan on the timeline.

Order of writes, inside the table lock: the plan file `<instant>.compaction.requested`, put if absent, and nothing else.
A crash before it leaves nothing; after it a pending plan, which any engine may run, and which `rollback` undoes.
"""

from collections.abc import Container, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime

from eventide_core import config as keys
from eventide_core.action.compaction_planner import (
    PlanTerms,
    partial_slice,
    plan_compaction,
    plan_whole_slices,
    whole_slice,
)
from eventide_core.action.compaction_request import CompactionRequest
from eventide_core.action.compaction_strategy import EventTimeBasedCompactionStrategy
from eventide_core.action.compaction_trigger import (
    Due,
    Trigger,
    check_trigger,
    due,
    trigger_rule,
)
from eventide_core.action.freshness import freshness, publishable_cut
from eventide_core.action.link_choice import LinkDecision, choose_link
from eventide_core.action.offending_logs import offending_logs
from eventide_core.action.quiet_moment import (
    BackdatingFacts,
    QuietMoment,
    before_open_writes,
    gap_now,
    no_quiet_moment,
    quiet_moment,
)
from eventide_core.action.slice_selection import (
    ExactCut,
    LogFacts,
    ReaderRules,
    Selection,
    SliceFacts,
    select,
)
from eventide_core.action.strategy_choice import ChosenStrategy, chosen_strategy
from eventide_core.config import LinkChoice, Options, ParquetCodec
from eventide_core.errors import BusyError, LockLostError, RefusedError
from eventide_core.ports import Capability, Clock, RowChange, TableLock
from eventide_core.service.compaction.draft_plan import DraftPlan
from eventide_core.service.compaction.planned_slices import is_in_new_slice
from eventide_core.service.compaction.split_judge import SplitJudge
from eventide_core.service.facts.event_time_field import are_stats_proof, event_time_field_of
from eventide_core.service.facts.freshness import FreshnessReader
from eventide_core.service.facts.logs import LogFactsReader
from eventide_core.service.facts.planning import (
    backdated_compactions,
    backdating_facts,
    is_base_file_index,
    link_choice_facts,
    local_instant_time,
    unused_instant,
)
from eventide_core.service.state.metadata_table import MetadataTableUpkeep
from eventide_core.service.state.single_writers import single_writer_note, writes_of_single_writers
from eventide_core.service.state.table import TableState
from eventide_core.service.state.table_files import TableFiles
from eventide_core.table.event_time import EventTimeRange
from eventide_core.table.file_name import BaseFileName
from eventide_core.table.file_slice import FileSlice
from eventide_core.table.file_system_view import FileGroup
from eventide_core.table.plans import CompactionPlan, CutMode, FallbackReason, PlannedOperation
from eventide_core.table.record_shape import RecordShape
from eventide_core.table.schema import is_time

MAX_LEFT_OVERS_DEFAULT = 30
CLOCK_SKEW_MS_DEFAULT = 200  # Hudi's default of the option
PENDING_WRITE_WAIT_MS_DEFAULT = 60_000
QUIET_POLL_MS = 200
GAP_POLL_MS = 5
GAP_WAIT_MS = 1_000
"""How long a plan that may be made beside open writes waits for a gap, in which less is left over."""
_CHANGED = "a write changed the slice after it was planned"


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
        """A dry run: what `schedule` would plan, and what that has to wait for. Writes nothing."""
        state = TableState.load(self.files)
        draft = self._draft(state, request)
        alone = map(single_writer_note, writes_of_single_writers(self.files, state.config, state.timeline))
        draft = replace(draft, notes=(*draft.notes, *alone))
        try:
            check_trigger(state.timeline)
        except BusyError as busy:
            return replace(draft, waits_for=str(busy))
        return draft

    def schedule(self, request: CompactionRequest, *, is_for_later: bool = False) -> DraftPlan:
        """Plans, and puts the plan on the timeline; a draft that says why it is idle is not put there.

        `is_for_later`: the plan is not executed at once, and so must be one that Hudi can run, too.
        Waits, as long as configured, where open writes leave no moment to plan at. Raises BusyError when that is over, where
        something else that is pending excludes a plan, or where another scheduler was faster.
        """
        if request.link_choice is LinkChoice.HARDLINK and Capability.HARDLINK not in self.files.storage.capabilities:
            raise RefusedError(
                f"link mode hardlink: the storage of {self.files.storage.root} has no hard links; use copy"
            )
        limit_ms = self.options.integer(keys.PENDING_WRITE_WAIT_MS, PENDING_WRITE_WAIT_MS_DEFAULT)
        gap_ms = min(limit_ms, GAP_WAIT_MS) if self.options.flag(keys.EXCLUSIVE) else limit_ms
        begin_ms = self.clock.now_ms()
        waited_ms = 0
        while True:
            is_gap_needed = waited_ms < gap_ms
            # The first look is without the lock. It warms the facts of the logs, so that the lock is held for a short time.
            draft = self._attempt(request, has_lock=False, is_for_later=is_for_later, is_gap_needed=is_gap_needed)
            if draft.idle is None and draft.waits_for is None:
                self._let_the_moment_pass(draft)
                try:
                    draft = self._attempt(
                        request, has_lock=True, is_for_later=is_for_later, is_gap_needed=is_gap_needed
                    )
                except LockLostError as lost:
                    draft = replace(draft, waits_for=str(lost))
            if draft.idle is not None or draft.waits_for is None:
                return draft
            if waited_ms >= limit_ms:
                raise BusyError(
                    f"{draft.waits_for}; gave up after {waited_ms} ms: try again, or roll back a write whose writer is dead"
                )
            waited_ms = self.clock.now_ms() - begin_ms
            until_ms = gap_ms if waited_ms < gap_ms else min(limit_ms, waited_ms + QUIET_POLL_MS)
            if waited_ms < until_ms:
                self._wait(begin_ms + until_ms)
                waited_ms = self.clock.now_ms() - begin_ms

    def _let_the_moment_pass(self, draft: DraftPlan) -> None:
        """Version 8 and later: waits until the draft's instant lies further back than the clock skew.

        By then a writer with an earlier instant has put its file, and the second look finds it. A plan that has to be
        withdrawn because such a write appears later is a file that goes: a stock writer that has listed it may fail.
        """
        config = self.files.config()
        if not config.slices_by_completion_time:
            return
        skew_ms = self.options.integer(keys.CLOCK_SKEW_MS, CLOCK_SKEW_MS_DEFAULT)
        if draft.plan.instant > local_instant_time(config, self.clock.now_ms() - skew_ms, self.clock):
            self.clock.sleep(skew_ms)

    def _wait(self, until_ms: int) -> None:
        """Until it is worth to look at the table again: on version 6 until no write is pending, which may be short."""
        config = self.files.config()
        if config.slices_by_completion_time:
            self.clock.sleep(QUIET_POLL_MS)
            return
        while self.files.timeline(config).pending_writes and self.clock.now_ms() < until_ms:
            self.clock.sleep(GAP_POLL_MS)

    def _attempt(
        self, request: CompactionRequest, *, has_lock: bool, is_for_later: bool, is_gap_needed: bool
    ) -> DraftPlan:
        """A draft of the table as it is; with the lock it is put on the timeline, unless it is idle or has to wait."""
        with self.lock.acquire() if has_lock else nullcontext() as lease:
            state = TableState.load(self.files)
            check_trigger(state.timeline)
            draft = replace(self._draft(state, request, is_gap_needed=is_gap_needed), is_for_later=is_for_later)
            if lease is None or draft.idle is not None or draft.waits_for is not None:
                return draft
            path = f"{state.config.timeline_path}/{draft.plan.instant}.compaction.requested"
            data = self.files.codec.encode_plan(draft.plan)
            lease.check()
            if not state.config.slices_by_completion_time and self.files.timeline(state.config) != state.timeline:
                # A writer who shares no lock has come; its log would be in a slice of a plan that doesn't know it.
                return replace(draft, waits_for="a write began while the plan was made")
            if not self.files.storage.put_if_absent(path, data):
                raise BusyError(f"another plan took the instant {draft.plan.instant}; try again")
            return draft

    def replan(self, state: TableState, plan: CompactionPlan) -> CompactionPlan:
        """The plan for the same instant over the slices as they now are (version 6; docs/invariants.md, step 2).

        It takes the place of a plan that is already visible and may not be withdrawn: a writer may have appended to the
        slice that the plan begins. What writers who had not seen the plan have added to an old slice since is left over:
        its instants are later than the plan's. Where a reader would see that, the slice is compacted in full.
        """
        attempt = 1 + max((_attempt_of(op.new_base_name) for op in plan.operations), default=0)
        slices = {found.file_group: found for found in state.view.latest_slices()}
        operations: list[PlannedOperation] = []
        for number, op in enumerate(plan.operations):
            found = slices.get((op.partition, op.file_id))
            if found is None:
                continue
            old = replace(
                found,
                log_files=tuple(log for log in found.log_files if not is_in_new_slice(state, plan.instant, log)),
            )
            token = f"{number}-{attempt}-0"
            selection = self._grown(state, plan, op, old)
            if selection is None:
                operations.append(
                    whole_slice(old, plan.instant, token, _CHANGED, FallbackReason.CHANGED_AFTER_PLANNING)
                )
            else:
                link = LinkDecision(plan.link_mode, plan.instant, plan.link_reason)
                operations.append(partial_slice(selection, link, state.config.version, token))
        return replace(plan, operations=tuple(operations))

    def _grown(self, state: TableState, plan: CompactionPlan, op: PlannedOperation, old: FileSlice) -> Selection | None:
        """The operation's split with the slice's new logs left over; None where it has to be compacted in full."""
        planned = [log.path for log in (*op.compacted, *(left.log for left in op.left_overs))]
        paths = [log.path for log in old.log_files]
        if paths[: len(planned)] != planned or old.base_instant != op.base_instant or plan.event_time_field is None:
            return None
        shape = state.shape(plan.event_time_field)
        (facts,) = self._slice_facts(state, shape, [old], plan.instant)
        facts = replace(facts, above=max(facts.above, len(paths) - len(planned)))
        doubtful = any(fact.rolled_back or fact.has_merged_block for fact in facts.logs[len(facts.below) :])
        completed = state.blocks()
        if doubtful or not all(completed.accepts(instant) for fact in facts.logs for instant in fact.instants):
            return None
        exact_ms = plan.cut_ms if plan.cut is CutMode.EXACT else None
        selection = Selection(facts, len(op.compacted), op.fallback, op.reason, exact_ms)
        slices = [s for s in state.view.latest_slices() if s.log_files]
        rules = self._reader_rules(state, shape, slices)
        (judged,) = self.splits.judged([selection], rules, shape, completed)
        return None if judged.has_to_wait else judged

    def _draft(self, state: TableState, request: CompactionRequest, *, is_gap_needed: bool = True) -> DraftPlan:
        # A bad value is said before anything is written.
        self.options.choice(keys.PARQUET_CODEC, ParquetCodec.AS_BEFORE)
        notes = self.metadata.check(state.config, RowChange.NONE)
        strategy = chosen_strategy(self.options, self._today())
        now = unused_instant(state, self.clock)
        back = backdating_facts(state, self.options, now)
        quiet = self._moment(state, back, is_gap_needed=is_gap_needed)
        waits_for = None if quiet.instant is not None else no_quiet_moment(quiet)
        moment = quiet.instant or now
        is_due = None if request.is_for_t else self._due(state, strategy, now)
        if not strategy.is_by_event_time:
            request.check_strategy(str(strategy))
            draft = self._whole_slices(state, strategy, moment, is_due, notes)
            return replace(draft, beside=quiet.beside, waits_for=waits_for)
        published_ms = state.cut_ms
        asked_ms = request.asked_at(self.clock.now_ms())
        threshold_ms = request.threshold_at(self.clock.now_ms(), published_ms)
        event_time_field = event_time_field_of(state, self.options)
        shape = state.shape(event_time_field)
        slices = [s for s in state.view.latest_slices() if s.log_files]
        facts = self._slice_facts(state, shape, slices, moment)
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
            s for s in (select(fact, by_event_time, moment, state.timeline, exact) for fact in facts) if s is not None
        ]
        by_group = {selection.facts.file_slice.file_group: selection for selection in found}
        chosen = strategy.choose(_partitions(state), [selection.facts.file_slice for selection in found])
        rules = self._reader_rules(state, shape, slices)
        blocks = state.blocks()
        judged = self.splits.judged([by_group.pop(found.file_group) for found in chosen], rules, shape, blocks)
        selections = [selection for selection in judged if not selection.has_to_wait]
        uncompacted = [selection for selection in judged if selection.has_to_wait]
        doubtful = [s.facts.file_slice for s in selections if any(fact.needs_check for fact in s.facts.logs)]
        self.facts.check((found.log_files for found in doubtful), blocks)
        cut_ms = publishable_cut(
            threshold_ms,
            [
                *(fact.uncompacted for left_out in (*by_group.values(), *uncompacted) for fact in left_out.facts.below),
                *(fact.uncompacted for of_slice in facts for fact in _covered(of_slice, moment)),
            ],
            published_ms,
        )
        if by_group:
            notes += (_held_back(f"{strategy} leaves out {len(by_group)} slices", cut_ms, published_ms),)
        if uncompacted:
            why = f"{len(uncompacted)} slices have to wait for a quiet moment after {quiet.beside[-1].requested_time}"
            notes += (_held_back(why, cut_ms, published_ms),)
            waits_for = waits_for if waits_for is not None or selections else why
        facts_of_link = link_choice_facts(state, self.files.storage, self.options, request.link_choice, moment, back)
        link = choose_link(selections, facts_of_link)
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
        return DraftPlan(
            plan,
            str(strategy),
            is_due,
            predicted,
            len(slices) - len(selections),
            notes,
            published_ms,
            is_reached,
            offending=() if exact is None else offending_logs(facts, threshold_ms, self.clock.now_ms()),
            beside=quiet.beside,
            waits_for=None if is_reached else waits_for,
        )

    def _moment(self, state: TableState, back: BackdatingFacts, *, is_gap_needed: bool) -> QuietMoment:
        if state.config.slices_by_completion_time:
            return quiet_moment(back)
        may_freeze = not is_gap_needed and self.options.flag(keys.EXCLUSIVE)
        return before_open_writes(back) if may_freeze else gap_now(back)

    def _whole_slices(
        self, state: TableState, strategy: ChosenStrategy, moment: str, is_due: Due | None, notes: tuple[str, ...]
    ) -> DraftPlan:
        """The draft of a strategy that knows no event time: no cut is published, the one that is stays true.

        A slice that was written to after the moment waits: nobody judges what of it may be merged without the rest.
        """
        slices = [s for s in state.view.latest_slices() if s.log_files]
        below = [s for s in slices if not any(is_in_new_slice(state, moment, log) for log in s.log_files)]
        chosen = strategy.choose(_partitions(state), below)
        self.facts.check((found.log_files for found in chosen), state.blocks())
        with_logs = _partitions_with_logs(slices, {found.file_group for found in chosen})
        terms = PlanTerms(None, CutMode.FILE, None, state.schema, state.config.version, with_logs)
        plan = plan_whole_slices(chosen, moment, terms, reason=f"{strategy} takes the whole slice")
        predicted = self.freshness.after(state, plan)
        return DraftPlan(plan, str(strategy), is_due, predicted, len(slices) - len(chosen), notes, state.cut_ms)

    def _reader_rules(self, state: TableState, shape: RecordShape, slices: Sequence[FileSlice]) -> ReaderRules:
        field = shape.event_time_field
        return ReaderRules(
            state.config.merge_rule,
            state.config.reader_rules,
            is_base_file_index(slices, self.options),
            orders_by_event_time=field is not None
            and shape.ordering_fields == (field,)
            and is_time(shape.schema, field),
        )

    def _exact_cut(self, threshold_ms: int) -> ExactCut:
        return ExactCut(threshold_ms, self.options.integer(keys.MAX_LEFT_OVERS, MAX_LEFT_OVERS_DEFAULT))

    def _due(self, state: TableState, strategy: ChosenStrategy, now: str) -> Due:
        default = Trigger.EVENT_TIME if strategy.is_by_event_time else Trigger.NUM_COMMITS
        return due(trigger_rule(self.options, default), state.timeline, now, backdated_compactions(state))

    def _today(self) -> date:
        """The day in the local time zone, which Hudi's strategies by day go by."""
        local_ms = self.clock.now_ms() + self.clock.local_offset_ms()
        return datetime.fromtimestamp(local_ms // 1000, UTC).date()

    def _slice_facts(
        self, state: TableState, shape: RecordShape, slices: Sequence[FileSlice], moment: str
    ) -> list[SliceFacts]:
        assert shape.event_time_field is not None
        facts = self.facts.read(
            state,
            shape,
            [log for s in slices for log in s.log_files],
            are_stats_proof=are_stats_proof(shape.schema, shape.event_time_field, self.options),
        )
        return [
            SliceFacts(s, logs, above=_above(state, moment, logs))
            for s in slices
            if (logs := tuple(facts[log.path] for log in s.log_files))
        ]


def _above(state: TableState, moment: str, logs: Sequence[LogFacts]) -> int:
    """How many of a slice's last logs were written after the moment. On version 6 the blocks tell, not the name."""
    if state.config.slices_by_completion_time:
        return sum(is_in_new_slice(state, moment, fact.log) for fact in logs)
    first = next((n for n, fact in enumerate(logs) if max(fact.instants, default="") > moment), len(logs))
    return len(logs) - first


def _covered(facts: SliceFacts, moment: str) -> list[LogFacts]:
    """The logs from before the moment that lie between later ones: on version 6, where writes have overlapped."""
    return [fact for fact in facts.logs[len(facts.below) :] if max(fact.instants, default="") <= moment]


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


def _held_back(why: str, cut_ms: int | None, published_ms: int | None) -> str:
    told = f"{why} with records before T"
    if cut_ms is not None:
        return f"{told}: the cut goes no further than {cut_ms}"
    return f"{told}: no cut is published" + ("" if published_ms is None else f", {published_ms} stays")


def _attempt_of(base_name: str) -> int:
    name = BaseFileName.parse(base_name)
    return 0 if name is None else int(name.write_token.split("-")[1])
