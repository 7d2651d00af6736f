"""Completes what is pending before anything new begins: how a run continues after one that died.

1. Writes whose writers are known to be dead are rolled back. Interrupted rollbacks are completed. Files of the timeline
   that don't count are removed.
2. A compaction that eventide planned is run, whichever process began it: same instant, same names. If its process is
   alive, it is left to that process (BusyError). One that was only scheduled is run like an
   interrupted one.
3. A compaction whose plan no longer fits the table, so that no run can complete it, is rolled back. The request is
   planned again. A compaction that was requested, but whose plan was never written, is also rolled back.
4. A compaction that another engine planned is also run, unless the options exclude it (`eventide.foreign.plans`), or a
   stream of Hudi may run it (`scheduling/hudi_streams`). One that the other engine has begun is left to it, because
   nothing shows whether that engine is alive.
5. If a run of eventide died on such a plan, and the other engine has run the plan since, base files may be left beside
   the commit's: Hudi leaves files of an attempt that it did not find inflight. They are removed, and then the
   heartbeat.
6. eventide waits, as long as the options specify, for what it does not run: such compactions, log compactions and
   clusterings.

A copy-on-write table has no compactions. Its pending commits belong to its writers, and nothing waits for them.

Re-runnable: after a crash at any step, the next run continues. If two processes do this at once, one of them runs the
plan.
"""

from dataclasses import dataclass

from eventide_core.errors import BusyError, EmptyPlanError, InstantNotFoundError, PlanMismatchError
from eventide_core.ports import Progress
from eventide_core.service.common.state.table import TableState
from eventide_core.service.common.state.table_files import TableFiles
from eventide_core.service.compaction.foreign_plan import other_bases
from eventide_core.service.compaction.result import Ended
from eventide_core.service.compaction.run import CompactionRunner
from eventide_core.service.compaction.scheduling.hudi_streams import refusal_beside_stream
from eventide_core.service.compaction.scheduling.schedule import wait_until
from eventide_core.service.compaction.scheduling.settings import CompactionSettings
from eventide_core.service.rollback.instant import Rollback
from eventide_core.table.files.file_group_write import HEARTBEATS, heartbeat_path
from eventide_core.table.settings.table_config import TableConfig
from eventide_core.table.timeline.contents.plans import CompactionPlan, ForeignPlan
from eventide_core.table.timeline.instant import Action, Instant, State
from eventide_core.table.timeline.timeline import Timeline


