"""Compacts the metadata table: merges its log files and base files into new base files, HFiles, in all partitions at once.

A compaction is due when `hoodie.metadata.compact.max.delta.commits` delta commits have completed since the last one. Its
instant M is:

    version 6      `<L>001`; L is the requested time of the latest delta commit. No compaction starts while an action of the
                   table at L or before is pending, or while a delta commit of the metadata table is pending, whose log
                   file may be in an old slice
    8 and later    the completion time of the table's commit that has just been made. Later delta commits of the metadata
                   table complete at M or later, and so belong to the new slices. If actions that are complete in the
                   metadata table are still pending in the table, M is before the first of them: its delta commit may be
                   rolled back

In any version, no compaction starts beside an open write without a heartbeat: its writer shares no lock, and compacts
independently.

eventide writes in this order, all below `.hoodie/metadata` and under the table lock:

1. `M.compaction.requested`, with the plan. If another engine has already made this file, eventide stops.
2. `M.compaction.inflight`.
3. A base file for each slice of the plan. A slice without remaining records keeps its files unchanged. Tasks of the engine
   make the base files of a large compaction, and this process those of a small one.
4. The completed `commit`, unless a log file was added to an old slice meanwhile. From version 8 on, it completes at M plus
   one millisecond, so that a second run makes the same name.

A crash leaves a plan that the next run of eventide or Hudi completes: the plan's log files still have the same records, and
the plan fixes every name. eventide completes only its own plans, because Hudi may be working on the others.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Final

from eventide_adapters.format.metadata_table.hfile_writer import HFileStyle, write_hfile
from eventide_adapters.format.metadata_table.merged import can_merge, merged_entries
from eventide_adapters.format.metadata_table.reader import MetadataTableReader
from eventide_adapters.format.timeline.codec import HudiMetadataCodec
from eventide_core.errors import CorruptTimelineError, LockError, MissingFileError, UnsupportedTableError
from eventide_core.ports import Engine, Lease, Storage, discard
from eventide_core.table.files.file_group_write import heartbeat_path
from eventide_core.table.files.file_name import BaseFileName, LogFileName, path_in
from eventide_core.table.files.file_slice import BaseFile, FileSlice, LogFile
from eventide_core.table.files.table_path import METADATA_DIRECTORY
from eventide_core.table.timeline.commit_metadata import CommitMetadata, WriteStat
from eventide_core.table.timeline.instant import (
    Action,
    Instant,
    State,
    instant_epoch_ms,
    instant_time,
    next_instant_time,
)
from eventide_core.table.timeline.layout import layout_of
from eventide_core.table.timeline.plans import CompactionPlan, CutMode, LinkMode, PlannedLog, PlannedOperation

_GONE_ON: Final[Mapping[State, tuple[State, ...]]] = {
    State.REQUESTED: (State.INFLIGHT, State.COMPLETED),
    State.INFLIGHT: (State.COMPLETED,),
    State.COMPLETED: (State.INFLIGHT,),
}
"""A late file of a state stays if one of these is there."""
_SUFFIX: Final = "001"  # Hudi's suffix for a compaction of the metadata table in version 6
_INSTANT_LENGTH: Final = 17
_TOKEN: Final = "0-7-0"
_EXTENSION: Final = ".hfile"
COMPACTED_HERE_BYTES: Final = 32 * 1024**2  # a million entries of a record index, and more: some seconds of one core


@dataclass(frozen=True, slots=True)
class HudiMetadataCompaction:
    """Implements `ports.MetadataCompaction`. `is_begun` is true if its plan is on the timeline.

    Without an engine, this process makes all base files.
    """

    storage: Storage
    version: int
    timeline_path: str
    plan: CompactionPlan
    is_begun: bool
    engine: Engine | None = None

    @classmethod
    def pending(cls, reader: MetadataTableReader, engine: Engine | None = None) -> "HudiMetadataCompaction | None":
        """The interrupted compaction that eventide began; None if there is none."""
        for found in reader.timeline.pending_plans:
            if found.action is Action.COMPACTION:
                requested = Instant(found.requested_time, Action.COMPACTION, State.REQUESTED)
                path = f"{reader.timeline_path}/{requested.file_name}"
                try:
                    plan = HudiMetadataCodec().decode_plan(reader.storage.read(path), path, found.requested_time)
                except (CorruptTimelineError, MissingFileError):
                    continue  # not eventide's: its plans are always complete
                if isinstance(plan, CompactionPlan):
                    return cls(reader.storage, reader.version, reader.timeline_path, plan, is_begun=True, engine=engine)
        return None

    @classmethod
    def due(
        cls, reader: MetadataTableReader, delta_commits_max: int, moment: str, engine: Engine | None = None
    ) -> "HudiMetadataCompaction | None":
        """A compaction of all slices that have log files; None if it is not due, or not possible now.

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
                return None  # Hudi has to compact a slice that eventide cannot read, such as one with a log compaction
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
        return cls(reader.storage, reader.version, reader.timeline_path, plan, is_begun=False, engine=engine)

    def run(self, lease: Lease) -> bool:
        if not self.is_begun:
            if not self._put(State.REQUESTED, HudiMetadataCodec().encode_plan(self.plan), lease):
                return True  # another engine compacts at the same instant
            if self._is_obsolete():
                return self._withdraw(lease)
        self._put(State.INFLIGHT, b"", lease)
        stats: dict[str, list[WriteStat]] = {}
        for operation, stat in zip(self.plan.operations, self._compacted(lease), strict=True):
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
        self._put(State.COMPLETED, HudiMetadataCodec().encode_commit(metadata, self.version), lease)
        return True

    def _put(self, state: State, data: bytes, lease: Lease) -> bool:
        """Puts a file of the timeline, and withdraws it if the lock was lost meanwhile; False if it existed.

        A process that slept may put a plan whose log files are gone, or what others have completed and archived since.
        Then no file of the states around it is there.
        """
        lease.check()
        if not self.storage.put_if_absent(self._path(state), data):
            return False
        try:
            lease.check()
        except LockError:
            if all(self.storage.stat(self._path(other)) is None for other in _GONE_ON[state]):
                discard(self.storage, self._path(state))
            raise
        return True

    def _compacted(self, lease: Lease) -> list[WriteStat | None]:
        compacting = _Compacting(MetadataTableReader.load(self.storage), self.plan.schema)
        sizes = [op.base_size + sum(log.size for log in op.compacted) for op in self.plan.operations]
        if self.engine is not None and sum(sizes) > COMPACTED_HERE_BYTES:
            return self.engine.map(compacting, self.plan.operations, sizes=sizes)
        found: list[WriteStat | None] = []
        for operation in self.plan.operations:
            lease.check()
            found.append(compacting(operation))
        return found

    def _is_obsolete(self) -> bool:
        """If a writer that shares no lock has compacted or written since the plan was made."""
        reader = MetadataTableReader.load(self.storage)
        others = [plan for plan in reader.timeline.pending_plans if plan.requested_time != self.plan.instant]
        return bool(others) or self._has_late_logs(reader)

    def _has_late_logs(self, reader: MetadataTableReader) -> bool:
        """If the log files of the old slices differ from the plan's: no reader would read others below the new base file."""
        known = {METADATA_DIRECTORY + "/" + log.path: log.size for op in self.plan.operations for log in op.compacted}
        slices = _slices_with_logs(reader, reader.partitions, self.plan.instant)
        found = {log.path: log.size for part in slices for log in part.log_files if not self._is_above(log)}
        return found != known

    def _is_above(self, log: LogFile) -> bool:
        return not layout_of(self.version).names_logs_by_write and log.name.instant == self.plan.instant

    def _withdraw(self, lease: Lease) -> bool:
        """Removes the files of this compaction. False if a writer already builds on the plan, only possible in version 6."""
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
        is_timed = layout_of(self.version).records_completion_times
        end = next_instant_time(instant) if is_completed and is_timed else None
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


