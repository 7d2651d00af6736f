"""Cleans a table: removes what no retained slice, pending plan, savepoint or link needs.

Order of writes, and what a crash after each leaves:

1. Under the table lock: failed writes are rolled back. An interrupted clean is completed: eventide's own if its process
   is dead, also if Hudi completed it (service/common/state/begun_cleans.py), another engine's after it has been pending for
   long (service/common/state/liveness.py). Until then the table is busy (BusyError): if two engines completed the clean, it
   would be on the timeline twice.
2. Under the lock: markers and heartbeats of actions that are no longer pending are removed, because nothing else would,
   and no process reads them. A heartbeat at `c`; then `<c>.clean.requested` contains the plan. If there is nothing to
   remove, there is no plan, and nothing on the timeline. The plan names the files where Hudi's cleaner doesn't look, which
   runs a plan without asking what a savepoint keeps by then: so a request that comes too late deletes nothing. Nor does it
   state to Hudi that older slices are gone: Hudi would archive what replaced their file groups, and show their rows again.
3. `<c>.clean.inflight`, and the files are removed. Names are never reused, so this needs no lock; a second run finds
   fewer files.
4. Under the lock: the changes are written to Hudi's metadata table, then the completed file. From version 8 on, its
   completion time is `c` plus one millisecond, so that a second run uses the same name. If Hudi has completed `c`, which
   removes nothing, another clean records what was removed.

A clean that another engine has planned may name files that only a link of eventide needs. These files stay when it is
completed.
"""

from collections.abc import Set as AbstractSet
from contextlib import ExitStack
from dataclasses import dataclass, replace

from eventide_core import config as keys
from eventide_core.action.compaction.trigger import check_undoing
from eventide_core.action.maintenance.clean_planner import (
    CleanDecision,
    CleanFacts,
    CleanTerms,
    decide_clean,
    earliest_to_retain,
    paths_of,
)
from eventide_core.config import Options
from eventide_core.errors import BusyError
from eventide_core.ports import FileChanges, Lease, TableLock
from eventide_core.service.common.facts.moments import local_instant_time
from eventide_core.service.common.facts.needed_files import links_of, needed_paths, savepoints_of, still_needed
from eventide_core.service.common.facts.planning import unused_instant
from eventide_core.service.common.facts.stray_files import stray_files
from eventide_core.service.common.metadata_table.upkeep import MetadataTableUpkeep
from eventide_core.service.common.state.begun_cleans import begun_cleans
from eventide_core.service.common.state.liveness import Liveness
from eventide_core.service.common.state.markers_and_heartbeats import (
    instants_with_markers_or_heartbeat,
    remove_markers_and_heartbeat,
)
from eventide_core.service.common.state.table import TableState
from eventide_core.service.common.state.table_files import TableFiles
from eventide_core.service.common.transaction.action import Put, Transaction
from eventide_core.service.common.transaction.outcome import UNDONE_KEPT_MS
from eventide_core.service.common.transaction.steps import Kind
from eventide_core.service.rollback.instant import Rollback
from eventide_core.service.rollback.savepoint import settled_state
from eventide_core.table.files.file_name import LogFileName, path_in
from eventide_core.table.settings.metadata_table import RowChange
from eventide_core.table.settings.table_config import TableConfig
from eventide_core.table.timeline.contents.clean_metadata import CleaningPolicy, CleanPlan
from eventide_core.table.timeline.instant import Action, Instant, State, next_instant_time

_HOUR_MS = 60 * 60 * 1000