@dataclass(frozen=True, slots=True)
class PendingCompactions:
    files: TableFiles
    runner: CompactionRunner
    rollback: Rollback
    settings: CompactionSettings

    def has_any(self) -> bool:
        """Whether `end` has anything to do. Writes nothing."""
        config = self.files.config()
        if config.is_copy_on_write:
            return False
        seen = self._look(config)
        timeline = seen.timeline
        if timeline.strays or timeline.pending_plans or self.rollback.has_failed_writes(config, timeline):
            return True
        return bool(self._overtaken(seen))

    def end(self, progress: Progress) -> Ended:
        """All steps.

        Raises BusyError if a process works on what is pending, and whatever a compaction raises.
        """
        config = self.files.config()
        if config.is_copy_on_write:
            return Ended()
        seen = self._look(config)
        undone: tuple[str, ...] = ()
        if self.rollback.has_failed_writes(config, seen.timeline):
            undone = self.rollback.undo_failed_writes()
            seen = self._look(config)
        compactions = self._end_compactions(config, seen, progress)
        if seen.timeline.pending_plans:
            self._wait_for_others(config)
        return Ended(compactions.resumed, (*undone, *compactions.rolled_back))

    def _swept(self, config: TableConfig) -> tuple[str, ...]:
        """Removes the files that don't count. Returns the instants of plans whose rollback was decided and interrupted."""
        with self.runner.lock.acquire() as lease:
            timeline = self.files.timeline(config)
            self.files.sweep(config, timeline, lease)
        return tuple(i.requested_time for i in timeline.strays if i.is_pending_plan and i.state is State.REQUESTED)

    def end_compactions(self, progress: Progress) -> Ended:
        """Steps 2 to 5."""
        config = self.files.config()
        if config.is_copy_on_write:
            return Ended()
        return self._end_compactions(config, self._look(config), progress)

    def _end_compactions(self, config: TableConfig, seen: "_Seen", progress: Progress) -> Ended:
        resumed: list[str] = []
        rolled_back = list(self._swept(config)) if seen.timeline.strays else []
        for pending in seen.timeline.pending_plans:
            instant = pending.requested_time
            try:
                if not self._is_to_run(config, pending):
                    continue
                result = self.runner.execute(instant, progress)
                (rolled_back if result.is_already_reached else resumed).append(instant)
            except EmptyPlanError:
                self.rollback.undo(instant)
                rolled_back.append(instant)
            except PlanMismatchError:
                if isinstance(self._plan(config, pending), ForeignPlan):
                    raise  # the engine that planned it has to roll it back
                self.rollback.undo(instant)
                rolled_back.append(instant)
            except InstantNotFoundError:
                continue  # another process was faster, and rolled it back
            except BusyError:
                if self.files.timeline(config).find_compaction(instant) is not None:
                    raise
                rolled_back.append(instant)  # and what excludes a new plan is ended next
        if seen.timeline.pending_plans:
            seen = self._look(config)
        for overtaken in self._overtaken(seen):
            self._sweep(config, overtaken)
        return Ended(tuple(resumed), tuple(rolled_back))

    def _look(self, config: TableConfig) -> "_Seen":
        timeline, entries = self.files.requests.both(
            lambda: self.files.timeline(config), lambda: self.files.storage.list(HEARTBEATS)
        )
        return _Seen(timeline, tuple(entry.path.rpartition("/")[2] for entry in entries))

    def _overtaken(self, seen: "_Seen") -> tuple[Instant, ...]:
        """The completed compactions that a dead run of eventide worked on: its heartbeat still exists."""
        compactions = [seen.timeline.find_compaction(name) for name in seen.heartbeats]
        liveness = self.runner.ownership.liveness
        return tuple(i for i in compactions if i and i.is_completed and not liveness.is_known_alive(i.requested_time))

    def _sweep(self, config: TableConfig, completed: Instant) -> None:
        """Removes the base files beside those that the commit names, then the heartbeat."""
        storage = self.files.storage
        with self.runner.lock.acquire() as lease:
            stats = self.files.commit(config, completed).stats
            named, groups = {stat.path for stat in stats}, {(stat.partition, stat.file_id) for stat in stats}
            for path in other_bases(self.files.data_files(), completed.requested_time, groups, named):
                lease.check()
                storage.delete(path)
            lease.check()
            storage.delete(heartbeat_path(completed.requested_time))

    def _wait_for_others(self, config: TableConfig) -> None:
        """Waits, as long as configured, until no plan is pending. A plan that is still pending then excludes a new one.

        Raises BusyError for a compaction that another engine has begun: only the user can take it over.
        """
        if self._is_left_to_stream():
            return  # the stream, not a wait, is what excludes a new plan
        wait_ms = self.settings.wait_ms
        if wait_until(lambda: not self.files.timeline(config).pending_plans, self.files.clock, wait_ms) is None:
            return
        for pending in self.files.timeline(config).pending_plans:
            if isinstance(self._plan(config, pending), ForeignPlan):
                self.runner.foreign.check_not_begun(config, pending)

    def _is_to_run(self, config: TableConfig, pending: Instant) -> bool:
        """Whether eventide runs the pending plan without a request by name."""
        plan = self._plan(config, pending)
        if isinstance(plan, ForeignPlan):
            may_run = self.settings.runs_foreign_plans and not self.runner.foreign.is_held_by_other(config, pending)
            return may_run and not self._is_left_to_stream()
        return plan is not None

    def _is_left_to_stream(self) -> bool:
        """Whether Hudi's plans are left to a stream of Hudi, which may run them."""
        if not self.settings.streams_compact:
            return False
        return refusal_beside_stream(TableState.load(self.files), self.settings) is not None

    def _plan(self, config: TableConfig, pending: Instant) -> CompactionPlan | ForeignPlan | None:
        """The plan of a pending compaction; None if it is not one, or has ended in the meantime."""
        if pending.action is not Action.COMPACTION:
            return None
        try:
            return self.files.plan(config, pending.requested_time)
        except InstantNotFoundError:
            return None


@dataclass(frozen=True, slots=True)
class _Seen:
    """The table as seen without the lock: the timeline, and the instants that have a heartbeat."""

    timeline: Timeline
    heartbeats: tuple[str, ...]
