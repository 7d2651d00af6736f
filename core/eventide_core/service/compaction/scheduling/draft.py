"""Drafts a compaction: what the table needs now, by the configured strategy and trigger. Writes nothing."""

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime

from eventide_core.action.compaction.change_capture import with_change_logs, without_early_records, writes_change_logs
from eventide_core.action.compaction.link_choice import LinkChoiceFacts, choose_link
from eventide_core.action.compaction.planner import plan_compaction, plan_whole_slices
from eventide_core.action.compaction.quiet_moment import (
    BackdatingFacts,
    QuietMoment,
    before_open_writes,
    gap_now,
    no_quiet_moment,
    note_on_savepoints,
    quiet_moment,
)
from eventide_core.action.compaction.request import CompactionRequest
from eventide_core.action.compaction.slice_selection import ExactCut, Selection, SliceFacts, select
from eventide_core.action.compaction.strategy import EventTimeBasedCompactionStrategy
from eventide_core.action.compaction.strategy_choice import ChosenStrategy, chosen_strategy
from eventide_core.action.compaction.trigger import Due, Trigger, due, trigger_rule
from eventide_core.action.freshness.arrival import silence, vouched_ms
from eventide_core.action.freshness.freshness import COMPLETE, freshness, not_below_cut, publishable_cut
from eventide_core.action.query.offending_log_files import offending_log_files
from eventide_core.config import LinkChoice, Options
from eventide_core.errors import counted, format_timestamp
from eventide_core.ports import Capability
from eventide_core.service.common.facts.arrival import ArrivalReader
from eventide_core.service.common.facts.event_time_field import event_time_field_of
from eventide_core.service.common.facts.exact_view import ExactViews
from eventide_core.service.common.facts.freshness import FreshnessReader
from eventide_core.service.common.facts.moments import differing_clocks
from eventide_core.service.common.facts.planning import (
    backdated_compactions,
    backdating_facts,
    unused_instant,
)
from eventide_core.service.common.metadata_table.upkeep import MetadataTableUpkeep
from eventide_core.service.common.state.returned_groups import refuse_returned
from eventide_core.service.common.state.table import TableState
from eventide_core.service.common.state.table_files import TableFiles
from eventide_core.service.common.state.unnamed_files import refuse_unnamed
from eventide_core.service.compaction.scheduling.draft_plan import DraftPlan, HeldSlice
from eventide_core.service.compaction.scheduling.planned_slices import is_in_new_slice
from eventide_core.service.compaction.scheduling.settings import CompactionSettings
from eventide_core.service.compaction.scheduling.slice_facts import SliceFactsReader
from eventide_core.service.compaction.scheduling.split_judge import SplitJudge
from eventide_core.table.files.file_slice import FileSlice
from eventide_core.table.files.log_facts import LogFacts
from eventide_core.table.records.event_time import EventTimeRange, is_ahead
from eventide_core.table.records.record_shape import RecordShape
from eventide_core.table.schema.avro_schema import AvroSchema
from eventide_core.table.settings.metadata_table import RowChange
from eventide_core.table.timeline.contents.plans import CutMode
from eventide_core.table.timeline.file_system_view import FileGroup

_COPY_ON_WRITE = "a copy-on-write table has no log files: everything that is committed is in its base files"


