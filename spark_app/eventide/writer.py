"""A serial writer of Hudi merge-on-read tables, for demos, benchmarks and tests: one process, one write at a time.

Records go where Hudi's bucket index sends them, so that a stock writer can go on with the table. The first write into a
bucket makes its base file; each later one a log file:

    version 6     .<file id>_<base instant of the slice>.log.<next version>_<token>
    8 and later   .<file id>_<instant of the write>.log.1_<token>

A commit's order of writes: requested, inflight, partition marks, data files, completed. Until the last one no reader sees
anything of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from eventide.bootstrap import Application, assemble
from eventide.bucketed_records import BucketWrite, bucket_writes
from eventide.new_table import NewTable
from eventide_adapters.format.avro_schema import arrow_schema
from eventide_adapters.format.base_parquet import BaseFileWriter
from eventide_adapters.format.delete_block import encode_delete_block
from eventide_adapters.format.event_time_column import event_times_ms
from eventide_adapters.format.log_writer import encode_data_block
from eventide_core.action.index import bucket_of_file_id, new_file_id
from eventide_core.errors import ConfigError, StorageError
from eventide_core.ports import Clock, Storage
from eventide_core.table.commit_metadata import CommitMetadata, WriteStat
from eventide_core.table.event_time import EventTimeRange
from eventide_core.table.file_name import BaseFileName, LogFileName
from eventide_core.table.file_slice import FileSlice
from eventide_core.table.instant import Action, Instant, State
from eventide_core.table.plans import CompactionPlan
from eventide_core.table.table_config import PROPERTIES_PATH

if TYPE_CHECKING:
    from eventide_core.service.table import TableState

_MARK = ".hoodie_partition_metadata"
_TRACKED_DIGITS = (10, 13)  # Hudi takes such numbers for seconds and milliseconds, and tracks no others


@dataclass(frozen=True, slots=True)
class PendingCommit:
    """A write whose files are there and that has not completed: nobody sees it yet."""

    instant: str
    metadata: CommitMetadata


@dataclass(frozen=True, slots=True)
class TableWriter:
    """Writes one table. `ids` gives a new UUID for each new file group."""

    storage: Storage
    table: NewTable
    clock: Clock
    ids: Callable[[], str]

    def create(self) -> None:
        """Makes the empty table. Raises ConfigError where there is one already."""
        arrow_schema(self.table.schema)
        if not self.storage.put_if_absent(PROPERTIES_PATH, self.table.properties().encode()):
            raise ConfigError(f"{self.storage.root} is a Hudi table already; write to it, or choose another path")

    def commit(self, upserts: pa.Table | None = None, deletes: pa.Table | None = None) -> str:
        """Writes and completes one commit; its instant. See `begin`."""
        return self.complete(self.begin(upserts, deletes))

    def begin(self, upserts: pa.Table | None = None, deletes: pa.Table | None = None) -> PendingCommit:
        """Writes the files of a commit and leaves it inflight.

        `upserts` have the table's columns. `deletes` have the key and partition columns, and the ordering column, where
        null means a delete in natural order; without that column all of them are. A key may be in a commit once. Raises
        ConfigError for columns or values that do not fit.
        """
        state = self._application.state()
        instant = self._application.unused_instant(state)
        writes = bucket_writes(self.table, upserts, deletes)
        for step in (State.REQUESTED, State.INFLIGHT):
            self._put(f"{state.config.timeline_path}/{Instant(instant, Action.DELTA_COMMIT, step).file_name}", b"")
        for partition in sorted({write.partition for write in writes}):
            self._mark(partition, instant)
        stats: dict[str, tuple[WriteStat, ...]] = {}
        for write in writes:
            stat = self._write_bucket(state, instant, write)
            if stat is not None:
                stats[write.partition] = (*stats.get(write.partition, ()), stat)
        return PendingCommit(instant, CommitMetadata(stats, {"schema": self.table.schema}, "UPSERT"))

    def complete(self, pending: PendingCommit) -> str:
        """Completes a commit; its instant."""
        state = self._application.state()
        completion = self._application.unused_instant(state) if state.config.slices_by_completion_time else None
        completed = Instant(pending.instant, Action.DELTA_COMMIT, State.COMPLETED, completion)
        data = self._application.files.codec.encode_commit(pending.metadata, self.table.version)
        self._put(f"{state.config.timeline_path}/{completed.file_name}", data)
        return pending.instant

    @property
    def _application(self) -> Application:
        return assemble(self.storage.root, {}, storage=self.storage, clock=self.clock)

    def _put(self, path: str, data: bytes) -> None:
        if not self.storage.put_if_absent(path, data):
            raise StorageError(f"{path} is there already: another writer is at work on {self.storage.root}")

    def _mark(self, partition: str, instant: str) -> None:
        depth = len(partition.split("/")) if partition else 0
        text = f"#partition metadata\ncommitTime={instant}\npartitionDepth={depth}\n"
        self.storage.put_if_absent(f"{partition}/{_MARK}" if partition else _MARK, text.encode())

    def _write_bucket(self, state: TableState, instant: str, write: BucketWrite) -> WriteStat | None:
        for found in state.view.latest_slices():
            if found.partition == write.partition and bucket_of_file_id(found.file_id) == write.bucket:
                return self._write_log(state, instant, write, found)
        # Nothing to delete in a bucket that has no file group yet.
        return self._write_base(instant, write) if write.upserts is not None else None

    def _write_base(self, instant: str, write: BucketWrite) -> WriteStat:
        assert write.upserts is not None
        name = str(BaseFileName(new_file_id(write.bucket, self.ids()), f"{write.bucket}-1-0", instant))
        path = write.path_of(name)
        output = self.storage.open_output(path)
        try:
            with BaseFileWriter(
                output, self.table.schema, codec=self.table.codec, bloom=self.table.bloom
            ) as base_writer:
                base_writer.write(write.with_meta_columns(instant, name))
                size = base_writer.close({})
            if not output.commit():
                raise StorageError(f"{path} is there already: another writer is at work on {self.storage.root}")
        finally:
            output.abort()
        count = write.upsert_count
        return WriteStat(
            file_id=name.partition("_")[0],
            path=path,
            partition=write.partition,
            prev_commit="null",
            num_writes=count,
            num_inserts=count,
            total_write_bytes=size,
            file_size_bytes=size,
        )

    def _write_log(self, state: TableState, instant: str, write: BucketWrite, found: FileSlice) -> WriteStat:
        is_v6 = not state.config.slices_by_completion_time
        slice_instant = self._slice_instant(state, found) if is_v6 else instant
        earlier = [log for log in found.log_files if log.name.instant == slice_instant]
        version = 1 + max((log.name.version for log in earlier), default=0)
        name = str(LogFileName(found.file_id, slice_instant, version, f"{write.bucket}-1-0"))
        data, tracked = self._encode(write, instant, found.file_id)
        self._put(write.path_of(name), data)
        is_in_base = is_v6 and found.base_file is not None and slice_instant == found.base_instant
        return WriteStat(
            file_id=found.file_id,
            path=write.path_of(name),
            partition=write.partition,
            prev_commit=slice_instant,
            num_writes=write.upsert_count,
            num_deletes=len(write.deleted_keys),
            num_update_writes=write.upsert_count,
            total_write_bytes=len(data),
            file_size_bytes=len(data),
            min_event_time_ms=tracked.min_ms,
            max_event_time_ms=tracked.max_ms,
            log_version=version,
            base_file=str(found.base_file.name) if is_in_base and found.base_file is not None else "",
            # Version 6 names every log of the slice up to this one.
            log_files=(*((str(log.name) for log in earlier) if is_v6 else ()), name),
        )

    def _slice_instant(self, state: TableState, found: FileSlice) -> str:
        """Version 6: a pending compaction of the file group has begun the slice that a log now goes to."""
        for pending in state.timeline.pending_plans:
            if pending.action is not Action.COMPACTION:
                continue
            plan = self._application.files.plan(state.config, pending.requested_time)
            if isinstance(plan, CompactionPlan):
                groups = {(op.partition, op.file_id) for op in plan.operations}
            else:
                groups = set(plan.file_groups)
            if found.file_group in groups:
                return pending.requested_time
        return found.base_instant

    def _encode(self, write: BucketWrite, instant: str, file_id: str) -> tuple[bytes, EventTimeRange]:
        """The blocks of a log file, data before deletes, and the event times that Hudi would track of them."""
        blocks: list[bytes] = []
        tracked = EventTimeRange(None, None)
        if write.upserts is not None:
            ranges = self._event_times(write.upserts)
            field = self.table.event_time_field
            in_block = (field, ranges[0]) if self.table.has_block_event_times and field is not None else None
            records = write.with_meta_columns(instant, file_id)
            blocks.append(encode_data_block(instant, self.table.schema, records, in_block))
            tracked = ranges[1]
        if write.deletes is not None:
            blocks.append(encode_delete_block(instant, write.partition, write.deleted_keys, write.deletes))
        return b"".join(blocks), tracked

    def _event_times(self, records: pa.Table) -> tuple[EventTimeRange, EventTimeRange]:
        """The range of all event times, and that of the ones that Hudi would track."""
        none = EventTimeRange(None, None, len(records))
        if self.table.event_time_field is None:
            return none, none
        column = records.column(self.table.event_time_field).combine_chunks()
        whole = _range(event_times_ms(column))
        if not self.table.tracks_event_times or not pa.types.is_integer(column.type):
            return whole, none
        texts: Any = pc.cast(pc.abs(column), pa.string())
        digits = pc.utf8_length(texts)
        return whole, _range(event_times_ms(column.filter(pc.is_in(digits, pa.array(_TRACKED_DIGITS, pa.int32())))))


def _range(times: pa.Int64Array) -> EventTimeRange:
    ends: Any = pc.min_max(times).as_py()
    return EventTimeRange(ends["min"], ends["max"], times.null_count)
