"""Compacts the metadata table: its log files and bases become new bases, HFiles, in every partition at once.

It is due when `hoodie.metadata.compact.max.delta.commits` delta commits have completed since the last one. Its instant M:

    version 6      `<L>001`, L being the requested time of the latest delta commit. Not while an action of the table at L or
                   before is pending, nor while a delta commit of the metadata table is, whose log file may be in an old
                   slice
    8 and later    the completion time of the table's commit that has just been made, after which the delta commits of
                   the metadata table complete: what completes later belongs to the new slices. Before the first action
                   that is in the metadata table and still pending, since its delta commit may be rolled back

Not beside an open write without a heartbeat in any version: its writer shares no lock, and compacts by itself.

Order of the writes, all below `.hoodie/metadata` and under the table lock:

1. `M.compaction.requested`, with the plan; lost where another engine has taken M.
2. `M.compaction.inflight`.
3. A base file for each slice of the plan. A slice whose records have all gone keeps its files as they are.
4. The completed `commit`, unless a log file has come into an old slice meanwhile. From version 8 on it completes at M
   plus one millisecond, so that a second run makes the same name.

A crash leaves a plan that the next run ends, eventide's or Hudi's: its log files hold the same records then, and it
fixes every name. eventide ends none but its own: Hudi may be at work on another's.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from typing import Final

from eventide_adapters.format.metadata_table.hfile_writer import HFileStyle, write_hfile
from eventide_adapters.format.metadata_table.merged import can_merge, merged_entries
from eventide_adapters.format.metadata_table.reader import COMPLETION_TIME_VERSION, MetadataTableReader
from eventide_adapters.format.timeline.codec import HudiMetadataCodec
from eventide_core.errors import CorruptTimelineError, MissingFileError, UnsupportedTableError
from eventide_core.ports import Lease, Storage
from eventide_core.table.commit_metadata import CommitMetadata, WriteStat
from eventide_core.table.file_group_write import heartbeat_path
from eventide_core.table.file_name import BaseFileName, LogFileName, path_in
from eventide_core.table.file_slice import BaseFile, FileSlice, LogFile
from eventide_core.table.instant import Action, Instant, State, instant_epoch_ms, instant_time, next_instant_time
from eventide_core.table.plans import CompactionPlan, CutMode, LinkMode, PlannedLog, PlannedOperation
from eventide_core.table.table_path import METADATA_DIRECTORY

_SUFFIX: Final = "001"  # of Hudi, for a compaction of the metadata table of version 6
_INSTANT_LENGTH: Final = 17
_TOKEN: Final = "0-7-0"
_EXTENSION: Final = ".hfile"


@dataclass(frozen=True, slots=True)
class HudiMetadataCompaction:
    """Implements `ports.MetadataCompaction`. `is_begun`: its plan is on the timeline."""

    storage: Storage
    version: int
    timeline_path: str
    plan: CompactionPlan
    is_begun: bool

    @classmethod
    def pending(cls, reader: MetadataTableReader) -> HudiMetadataCompaction | None:
        """The compaction of eventide's own that was begun and interrupted."""
        for found in reader.timeline.pending_plans:
            if found.action is Action.COMPACTION:
                requested = Instant(found.requested_time, Action.COMPACTION, State.REQUESTED)
                path = f"{reader.timeline_path}/{requested.file_name}"
                try:
                    plan = HudiMetadataCodec().decode_plan(reader.storage.read(path), path, found.requested_time)
                except (CorruptTimelineError, MissingFileError):
                    continue  # eventide's own are there as a whole
                if isinstance(plan, CompactionPlan):
                    return cls(reader.storage, reader.version, reader.timeline_path, plan, is_begun=True)
        return None

    @classmethod
    def due(cls, reader: MetadataTableReader, delta_commits_max: int, moment: str) -> HudiMetadataCompaction | None:
        """A compaction of all slices that have log files; None if it is not due, or may not be now.

        `moment` is the completion time of the table's last commit. Raises CorruptLogBlockError, CorruptBaseFileError.
        """
        if (
            delta_commits_since_compaction(reader) < delta_commits_max
            or reader.building
            or reader.timeline.pending_plans
        ):
            return None
        instant = _instant(reader, moment)
        if instant is None or not all(map(can_merge, reader.partitions)) or _is_beside_lone_writer(reader):
            return None
        slices = _slices_with_logs(reader, reader.partitions, instant)
        schema = next((found for found in map(reader.schema, slices) if found is not None), None)
        if schema is None:
            return None
        for found in slices:
            try:
                reader.sources(found)
            except UnsupportedTableError:
                return None  # what eventide cannot read, such as a log compaction, is Hudi's to compact
        plan = CompactionPlan(
            instant=instant,
            cut_ms=None,
            cut=CutMode.FILE,
            link_mode=LinkMode.PREFIX,
            link_reason="every log is merged",
            event_time_field=None,
            operations=tuple(_operation(found, instant) for found in slices),
            schema=schema,
            partitions_with_logs=(),
        )
        return cls(reader.storage, reader.version, reader.timeline_path, plan, is_begun=False)

    def run(self, lease: Lease) -> bool:
        requested, inflight = self._path(State.REQUESTED), self._path(State.INFLIGHT)
        if not self.is_begun:
            lease.check()
            if not self.storage.put_if_absent(requested, HudiMetadataCodec().encode_plan(self.plan)):
                return True  # another engine compacts at this very instant
            if self._is_overtaken():
                return self._withdraw(lease)
        lease.check()
        self.storage.put_if_absent(inflight, b"")
        stats: dict[str, list[WriteStat]] = {}
        reader = MetadataTableReader.load(self.storage)
        for operation in self.plan.operations:
            lease.check()
            stat = _compact(reader, operation, self.plan.schema)
            if stat is not None:
                stats.setdefault(operation.partition, []).append(stat)
        if self._has_late_logs(MetadataTableReader.load(self.storage)):
            return self._withdraw(lease)
        metadata = CommitMetadata(
            {partition: tuple(found) for partition, found in stats.items()},
            {"schema": self.plan.schema},
            "COMPACT",
            is_compacted=True,
        )
        lease.check()
        self.storage.put_if_absent(
            self._path(State.COMPLETED), HudiMetadataCodec().encode_commit(metadata, self.version)
        )
        return True

    def _is_overtaken(self) -> bool:
        """Whether a writer who shares no lock has compacted, or written, since the plan was made."""
        reader = MetadataTableReader.load(self.storage)
        others = [plan for plan in reader.timeline.pending_plans if plan.requested_time != self.plan.instant]
        return bool(others) or self._has_late_logs(reader)

    def _has_late_logs(self, reader: MetadataTableReader) -> bool:
        """Whether an old slice has log files that the plan lacks: under a base at its instant no reader would read them."""
        known = {METADATA_DIRECTORY + "/" + log.path: log.size for op in self.plan.operations for log in op.compacted}
        slices = _slices_with_logs(reader, reader.partitions, self.plan.instant)
        found = {log.path: log.size for part in slices for log in part.log_files if not self._is_above(log)}
        return found != known

    def _is_above(self, log: LogFile) -> bool:
        return not _by_completion_time(self.version) and log.name.instant == self.plan.instant

    def _withdraw(self, lease: Lease) -> bool:
        """Removes what was begun. False if a writer has built upon the plan already, which version 6 knows alone."""
        reader = MetadataTableReader.load(self.storage)
        slices = [found for name in reader.partitions for found in reader.slices(name)]
        if any(self._is_above(log) for found in slices for log in found.log_files):
            return False
        bases = [f"{METADATA_DIRECTORY}/{op.path_of(op.new_base_name)}" for op in self.plan.operations]
        for path in (*bases, self._path(State.INFLIGHT), self._path(State.REQUESTED)):
            lease.check()
            self.storage.delete(path)
        return True

    def _path(self, state: State) -> str:
        instant = self.plan.instant
        is_completed = state is State.COMPLETED
        end = next_instant_time(instant) if is_completed and _by_completion_time(self.version) else None
        found = Instant(instant, Action.COMMIT if is_completed else Action.COMPACTION, state, end)
        return f"{self.timeline_path}/{found.file_name}"


