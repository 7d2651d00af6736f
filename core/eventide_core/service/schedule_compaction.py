"""Plan an event-time compaction, and put the plan on the timeline.

Order of writes, inside the table lock: the plan file `<instant>.compaction.requested`, put if absent, and nothing else.
A crash before it leaves nothing; after it a pending plan, which any engine may run, and which `rollback` undoes.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from eventide_core import config as keys
from eventide_core.action.compaction_planner import (
    LinkChoiceFacts,
    PlanTerms,
    ReaderRules,
    Selection,
    SliceFacts,
    choose_link,
    needed_histories,
    plan_compaction,
    select,
    settle,
)
from eventide_core.action.compaction_request import CompactionRequest
from eventide_core.action.compaction_strategy import (
    EVENT_TIME_STRATEGY,
    CompactionStrategy,
    EventTimeBasedCompactionStrategy,
)
from eventide_core.action.compaction_trigger import TRIGGER_NAME, check_pending_writes, check_trigger
from eventide_core.action.freshness import Freshness, freshness
from eventide_core.action.slice_split import judge_split
from eventide_core.config import LinkChoice, Options, ParquetCodec
from eventide_core.errors import BusyError, ConfigError, RefusedError, ThresholdBelowCutError
from eventide_core.ports import Capability, Clock, Engine, LogContent, RowChange, TableLock
from eventide_core.service.event_time_field import are_stats_proof, event_time_field_of
from eventide_core.service.log_facts import LogFactsReader
from eventide_core.service.metadata_table import MetadataTableUpkeep
from eventide_core.service.outcome import instants_with_outcome
from eventide_core.service.table import TableFiles, TableState
from eventide_core.table.file_name import BaseFileName
from eventide_core.table.file_slice import FileSlice
from eventide_core.table.instant import instant_time, next_instant_time
from eventide_core.table.plans import CompactionPlan, Cut, FallbackReason
from eventide_core.table.record_shape import RecordShape
from eventide_core.table.slice_read import BlockFilter

BUCKET_NUMBERS_MAX = 100_000  # a file id that begins with a smaller number of 8 digits is taken for a bucket's
COMMITS_RETAINED_DEFAULT = 10  # Hudi's default of hoodie.cleaner.commits.retained


@dataclass(frozen=True, slots=True)
class DraftPlan:
    """A plan that is not on the timeline, the freshness it will reach, and what else its execution will do."""

    plan: CompactionPlan
    predicted: Freshness
    untouched_slices: int
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CompactionScheduler:
    files: TableFiles
    content: LogContent
    facts: LogFactsReader
    metadata: MetadataTableUpkeep
    engine: Engine
    lock: TableLock
    clock: Clock
    options: Options

    def plan(self, request: CompactionRequest) -> DraftPlan:
        """A dry run: what `schedule` would plan now. Writes nothing."""
        return self._draft(TableState.load(self.files), request)

    def schedule(self, request: CompactionRequest) -> DraftPlan:
        """Plans, and puts the plan on the timeline.

        Raises BusyError where something pending excludes a plan, or another scheduler was faster.
        """
        if request.link_choice is LinkChoice.HARDLINK and Capability.HARDLINK not in self.files.storage.capabilities:
            raise RefusedError(
                f"link mode hardlink: the storage of {self.files.storage.root} has no hard links; use copy"
            )
        before = TableState.load(self.files)
        self._draft(before, request)  # warms the facts of the logs, so that the lock is held for a short time
        with self.lock.acquire() as lease:
            state = TableState.load(self.files)
            draft = self._draft(state, request)
            path = f"{state.config.timeline_path}/{draft.plan.instant}.compaction.requested"
            lease.check()
            if not self.files.storage.put_if_absent(path, self.files.codec.encode_plan(draft.plan)):
                raise BusyError(f"another plan took the instant {draft.plan.instant}; try again")
            return draft

    def replan_in_full(self, state: TableState, plan: CompactionPlan) -> CompactionPlan:
        """The plan for the same instant with every slice compacted in full, as it now is (protocol.md step 2).

        It takes the place of a plan that is already visible and may not be withdrawn: a writer may have appended to the
        slice that the plan begins.
        """
        shape = state.shape(plan.event_time_field)
        groups = {(op.partition, op.file_id): op for op in plan.operations}
        slices = [s for s in state.view.latest_slices() if s.file_group in groups]
        facts = self._slice_facts(state, shape, slices)
        selections = [
            Selection(
                SliceFacts(fact.file_slice, tuple(f for f in fact.logs if f.log.name.instant != plan.instant)),
                0,
                None,
                "",
            ).in_full(FallbackReason.CHANGED_AFTER_PLANNING, "a write changed the slice after it was planned")
            for fact in facts
        ]
        attempt = 1 + max((_attempt(op.new_base_name) for op in plan.operations), default=0)
        link = choose_link((), self._link_facts(state, LinkChoice.COPY, plan.instant))
        terms = PlanTerms(
            plan.cut_ms,
            plan.cut,
            plan.event_time_field,
            plan.schema,
            state.config.version,
            plan.partitions_with_logs,
        )
        return plan_compaction(selections, link, terms, attempt)

    def _draft(self, state: TableState, request: CompactionRequest) -> DraftPlan:
        check_trigger(state.timeline)
        self.options.choice(
            keys.PARQUET_CODEC, ParquetCodec.AS_BEFORE
        )  # a bad value is said before anything is written
        notes = self.metadata.check(state.config, RowChange.NONE)
        cut_ms = request.threshold_at(self.clock.now_ms())
        if state.cut_ms is not None and cut_ms < state.cut_ms:
            raise ThresholdBelowCutError(
                f"T {cut_ms} lies before the published cut {state.cut_ms}: the cut falls only by rollback or restore; "
                "give a T at or after it"
            )
        event_time_field = event_time_field_of(state, self.options)
        shape = state.shape(event_time_field)
        slices = [s for s in state.view.latest_slices() if s.log_files]
        facts = self._slice_facts(state, shape, slices)
        strategy = self._strategy(cut_ms, facts)
        now = unused_instant(state, self.clock)
        rules = ReaderRules(state.config.merge_rule, state.config.reader_rules, self._is_base_file_index(slices))
        selections: list[Selection] = []
        for found in facts:
            selection = select(found, strategy, now, state.timeline)
            if selection is not None:
                selections.append(self._settled(selection, rules, shape, state.blocks()))
        link = choose_link(selections, self._link_facts(state, request.link_choice, now))
        check_pending_writes(state.timeline, link.instant)
        emptied = {s.facts.file_slice.file_group for s in selections if not s.remaining}
        with_logs = tuple(sorted({s.partition for s in slices if s.file_group not in emptied}))
        terms = PlanTerms(cut_ms, Cut.FILE, event_time_field, state.schema, state.config.version, with_logs)
        plan = plan_compaction(selections, link, terms)
        taken = {fact.log.path for s in selections for fact in s.compacted}
        left = [fact.event_times for found in facts for fact in found.logs if fact.log.path not in taken]
        return DraftPlan(plan, freshness(cut_ms, left, 0), len(slices) - len(selections), notes)

    def _slice_facts(self, state: TableState, shape: RecordShape, slices: Sequence[FileSlice]) -> list[SliceFacts]:
        assert shape.event_time_field is not None
        facts = self.facts.read(
            state,
            shape,
            [log for s in slices for log in s.log_files],
            are_stats_proof=are_stats_proof(shape.schema, shape.event_time_field, self.options),
        )
        return [SliceFacts(s, tuple(facts[log.path] for log in s.log_files)) for s in slices]

    def _settled(self, selection: Selection, rules: ReaderRules, shape: RecordShape, blocks: BlockFilter) -> Selection:
        only_deleted = needed_histories(selection, rules)
        if only_deleted is None:
            return selection
        base = selection.facts.file_slice.base_file
        histories = self.content.key_histories(
            base.path if base else None,
            [fact.log for fact in selection.compacted],
            [fact.log for fact in selection.remaining],
            shape,
            blocks,
            only_deleted=only_deleted,
        )
        verdict = judge_split(histories, rules.rule, rules.readers, is_base_file_index=rules.is_base_file_index)
        return settle(selection, verdict)

    def _strategy(self, cut_ms: int, facts: Sequence[SliceFacts]) -> CompactionStrategy:
        name = (self.options.text(keys.STRATEGY) or EVENT_TIME_STRATEGY).rpartition(".")[2]
        if name != EVENT_TIME_STRATEGY:
            raise ConfigError(f"option {keys.STRATEGY}={name!r} is not known; the one there is: {EVENT_TIME_STRATEGY}")
        trigger = self.options.text(keys.TRIGGER) or TRIGGER_NAME
        if trigger != TRIGGER_NAME:
            raise ConfigError(f"option {keys.TRIGGER}={trigger!r} is not known; the one there is: {TRIGGER_NAME}")
        ranges = {fact.log.path: fact.event_times for found in facts for fact in found.logs}
        return EventTimeBasedCompactionStrategy(cut_ms, lambda log: ranges[log.path])

    def _link_facts(self, state: TableState, choice: LinkChoice, now: str) -> LinkChoiceFacts:
        retained = self.options.integer(keys.COMMITS_RETAINED, COMMITS_RETAINED_DEFAULT)
        writes = state.timeline.writes
        earliest = writes[-retained].requested_time if 0 < retained < len(writes) else None
        used = {time for i in state.timeline.instants for time in (i.requested_time, i.completion_time) if time}
        used.update(instants_with_outcome(self.files.storage))
        return LinkChoiceFacts(
            choice=choice,
            timeline=state.timeline,
            slices_by_completion_time=state.config.slices_by_completion_time,
            now=now,
            earliest_retained=earliest,
            used_times=frozenset(used),
        )

    def _is_base_file_index(self, slices: Sequence[FileSlice]) -> bool:
        """Whether writers find a key in base files only. Not told by the table itself: an option, else the file ids."""
        index = self.options.text(keys.INDEX_TYPE)
        if index is not None:
            return index.upper() != "BUCKET"
        return not all(s.file_id[:8].isdecimal() and int(s.file_id[:8]) < BUCKET_NUMBERS_MAX for s in slices)


def unused_instant(state: TableState, clock: Clock) -> str:
    """An instant above every time of the timeline, and not before now, in the time zone that the table's instants are in."""
    times = (time for i in state.timeline.instants for time in (i.requested_time, i.completion_time) if time)
    last = max(times, default="")
    now_ms = clock.now_ms()
    now = instant_time(now_ms if state.config.has_utc_instants else now_ms + clock.local_offset_ms())
    return now if now > last else next_instant_time(last)


def _attempt(base_name: str) -> int:
    name = BaseFileName.parse(base_name)
    return 0 if name is None else int(name.write_token.split("-")[1])
