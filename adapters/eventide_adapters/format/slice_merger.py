"""Compacts one slice: what an executor does for one operation of a plan.

1. The logs named in the plan have the sizes that the plan saw: nothing was appended since.
2. Left-overs become visible in the new slice, the last one first, each whole or not at all. A reader that meets them
   halfway sees a suffix of the slice's logs twice, which changes nothing; a prefix would.
3. Base and merged logs are read strictly, merged, and written to a file that nobody sees yet. With an exact cut so are
   the records of left-overs that lie before it.
4. Deletes with an ordering value that beat a record in a left-over, but left no row in the base: they are carried in
   DELETE blocks of their original instants, in the log that comes first in reader order, and so is made last.
5. The marker by which Hudi finds an unfinished base file, then the base file gets its name.

Every step may have been done by an attempt before: what is there must be what this one would write, and the result of a
base file that is there stands in its footer. A crash between two steps leaves files that the plan names, no more.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide_adapters.format.avro_schema import RECORD_KEY, table_fields
from eventide_adapters.format.base_parquet import (
    BaseFileWriter,
    BaseFooter,
    earlier_bloom,
    read_footer,
)
from eventide_adapters.format.bloom_filter import DEFAULT_PARAMETERS, BloomFilterBuilder
from eventide_adapters.format.delete_block import encode_delete_block
from eventide_adapters.format.event_time_column import event_times_ms
from eventide_adapters.format.event_time_properties import event_times_in_header
from eventide_adapters.format.log_blocks import counting_blocks
from eventide_adapters.format.log_fold import FoldedLogs
from eventide_adapters.format.log_records import BlockReader, DataBlock, DeleteBlock, iter_log_records
from eventide_adapters.format.merge_arrow import SliceMerge, Tombstones, merge_columns
from eventide_adapters.format.ordering_values import common_ranks, orderings_of
from eventide_adapters.format.record_event_times import event_times_of, is_before, only
from eventide_adapters.format.virtual_key import read_keyed_base
from eventide_core.config import ParquetCodec
from eventide_core.errors import MissingFileError, PlanMismatchError
from eventide_core.ports import MergeResult, MergeTask, Storage
from eventide_core.table.plans import LinkMode
from eventide_core.table.record_shape import RecordShape

RESULT_FOOTER_KEY: Final = "eventide.merge_result"
_FILE_NAME: Final = "_hoodie_file_name"


@dataclass(frozen=True, slots=True)
class ArrowSliceMerger:
    """ports.RecordMerger over a storage."""

    storage: Storage

    def __call__(self, task: MergeTask, /) -> MergeResult:
        """Raises PlanMismatchError, MissingFileError, and what reading the slice raises; nothing is skipped."""
        for path, size in (*task.merged, *((path, size) for path, size, _ in task.left_overs)):
            _check_size(self.storage, path, size)
        link_left_overs(self.storage, task)
        done = finished_result(self.storage, task)
        return done if done is not None else self._merge(task)

    def _merge(self, task: MergeTask) -> MergeResult:
        fields = table_fields(task.shape.schema)
        early = EarlyRecords(self.storage, task)
        logs = FoldedLogs.of(
            itertools.chain(
                iter_log_records(self.storage, task.merged, task.shape, task.blocks, None, is_strict=True), early
            ),
            pa.schema([field.arrow for field in fields]),
            task.shape,
        )
        merge = SliceMerge(logs, task.shape)
        base = iter(()) if task.base_path is None else read_keyed_base(self.storage, task.base_path, fields, task.shape)
        footer = None if task.base_path is None else BaseFooter.read(self.storage, task.base_path)
        bloom, are_keys_known = _bloom(footer, task, int(np.count_nonzero(logs.is_delete)))
        output = self.storage.open_output(task.new_base_path)
        try:
            with BaseFileWriter(output, task.shape.schema, codec=_codec(footer, task), bloom=bloom) as writer:
                for table in merge.met(base):
                    writer.write(_as_written(table, task), are_keys_known=are_keys_known)
                writer.write(_as_written(merge.inserted(), task))
                carried = contradicted(self.storage, task, merge.tombstones, early)
                result = MergeResult(
                    new_base_path=task.new_base_path,
                    base_size=0,
                    num_writes=writer.row_count,
                    num_deletes=merge.deletes,
                    num_updates=merge.updates,
                    num_inserts=merge.inserts,
                    log_records=logs.record_count,
                    log_blocks=logs.block_count,
                    carried_size=carry(self.storage, task, carried),
                    carried_tombstones=len(carried.keys),
                    waiting_from_ms=early.waiting_from_ms,
                )
                writer.close({RESULT_FOOTER_KEY: _encode_result(task, result)})
            self.storage.put_if_absent(task.marker_path, b"")
            output.commit()
        finally:
            output.abort()
        # Read back: where the name was taken meanwhile, what stands there counts.
        done = finished_result(self.storage, task)
        if done is None:
            raise MissingFileError(
                f"{task.new_base_path} was removed as soon as it was written: the plan is rolled back"
            )
        return done


class EarlyRecords:
    """Iterates once over the records of left-overs that an exact cut merges, block by block in reader order.

    `waiting_from_ms` is then known: what each of these logs holds besides, see MergeResult. So is `live`, where deletes may
    have to be carried: keys and ordering values of the early records that are no deletes.
    """

    def __init__(self, storage: Storage, task: MergeTask) -> None:
        self._storage, self._task = storage, task
        self._reader = BlockReader(storage, task.shape, None)
        self.waiting_from_ms: dict[str, int | None] = {}
        self.live: list[tuple[pa.Array[Any], pa.Array[Any]]] = []

    def __iter__(self) -> Iterator[DataBlock | DeleteBlock]:
        task = self._task
        for path, size, _ in task.left_overs:
            if path not in task.early:
                continue
            self.waiting_from_ms[path] = None
            before_ms = task.early[path]
            for placed in counting_blocks(self._storage, [(path, size)], task.blocks, is_strict=True):
                told = event_times_in_header(placed.block, task.shape.event_time_field)
                if told is not None and not told.starts_before(before_ms):
                    self._leave(path, told.min_ms)
                    continue  # nothing of it is early: its header is enough
                for part in self._reader.read(placed):
                    times = event_times_of(part, task.shape)
                    is_early = is_before(times, before_ms)
                    self._leave(path, pc.min(times.filter(pa.array(~is_early))).as_py())
                    if is_early.any():
                        taken = only(part, is_early)
                        self._keep(taken)
                        yield taken

    def _keep(self, part: DataBlock | DeleteBlock) -> None:
        if self._task.carried_path is not None and isinstance(part, DataBlock):
            orderings = orderings_of(part.records, self._task.shape.ordering_fields)
            self.live.append((part.records.column(RECORD_KEY), orderings))

    def _leave(self, path: str, least_ms: int | None) -> None:
        known = self.waiting_from_ms[path]
        if least_ms is not None:
            self.waiting_from_ms[path] = least_ms if known is None else min(known, least_ms)


def _codec(footer: BaseFooter | None, task: MergeTask) -> str:
    if task.codec != ParquetCodec.AS_BEFORE:
        return task.codec
    return "gzip" if footer is None else footer.codec


def _bloom(footer: BaseFooter | None, task: MergeTask, deletes: int) -> tuple[BloomFilterBuilder | None, bool]:
    """The filter to be filled, None where the table has no keys to be found by, and whether it has the base's keys.

    The base's own filter goes on, until a tenth of its keys are of rows that are no more: each of those is as likely to be
    taken for a row as one of a row is found.
    """
    if task.shape.key_fields:
        return None, False
    earlier = None if footer is None else earlier_bloom(footer, task.base_path or "")
    if footer is None or earlier is None:
        return BloomFilterBuilder(DEFAULT_PARAMETERS), False
    gone = -1 if earlier.key_count is None else earlier.key_count - footer.row_count
    if gone >= 0 and 10 * (gone + deletes) <= footer.row_count:
        return BloomFilterBuilder.going_on(earlier), True
    return BloomFilterBuilder(earlier.parameters), False


def link_left_overs(storage: Storage, task: MergeTask) -> None:
    """Gives each left-over that needs one its name in the new slice, the last one first."""
    for source, size, target in reversed(task.left_overs):
        if target is None:
            continue
        match LinkMode(task.link_mode):
            case LinkMode.COPY:
                storage.copy_if_absent(source, target)
            case LinkMode.HARDLINK:
                storage.link_if_absent(source, target, is_symbolic=False)
            case LinkMode.SYMLINK:
                storage.link_if_absent(source, target, is_symbolic=True)
            case LinkMode.PREFIX:
                raise PlanMismatchError(
                    f"the plan at {task.instant} links {source} to {target} in mode prefix, which needs no links"
                )
        _check_size(storage, target, size)


def finished_result(storage: Storage, task: MergeTask) -> MergeResult | None:
    """What the attempt that wrote the base file found; None where there is none yet.

    Raises PlanMismatchError where the file of that name is not this plan's.
    """
    info = storage.stat(task.new_base_path)
    if info is None:
        return None
    text = read_footer(storage, task.new_base_path).get(RESULT_FOOTER_KEY, "{}")
    written = json.loads(text)
    if (written.get("instant"), written.get("merged"), written.get("early", {})) != _identity(task):
        raise PlanMismatchError(
            f"{task.new_base_path} is there, but the plan at {task.instant} didn't write it: roll the plan back and plan "
            "again"
        )
    result = MergeResult(**{**written["result"], "new_base_path": task.new_base_path, "base_size": info.size})
    if task.carried_path is not None and result.carried_size is not None:
        _check_size(storage, task.carried_path, result.carried_size)
    return result


def contradicted(storage: Storage, task: MergeTask, tombstones: Tombstones, early: EarlyRecords) -> Tombstones:
    """Those tombstones that a live record of a left-over would lose to, if it only met them.

    Where the event time orders the versions, an exact cut has met all such records: like the tombstones they lie before T.
    """
    if task.carried_path is None or len(tombstones.keys) == 0:
        return tombstones.filter(pa.array([False] * len(tombstones.keys), pa.bool_()))
    last_ms = _last_event_time(task, tombstones)
    met: list[pa.Array[Any]] = []
    for keys, orderings in early.live if task.early and last_ms is not None else _live_records(storage, task, last_ms):
        found = pc.index_in(keys, value_set=tombstones.keys)
        rows = pc.indices_nonzero(found.is_valid())
        found = found.drop_null()
        older, newer = common_ranks(orderings.take(rows), tombstones.orderings.take(found))
        met.append(found.filter(pa.array(older < newer)))
    places = pa.array(range(len(tombstones.keys)), pa.int32())
    return tombstones.filter(pc.is_in(places, value_set=pa.concat_arrays([pa.array([], pa.int32()), *met])))


def carry(storage: Storage, task: MergeTask, tombstones: Tombstones) -> int | None:
    """Writes tombstones to the carried log, a block an instant in rising order; its size, None where there are none."""
    if task.carried_path is None or len(tombstones.keys) == 0:
        return None
    data = b""
    for instant in sorted(set(tombstones.instants)):
        of_instant = tombstones.filter(pa.array([i == instant for i in tombstones.instants], pa.bool_()))
        keys: list[Any] = of_instant.keys.to_pylist()
        data += encode_delete_block(instant, task.partition, keys, of_instant.orderings)
    if not storage.put_if_absent(task.carried_path, data) and storage.read(task.carried_path) != data:
        raise PlanMismatchError(
            f"{task.carried_path} is there with other deletes than the plan at {task.instant} carries: roll the plan back "
            "and plan again"
        )
    return len(data)


def _last_event_time(task: MergeTask, tombstones: Tombstones) -> int | None:
    """In milliseconds: no later record loses to any of them. None where their order is not that of event times."""
    kind: Any = tombstones.orderings.type
    is_time = pa.types.is_timestamp(kind) or pa.types.is_date(kind)
    if task.shape.ordering_fields != (task.shape.event_time_field,) or not is_time:
        return None
    return pc.max(event_times_ms(tombstones.orderings)).as_py()


def _live_records(
    storage: Storage, task: MergeTask, last_ms: int | None
) -> Iterator[tuple[pa.Array[Any], pa.Array[Any]]]:
    """Keys and ordering values of the left-overs' records that are no deletes, a block at a time, up to an event time."""
    shape: RecordShape = task.shape
    assert shape.ordering_fields, "tombstones without an ordering field"
    reader = BlockReader(storage, shape, merge_columns(shape))
    logs = [(path, size) for path, size, _ in task.left_overs]
    for placed in counting_blocks(storage, logs, task.blocks, is_strict=True):
        told = event_times_in_header(placed.block, shape.event_time_field)
        if last_ms is not None and told is not None and not told.starts_before(last_ms + 1):
            continue  # every record of it is later: its header is enough
        for block in reader.read(placed):
            if isinstance(block, DataBlock):
                yield block.records.column(RECORD_KEY), orderings_of(block.records, shape.ordering_fields)


