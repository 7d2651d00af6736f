"""Undoes an action: a pending compaction, a failed write, or a completed write if nothing else is lost with it.

    pending compaction of eventide    `CompactionRollback`: leaves nothing on the timeline
    anything else                     `RollbackRunner`: a rollback on the timeline, as in Hudi

A write that is alive (`Liveness`) is never undone. One of which nothing shows whether it is alive is undone only where
the user names it (`undo`), and never by `undo_failed_writes`.
"""

from contextlib import suppress
from dataclasses import dataclass, replace

from eventide_core.access.timeline_files import delete_each
from eventide_core.action.compaction.trigger import check_undoing
from eventide_core.action.maintenance.rollback_planner import UndoneWrite, built_on, check_nothing_is_lost
from eventide_core.cure import Cure
from eventide_core.errors import (
    BusyError,
    CompletedMeanwhileError,
    CorruptTimelineError,
    EmptyPlanError,
    InstantNotFoundError,
    RefusedError,
)
from eventide_core.ports import Lease, TableLock
from eventide_core.service.common.facts.needed_files import merged_paths
from eventide_core.service.common.facts.planned_groups import planned_groups
from eventide_core.service.common.metadata_table.upkeep import MetadataTableUpkeep
from eventide_core.service.common.state.begun_cleans import begun_cleans
from eventide_core.service.common.state.liveness import Liveness
from eventide_core.service.common.state.table import TableState
from eventide_core.service.common.state.table_files import TableFiles
from eventide_core.service.common.transaction.outcome import is_undone
from eventide_core.service.rollback.compaction import CompactionRollback
from eventide_core.service.rollback.run import RollbackRunner
from eventide_core.service.rollback.savepoint import settled_state
from eventide_core.table.settings.table_config import TableConfig
from eventide_core.table.timeline.contents.plans import CompactionPlan
from eventide_core.table.timeline.instant import WRITE_ACTIONS, Action, Instant, State
from eventide_core.table.timeline.outcome_file import record_of
from eventide_core.table.timeline.timeline import Timeline

_UNDOABLE = WRITE_ACTIONS | {Action.COMPACTION, Action.LOG_COMPACTION, Action.CLUSTERING}