def delta_commits_since_compaction(reader: MetadataTableReader) -> int:
    """The completed delta commits that no compaction has merged."""
    compacted = last_compaction(reader)
    deltas = [i for i in reader.timeline.completed if i.action is Action.DELTA_COMMIT]
    return sum((i.completion_time or i.requested_time) >= compacted for i in deltas)


def last_compaction(reader: MetadataTableReader) -> str:
    """The instant of the last completed compaction; empty if there was none."""
    return max((i.requested_time for i in reader.timeline.completed if i.action is Action.COMMIT), default="")


def _by_completion_time(version: int) -> bool:
    return version >= COMPLETION_TIME_VERSION


def _is_beside_lone_writer(reader: MetadataTableReader) -> bool:
    """Whether a write is open without a heartbeat: its writer shares no lock, and ends every compaction that it finds."""
    writing = (Action.COMMIT, Action.DELTA_COMMIT, Action.REPLACE_COMMIT)
    times = [i.requested_time for i in reader.data_timeline.pending if i.action in writing]
    return any(reader.storage.stat(heartbeat_path(time)) is None for time in times)


def _instant(reader: MetadataTableReader, moment: str) -> str | None:
    instant = _instant_by_completion(reader, moment) if reader.slices_by_completion_time else _instant_6(reader)
    used = {i.requested_time for timeline in (reader.timeline, reader.data_timeline) for i in timeline.instants}
    return None if instant is None or instant <= last_compaction(reader) or instant in used else instant


