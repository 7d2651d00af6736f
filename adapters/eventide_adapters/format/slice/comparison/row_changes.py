"""What differs between two sets of rows: rows that were inserted, updated and deleted.

1. Rows are the same if they have the same values in the key columns. Nulls are equal to each other, and so are NaNs.
2. Of several rows with the same key, the first ones belong together, the second ones, and so on.
3. A row is updated if a value of a column that is not Hudi's own has changed. The meta columns name a row's file and
   commit, which a compaction changes without changing the row.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from eventide_adapters.format.encoding.columns.arrow_numpy import Positions
from eventide_adapters.format.encoding.columns.field_path import column_at


@dataclass(frozen=True, slots=True)
class RowChanges:
    """Rows that are only in the later set, in both with other values, or only in the earlier set.

    `inserted` and `updated` are as they are now, `deleted` and `outdated` as they were. `outdated` are the earlier rows of
    `updated`, in the same order.
    """

    inserted: pa.Table
    updated: pa.Table
    outdated: pa.Table
    deleted: pa.Table

    @property
    def parts(self) -> Iterator[pa.Table]:
        return iter((self.inserted, self.updated, self.outdated, self.deleted))


def row_changes(before: pa.Table, after: pa.Table, keys: Sequence[str]) -> RowChanges:
    """What makes `after` of `before`. Both have the same schema; `keys` are fields by path, if the rows have them."""
    old, new = _identities(before, after, keys)
    common, in_old, in_new = np.intersect1d(old, new, assume_unique=True, return_indices=True)
    del common
    was, now = _taken(before, in_old), _taken(after, in_new)
    names = [name for name in after.schema.names if not name.startswith("_hoodie_")]
    differs = np.zeros(len(in_old), np.bool_)
    for name in names:
        differs |= ~_equal(was.column(name), now.column(name))
    chosen = pa.array(differs)
    return RowChanges(
        _taken(after, np.setdiff1d(np.arange(len(new)), in_new)),
        now.filter(chosen),
        was.filter(chosen),
        _taken(before, np.setdiff1d(np.arange(len(old)), in_old)),
    )


def _taken(rows: pa.Table, positions: Positions) -> pa.Table:
    chosen: Any = pa.array(positions, pa.int64())
    return rows.take(chosen)


def _identities(before: pa.Table, after: pa.Table, keys: Sequence[str]) -> tuple[Positions, Positions]:
    """A number for each row: the same on both sides for rows that are the same, and unique on each side."""
    codes = np.zeros(len(before) + len(after), np.int64)
    for key in [key for key in keys if key.partition(".")[0] in after.schema.names]:
        values = pa.chunked_array([*_chunks(before, key), *_chunks(after, key)], column_at(after, key).type)
        encoded: Any = values.combine_chunks().dictionary_encode(null_encoding="encode")
        indices = encoded.indices.to_numpy(zero_copy_only=False)
        # Numbered from 0 for each key, so that the product stays below the square of the number of rows.
        codes = np.unique(codes * (len(encoded.dictionary) + 1) + indices, return_inverse=True)[1]
    sides = codes[: len(before)], codes[len(before) :]
    ranks = tuple(map(_ranks, sides))
    width = 1 + max((int(numbers.max()) for numbers in ranks if len(numbers)), default=0)
    return sides[0] * width + ranks[0], sides[1] * width + ranks[1]


def _chunks(rows: pa.Table, key: str) -> Sequence[Any]:
    column: Any = column_at(rows, key)
    return column.chunks if isinstance(column, pa.ChunkedArray) else [column]


def _ranks(codes: Positions) -> Positions:
    """The number of earlier rows with the same code."""
    order = np.argsort(codes, kind="stable")
    ordered = codes[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]]) if len(codes) else np.zeros(0, np.int64)
    counts = np.diff(np.r_[starts, len(codes)])
    ranks = np.empty(len(codes), np.int64)
    ranks[order] = np.arange(len(codes)) - np.repeat(starts, counts)
    return ranks


def _equal(old: Any, new: Any) -> npt.NDArray[np.bool_]:
    if pa.types.is_nested(old.type):
        pairs = zip(old.to_pylist(), new.to_pylist(), strict=True)
        return np.fromiter((one == other for one, other in pairs), np.bool_, len(old))
    same: Any = pc.or_(pc.fill_null(pc.equal(old, new), pa.scalar(False)), pc.and_(pc.is_null(old), pc.is_null(new)))
    if pa.types.is_floating(old.type):
        both: Any = pc.and_(pc.is_nan(old), pc.is_nan(new))
        same = pc.or_(same, pc.fill_null(both, pa.scalar(False)))
    return np.asarray(same.to_numpy(), np.bool_)
