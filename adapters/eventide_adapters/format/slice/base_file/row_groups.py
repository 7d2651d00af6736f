"""Which row groups of a base file may hold rows that a filter keeps: by its footer, and by its record keys.

1. The footer's range of record keys and its bloom filter, if the filter names the keys.
2. Each row group's least and greatest value of the filter's columns. Of texts, whole numbers, dates and times only: the
   values of floating-point numbers leave out NaN, and others have several orders.
3. The keys themselves: of the row groups that are left, only the key column is read, and of this column only pages that
   may have the keys, if the file has a column index. Then the rows of these keys are known (row_pages.py).
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from eventide_adapters.format.encoding.parquet.filter_proof import excluded
from eventide_adapters.format.encoding.parquet.footer_columns import require_sound_columns
from eventide_adapters.format.encoding.parquet.legacy_calendar import LegacyCalendar
from eventide_adapters.format.encoding.parquet.open_file import OpenBaseFile
from eventide_adapters.format.encoding.parquet.row_pages import RowNumbers, RowsOfGroups, rows_with
from eventide_adapters.format.slice.base_file.key_range import may_have_one
from eventide_core.table.schema.avro_schema import RECORD_KEY

_Ends: TypeAlias = tuple[Any, Any]
_KEY_BATCH_ROWS: Final = 1 << 17


@dataclass(frozen=True, slots=True)
class RowGroupChoice:
    """Chooses the rows of one base file that a filter may keep. Picklable.

    `path` names the file in errors. `row_filter` is over columns of `schema`, which is the query's and may differ from the
    file's. `columns` are the filter's columns whose ranges in the footer may exclude a row group. `keys`: the
    filter keeps no row with another record key; None: it may.
    """

    path: str
    row_filter: pc.Expression
    schema: pa.Schema
    columns: tuple[str, ...]
    keys: tuple[str, ...] | None

    def __call__(self, file: OpenBaseFile) -> RowsOfGroups:
        """The rows to read, by the number of their row group."""
        groups = self.by_footer(file)
        if self.keys is None or RECORD_KEY not in file.schema_arrow.names:
            return dict.fromkeys(groups)
        require_sound_columns(file.metadata, file.footer, f"base file {self.path}")
        by_group = {group: _rows_with(file, group, self.keys) for group in groups}
        return {group: rows for group, rows in by_group.items() if len(rows)}

    def by_footer(self, file: OpenBaseFile) -> Sequence[int]:
        """The row groups to read, by the footer alone."""
        metadata = file.metadata
        if self.keys is not None and not may_have_one(metadata.metadata or {}, self.keys, self.path):
            return ()
        kinds = {field.name: field.type for field in file.schema_arrow}
        has_legacy = LegacyCalendar.of(metadata) is not None
        leaves: list[Any] = [metadata.schema.column(number) for number in range(metadata.num_columns)]
        places = {leaf.path: number for number, leaf in enumerate(leaves)}
        known = [
            (name, places[name], self.schema.field(name).type)
            for name in self.columns
            if name in places and _rises(kinds.get(name), self.schema.field(name).type, has_legacy=has_legacy)
        ]
        groups = range(metadata.num_row_groups)
        if not known:
            return groups
        require_sound_columns(metadata, file.footer, f"base file {self.path}")
        conditions = [_condition(metadata.row_group(number), known) for number in groups]
        is_excluded = excluded(conditions, self.row_filter, self.schema)
        return [number for number in groups if not is_excluded[number]]


def _rises(written: pa.DataType | None, queried: pa.DataType, *, has_legacy: bool) -> bool:
    """Whether the query's values of a column are those in the file, in their order."""
    if written is None:
        return False
    if pa.types.is_signed_integer(written) and pa.types.is_signed_integer(queried):
        return True
    is_time = pa.types.is_timestamp(written) or pa.types.is_date32(written)
    return written == queried and (pa.types.is_string(written) or (is_time and not has_legacy))


def _condition(group: pq.RowGroupMetaData, known: Collection[tuple[str, int, pa.DataType]]) -> pc.Expression | None:
    """What holds for all of a row group's rows by its statistics."""
    condition: pc.Expression | None = None
    for name, place, kind in known:
        of_column = _of_column(group.column(place), pc.field(name), kind, group.num_rows)
        if of_column is not None:
            condition = of_column if condition is None else condition & of_column
    return condition


def _of_column(column: Any, field: pc.Expression, kind: pa.DataType, rows: int) -> pc.Expression | None:
    statistics: Any = column.statistics
    if statistics is None:
        return None
    nulls = statistics.null_count if statistics.has_null_count else None
    if not statistics.has_min_max:
        return field.is_null() if rows and nulls == rows else None
    ends = _ends(statistics, kind)
    if ends is None:
        return None
    condition: pc.Expression = (field >= ends[0]) & (field <= ends[1])
    if nulls == 0:
        return condition
    either: pc.Expression = condition | field.is_null()
    return either


def _ends(statistics: Any, kind: pa.DataType) -> _Ends | None:
    try:
        if pa.types.is_string(kind):
            return pa.scalar(statistics.min, pa.string()), pa.scalar(statistics.max, pa.string())
        raw = [statistics.min_raw, statistics.max_raw]
        if not all(isinstance(end, int) for end in raw):
            return None  # an INT96 consists of three numbers
        numbers: Any = pa.array(raw, pa.int64())
        ends = numbers.cast(pa.int32()) if pa.types.is_date32(kind) else numbers
        ends = ends.cast(kind) if pa.types.is_integer(kind) else ends.view(kind)
    except (UnicodeDecodeError, TypeError, pa.ArrowException):
        return None
    return ends[0], ends[1]


def _rows_with(file: OpenBaseFile, group: int, keys: Collection[str]) -> RowNumbers:
    rows = rows_with(file, group, RECORD_KEY, keys)
    if rows is not None:
        return rows
    wanted = pa.array(keys, pa.string())
    places, begin = [np.arange(0)], 0
    for batch in file.inflated([RECORD_KEY]).batches(_KEY_BATCH_ROWS, [RECORD_KEY], groups=[group]):
        is_wanted: Any = pc.is_in(batch.column(0), value_set=wanted)
        places.append(begin + np.flatnonzero(is_wanted.to_numpy(zero_copy_only=False)))
        begin += len(batch)
    return np.concatenate(places)