@dataclass(frozen=True, slots=True)
class Rollback:
    files: TableFiles
    metadata: MetadataTableUpkeep
    lock: TableLock
    liveness: Liveness

    def undo(self, instant: str, *, force: bool = False) -> tuple[str, ...]:
        """Rolls back the action at `instant`; returns the paths that were removed: none if others have just rolled it back.

        `force`: also what is pending without a heartbeat, of which nothing shows whether its writer lives. Raises
        InstantNotFoundError; RefusedError if something would be lost; BusyError if the write is alive, or something
        pending is in the way. Files that are gone or damaged don't matter: to undo their write may be the only cure.
        """
        with self.lock.acquire() as lease:
            state = settled_state(self.files, lease, requires_files=False)
            unplanned = self._unplanned(state, instant)
            if unplanned is not None:
                if not force:
                    self.liveness.check_abandoned(unplanned, state.config.timeline_path)
                return self._remove_request(state.config, unplanned, lease)
            self._check_restoring(state.timeline)
            target = state.timeline.find(instant)
            begun = self._begun(state, instant)
            if begun is not None:
                if not force:
                    self.liveness.check_abandoned(begun, state.config.timeline_path)
                return self._end(state, begun, target, lease)
            if any(pending.action is Action.ROLLBACK for pending in state.timeline.pending):
                # What another writer has still to write would go into slices that this rollback may remove.
                self.end_begun(state.config, state.timeline, lease)
                state = TableState.load(self.files, requires_files=False)
                check_undoing(state.timeline)
                target = state.timeline.find(instant)
            is_own_plan = False
            if target is not None and target.action is Action.COMPACTION and not target.is_completed:
                try:
                    is_own_plan = isinstance(self.files.plan(state.config, instant), CompactionPlan)
                except EmptyPlanError:
                    if not force:
                        self.liveness.check_abandoned(target, state.config.timeline_path)
                    return CompactionRollback(self.files, self.metadata).undo_request(state, target, lease)
                if is_own_plan:
                    self.liveness.check_not_alive(target, "try again when it has completed or died")
            if is_own_plan:
                return CompactionRollback(self.files, self.metadata).undo(state, instant, lease)
            if target is None:
                swept = [stray for stray in state.timeline.strays if stray.requested_time == instant]
                if swept:
                    return tuple(map(self.files.on_timeline(state.config).path, swept))
                if any(
                    is_undone(self.files.storage, record_of(instant, of))
                    for of in (Action.COMPACTION, Action.DELTA_COMMIT)
                ):
                    return ()
                raise InstantNotFoundError(
                    f"{self.files.storage.root}: there is no instant {instant} on the active timeline; "
                    f"{Cure.history()} lists the existing ones"
                )
            if target.action not in _UNDOABLE:
                raise RefusedError(f"{instant} is a {target.state} {target.action}, which cannot be rolled back")
            if not (target.is_completed or force):
                self._check_has_heartbeat(target)
            return self._undo(state, target, lease)

    def abort(self, instant: str) -> None:
        """Rolls back a write of this process that will not complete, without waiting for its heartbeat to expire.

        Does nothing if the write has completed, or is not on the timeline.
        """
        with self.lock.acquire() as lease:
            state = TableState.load(self.files)
            write = state.timeline.find(instant)
            if write is not None and not write.is_completed and self._begun(state, instant) is None:
                plan = self._runner.begin(state, write, lease)
                self._runner.end(state.config, plan, lease, of=write)

    def undo_failed_writes(self, lease: Lease | None = None) -> tuple[str, ...]:
        """Rolls back the writes of dead writers, whose heartbeat has expired. Returns their instants.

        Also completes rollbacks that were started. Runs under the table lock; a caller that holds it passes its lease.
        """
        if lease is None:
            with self.lock.acquire() as own:
                return self.undo_failed_writes(own)
        undone: list[str] = []
        config = self.files.config()
        while (failed := self._next_failed(config, self.files.timeline(config))) is not None:
            state = TableState.load(self.files)
            self._check_restoring(state.timeline)
            if self._is_unplanned(config, failed):
                self._remove_request(config, failed, lease)
            elif failed.action is Action.ROLLBACK:
                plan = self.files.rollback_plan(state.config, failed.requested_time)
                if self._runner.end(state.config, plan, lease) is not None:
                    undone.append(plan.target.instant)
            else:
                with suppress(CompletedMeanwhileError):
                    self._undo(state, failed, lease)
                    undone.append(failed.requested_time)
        return tuple(undone)

    def has_failed_writes(self, config: TableConfig, timeline: Timeline) -> bool:
        """Whether `undo_failed_writes` has something to do; `timeline` was read under the lock."""
        return self._next_failed(config, timeline) is not None

    def end_undone_plans(self, config: TableConfig, timeline: Timeline, lease: Lease) -> bool:
        """Version 6: ends the interrupted rollbacks of plans, before a writer follows such a plan. Whether there were any.

        One stays that a writer may have followed: `CompactionRollback.resume`.
        """
        has_ended = False
        for plan in timeline.pending_plans if config.layout.writers_follow_plans else ():
            if plan.action is Action.COMPACTION and is_undone(self.files.storage, plan.requested_time):
                state = TableState.load(self.files, requires_files=False)
                with suppress(BusyError, EmptyPlanError, RefusedError):
                    CompactionRollback(self.files, self.metadata).undo(state, plan.requested_time, lease)
                    has_ended = True
        return has_ended

    def check_not_undone(self, config: TableConfig, timeline: Timeline, instant: str) -> None:
        """Raises RefusedError if another engine is rolling the write back. Under the lock, after `end_begun`."""
        for pending in timeline.pending:
            if pending.action is Action.ROLLBACK and self._target(config, pending) == instant:
                raise RefusedError(
                    f"another engine rolls back the write at {instant}, by the rollback at {pending.requested_time}, "
                    "and nothing of it was committed: write again"
                )

    def end_begun(self, config: TableConfig, timeline: Timeline, lease: Lease) -> bool:
        """Ends the rollbacks that were begun and interrupted. Returns whether there were any.

        Raises BusyError while a restore is pending.

        What a write has made may be gone in part by then: no write may commit before. One that another engine may still
        be at work on is left to it. `config` and `timeline` were read under the lock.
        """
        self._check_restoring(timeline)
        begun = [pending for pending in timeline.pending if self._is_abandoned(pending, config)]
        for pending in begun:
            if self._is_unplanned(config, pending):
                self._remove_request(config, pending, lease)
            else:
                self._runner.end(config, self.files.rollback_plan(config, pending.requested_time), lease)
        return bool(begun)

    def _next_failed(self, config: TableConfig, timeline: Timeline) -> Instant | None:
        """A pending rollback or else a write whose writer is dead. Mostly there is none."""
        pending = timeline.pending
        begun = (i for i in pending if self._is_abandoned(i, config))
        return next(begun, None) or next(filter(self.liveness.is_dead, pending), None)

    def _is_abandoned(self, pending: Instant, config: TableConfig) -> bool:
        """Whether it is an abandoned rollback."""
        return pending.action is Action.ROLLBACK and self.liveness.is_abandoned(pending, config.timeline_path)

    def _target(self, config: TableConfig, pending: Instant) -> str:
        """The write that a pending rollback undoes; empty if it has no plan, and has undone nothing."""
        if self._is_unplanned(config, pending):
            return ""
        return self.files.rollback_plan(config, pending.requested_time).target.instant

    @property
    def _runner(self) -> RollbackRunner:
        return RollbackRunner(self.files, self.metadata, self.liveness.heartbeats)

    def _unplanned(self, state: TableState, instant: str) -> Instant | None:
        """The rollback or restore requested at the instant, if its plan was never written, or is lost."""
        undoing = (i for i in state.timeline.pending if i.is_undoing)
        return next((i for i in undoing if i.requested_time == instant and self._is_unplanned(state.config, i)), None)

    def _is_unplanned(self, config: TableConfig, pending: Instant) -> bool:
        """Whether a rollback or restore was requested and its plan never written. Hudi removes such a request, too.

        The same for a rollback that began and whose plan is lost, such as by a power failure: what it undoes is pending
        until all of its files are gone, and is undone by the next rollback.
        """
        if pending.action is not Action.ROLLBACK and (pending.action, pending.state) != (
            Action.RESTORE,
            State.REQUESTED,
        ):
            return False
        return not self.files.on_timeline(config).read(_requested(pending))

    def _remove_request(self, config: TableConfig, pending: Instant, lease: Lease) -> tuple[str, ...]:
        paths = tuple(map(self.files.on_timeline(config).path, dict.fromkeys((pending, _requested(pending)))))
        delete_each(self.files.storage, paths, lease)
        return paths

    def _check_restoring(self, timeline: Timeline) -> None:
        for pending in timeline.pending:
            if pending.action is Action.RESTORE:
                raise BusyError(f"a restore is in progress at {pending.requested_time}; run it again to complete it")

    def _begun(self, state: TableState, instant: str) -> Instant | None:
        """The pending rollback of that instant, or at it."""
        for pending in state.timeline.pending:
            if pending.action is Action.ROLLBACK and (
                pending.requested_time == instant or self._target(state.config, pending) == instant
            ):
                return pending
        return None

    def _end(self, state: TableState, begun: Instant, target: Instant | None, lease: Lease) -> tuple[str, ...]:
        plan = self.files.rollback_plan(state.config, begun.requested_time)
        if target is not None and target.requested_time != plan.target.instant:
            target = None  # the rollback itself was named, which anybody may end
        return self._runner.end(state.config, plan, lease, of=target) or ()

    def _undo(self, state: TableState, target: Instant, lease: Lease) -> tuple[str, ...]:
        time = target.requested_time
        if target.is_completed:
            _check_not_archived(state, target)
            _check_not_the_last(state, target)
            check_nothing_is_lost(self._judged(state, target))
        else:
            self._check_pending(state, target)
            _check_not_built_on(state, target)
        plan = self._runner.begin(state, target, lease)
        removed = self._runner.end(state.config, plan, lease, of=target)
        if removed is None:
            raise CompletedMeanwhileError(
                f"the {target.action} at {time} has completed while its rollback began, so it stays; run the rollback again "
                "to undo it nevertheless"
            )
        return removed

    def _check_has_heartbeat(self, target: Instant) -> None:
        """Raises RefusedError for a pending write, or a running plan, if nothing states who works on it."""
        is_write = target.action in (Action.COMMIT, Action.DELTA_COMMIT)
        if target.state is State.REQUESTED and not is_write:
            return
        if not self.liveness.has_heartbeat(target.requested_time):
            raise RefusedError(
                f"the {target.action} at {target.requested_time} has no heartbeat, so eventide cannot determine "
                "whether its writer is alive: writers that clean eagerly write none, and neither does Flink. If "
                "the writer is alive, what it commits after the rollback is lost. Make sure that no writer "
                f"works on it, then run {Cure.rollback(target.requested_time, force=True)}"
            )

    def _check_pending(self, state: TableState, target: Instant) -> None:
        self.liveness.check_not_alive(target, "try again when it has completed")
        if target.action is not Action.COMPACTION:
            return
        is_needed = state.config.layout.writers_follow_plans
        if is_needed or state.logs_on_top_of(self.files.plan(state.config, target.requested_time)):
            raise RefusedError(
                f"the compaction at {target.requested_time} is not eventide's, and writers may have appended to "
                f"its new slice; complete it with {Cure.execute(target.requested_time)}"
            )

    def _judged(self, state: TableState, target: Instant) -> UndoneWrite:
        return UndoneWrite(
            instant=target,
            metadata=state.commits[target.requested_time],
            commits=state.commits,
            timeline=state.timeline,
            planned=set(planned_groups(self.files, state.config, state.timeline.pending_plans)),
            cleans=begun_cleans(self.files, state.config, state.timeline),
            merged_paths=self._merged_paths(state, target),
            listing=state.listing,
            layout=state.config.layout,
        )

    def _merged_paths(self, state: TableState, target: Instant) -> tuple[str, ...] | None:
        """The files that the plan of a completed compaction states it found; None if there is no plan."""
        with suppress(InstantNotFoundError):
            return merged_paths(self.files, state, target)
        return None


