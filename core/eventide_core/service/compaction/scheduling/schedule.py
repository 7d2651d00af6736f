"""Plans a compaction by the configured strategy and trigger, and puts the plan on the timeline.

Order of writes, under the table lock: the plan file `<instant>.compaction.requested`, put if absent, and nothing else.
A crash before it leaves nothing. A crash after it leaves a pending plan, which any engine may run, and which `rollback`
undoes.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from eventide_core.action.compaction.request import CompactionRequest
from eventide_core.action.compaction.trigger import check_trigger
from eventide_core.config import LinkChoice
from eventide_core.errors import BusyError, LockLostError, MetadataTableBusyError, MissingFileError, RefusedError
from eventide_core.ports import Capability, Clock, Engine, KeyedFiles, TableLock
from eventide_core.service.common.facts.moments import local_instant_time
from eventide_core.service.common.state.single_writers import single_writer_note, writes_of_single_writers
from eventide_core.service.common.state.table import TableState, read_from
from eventide_core.service.common.state.table_files import TableFiles
from eventide_core.service.common.transaction.action import Fate, Put
from eventide_core.service.common.transaction.outcome import instants_with_outcome
from eventide_core.service.common.transaction.steps import Kind
from eventide_core.service.compaction.scheduling.draft import CompactionDrafter
from eventide_core.service.compaction.scheduling.draft_plan import DraftPlan
from eventide_core.service.compaction.scheduling.hudi_streams import refusal_beside_stream
from eventide_core.service.compaction.scheduling.settings import CompactionSettings
from eventide_core.table.records.record_shape import RecordShape
from eventide_core.table.settings.metadata_table import RowChange
from eventide_core.table.settings.table_config import TableConfig
from eventide_core.table.timeline.instant import Action, Instant, State

POLL_MS = 200
GAP_POLL_MS = 5
GAP_WAIT_MS = 1_000
"""How long a plan that may be made beside open writes waits for a gap, because then less is left over."""

T = TypeVar("T")
D = TypeVar("D", bound=DraftPlan | None)


@dataclass(frozen=True, slots=True)
class CompactionScheduler:
    """`check_merger` is the slice merger's check, which a dry run doesn't have. Picklable."""

    files: TableFiles
    drafter: CompactionDrafter
    check_merger: Callable[[RecordShape], None]
    engine: Engine
    lock: TableLock
    settings: CompactionSettings

    def plan(self, request: CompactionRequest) -> DraftPlan:
        """A dry run: what `schedule` would plan, and what it would wait for. Writes nothing."""
        with self.files.tracer.span("plan"):
            return read_from(self._load, partial(self._plan, request))

    def _plan(self, request: CompactionRequest, state: TableState) -> DraftPlan:
        if state.config.is_copy_on_write:
            return self.drafter.draft_of_copy_on_write(state)
        draft = once_metadata_table_is_free(
            lambda: self.drafter.draft(state, request), self.files.clock, self.settings.wait_ms
        )
        alone = map(single_writer_note, writes_of_single_writers(self.files, state.config, state.timeline))
        stream = refusal_beside_stream(state, self.settings)
        draft = replace(draft, notes=(*draft.notes, *alone, *filter(None, [stream])))
        try:
            check_trigger(state.timeline)
        except BusyError as busy:
            return replace(draft, waits_for=str(busy))
        return draft

    def schedule(
        self, request: CompactionRequest, *, is_for_later: bool = False, drafted: DraftPlan | None = None
    ) -> DraftPlan:
        """Makes the plan, and puts it on the timeline unless the draft has nothing to do; then `put` is what it put.

        `drafted` is what `plan` returned for this request: it is put as it is if the table and the options are unchanged.
        `is_for_later`: the plan is not executed immediately, so it must be one that Hudi can also run. Waits, as long as
        configured, if open writes leave no quiet moment. Raises BusyError after that time, if another pending action
        excludes a plan, or if another scheduler was faster. Raises RefusedError beside a stream of Hudi that may compact
        the table itself.
        """
        if request.link_choice is LinkChoice.HARDLINK and Capability.HARDLINK not in self.files.storage.capabilities:
            raise RefusedError(
                f"link mode hardlink: the storage of {self.files.storage.root} doesn't support hard links; use copy"
            )
        with self.files.tracer.span("schedule"):
            # A T that follows the clock has moved since.
            if drafted is not None and not request.follows_clock:
                put = self._put_drafted(replace(drafted, is_for_later=is_for_later))
                if put is not None:
                    return put
            return read_from(self._load, partial(self._schedule, request, is_for_later=is_for_later))

    def _load(self) -> TableState:
        return TableState.load(self.files)

    def _put_drafted(self, draft: DraftPlan) -> DraftPlan | None:
        """The draft, put on the timeline; None if that needs another one."""
        if not draft.is_to_put or draft.options != self.drafter.options:
            return None
        self._check_merger(draft.state)
        self._wait_out_clock_skew(draft)
        with suppress(LockLostError, MetadataTableBusyError, MissingFileError):
            put = self._put(draft, lambda _: None)
            return put if put is not None and put.is_to_put else None
        return None

    def _check_merger(self, state: TableState) -> None:
        if state.config.merger is not None:
            self.engine.map(self.check_merger, [state.shape(None)])

    def _schedule(self, request: CompactionRequest, state: TableState, *, is_for_later: bool) -> DraftPlan:
        config = state.config
        if config.is_copy_on_write:
            return self.drafter.draft_of_copy_on_write(state)
        self._check_merger(state)
        limit_ms = self.settings.wait_ms
        gap_ms = min(limit_ms, GAP_WAIT_MS) if self.settings.is_exclusive else limit_ms
        begin_ms = self.files.clock.now_ms()
        waited_ms = 0
        while True:
            make = partial(self._draft, request, is_for_later=is_for_later, is_gap_needed=waited_ms < gap_ms)
            # The draft takes no lock. If the table changes, the next one knows most log files, so that the lock is held
            # only briefly.
            draft = once_metadata_table_is_free(partial(make, state), self.files.clock, limit_ms)
            if draft.is_to_put:
                self._wait_out_clock_skew(draft)
                try:
                    draft = self._put(draft, make)
                except (LockLostError, MetadataTableBusyError) as busy:
                    draft = replace(draft, waits_for=str(busy))
            if draft.idle is not None or draft.waits_for is None:
                return draft
            if waited_ms >= limit_ms:
                raise BusyError(
                    f"{draft.waits_for}; waited {waited_ms} ms: try again, or roll back a write whose writer is dead"
                )
            waited_ms = self.files.clock.now_ms() - begin_ms
            until_ms = gap_ms if waited_ms < gap_ms else min(limit_ms, waited_ms + POLL_MS)
            if waited_ms < until_ms:
                self._wait(config, until_ms - waited_ms)
                waited_ms = self.files.clock.now_ms() - begin_ms
            state = self._load()

    def _wait_out_clock_skew(self, draft: DraftPlan) -> None:
        """Version 8 and later: waits until the draft's instant is longer ago than the clock skew.

        By then, a writer with an earlier instant has created its file, and the second check finds it. If such a write
        appears later, the plan is rolled back, and a stock writer that has listed its file may fail.
        """
        state = draft.state
        if state.config.layout.writers_follow_plans:
            return
        since_ms = self.files.clock.now_ms() - self.settings.skew_ms
        if draft.plan.instant > local_instant_time(state.config, state.timeline, since_ms, self.files.clock):
            self.files.clock.sleep(self.settings.skew_ms)

    def _wait(self, config: TableConfig, limit_ms: int) -> None:
        """Sleeps until a new draft may succeed: on version 6, until no write is pending, which may be a short time."""
        if config.layout.writers_follow_plans:
            wait_until(
                lambda: not self.files.timeline(config).pending_writes, self.files.clock, limit_ms, poll_ms=GAP_POLL_MS
            )
        else:
            self.files.clock.sleep(POLL_MS)

    def _draft(
        self, request: CompactionRequest, state: TableState, *, is_for_later: bool, is_gap_needed: bool
    ) -> DraftPlan:
        self._check(state)
        draft = self.drafter.draft(state, request, is_gap_needed=is_gap_needed)
        return replace(draft, is_for_later=is_for_later)

    def _check(self, state: TableState) -> None:
        stream = refusal_beside_stream(state, self.settings)
        if stream is not None:
            raise RefusedError(stream)
        check_trigger(state.timeline)

    def _put(self, draft: DraftPlan, make: Callable[[TableState], D]) -> DraftPlan | D:
        """The draft, put on the timeline; what `make` makes if the table under the lock isn't the one that it is of.

        The latter is put unless it is None, is idle or has to wait. Without a change, a draft stays right: its instant is
        unused and quiet until something happens, and only the metadata table, which is checked again, can change unseen.
        """
        with self.lock.acquire() as lease:
            # Elsewhere, a file may have grown by an append that was interrupted.
            is_same = isinstance(self.files.storage, KeyedFiles) and draft.state.still_holds(
                *self.files.config_and_timeline(), instants_with_outcome(self.files.storage)
            )
            state = draft.state if is_same else self._load()
            self.files.sweep(state.config, state.timeline, lease)
            if is_same or draft.state.is_unchanged_in(state):
                self._check(state)
                self.drafter.metadata.check(state.config, RowChange.NONE)
            else:
                made = make(state)
                if made is None or not made.is_to_put:
                    return made
                draft = made
            requested = Instant(draft.plan.instant, Action.COMPACTION, State.REQUESTED)
            data = self.files.codec.encode_plan(draft.plan)
            if state.config.layout.writers_follow_plans and self.files.timeline(state.config) != state.timeline:
                # A writer that shares no lock appeared; its log file would be in a slice of a plan that doesn't include
                # it.
                return replace(draft, waits_for="a write started while the plan was made")
            transaction = self.files.transaction(state.config, Kind.COMPACTION, Action.COMPACTION, draft.plan.instant)
            try:
                put = transaction.put(lease, State.REQUESTED, data)
            except LockLostError:
                # On version 6 the plan stays, because writers may follow it. It is checked before it is run.
                if not transaction.is_followed or transaction.fate() is not Fate.PENDING:
                    raise
                put = Put.DONE
            if put is not Put.DONE:
                raise BusyError(f"another plan uses the instant {draft.plan.instant}; try again")
            return (
                draft
                if draft.is_for_later
                else replace(draft, put=(draft.plan, replace(state, timeline=state.timeline.with_instant(requested))))
            )


def wait_until(is_over: Callable[[], bool], clock: Clock, limit_ms: int, *, poll_ms: int = POLL_MS) -> int | None:
    """Waits until `is_over`, for at most `limit_ms`.

    Returns None once it is over; the milliseconds that it has waited if the limit passed first.
    """
    begin_ms = clock.now_ms()
    while not is_over():
        waited_ms = clock.now_ms() - begin_ms
        if waited_ms >= limit_ms:
            return waited_ms
        clock.sleep(poll_ms)
    return None


def once_metadata_table_is_free(act: Callable[[], T], clock: Clock, limit_ms: int) -> T:
    """The result of `act`, which is retried while Hudi compacts the metadata table, for `limit_ms` at most.

    On version 6 a writer of Hudi does so as it begins. Raises MetadataTableBusyError after the limit.
    """
    begin_ms = clock.now_ms()
    while True:
        try:
            return act()
        except MetadataTableBusyError:
            if clock.now_ms() - begin_ms >= limit_ms:
                raise
            clock.sleep(POLL_MS)