def _check_size(storage: Storage, path: str, size: int) -> None:
    info = storage.stat(path)
    if info is None:
        raise MissingFileError(f"{path}, which the plan names, is not there: roll the plan back and plan again")
    if info.size != size:
        raise PlanMismatchError(
            f"{path} has {info.size} bytes, but {size} by the plan: roll the plan back and plan again"
        )


def _as_written(table: pa.Table, task: MergeTask) -> pa.Table:
    """With the new file's name in every row, and the keys taken out again that were made of the columns."""
    columns: dict[str, Any] = {_FILE_NAME: pa.repeat(task.new_base_path.rpartition("/")[2], len(table))}
    if task.shape.key_fields:
        columns[RECORD_KEY] = pa.nulls(len(table), pa.string())
    for name, values in columns.items():
        place = table.schema.get_field_index(name)
        table = table.set_column(place, table.schema.field(place), values)
    return table


def _identity(task: MergeTask) -> tuple[str, list[str], dict[str, int]]:
    """What tells the base file of this task from another's: its instant, the logs it merges, and those it merges early."""
    early = {path.rpartition("/")[2]: before_ms for path, before_ms in task.early.items()}
    return task.instant, [path.rpartition("/")[2] for path, _ in task.merged], early


def _encode_result(task: MergeTask, result: MergeResult) -> str:
    counts = {k: v for k, v in asdict(result).items() if k not in ("new_base_path", "base_size")}
    instant, merged, early = _identity(task)
    return json.dumps({"instant": instant, "merged": merged, "early": early, "result": counts}, sort_keys=True)
