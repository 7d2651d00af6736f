"""Folds versions that may lack columns, in whole columns: core's table/records/partial_update.

Records are sorted by key, and in reader order within a key. A record is *high* if its ordering value is at least
the value of every earlier record and delete of its key. A natural delete is high, and after it the comparison begins again.

1. The last high record or delete of each key wins. If it is a delete, the key has no row.
2. Otherwise, the row takes each column from the last high record after the last high delete that has the column. If none of
   these has it, the row takes it from the first record that does, although that record came too late to win.
3. A column that no record has keeps the winner's own value, and stays lacking: the base's record may have it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide_adapters.format.encoding.columns.arrow_numpy import Flags, Numbers, to_arrow
from eventide_adapters.format.slice.merge.key_table import first_of_keys, last_of_keys
from eventide_core.table.records.record_shape import PartialUpdate

Lacking: TypeAlias = Mapping[str, Flags]
"""For each column, which rows lack it. Contains only columns that some row lacks."""


def lacking_values(rows: pa.Table | pa.RecordBatch, how: PartialUpdate | None) -> dict[str, Flags]:
    """Which rows lack which columns, by their values, according to a partial update mode."""
    lacking: dict[str, Flags] = {}
    if how is None:
        return lacking
    for field, column in zip(rows.schema, rows.columns, strict=True):
        flags = _lacks(column, field.type, how)
        if flags is not None and flags.any():
            lacking[field.name] = flags
    return lacking


def _lacks(column: Any, kind: pa.DataType, how: PartialUpdate) -> Flags | None:
    if how.unavailable is None:
        return np.asarray(column.is_null().to_numpy(zero_copy_only=False), np.bool_) if column.null_count else None
    if pa.types.is_dictionary(kind):
        kind, column = pa.string(), column.cast(pa.string())
    if not pa.types.is_string(kind):
        return None
    equal: Any = pc.equal(column, pa.scalar(how.unavailable))
    return np.asarray(equal.fill_null(False).to_numpy(zero_copy_only=False), np.bool_)


@dataclass(frozen=True, slots=True)
class PartialFold:
    """`winner` is the place of each key's winning version; `sources` is, for each column that may lack, its source row.

    `lacking` has the keys that still lack a column. If the winner is a delete, the key's places and rows are undefined.
    """

    winner: Numbers
    sources: Mapping[str, Numbers]
    lacking: Lacking


def fold_partial(
    codes: Numbers, key_count: int, order: Numbers, is_natural_delete: Flags, row: Numbers, lacking: Lacking
) -> PartialFold:
    """Folds versions in reader order. `codes` are their keys, and `order` ranks their ordering values.

    `row` is a version's row in the data, -1 for a delete. `lacking` is indexed by these rows.
    """
    versions = np.argsort(codes, kind="stable")
    keys, rows, is_natural = codes[versions], row[versions], is_natural_delete[versions]
    is_delete = rows < 0
    places = np.arange(len(versions))
    is_high = _high(keys, order[versions], is_natural)
    winner = last_of_keys(keys, key_count, is_high)
    deleted = last_of_keys(keys, key_count, is_high & is_delete)
    first = first_of_keys(keys, key_count, is_high & (places > deleted[keys]))
    counts = (places >= first[keys]) & ~is_delete
    sources, still = dict[str, Numbers](), dict[str, Flags]()
    for name, flags in lacking.items():
        has = counts.copy()
        has[counts] = ~flags[rows[counts]]
        source = last_of_keys(keys, key_count, has & is_high)
        late = first_of_keys(keys, key_count, has)
        source = np.where((source < 0) & (late < len(places)), late, source)
        still[name] = source < 0
        sources[name] = rows[np.where(source < 0, winner, source)]
    return PartialFold(versions[winner], sources, still)


def taken(rows: pa.Table, places: Numbers, sources: Iterator[tuple[str, Numbers]]) -> pa.Table:
    """The rows at these places. The columns named in `sources` come from other rows, one for each place."""
    table = rows.take(to_arrow(places))
    for name, of_rows in sources:
        number = rows.schema.get_field_index(name)
        table = table.set_column(number, rows.schema.field(number), rows.column(number).take(to_arrow(of_rows)))
    return table


def _high(keys: Numbers, order: Numbers, is_natural: Flags) -> Flags:
    """Which versions, sorted by key, win over all earlier versions of their key."""
    # A natural delete begins a new segment, as the first version of a key does. In its segment, it is the least.
    begins = np.ones(len(keys), np.bool_)
    begins[1:] = keys[1:] != keys[:-1]
    stretch = np.cumsum(begins | is_natural) - 1
    dense = np.unique(order, return_inverse=True)[1].astype(np.int64) + 1
    height = stretch * (len(keys) + 2) + np.where(is_natural, 0, dense)
    return np.asarray(height == np.maximum.accumulate(height), np.bool_)
