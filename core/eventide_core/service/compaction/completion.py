"""How a compaction completes, whether eventide or another engine planned it: one claim, then one completed file.

1. `claim` fixes the completion time. From then on, the plan can only be completed at that time.
2. `put` writes the metadata table's commit at that time, which no reader sees yet, and then the completed file.

A crash between the two leaves a plan that the next run completes at the claimed time.
"""

from dataclasses import dataclass

from eventide_core.errors import PlanMismatchError
from eventide_core.ports import Clock, Lease
from eventide_core.service.facts.planning import unused_instant
from eventide_core.service.metadata_table.upkeep import PendingUpdate
from eventide_core.service.state.table import TableState
from eventide_core.service.state.table_files import TableFiles
from eventide_core.service.transaction.action import Put, Transaction
from eventide_core.service.transaction.outcome import Outcome, claim_outcome
from eventide_core.table.timeline.commit_metadata import CommitMetadata
from eventide_core.table.timeline.instant import Instant, State


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
    def claim(cls, files: TableFiles, clock: Clock, state: TableState, transaction: Transaction) -> "Completion":
        """The completion of a compaction. Raises PlanMismatchError if the plan is being rolled back."""
        instant = transaction.instant
        time = claim_outcome(files.storage, Outcome(instant, unused_instant(state, clock))).completion_time
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
