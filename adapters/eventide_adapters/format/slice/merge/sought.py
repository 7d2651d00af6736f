"""What of a slice a filter lets a query leave out, so that the rows it keeps are the same ones.

A slice that is only a base file: the row groups that the footer excludes (base_file/row_groups.py).

A slice with log files, if the filter names record keys: a merge is by key, so the log files' records and deletes of
other keys take no part, and neither do row groups without these keys. By any other column, no row group may be left out:
a version in it may win against one in a log file. Only the whole slice is, if neither its base file nor a block of its log
files has a version that the filter keeps. Then no version that wins is one. The blocks of eventide state their event times;
blocks of other columns, of other writers, or of partial updates exclude nothing. Deletes bring no row.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from eventide_adapters.format.encoding.avro.event_time_properties import event_times_in_header
from eventide_adapters.format.encoding.columns.arrow_numpy import ArrowType
from eventide_adapters.format.encoding.parquet.filter_proof import excluded
from eventide_adapters.format.encoding.parquet.open_file import open_base
from eventide_adapters.format.slice.base_file.row_groups import RowGroupChoice
from eventide_adapters.format.slice.log_file.blocks import PlacedBlock, counting_blocks
from eventide_adapters.format.slice.log_file.records import LogPart
from eventide_core.ports import Storage
from eventide_core.table.files.log_block import BlockType
from eventide_core.table.files.slice_read import ChangeRead, SliceRead, columns_in_base
from eventide_core.table.records.event_time import EventTimeRange
from eventide_core.table.records.record_shape import RecordShape
from eventide_core.table.schema.avro_schema import META_FIELDS, RECORD_KEY

_PER_SECOND: Final = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_DAY_MS: Final = 86_400_000


@dataclass(frozen=True, slots=True)
class Sought:
    """What a query with a filter looks for in a slice. Picklable.

    `row_filter` is over columns of `schema`, the query's; `columns` are those that it needs. `keys`: the filter keeps no row
    with another record key; None: it may.
    """

    row_filter: pc.Expression
    schema: pa.Schema
    columns: tuple[str, ...]
    keys: tuple[str, ...] | None

    def applies_to(self, slice_read: SliceRead, shape: RecordShape) -> bool:
        """If the slice is read as it is now, and a merge takes its versions whole."""
        is_increment = slice_read.commit_times is not None or isinstance(slice_read, ChangeRead)
        return not is_increment and shape.merger is None and shape.partial_update is None

    def row_groups(self, slice_read: SliceRead, shape: RecordShape) -> RowGroupChoice:
        """The choice of row groups of the slice's base file: by keys alone if there are log files."""
        hidden = {*slice_read.null_fields, *(META_FIELDS if shape.key_fields else ())}
        named = None if slice_read.base_path is None else columns_in_base(shape, slice_read.base_path)
        columns = tuple(name for name in self.columns if name not in hidden and (named is None or named.is_same(name)))
        if slice_read.log_paths:
            columns = tuple(name for name in columns if name == RECORD_KEY)
        keys = None if shape.key_fields else self.keys
        return RowGroupChoice(slice_read.base_path or "", self.row_filter, self.schema, columns, keys)

    def of_keys(self, parts: Iterable[LogPart]) -> Iterator[LogPart]:
        """The records and deletes of the keys."""
        wanted = pa.array(self.keys or (), pa.string())
        for part in parts:
            yield part.filter(pc.is_in(part.keys, value_set=wanted))

    def is_outside(self, storage: Storage, slice_read: SliceRead, shape: RecordShape) -> bool:
        """If footer and block headers show that the filter keeps no row of the slice. Reads no row.

        Raises what a query of the slice raises.
        """
        if not self.applies_to(slice_read, shape):
            return False
        # Block headers first: a footer has half a megabyte.
        blocks = counting_blocks(storage, slice_read.log_paths, slice_read.blocks, is_strict=False)
        if not all(self._excludes(placed, slice_read, shape) for placed in blocks):
            return False
        if slice_read.base_path is None:
            return True
        choice = self.row_groups(replace(slice_read, log_paths=()), shape)
        with open_base(storage, slice_read.base_path) as file:
            return not len(choice.by_footer(file))

    def _excludes(self, placed: PlacedBlock, slice_read: SliceRead, shape: RecordShape) -> bool:
        if placed.block.block_type is BlockType.DELETE:
            return True
        if placed.is_partial:
            return False
        named = shape.columns_in_block(placed.instant, placed.place)
        for name in self.columns:
            if name in slice_read.null_fields or not (named is None or named.is_same(name)):
                continue
            times = event_times_in_header(placed.block, name)
            condition = None if times is None else _conditions(name, self.schema.field(name).type, times)
            if condition is not None and all(excluded(condition, self.row_filter, self.schema)):
                return True
        return False


def _conditions(name: str, kind: ArrowType, times: EventTimeRange) -> list[pc.Expression] | None:
    """Conditions of which each row with such an event time meets one. None if nothing is known.

    A millisecond is added on both sides, and a number of days or seconds, because times were rounded.
    """
    if times.unreadable_records or not (kind == pa.int64() or pa.types.is_date32(kind) or pa.types.is_timestamp(kind)):
        return None
    field = pc.field(name)
    null = [field.is_null()] if times.unknown_records else []
    if times.min_ms is None or times.max_ms is None:
        return null
    low, high = times.min_ms - 1, times.max_ms + 1
    if pa.types.is_date32(kind):
        ends = [(low // _DAY_MS - 1, high // _DAY_MS + 1)]
    else:
        # The digits of a whole number decide its unit, so it may be in any.
        units = _PER_SECOND.values() if pa.types.is_integer(kind) else [_PER_SECOND[kind.unit]]
        ends = [(low * per // 1000 - 1, high * per // 1000 + 1) for per in units]
    try:
        scalars: list[Any] = [(pa.scalar(least, kind), pa.scalar(greatest, kind)) for least, greatest in ends]
    except (OverflowError, pa.ArrowException):
        return None
    return [*null, *((field >= least) & (field <= greatest) for least, greatest in scalars)]