def _is_beside_lone_writer(reader: MetadataTableReader) -> bool:
    """If a write is open without a heartbeat: its writer shares no lock, and completes every compaction that it finds."""
    writing = (Action.COMMIT, Action.DELTA_COMMIT, Action.REPLACE_COMMIT)
    times = [i.requested_time for i in reader.data_timeline.pending if i.action in writing]
    return any(reader.storage.stat(heartbeat_path(time)) is None for time in times)


def _instant(reader: MetadataTableReader, moment: str) -> str | None:
    is_timed = reader.layout.records_completion_times
    instant = _instant_by_completion(reader, moment) if is_timed else _instant_6(reader)
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
        return None  # Hudi is building an index: the instant already has a suffix, and another delta commit follows
    is_behind = any(i.requested_time <= latest for i in reader.data_timeline.pending)
    is_written = any(i.action is Action.DELTA_COMMIT for i in reader.timeline.pending)
    return None if is_behind or is_written else f"{latest}{_SUFFIX}"


def _slices_with_logs(reader: MetadataTableReader, partitions: Iterable[str], instant: str) -> list[FileSlice]:
    """The slices with log files that a base file at that instant would replace."""
    until = instant if reader.layout.names_logs_by_write else None
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
        assert name is not None  # a decoded plan has only valid names
        base = BaseFile(name, f"{METADATA_DIRECTORY}/{operation.base_path}", operation.base_size)
    logs: list[LogFile] = []
    for log in operation.compacted:
        parsed = LogFileName.parse(log.name)
        assert parsed is not None
        logs.append(LogFile(parsed, f"{METADATA_DIRECTORY}/{log.path}", log.size))
    return FileSlice(operation.partition, operation.file_id, operation.base_instant, base, tuple(logs))


@dataclass(frozen=True, slots=True)
class _Compacting:
    """Writes the base file of an operation, block by block. None if no records are left. Picklable."""

    reader: MetadataTableReader
    schema: str

    def __call__(self, operation: PlannedOperation, /) -> WriteStat | None:
        return _compact(self.reader, operation, self.schema)


def _compact(reader: MetadataTableReader, operation: PlannedOperation, schema: str) -> WriteStat | None:
    sources, deleted = reader.sources(_slice_of(operation))
    entries = merged_entries(operation.partition, sources, deleted, schema)
    first = next(entries, None)
    if first is None:
        return None
    path = operation.path_of(operation.new_base_name)
    style = HFileStyle.of(reader.layout)
    output = reader.storage.open_output(f"{METADATA_DIRECTORY}/{path}")
    try:
        count = write_hfile(output.write, chain((first,), entries), schema, style, has_key_range=True)
    except BaseException:
        output.abort()
        raise
    output.commit()  # if an earlier run made this file, its bytes are the same
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
