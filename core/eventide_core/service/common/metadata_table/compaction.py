"""Compacts the metadata table: merges its log files and base files into new base files, HFiles, in all partitions at once.

`action/metadata_table/compaction.py` decides when, and at which instant M. eventide writes in this order, all below
`.hoodie/metadata` and under the table lock:

1. `M.compaction.requested`, with the plan. If another engine has already made this file, eventide stops.
2. `M.compaction.inflight`.
3. A base file for each slice of the plan. A slice without remaining records keeps its files unchanged. Tasks of the engine
   make the base files of a large compaction, and this process makes the ones of a small compaction.
4. The completed `commit`, unless a log file was added to an old slice meanwhile. From version 8 on, it completes at M plus
   one millisecond, so that a second run makes the same name.

A crash leaves a plan that the next run of eventide or Hudi completes: the plan's log files still have the same records, and
the plan fixes every name. eventide completes only its own plans, because Hudi may be working on the others.

Old slices are removed without an instant. If a crash leaves files of them, the next removal removes them.
"""

from dataclasses import dataclass
from itertools import chain
from typing import Final

from eventide_core.access.files import info_of_file
from eventide_core.access.timeline_files import TimelineFiles, delete_each
from eventide_core.action.metadata_table.compaction import due_instant, old_slices, plan
from eventide_core.errors import CorruptTimelineError, MissingFileError
from eventide_core.ports import Engine, Lease, MetadataCodec, MetadataTable, MetadataTableState, Storage
from eventide_core.service.common.transaction.action import Put, Transaction
from eventide_core.service.common.transaction.steps import Kind
from eventide_core.table.files.file_group_write import heartbeat_path
from eventide_core.table.files.file_slice import FileSlice, LogFile
from eventide_core.table.files.table_path import METADATA_DIRECTORY
from eventide_core.table.timeline.contents.commit_metadata import SCHEMA_KEY, CommitMetadata, WriteStat, by_partition
from eventide_core.table.timeline.contents.plans import CompactionPlan
from eventide_core.table.timeline.instant import Action, Instant, State, next_instant_time
from eventide_core.table.timeline.layout import layout_of

COMPACTED_HERE_BYTES: Final = 32 * 1024**2
"""A million entries of a record index, and more: some seconds of one core."""


@dataclass(frozen=True, slots=True)
class MetadataCompactor:
    storage: Storage
    table: MetadataTable
    codec: MetadataCodec
    engine: Engine

    def begun(self) -> "MetadataCompaction | None":
        """The interrupted compaction that eventide began; None if there is none."""
        return self.begun_in(self.table.load())

    def begun_in(self, state: MetadataTableState) -> "MetadataCompaction | None":
        """The interrupted compaction that eventide began, in a state that has been read; None if there is none."""
        timeline = TimelineFiles(self.storage, state.timeline_path)
        for pending in state.facts.timeline.pending_plans:
            if pending.action is Action.COMPACTION:
                requested = Instant(pending.requested_time, Action.COMPACTION, State.REQUESTED)
                try:
                    path = timeline.path(requested)
                    made = self.codec.decode_plan(timeline.read(requested), path, pending.requested_time)
                except (CorruptTimelineError, MissingFileError):
                    continue  # not eventide's: its plans are always complete
                if isinstance(made, CompactionPlan):
                    return self._compaction(state, made, is_begun=True)
        return None

    def due(self, delta_commits_max: int, moment: str) -> "MetadataCompaction | None":
        """A compaction of all slices that have log files; None if it is not due, or not possible now. Writes nothing.

        It is due also if no slice has one: the table's archival stops at the last compaction of the metadata table.
        `moment` is the completion time of the table's last commit. Raises CorruptLogBlockError, CorruptBaseFileError.
        """
        state = self.table.load()
        facts = state.facts
        instant = due_instant(facts, delta_commits_max, moment)
        if instant is None or not all(map(state.can_merge, facts.partitions)):
            return None
        if any(info_of_file(self.storage, heartbeat_path(time)) is None for time in facts.open_writes):
            return None
        slices = _slices_with_logs(state, instant)
        latest = (one for name in facts.partitions for one in state.view(name).latest_slices())
        stated = map(state.schema, chain(slices, latest))
        schema = next((schema for schema in stated if schema is not None), None)
        if schema is None or not all(map(state.can_read, slices)):
            return None
        return self._compaction(state, plan(slices, instant, schema), is_begun=False)

    def _compaction(self, state: MetadataTableState, plan: CompactionPlan, *, is_begun: bool) -> "MetadataCompaction":
        timeline = TimelineFiles(self.storage, state.timeline_path)
        transaction = Transaction(
            Kind.METADATA_COMPACTION,
            Action.COMPACTION,
            plan.instant,
            timeline,
            lambda: state.archive,
            is_followed=state.facts.layout.writers_follow_plans,
        )
        return MetadataCompaction(self, plan, transaction, state.facts.version, is_begun)

    def remove_old_slices(self, lease: Lease) -> None:
        """Removes what no reader needs, the base file of a slice first."""
        state = self.table.load()
        for partition in state.facts.partitions:
            for slices in state.view(partition).slices.values():
                for old in old_slices(slices):
                    bases = () if old.base_file is None else (old.base_file,)
                    delete_each(self.storage, [file.path for file in (*bases, *old.log_files)], lease)


