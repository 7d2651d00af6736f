"""How a compaction completes, whether eventide or another engine planned it: one claim, then one completed file.

1. `claim` fixes the completion time. From then on, the plan can only be completed at that time.
2. `put` writes the metadata table's commit at that time, which no reader sees yet, and then the completed file.

A crash between the two leaves a plan that the next run completes at the claimed time.
"""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass

from eventide_core.errors import PlanMismatchError
from eventide_core.ports import Lease, TableLock
from eventide_core.service.facts.planning import unused_instant
from eventide_core.service.metadata_table.upkeep import PendingUpdate
from eventide_core.service.state.table import TableState
from eventide_core.service.state.table_files import TableFiles
from eventide_core.service.transaction.action import Put, Transaction
from eventide_core.service.transaction.outcome import Outcome, claim_outcome
from eventide_core.table.files.file_group_write import heartbeat_path
from eventide_core.table.settings.table_config import TableConfig
from eventide_core.table.timeline.commit_metadata import CommitMetadata
from eventide_core.table.timeline.instant import Instant, State
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
            write.state is State.REQUESTED and files.storage.stat(heartbeat_path(write.requested_time)) is None
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