def _requested(pending: Instant) -> Instant:
    return replace(pending, state=State.REQUESTED)


def _check_not_built_on(state: TableState, target: Instant) -> None:
    """Raises CorruptTimelineError for a pending write that had completed, as a write that built on it shows."""
    evidence = built_on(state.commits, {target.requested_time}).get(target.requested_time)
    if evidence is not None and target.action is not Action.COMPACTION:
        raise CorruptTimelineError(
            f"{state.config.timeline_path}/{target.file_name} is pending, but {evidence}, so it had completed, and a "
            f"rollback would remove its rows; restore its completed file from a copy, or run {Cure.repair()}"
        )


def _check_not_archived(state: TableState, target: Instant) -> None:
    """An archival that was interrupted leaves writes in both places, and nothing is ever taken out of the archive."""
    if state.archive.find(target.requested_time) is not None:
        raise RefusedError(
            f"{target.requested_time} was archived by an interrupted archival, but is still on the timeline, "
            "and would stay in the archive as a completed write; it cannot be undone; write again what "
            "should replace it"
        )


def _check_not_the_last(state: TableState, target: Instant) -> None:
    """Readers take archived writes for completed because active ones follow: without any, they lose the archived ones."""
    if state.timeline.writes == (target,) and next(state.archive.writes("", target.requested_time), None) is not None:
        raise RefusedError(
            f"{target.requested_time} is the last write on the active timeline, and those before it are "
            "archived: without it, no reader, not even Hudi's, would find them; write to the table first, "
            "then undo it"
        )