@dataclass(frozen=True, slots=True)
class CompactionDrafter:
    files: TableFiles
    splits: SplitJudge
    facts: SliceFactsReader
    freshness: FreshnessReader
    arrival: ArrivalReader
    metadata: MetadataTableUpkeep
    exact: ExactViews
    options: Options
    settings: CompactionSettings

    def draft(self, state: TableState, request: CompactionRequest, *, is_gap_needed: bool = True) -> DraftPlan:
        """The plan that the table needs now. Raises what the options, the metadata table and the request refuse."""
        notes = self.metadata.check(state.config, RowChange.NONE)
        differing = differing_clocks(state.config, state.timeline, self.files.clock)
        if differing is not None:
            notes += (f"{differing}; new instants follow the writers' clock, as TZ set to their time zone would do",)
        captures = writes_change_logs(state.config, self.settings.index_type, state.view.latest_slices())
        strategy = chosen_strategy(self.options, self._today())
        now = unused_instant(state, self.files.clock)
        undone = self.files.rolled_back(state.config, state.timeline)
        back = backdating_facts(state, self.settings.commits_retained, now, undone, self.files.clock)
        moment = _Moment(now, back, self._quiet_moment(state, back, is_gap_needed=is_gap_needed))
        is_due = None if request.is_for_t else self._due(state, strategy, now)
        if strategy.is_by_event_time:
            draft = self._by_event_time(state, request, strategy, moment, is_due, notes, captures_changes=captures)
        else:
            request.check_strategy(str(strategy))
            draft = self._whole_slices(state, strategy, moment, is_due, notes)
        refuse_returned(state, draft.plan.file_groups)
        refuse_unnamed(self.files, state, draft.plan.paths)
        plan = with_change_logs(draft.plan) if captures else draft.plan
        return replace(draft, plan=plan, options=self.options)

    def draft_of_copy_on_write(self, state: TableState) -> DraftPlan:
        """The draft of a copy-on-write table: nothing to do, whatever the request."""
        schema = state.known_schema or AvroSchema.of("")
        plan = plan_whole_slices((), unused_instant(state, self.files.clock), schema)
        return DraftPlan(state, plan, "none", None, COMPLETE, 0, (), nothing=_COPY_ON_WRITE)

    def _by_event_time(
        self,
        state: TableState,
        request: CompactionRequest,
        strategy: ChosenStrategy,
        moment: "_Moment",
        is_due: Due | None,
        notes: tuple[str, ...],
        *,
        captures_changes: bool,
    ) -> DraftPlan:
        """The draft of a strategy with event times, at the T of the request."""
        vouched = self.arrival.progress(state) if request.follows_clock else ()
        threshold_ms = request.threshold_at(self.files.clock.now_ms(), vouched_ms(vouched))
        event_time_field = event_time_field_of(state, self.options)
        shape = state.shape(event_time_field)
        slices = [s for s in state.view.latest_slices() if s.log_files]
        facts = self.facts.read(state, shape, slices, moment.instant)
        request.check_reach(threshold_ms, self.files.clock.now_ms(), state.cut_ms, _latest_ms(facts))
        is_reached, exactness = False, None
        if request.is_for_t and state.cut_ms is not None and event_time_field == state.published_cut.event_time_field:
            is_reached = _is_reached(threshold_ms, state.cut_ms, facts)
            if request.cut is CutMode.EXACT and threshold_ms <= state.cut_ms:
                exactness = self.exact.check_reached(state, event_time_field, threshold_ms)
            if is_reached:
                facts = []
            elif threshold_ms < state.cut_ms:
                asked, published = format_timestamp(threshold_ms), format_timestamp(state.cut_ms)
                notes += (f"T {asked} is before the published cut: late records are compacted up to {published}",)
        threshold_ms = not_below_cut(threshold_ms, state.cut_ms)
        if is_ahead(threshold_ms, self.files.clock.now_ms()):
            notes += (f"T {format_timestamp(threshold_ms)} is more than a day later than the clock",)
        picked = self._pick(
            state, shape, strategy, facts, threshold_ms, request.cut, moment.instant, captures_changes=captures_changes
        )
        cut_ms = publishable_cut(threshold_ms, picked.left_out_below(facts, moment.instant), state.cut_ms)
        about_links = self._link_facts(state, request.link_choice, moment)
        uncompacted = _left_uncompacted(facts, picked.now)
        ranges = [times for _, of_slice in uncompacted for times in of_slice]
        predicted = freshness(state.cut_ms if cut_ms is None else cut_ms, ranges, 0)
        is_exact = request.cut is CutMode.EXACT
        plan = replace(
            plan_compaction(picked.now, choose_link(picked.now, about_links), state.schema, state.config.layout),
            cut_ms=cut_ms,
            cut=request.cut,
            event_time_field=event_time_field,
            partitions_with_logs=_partitions_with_logs(
                slices, {s.facts.file_slice.file_group for s in picked.now if not s.left_overs}
            ),
        )
        if picked.now and state.config.layout.records_completion_times:
            notes += note_on_savepoints(state.timeline, plan.instant)
        return DraftPlan(
            state,
            plan,
            str(strategy),
            is_due,
            predicted,
            len(slices) - len(picked.now),
            notes + picked.notes(str(strategy), moment, cut_ms, state),
            is_reached,
            offending=offending_log_files(facts, threshold_ms, self.files.clock.now_ms()) if is_exact else (),
            beside=moment.quiet.beside,
            waits_for=None if is_reached else picked.waits_for(moment),
            held=_held(uncompacted, threshold_ms),
            exactness=exactness,
            nothing=silence(vouched),
        )

    def _link_facts(self, state: TableState, choice: LinkChoice, moment: "_Moment") -> LinkChoiceFacts:
        # Probing a storage makes and removes a link, so it is done only if the answer matters.
        may_link = self.settings.is_exclusive and choice in (LinkChoice.AUTO, LinkChoice.SYMLINK)
        capabilities = self.files.storage.capabilities if may_link else Capability.NONE
        return LinkChoiceFacts(
            choice=choice,
            is_exclusive=self.settings.is_exclusive,
            has_symlinks=Capability.SYMLINK in capabilities,
            has_server_copies=Capability.SERVER_COPY in capabilities,
            layout=state.config.layout,
            moment=moment.instant,
            back=moment.back,
        )

    def _pick(
        self,
        state: TableState,
        shape: RecordShape,
        strategy: ChosenStrategy,
        facts: Sequence[SliceFacts],
        threshold_ms: int,
        cut: CutMode,
        instant: str,
        *,
        captures_changes: bool,
    ) -> "_Picked":
        """Which slices to compact now, up to which log file each."""
        ranges = {fact.log_file.path: fact.event_times for of_slice in facts for fact in of_slice.log_facts}
        by_event_time = EventTimeBasedCompactionStrategy(threshold_ms, lambda log: ranges[log.path], cut)
        exact = ExactCut(threshold_ms, self.settings.max_left_overs) if cut is CutMode.EXACT else None
        selections = [
            s for s in (select(fact, by_event_time, instant, state.timeline, exact) for fact in facts) if s is not None
        ]
        by_group = {selection.facts.file_slice.file_group: selection for selection in selections}
        chosen = strategy.choose(_partitions(state), [selection.facts.file_slice for selection in selections])
        rules = self.facts.reader_rules(state, shape, [s for s in state.view.latest_slices() if s.log_files])
        blocks = state.blocks_of_slices()
        picked = [by_group.pop(file_slice.file_group) for file_slice in chosen]
        checked = self.facts.checked(picked, blocks, shape)
        if captures_changes:
            checked = list(map(without_early_records, checked))
        judged = self.splits.judged(checked, rules, shape, blocks)
        now = [selection for selection in judged if not selection.has_to_wait]
        return _Picked(now, [selection for selection in judged if selection.has_to_wait], list(by_group.values()))

    def _quiet_moment(self, state: TableState, back: BackdatingFacts, *, is_gap_needed: bool) -> QuietMoment:
        if not state.config.layout.writers_follow_plans:
            return quiet_moment(back)
        return gap_now(back) if is_gap_needed or not self.settings.is_exclusive else before_open_writes(back)

    def _whole_slices(
        self,
        state: TableState,
        strategy: ChosenStrategy,
        moment: "_Moment",
        is_due: Due | None,
        notes: tuple[str, ...],
    ) -> DraftPlan:
        """The draft of a strategy without event times: it publishes no cut, and the published one stays true.

        A slice that was written to after the quiet moment waits: nothing decides which part may be merged without the rest.
        """
        slices = [s for s in state.view.latest_slices() if s.log_files]
        below = [s for s in slices if not any(is_in_new_slice(state, moment.instant, log) for log in s.log_files)]
        chosen = strategy.choose(_partitions(state), below)
        self.facts.log_facts.check(
            (file_slice.log_files for file_slice in chosen), state.blocks_of_slices(), state.shape(None)
        )
        with_logs = _partitions_with_logs(slices, {file_slice.file_group for file_slice in chosen})
        reason = f"{strategy} takes the whole slice"
        plan = plan_whole_slices(chosen, moment.instant, state.schema, with_logs, reason=reason)
        return DraftPlan(
            state,
            plan,
            str(strategy),
            is_due,
            self.freshness.after(state, plan),
            len(slices) - len(chosen),
            notes,
            beside=moment.quiet.beside,
            waits_for=moment.waits_for,
        )

    def _due(self, state: TableState, strategy: ChosenStrategy, now: str) -> Due:
        default = Trigger.EVENT_TIME if strategy.is_by_event_time else Trigger.NUM_COMMITS
        return due(trigger_rule(self.options, default), state.timeline, now, backdated_compactions(state))

    def _today(self) -> date:
        """The day in the local time zone, which Hudi's strategies by day use."""
        now_ms = self.files.clock.now_ms()
        return datetime.fromtimestamp((now_ms + self.files.clock.local_offset_ms(now_ms)) // 1000, UTC).date()


@dataclass(frozen=True, slots=True)
class _Moment:
    """The time that the plan is made for: a quiet moment or, if there is none yet, a guess."""

    now: str
    back: BackdatingFacts
    quiet: QuietMoment

    @property
    def instant(self) -> str:
        return self.quiet.instant or self.now

    @property
    def waits_for(self) -> str | None:
        return None if self.quiet.instant is not None else no_quiet_moment(self.quiet)


@dataclass(frozen=True, slots=True)
class _Picked:
    """The slices with log files before T: compacted `now`, `wait`ing for a quiet moment, or left out by a strategy."""

    now: Sequence[Selection]
    wait: Sequence[Selection]
    left_out: Sequence[Selection]

    def left_out_below(self, facts: Sequence[SliceFacts], instant: str) -> list[EventTimeRange]:
        """The ranges of log files from before `instant` that the plan leaves unchanged, also if they begin before T."""
        not_now = [fact.uncompacted for s in (*self.left_out, *self.wait) for fact in s.facts.below]
        return [*not_now, *(fact.uncompacted for of_slice in facts for fact in covered_logs(of_slice, instant))]

    def waits_for(self, moment: _Moment) -> str | None:
        if moment.waits_for is not None or self.now or not self.wait:
            return moment.waits_for
        return self._why_some_wait(moment)

    def notes(self, strategy: str, moment: _Moment, cut_ms: int | None, state: TableState) -> tuple[str, ...]:
        """What keeps the cut below T, and what the cut could not judge, as an explanation for the user."""
        whys: list[str] = []
        if self.left_out:
            whys.append(f"{strategy} leaves out {counted(len(self.left_out), 'slice')}")
        if self.wait:
            whys.append(self._why_some_wait(moment))
        notes = [_held_back(why, cut_ms, state) for why in whys]
        merged = (fact for selection in self.now for fact in (*selection.compacted, *selection.early))
        unjudged = sum(fact.uncompacted.unreadable_records for fact in merged)
        if unjudged:
            records = counted(unjudged, "record")
            notes.append(f"merges {records} with an event time that cannot be read, whether before T or not")
        return tuple(notes)

    def _why_some_wait(self, moment: _Moment) -> str:
        last = moment.quiet.beside[-1].requested_time
        return f"{counted(len(self.wait), 'slice')} must wait for a quiet moment after {last}"


def _latest_ms(facts: Sequence[SliceFacts]) -> int | None:
    """The latest event time in a log file."""
    latest = (fact.event_times.max_ms for of_slice in facts for fact in of_slice.log_facts)
    return max((latest_ms for latest_ms in latest if latest_ms is not None), default=None)


def _is_reached(threshold_ms: int, cut_ms: int, facts: Sequence[SliceFacts]) -> bool:
    """Whether everything before the requested T is compacted already."""
    watermark_ms = freshness(
        cut_ms, [fact.uncompacted for of_slice in facts for fact in of_slice.log_facts], 0
    ).watermark_ms
    return watermark_ms is not None and threshold_ms <= watermark_ms


def covered_logs(facts: SliceFacts, moment: str) -> list[LogFacts]:
    """The log files from before the quiet moment between later ones, which exist on version 6 if writes have overlapped."""
    return [fact for fact in facts.log_facts[len(facts.below) :] if max(fact.instants, default="") <= moment]


def _left_uncompacted(
    facts: Sequence[SliceFacts], selections: Sequence[Selection]
) -> list[tuple[FileSlice, list[EventTimeRange]]]:
    """The ranges, by slice, of what remains in no base file after the compaction of the selections."""
    selected = {s.facts.file_slice.file_group: s for s in selections}
    until = {fact.log_file.path: s.threshold_ms for s in selections for fact in s.early}
    uncompacted: list[tuple[FileSlice, list[EventTimeRange]]] = []
    for of_slice in facts:
        chosen = selected.get(of_slice.file_slice.file_group)
        left = of_slice.log_facts if chosen is None else chosen.left_overs
        ranges = [
            fact.uncompacted if (ms := until.get(fact.log_file.path)) is None else fact.uncompacted.since(ms)
            for fact in left
        ]
        uncompacted.append((of_slice.file_slice, ranges))
    return uncompacted


def _held(uncompacted: Iterable[tuple[FileSlice, list[EventTimeRange]]], threshold_ms: int) -> tuple[HeldSlice, ...]:
    """The slices that contain records before T, the earliest first."""
    slices: list[HeldSlice] = []
    for file_slice, ranges in uncompacted:
        earliest_ms = min((times.min_ms for times in ranges if times.min_ms is not None), default=threshold_ms)
        if earliest_ms < threshold_ms:
            slices.append(HeldSlice(file_slice.partition, file_slice.file_id, earliest_ms))
    return tuple(sorted(slices, key=lambda held: (held.earliest_ms, held.partition, held.file_id)))


def _partitions(state: TableState) -> set[str]:
    return {file_slice.partition for file_slice in state.view.latest_slices()}


def _partitions_with_logs(slices: Sequence[FileSlice], emptied: Container[FileGroup]) -> tuple[str, ...]:
    """The partitions that still have log files once the slices of `emptied` have none."""
    return tuple(sorted({file_slice.partition for file_slice in slices if file_slice.file_group not in emptied}))


def _held_back(why: str, cut_ms: int | None, state: TableState) -> str:
    reason = f"{why} with records before T"
    if cut_ms is not None:
        return f"{reason}: the cut goes no further than {format_timestamp(cut_ms)}"
    stays = "" if state.cut_ms is None else f", {format_timestamp(state.cut_ms)} stays"
    return f"{reason}: no cut is published{stays}"
