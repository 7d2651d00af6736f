"""How a compaction completes, whether eventide or another engine planned it: one claim, then one completed file.

1. `claim` fixes the completion time. From then on, the plan can only be completed at that time.
2. `put` writes the metadata table's commit at that time, which no reader sees yet, and then the completed file.

A crash between the two leaves a plan that the next run completes at the claimed time. Before, the checks below say whether
a plan of eventide can still be run, and completed, as the table is now.
"""

from collections.abc import Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass

from eventide_core.access.files import info_of_file
from eventide_core.action.compaction.quiet_moment import open_at
from eventide_core.action.compaction.trigger import check_undoing, cure_of
from eventide_core.errors import BusyError, MissingFileError, PlanMismatchError
from eventide_core.ports import AddedFile, Lease, TableLock
from eventide_core.service.common.facts.planned_groups import planned_groups
from eventide_core.service.common.facts.planning import unused_instant
from eventide_core.service.common.metadata_table.upkeep import PendingUpdate
from eventide_core.service.common.state.table import TableState
from eventide_core.service.common.state.table_files import TableFiles
from eventide_core.service.common.transaction.action import Put, Transaction
from eventide_core.service.common.transaction.outcome import Outcome, claim_outcome
from eventide_core.table.files.file_group_write import heartbeat_path
from eventide_core.table.settings.table_config import TableConfig
from eventide_core.table.timeline.contents.commit_metadata import CommitMetadata
from eventide_core.table.timeline.contents.plans import CompactionPlan
from eventide_core.table.timeline.file_system_view import FileGroup
from eventide_core.table.timeline.instant import Action, Instant, State
from eventide_core.table.timeline.timeline import Timeline


@dataclass(frozen=True, slots=True)
class Completion:
    """The completed `instant` of a compaction, and `time`, the completion time that was claimed for it.

    From version 8 on, the file name of the instant contains that time; on version 6 only the claim and the metadata table
    do.
    """

    transaction: Transaction
    instant: Instant
    time: str

    @classmethod
    def claim(cls, files: TableFiles, state: TableState, transaction: Transaction) -> "Completion":
        """The completion of a compaction. Raises PlanMismatchError if the plan is being rolled back."""
        instant = transaction.instant
        time = claim_outcome(files.storage, Outcome(instant, unused_instant(state, files.clock))).completion_time
        if time is None:
            raise PlanMismatchError(f"the plan at {instant} is being rolled back; run rollback again to complete that")
        named = state.config.layout.recorded_completion(time)
        return cls(transaction, transaction.at(State.COMPLETED, named), time)

    def put(
        self, files: TableFiles, state: TableState, metadata: CommitMetadata, update: PendingUpdate, lease: Lease
    ) -> bool:
        """Whether this call put the completed file; False if another process had, or has archived the compaction since."""
        data = files.codec.encode_commit(update.recorded_in(metadata), state.config.version)
        with files.tracer.span("metadata table: write"):
            update.write(lease, self.time)
        return self.transaction.put_each(lease, (self.instant, data)) is Put.DONE


POLL_MS = 20
WAIT_MS = 10_000
"""Longer than a write takes from its requested to its inflight file. A write that stays there longer has a dead writer.
"""


@contextmanager
def commit_lock(files: TableFiles, lock: TableLock, config: TableConfig) -> Generator[tuple[Lease, TableState]]:
    """The table lock, acquired when no lock-free writer is starting, and the table's state under it.

    Between its requested and its inflight file, a writer of Hudi lists the metadata table and plans a compaction of it from
    that listing. If a commit comes after the listing, the write of Hudi 0.x fails, and from 1.0 on the compaction skips the
    commit. A writer without a heartbeat expects to be the only one, and acquires no lock for this.
    """
    until_ms = files.clock.now_ms() + (WAIT_MS if config.metadata_partitions else 0)

    def is_write_beginning(timeline: Timeline) -> bool:
        return files.clock.now_ms() < until_ms and any(
            write.state is State.REQUESTED and info_of_file(files.storage, heartbeat_path(write.requested_time)) is None
            for write in timeline.pending_writes
        )

    while True:
        while config.metadata_partitions and is_write_beginning(files.timeline(config)):
            files.clock.sleep(POLL_MS)
        with lock.acquire() as lease:
            state = TableState.load(files)
            if is_write_beginning(state.timeline):
                continue
            yield lease, state
            return


