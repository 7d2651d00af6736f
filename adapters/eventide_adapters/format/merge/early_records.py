"""The records of left-overs that an exact cut merges although their log files stay."""

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from eventide_adapters.format.avro.event_time_properties import event_times_in_header
from eventide_adapters.format.log_file.blocks import counting_blocks
from eventide_adapters.format.log_file.event_times import event_times_of, is_before, only
from eventide_adapters.format.log_file.ordering_values import orderings_of
from eventide_adapters.format.log_file.records import BlockReader, DataBlock, DeleteBlock
from eventide_core.ports import MergeTask, Storage
from eventide_core.table.records.schema import RECORD_KEY


class EarlyRecords:
    """Iterates once over the records of left-overs that an exact cut merges, block by block in reader order.

    After that, `uncompacted_from_ms` is known: what else each of these log files contains, see MergeResult. So is `parts`,
    the number of blocks that had any. If deletes may have to be carried, so is `live`: the keys and ordering values of the
    early records that are not deletes.
    """

    def __init__(self, storage: Storage, task: MergeTask, columns: Sequence[str]) -> None:
        self._storage, self._task = storage, task
        self._reader = BlockReader(storage, task.shape, columns)
        self.uncompacted_from_ms: dict[str, int | None] = {}
        self.parts = 0
        self.live: list[tuple[pa.Array[Any], pa.Array[Any]]] = []

    def __iter__(self) -> Iterator[DataBlock | DeleteBlock]:
        task = self._task
        for path, size, _ in task.left_overs:
            if path not in task.early:
                continue
            self.uncompacted_from_ms[path] = None
            before_ms = task.early[path]
            for placed in counting_blocks(self._storage, [(path, size)], task.blocks, is_strict=True):
                claimed = event_times_in_header(placed.block, task.shape.event_time_source)
                if claimed is not None and not claimed.starts_before(before_ms):
                    self._leave(path, claimed.min_ms)
                    continue  # the header shows that it has no early record
                for part in self._reader.read(placed):
                    times = event_times_of(part, task.shape)
                    is_early = is_before(times, before_ms)
                    self._leave(path, pc.min(times.filter(pa.array(~is_early))).as_py())
                    if is_early.any():
                        taken = only(part, is_early)
                        self._keep(taken)
                        self.parts += 1
                        yield taken

    def _keep(self, part: DataBlock | DeleteBlock) -> None:
        if self._task.carried_path is not None and isinstance(part, DataBlock):
            orderings = orderings_of(part.records, self._task.shape.ordering_fields)
            self.live.append((part.records.column(RECORD_KEY), orderings))

    def _leave(self, path: str, least_ms: int | None) -> None:
        known = self.uncompacted_from_ms[path]
        if least_ms is not None:
            self.uncompacted_from_ms[path] = least_ms if known is None else min(known, least_ms)