@dataclass(frozen=True, slots=True)
class CleanResult:
    """What a clean removed or, in a dry run, would. Paths are relative to the table's root.

    `instant` is None for a dry run, and if there was nothing to remove. `deleted` are sorted, and include what a clean
    removed that had been started before. `kept_targets` are files that the clean keeps because a link leads to them.
    """

    instant: str | None
    deleted: tuple[str, ...]
    kept_targets: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Cleaner:
    files: TableFiles
    metadata: MetadataTableUpkeep
    rollback: Rollback
    lock: TableLock
    liveness: Liveness
    options: Options

    def plan(self, retain_commits: int | None = None) -> CleanResult:
        """A dry run: what `clean` would remove now.

        Writes nothing. `retain_commits` takes precedence over policy and options.
        """
        state = TableState.load(self.files)
        decision = self._decide(state, self._terms(state, retain_commits))
        return CleanResult(None, decision.deleted, decision.kept_targets)

    def clean(self, retain_commits: int | None = None) -> CleanResult:
        """Cleans. Returns what was removed, including by a clean that had been started before.

        Raises BusyError during a restore, and the errors of the metadata table's upkeep.
        """
        deleted: list[str] = []
        with ExitStack() as beating:  # if the clean fails, the last heartbeats stay and identify its process
            with self.lock.acquire() as lease:
                self.rollback.undo_failed_writes(lease)
                settled_state(self.files, lease, requires_files=False)
                begun = self._take_over(beating)
            for one in begun:
                deleted += self._end(one, beating)
            with self.lock.acquire() as lease:
                # Listed first, so that nothing is removed of an action that begins after this.
                left = instants_with_markers_or_heartbeat(self.files.storage)
                state = settled_state(self.files, lease)
                check_undoing(state.timeline)
                self._remove_orphans(left, state)
                terms = self._terms(state, retain_commits)
                decision = self._decide(state, terms)
                plan = self._begin(state, decision, terms, lease, beating) if decision.deleted else None
            if plan is not None:
                deleted += self._end(Instant(plan.instant, Action.CLEAN, State.REQUESTED), beating)
        return CleanResult(None if plan is None else plan.instant, tuple(sorted(deleted)), decision.kept_targets)

    def earliest_retained(self, state: TableState) -> list[str]:
        """The earliest write whose slices a clean would keep now, by requested time; empty if the policy counts versions.

        If there are too few writes to remove one, that is the first one.
        """
        terms = self._terms(state, None)
        if terms.policy is CleaningPolicy.FILE_VERSIONS:
            return []
        earliest = earliest_to_retain(state.timeline, terms)
        writes = state.timeline.writes
        if earliest is None and terms.policy is CleaningPolicy.HOURS:
            earliest = writes[-1] if writes else None
        return [write.requested_time for write in (earliest or next(iter(writes), None),) if write is not None]

    def _take_over(self, beating: ExitStack) -> tuple[Instant, ...]:
        """The interrupted cleans, which this process now owns. Call it under the lock."""
        config, timeline = self.files.config_and_timeline()
        cleans = begun_cleans(self.files, config, timeline)
        for pending in cleans:
            self.liveness.check_abandoned(pending, config.timeline_path)
        begun = tuple(i for i in cleans if i.is_completed or not self._remove_without_plan(i, config))
        for pending in begun:
            # Check, before anything is written, whether the metadata table can follow.
            self.files.clean_plan(config, pending.requested_time)
        for pending in begun:
            self._beat(pending.requested_time, beating)
        return begun

    def _remove_without_plan(self, pending: Instant, config: TableConfig) -> bool:
        """Removes a clean whose requested file is empty, and returns whether it was. So does Hudi.

        Nobody can continue it, and the next clean finds the files that it has left.
        """
        timeline, requested = self.files.on_timeline(config), replace(pending, state=State.REQUESTED)
        if timeline.read(requested):
            return False
        for file in dict.fromkeys((pending, requested)):
            timeline.delete(file, None)
        return True

    def _transaction(self, config: TableConfig, instant: str) -> Transaction:
        return self.files.transaction(config, Kind.CLEAN, Action.CLEAN, instant)

    def _beat(self, instant: str, beating: ExitStack) -> None:
        self.liveness.heartbeats.start(instant)
        beating.callback(self.liveness.heartbeats.stop, instant)

    def _remove_orphans(self, left: AbstractSet[str], state: TableState) -> None:
        """Removes markers and heartbeats of completed actions, and of those whose process died before they began.

        It may only have been paused, and puts its request when it wakes up. The heartbeat then shows whose request it is, so
        it stays as long as the record of an undone instant.
        """
        lately = local_instant_time(
            state.config, state.timeline, self.files.clock.now_ms() - UNDONE_KEPT_MS, self.files.clock
        )
        for instant in sorted(left - {i.requested_time for i in state.timeline.pending}):
            has_begun = state.timeline.find(instant) is not None or instant in state.ended
            if (has_begun or instant < lately) and not self.liveness.is_known_alive(instant):
                remove_markers_and_heartbeat(self.files.storage, instant)

    def _decide(self, state: TableState, terms: CleanTerms) -> CleanDecision:
        facts = CleanFacts(
            timeline=state.timeline,
            slices=state.view.slices,
            replaced_at=state.replaced_at,
            needed=needed_paths(self.files, state),
            links=links_of(state),
            strays=frozenset(stray_files(self.files, state)),
        )
        return decide_clean(facts, terms)

    def _terms(self, state: TableState, retain_commits: int | None) -> CleanTerms:
        if retain_commits is None:
            policy = CleaningPolicy(self.options.get(keys.CLEANING_POLICY))
            commits = self.options.get(keys.COMMITS_RETAINED)
        else:
            policy, commits = CleaningPolicy.COMMITS, retain_commits
        hours = self.options.get(keys.HOURS_RETAINED)
        return CleanTerms(
            policy=policy,
            commits=commits,
            file_versions=self.options.get(keys.FILE_VERSIONS_RETAINED),
            retained_since=local_instant_time(
                state.config, state.timeline, self.files.clock.now_ms() - hours * _HOUR_MS, self.files.clock
            ),
        )

    def _begin(
        self, state: TableState, decision: CleanDecision, terms: CleanTerms, lease: Lease, beating: ExitStack
    ) -> CleanPlan:
        """Step 2."""
        self.metadata.check(state.config, RowChange.NONE)
        partitions = {file.path: file.partition for file in state.listing}
        deleted: dict[str, list[str]] = {}
        for path in decision.deleted:
            deleted.setdefault(partitions[path], []).append(path.rpartition("/")[2])
        writes = state.timeline.writes
        plan = CleanPlan(
            instant=unused_instant(state, self.files.clock),
            policy=terms.policy,
            earliest_to_retain=decision.earliest_to_retain,
            last_completed=writes[-1].requested_time if writes else "",
            deleted={partition: tuple(names) for partition, names in deleted.items()},
            savepoints=tuple(sorted(savepoints_of(self.files, state))),
            cleaned_until=self._cleaned_until(state),
        )
        self._request(state.config, plan, lease, beating)
        return plan

    def _cleaned_until(self, state: TableState) -> Instant | None:
        """How far the last clean went. One by versions has no limit: it has removed all file groups that were replaced."""
        for clean in reversed(state.timeline.completed):
            if clean.action is Action.CLEAN:
                done = self.files.clean(state.config, clean)
                if done.earliest_to_retain is not None or done.policy is CleaningPolicy.FILE_VERSIONS:
                    return done.earliest_to_retain or clean
        return next(iter(state.timeline.writes), None)

    def _request(self, config: TableConfig, plan: CleanPlan, lease: Lease, beating: ExitStack) -> None:
        data = self.files.codec.encode_clean_plan(plan, self.files.storage.root)
        self._beat(plan.instant, beating)
        if self._transaction(config, plan.instant).put(lease, State.REQUESTED, data) is not Put.DONE:
            raise BusyError(f"another action uses the instant {plan.instant}; try again")

    def _end(self, begun: Instant, beating: ExitStack) -> list[str]:
        """Steps 3 and 4, by the process that owns the instant. Returns the removed paths."""
        storage = self.files.storage
        with self.lock.acquire() as lease:
            state = settled_state(self.files, lease)
            planned = self.files.clean_plan(state.config, begun.requested_time)
            plan = self._spared(state, planned)
        data = self.files.codec.encode_clean_plan(planned, storage.root)
        transaction = self._transaction(state.config, plan.instant)
        if transaction.put(None, State.INFLIGHT, state.config.layout.inflight_clean(data)) is Put.LATE:
            return []
        links = links_of(state)
        order = sorted(plan.deleted_paths, key=lambda path: _removal_order(path, is_link=path in links))
        deleted = [path for path in order if storage.delete(path)]
        with self.lock.acquire() as lease:
            # The metadata table may have been dropped or made since.
            config, timeline = self.files.config_and_timeline()
            clean = timeline.find(plan.instant)
            if clean is not None and not clean.is_completed:
                self._complete(config, plan, lease)
            elif clean is not None and plan.deleted and self.files.clean(config, clean).is_left:
                self._record(plan, lease, beating)
        self.liveness.heartbeats.end(plan.instant)
        return deleted

    def _spared(self, state: TableState, plan: CleanPlan) -> CleanPlan:
        """The plan without what is needed now, also by a snapshot: a rollback may have made an older slice the latest."""
        spared = still_needed(self.files, state, plan.deleted_paths)
        spared |= {path for latest in state.view.latest_slices() for path in paths_of(latest)}
        left = {
            partition: tuple(name for name in names if path_in(partition, name) not in spared)
            for partition, names in plan.deleted.items()
        }
        return replace(plan, deleted={partition: names for partition, names in left.items() if names})

    def _record(self, plan: CleanPlan, lease: Lease, beating: ExitStack) -> None:
        """Records what was removed by a clean of its own: Hudi has completed the one that was begun for it."""
        state = TableState.load(self.files)
        done = replace(plan, instant=unused_instant(state, self.files.clock))
        self._request(state.config, done, lease, beating)
        data = self.files.codec.encode_clean_plan(done, self.files.storage.root)
        inflight = state.config.layout.inflight_clean(data)
        self._transaction(state.config, done.instant).put(lease, State.INFLIGHT, inflight)
        self._complete(state.config, done, lease)
        self.liveness.heartbeats.end(done.instant)

    def _complete(self, config: TableConfig, plan: CleanPlan, lease: Lease) -> None:
        completion = next_instant_time(plan.instant)
        update = self.metadata.prepare(config, lease, plan.instant, FileChanges(RowChange.NONE, (), plan.deleted))
        update.write(lease, completion)
        recorded = config.layout.recorded_completion(completion)
        data = self.files.codec.encode_clean(plan)
        self._transaction(config, plan.instant).put(lease, State.COMPLETED, data, completion=recorded)
        update.check_after_commit(lease)
        update.compact(lease, completion)


def _removal_order(path: str, *, is_link: bool) -> tuple[bool, bool, tuple[str, int, str, str]]:
    """Base files first, then log files in order, so that a half-removed slice is recognizable.

    Links, which are the first files of their slice, precede all others, because their targets are in an older slice.
    """
    log = LogFileName.parse(path.rpartition("/")[2])
    return log is not None, not is_link, ("", 0, "", "") if log is None else log.reader_order
