"""Draft a compaction: what the table as it is needs by the configured strategy and trigger. Writes nothing."""

from collections.abc import Container, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime

from eventide_core import config as keys
from eventide_core.action.compaction_planner import (
    PlanTerms,
    plan_compaction,
    plan_whole_slices,
)
from eventide_core.action.compaction_request import CompactionRequest
from eventide_core.action.compaction_strategy import EventTimeBasedCompactionStrategy
from eventide_core.action.compaction_trigger import (
    Due,
    Trigger,
    due,
    trigger_rule,
)
from eventide_core.action.freshness import freshness, publishable_cut
from eventide_core.action.link_choice import choose_link
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
    Selection,
    SliceFacts,
    select,
)
from eventide_core.action.strategy_choice import ChosenStrategy, chosen_strategy
from eventide_core.config import Options, ParquetCodec
from eventide_core.ports import Clock, RowChange
from eventide_core.service.compaction.draft_plan import DraftPlan
from eventide_core.service.compaction.planned_slices import is_in_new_slice
from eventide_core.service.compaction.slice_facts import SliceFactsReader
from eventide_core.service.compaction.split_judge import SplitJudge
from eventide_core.service.facts.event_time_field import event_time_field_of
from eventide_core.service.facts.freshness import FreshnessReader
from eventide_core.service.facts.planning import (
    backdated_compactions,
    backdating_facts,
    link_choice_facts,
    unused_instant,
)
from eventide_core.service.state.metadata_table import MetadataTableUpkeep
from eventide_core.service.state.table import TableState
from eventide_core.service.state.table_files import TableFiles
from eventide_core.table.event_time import EventTimeRange
from eventide_core.table.file_slice import FileSlice
from eventide_core.table.file_system_view import FileGroup
from eventide_core.table.plans import CutMode

MAX_LEFT_OVERS_DEFAULT = 30


@dataclass(frozen=True, slots=True)
class CompactionDrafter:
    files: TableFiles
    splits: SplitJudge
    facts: SliceFactsReader
    freshness: FreshnessReader
    metadata: MetadataTableUpkeep
    clock: Clock
    options: Options

    def draft(self, state: TableState, request: CompactionRequest, *, is_gap_needed: bool = True) -> DraftPlan:
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
        facts = self.facts.read(state, shape, slices, moment)
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
        rules = self.facts.reader_rules(state, shape, slices)
        blocks = state.blocks()
        judged = self.splits.judged([by_group.pop(found.file_group) for found in chosen], rules, shape, blocks)
        selections = [selection for selection in judged if not selection.has_to_wait]
        uncompacted = [selection for selection in judged if selection.has_to_wait]
        doubtful = [s.facts.file_slice for s in selections if any(fact.needs_check for fact in s.facts.logs)]
        self.facts.logs.check((found.log_files for found in doubtful), blocks)
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
        may_freeze = not is_gap_needed and self.options.flag(keys.EXCLUSIVE) and not state.config.metadata_partitions
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
        self.facts.logs.check((found.log_files for found in chosen), state.blocks())
        with_logs = _partitions_with_logs(slices, {found.file_group for found in chosen})
        terms = PlanTerms(None, CutMode.FILE, None, state.schema, state.config.version, with_logs)
        plan = plan_whole_slices(chosen, moment, terms, reason=f"{strategy} takes the whole slice")
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
