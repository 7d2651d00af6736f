"""What a compaction merges of its left-overs in an exact cut, and the deletes that it carries into the slice below them."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide_adapters.format.encoding.columns.arrow_numpy import ArrowArray, to_arrow
from eventide_adapters.format.encoding.columns.event_times import event_times_ms
from eventide_adapters.format.slice.log_file.cursor import LogCursor
from eventide_adapters.format.slice.log_file.delete_block import encode_delete_block
from eventide_adapters.format.slice.log_file.event_times import event_times_of, is_before
from eventide_adapters.format.slice.log_file.ordering_values import common_ranks, orderings_of
from eventide_adapters.format.slice.log_file.records import DataBlock, LogPart
from eventide_adapters.format.slice.merge.base_merge import Tombstones, merge_columns
from eventide_core.ports import MergeTask, Storage
from eventide_core.table.records.event_time import EventTimeRange
from eventide_core.table.records.record_shape import RecordShape


class EarlyRecords:
    """Iterates once over the records of left-overs that an exact cut merges, block by block in reader order.

    After that, `uncompacted_from_ms` is known: what else each of these log files contains, see MergeResult. So is `parts`,
    the number of blocks that had any. If deletes may have to be carried, so is `live`: the keys and ordering values of the
    early records that are not deletes.
    """

    def __init__(self, storage: Storage, task: MergeTask, columns: Sequence[str]) -> None:
        self._storage, self._task, self._columns = storage, task, columns
        self.uncompacted_from_ms: dict[str, int | None] = {}
        self.parts = 0
        self.live: list[tuple[ArrowArray, ArrowArray]] = []

    def __iter__(self) -> Iterator[LogPart]:
        for left in self._task.op.left_overs:
            if left.threshold_ms is not None:
                yield from self._before(left.threshold_ms, left.log_file.path, left.log_file.size)

    def _before(self, threshold_ms: int, path: str, size: int) -> Iterator[LogPart]:
        """The records of one log file before the threshold."""
        shape = self._task.shape
        self.uncompacted_from_ms[path] = None

        def has_early(times: EventTimeRange) -> bool:
            if not times.starts_before(threshold_ms):
                self._leave(path, times.min_ms)
            return times.starts_before(threshold_ms)

        cursor = LogCursor(self._storage, [(path, size)], self._task.blocks, is_strict=True)
        for part in cursor.parts(shape, self._columns, has_early):
            times = event_times_of(part, shape)
            is_early = is_before(times, threshold_ms)
            self._leave(path, pc.min(times.filter(pa.array(~is_early))).as_py())
            if is_early.any():
                taken = part.filter(pa.array(is_early))
                self._keep(taken)
                self.parts += 1
                yield taken

    def _keep(self, part: LogPart) -> None:
        if self._task.op.carried_name is not None and isinstance(part, DataBlock):
            orderings = orderings_of(part.records, self._task.shape.ordering_fields)
            self.live.append((part.keys, orderings))

    def _leave(self, path: str, least_ms: int | None) -> None:
        known = self.uncompacted_from_ms[path]
        if least_ms is not None:
            self.uncompacted_from_ms[path] = least_ms if known is None else min(known, least_ms)


def contradicted(storage: Storage, task: MergeTask, tombstones: Tombstones, early: EarlyRecords) -> Tombstones:
    """The tombstones to which a live record of a left-over would lose if it met them.

    If event time orders the versions, an exact cut has already merged all such records of the old slice: like the
    tombstones, they lie before T. It has merged none from a log file without a new name, which belongs to the new slice.
    """
    if task.op.carried_name is None or len(tombstones.keys) == 0:
        return tombstones.filter(to_arrow(np.zeros(len(tombstones.keys), np.bool_)))
    last_ms = _last_event_time(task, tombstones)
    met: list[ArrowArray] = []
    is_merged_early = any(left.threshold_ms is not None for left in task.op.left_overs)
    has_met_all = is_merged_early and last_ms is not None and all(left.new_name for left in task.op.left_overs)
    for keys, orderings in early.live if has_met_all else _live_records(storage, task, last_ms):
        indices = pc.index_in(keys, value_set=tombstones.keys)
        rows = pc.indices_nonzero(indices.is_valid())
        indices = indices.drop_null()
        older, newer = common_ranks(orderings.take(rows), tombstones.orderings.take(indices))
        met.append(indices.filter(pa.array(older < newer)))
    places = pa.array(range(len(tombstones.keys)), pa.int32())
    return tombstones.filter(pc.is_in(places, value_set=pa.concat_arrays([pa.array([], pa.int32()), *met])))


def encode_carried(task: MergeTask, tombstones: Tombstones) -> bytes:
    """The content of the carried log file: one DELETE block per instant, ascending; empty without tombstones."""
    data = b""
    for instant in sorted(set(tombstones.instants)):
        of_instant = tombstones.filter(pa.array([i == instant for i in tombstones.instants], pa.bool_()))
        keys: list[Any] = of_instant.keys.to_pylist()
        data += encode_delete_block(instant, task.op.partition, keys, of_instant.orderings)
    return data


def _last_event_time(task: MergeTask, tombstones: Tombstones) -> int | None:
    """The latest event time in milliseconds: no later record loses to a tombstone. None if event times don't order them."""
    kind: Any = tombstones.orderings.type
    is_time = pa.types.is_timestamp(kind) or pa.types.is_date(kind)
    if task.shape.ordering_fields != (task.shape.event_time_field,) or not is_time:
        return None
    return pc.max(event_times_ms(tombstones.orderings, task.shape.event_time_texts)).as_py()


def _live_records(storage: Storage, task: MergeTask, last_ms: int | None) -> Iterator[tuple[ArrowArray, ArrowArray]]:
    """Keys and ordering values of the left-overs' live records, block by block, up to an event time."""
    shape: RecordShape = task.shape
    assert shape.ordering_fields, "tombstones without an ordering field"
    logs = [(left.log_file.path, left.log_file.size) for left in task.op.left_overs]
    cursor = LogCursor(storage, logs, task.blocks, is_strict=True)
    for part in cursor.parts(
        shape, merge_columns(shape), lambda times: last_ms is None or times.starts_before(last_ms + 1)
    ):
        if isinstance(part, DataBlock):
            yield part.keys, orderings_of(part.records, shape.ordering_fields)