@dataclass(frozen=True, slots=True)
class MetadataCompaction:
    """A compaction of the metadata table. `is_begun` is true if its plan is on the timeline."""

    compactor: MetadataCompactor
    plan: CompactionPlan
    transaction: Transaction
    version: int
    is_begun: bool

    def run(self, lease: Lease) -> bool:
        """Runs it to its commit, or withdraws it if a writer that shares no lock was faster.

        False if neither is possible (version 6): then the metadata table must be dropped. Raises LockError.
        """
        codec = self.compactor.codec
        if not self.is_begun:
            if self.transaction.put(lease, State.REQUESTED, codec.encode_plan(self.plan)) is not Put.DONE:
                return True  # another engine compacts at the same instant
            if self._is_obsolete():
                return self._withdraw(lease)
        elif self._is_of_earlier_table():
            return self._withdraw(lease)
        self.transaction.put(lease, State.INFLIGHT)
        stats = [stat for stat in self._compacted(lease) if stat is not None]
        if self._has_late_logs(self.compactor.table.load()):
            return self._withdraw(lease)
        metadata = CommitMetadata(
            by_partition(stats), {SCHEMA_KEY: self.plan.schema.text}, "COMPACT", is_compacted=True
        )
        completion = layout_of(self.version).recorded_completion(next_instant_time(self.plan.instant))
        data = codec.encode_commit(metadata, self.version)
        self.transaction.put(lease, State.COMPLETED, data, completion=completion)
        return True

    def _compacted(self, lease: Lease) -> list[WriteStat | None]:
        write = self.compactor.table.base_file_writer(self.plan.schema)
        sizes = [op.base_size + sum(log.size for log in op.compacted) for op in self.plan.operations]
        if sum(sizes) > COMPACTED_HERE_BYTES:
            return self.compactor.engine.map(write, self.plan.operations, sizes=sizes)
        stats: list[WriteStat | None] = []
        for operation in self.plan.operations:
            lease.check()
            stats.append(write(operation))
        return stats

    def _is_of_earlier_table(self) -> bool:
        """Whether files that the plan merges are gone: it came late, and the metadata table has been made again since."""
        bases = (op.base_path for op in self.plan.operations if op.base_path is not None)
        logs = (log.path for op in self.plan.operations for log in op.compacted)
        paths = (f"{METADATA_DIRECTORY}/{path}" for path in (*bases, *logs))
        return any(self.compactor.storage.stat(path) is None for path in paths)

    def _is_obsolete(self) -> bool:
        """Whether a writer that shares no lock has compacted or written since the plan was made."""
        state = self.compactor.table.load()
        if any(pending.requested_time != self.plan.instant for pending in state.facts.timeline.pending_plans):
            return True
        return self._has_late_logs(state)

    def _has_late_logs(self, state: MetadataTableState) -> bool:
        """Whether the old slices have other log files than the plan, which no reader would read below the new base file."""
        known = {f"{METADATA_DIRECTORY}/{log.path}": log.size for op in self.plan.operations for log in op.compacted}
        slices = _slices_with_logs(state, self.plan.instant)
        return known != {log.path: log.size for one in slices for log in one.log_files if not self._is_above(log)}

    def _is_above(self, log: LogFile) -> bool:
        return not layout_of(self.version).names_logs_by_write and log.name.instant == self.plan.instant

    def _withdraw(self, lease: Lease) -> bool:
        """Removes the files of this compaction. False if a writer already builds on the plan, only possible in version 6."""
        state = self.compactor.table.load()
        slices = (one for name in state.facts.partitions for one in state.view(name).latest_slices())
        if any(self._is_above(log) for one in slices for log in one.log_files):
            return False
        bases = [f"{METADATA_DIRECTORY}/{op.new_base_path}" for op in self.plan.operations]
        timeline = self.transaction.timeline
        begun = (timeline.path(self.transaction.at(step)) for step in (State.INFLIGHT, State.REQUESTED))
        delete_each(timeline.storage, (*bases, *begun), lease)
        return True


def _slices_with_logs(state: MetadataTableState, instant: str) -> list[FileSlice]:
    """The slices with log files that a base file at that instant would replace."""
    until = instant if state.facts.layout.names_logs_by_write else None
    slices = (one for name in state.facts.partitions for one in state.view(name, until).latest_slices())
    return [one for one in slices if one.log_files]