def _instant_by_completion(reader: MetadataTableReader, moment: str) -> str:
    ahead = [
        i.requested_time
        for i in reader.data_timeline.pending
        if (found := reader.timeline.find(i.requested_time)) is not None and found.is_completed
    ]
    return min((moment, *(instant_time(instant_epoch_ms(time) - 1) for time in ahead)))


def _instant_6(reader: MetadataTableReader) -> str | None:
    latest = max((i.requested_time for i in reader.timeline.completed if i.action is Action.DELTA_COMMIT), default="")
    if len(latest) != _INSTANT_LENGTH:
        return None  # of Hudi's own making of an index: its name has a suffix already, and another delta commit follows
    is_behind = any(i.requested_time <= latest for i in reader.data_timeline.pending)
    is_written = any(i.action is Action.DELTA_COMMIT for i in reader.timeline.pending)
    return None if is_behind or is_written else f"{latest}{_SUFFIX}"


def _slices_with_logs(reader: MetadataTableReader, partitions: Iterable[str], instant: str) -> list[FileSlice]:
    """The slices below a base at that instant, of those that have logs."""
    until = instant if reader.slices_by_completion_time else None
    return [found for name in partitions for found in reader.slices(name, until) if found.log_files]


def _operation(found: FileSlice, instant: str) -> PlannedOperation:
    partition = found.partition
    base = found.base_file
    return PlannedOperation(
        partition=partition,
        file_id=found.file_id,
        base_instant=found.base_instant,
        base_path=None if base is None else path_in(partition, str(base.name)),
        base_size=0 if base is None else base.size,
        compacted=tuple(PlannedLog(path_in(partition, str(log.name)), log.size, None) for log in found.log_files),
        left_overs=(),
        new_base_name=str(BaseFileName(found.file_id, _TOKEN, instant, _EXTENSION)),
        carried_name=None,
        fallback=None,
        reason="every log is merged",
    )


def _slice_of(operation: PlannedOperation) -> FileSlice:
    base = None
    if operation.base_path is not None:
        name = BaseFileName.parse(operation.base_path.rpartition("/")[2])
        assert name is not None  # a plan is decoded with names alone
        base = BaseFile(name, f"{METADATA_DIRECTORY}/{operation.base_path}", operation.base_size)
    logs: list[LogFile] = []
    for log in operation.compacted:
        parsed = LogFileName.parse(log.name)
        assert parsed is not None
        logs.append(LogFile(parsed, f"{METADATA_DIRECTORY}/{log.path}", log.size))
    return FileSlice(operation.partition, operation.file_id, operation.base_instant, base, tuple(logs))


def _compact(reader: MetadataTableReader, operation: PlannedOperation, schema: str) -> WriteStat | None:
    """Writes a base file, block by block; None if nothing is left to write."""
    sources, deleted = reader.sources(_slice_of(operation))
    entries = merged_entries(operation.partition, sources, deleted, schema)
    first = next(entries, None)
    if first is None:
        return None
    path = operation.path_of(operation.new_base_name)
    style = HFileStyle.NATIVE if reader.slices_by_completion_time else HFileStyle.HBASE
    output = reader.storage.open_output(f"{METADATA_DIRECTORY}/{path}")
    try:
        count = write_hfile(output.write, chain((first,), entries), schema, style, has_key_range=True)
    except BaseException:
        output.abort()
        raise
    output.commit()  # where an earlier run has made it, its bytes are the same
    written = reader.storage.stat(f"{METADATA_DIRECTORY}/{path}")
    size = 0 if written is None else written.size
    return WriteStat(
        file_id=operation.file_id,
        path=path,
        partition=operation.partition,
        prev_commit=operation.base_instant,
        num_writes=count,
        total_write_bytes=size,
        file_size_bytes=size,
        total_log_files_compacted=len(operation.compacted),
        total_log_size_compacted=sum(log.size for log in operation.compacted),
        total_log_blocks=len(sources) - (operation.base_path is not None),
        prev_base_file=None if operation.base_path is None else operation.base_path.rpartition("/")[2],
    )