def check_pending(state: TableState, plan: CompactionPlan) -> None:
    """Raises BusyError while a rollback or another plan is pending. Beside a later plan, this one is late: `why_late`."""
    check_undoing(state.timeline)
    for other in state.timeline.pending_plans:
        if other.requested_time != plan.instant and not _is_later(other, plan):
            raise BusyError(
                f"a {other.action} is pending at {other.requested_time} beside the plan at {plan.instant}; "
                f"{cure_of(other)}"
            )


def passed_groups(files: TableFiles, state: TableState, plan: CompactionPlan) -> frozenset[FileGroup]:
    """The file groups of a late plan that others have compacted past its instant, or are about to.

    A later plan that nobody has begun waits for this one. It is replanned then, or rolled back.
    """
    begun = [p for p in state.timeline.pending_plans if _is_later(p, plan) and p.state is State.INFLIGHT]
    return plan.file_groups & (_compacted_past(state, plan).union(planned_groups(files, state.config, begun)))


def _compacted_past(state: TableState, plan: CompactionPlan) -> frozenset[FileGroup]:
    return frozenset(s.file_group for s in state.view.latest_slices() if s.base_instant > plan.instant)


def why_late(state: TableState, plan: CompactionPlan) -> str | None:
    """Why the plan must not be run: others had planned, compacted or archived past its instant. None if nobody had.

    One that writers have followed is run beside later plans, without `passed_groups`.
    """
    put_late = f"a process that was paused put the plan at {plan.instant} afterwards"
    for other in () if state.logs_on_top_of(plan) else state.timeline.pending_plans:
        if _is_later(other, plan):
            return f"a {other.action} was planned at {other.requested_time}, and {put_late}"
    if plan.file_groups & _compacted_past(state, plan):
        return f"others had compacted, and {put_late}"
    if state.config.layout.names_logs_by_write and (state.timeline.start or "") > plan.instant:
        return (
            f"instants after {plan.instant} were archived since the plan was made: readers would treat the log files "
            "above its base file as uncommitted"
        )
    return None


def _is_later(other: Instant, plan: CompactionPlan) -> bool:
    return other.action is Action.COMPACTION and other.requested_time > plan.instant


def why_overtaken(state: TableState, plan: CompactionPlan) -> str | None:
    """Why the plan's instant isn't quiet after all (version 8 and later); None if it is.

    A writer chooses its instant before it creates its file. So a write with an earlier instant may have become visible
    only now, pending or already completed: its log file would sort before the left-overs. A plan without slices
    conflicts with nothing. A plan whose slices writers of version 6 have used, before the table was upgraded, has to be
    run: their log files name their slices, whatever the instants of these writes.
    """
    if state.config.layout.writers_follow_plans or not plan.operations or state.logs_on_top_of(plan):
        return None
    across = open_at(state.timeline, plan.instant)
    return f"the write requested at {across[0].requested_time} was open at {plan.instant}" if across else None


def check_made(state: TableState, added: Iterable[AddedFile]) -> None:
    """Raises MissingFileError unless the files that the commit adds are there, with the sizes that it records."""
    present = {file.path: file.size for file in state.listing}
    for file in added:
        if present.get(file.path) != file.size:
            is_there = file.path in present
            problem = f"has {present[file.path]} bytes instead of {file.size}" if is_there else "is missing"
            raise MissingFileError(f"{file.path}, which this compaction made, {problem}; nothing was committed")
