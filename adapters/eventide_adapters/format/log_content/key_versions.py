"""Finds the versions of some keys in a slice, in columns.

1. Of each log file, only the keys and their ordering values are read, as columns.
2. The keys that are on both sides are found in the columns. If only deletes count, keys without a delete are dropped.
3. Only the remaining versions become Python objects.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import total_ordering
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from eventide_adapters.format.log_file.ordering_values import comparable, orderings_of
from eventide_adapters.format.log_file.records import DeleteBlock
from eventide_core.table.records.key_history import KeyHistory
from eventide_core.table.records.record_order import Version


@total_ordering
@dataclass(frozen=True, slots=True)
class Least:
    """The ordering value of a record that has none."""

    def __lt__(self, other: object) -> bool:
        return not isinstance(other, Least)


LEAST: Final = Least()


@dataclass(frozen=True, slots=True)
class VersionColumns:
    """Versions in reader order, as parallel arrays of Arrow.

    `keys` are the record keys, and `orderings` the ordering values, null if not set. `is_delete`, `is_partial` and
    `is_early` are flags: whether the version is a delete, whether it may take columns from others, and whether it is merged
    although its log file stays.
    """

    keys: Any
    orderings: Any
    is_delete: Any
    is_partial: Any
    is_early: Any

    @classmethod
    def concat(cls, parts: "Sequence[VersionColumns]", ordering: Any) -> "VersionColumns":
        """The versions of all parts, in order. `ordering` is the type of the ordering values."""
        return cls(
            pa.concat_arrays([pa.array([], pa.string()), *(part.keys for part in parts)]),
            pa.concat_arrays([pa.array([], ordering), *(part.orderings for part in parts)]),
            pa.concat_arrays([pa.array([], pa.bool_()), *(part.is_delete for part in parts)]),
            pa.concat_arrays([pa.array([], pa.bool_()), *(part.is_partial for part in parts)]),
            pa.concat_arrays([pa.array([], pa.bool_()), *(part.is_early for part in parts)]),
        )

    @classmethod
    def of_keys(cls, keys: Any, orderings: Any, *, is_delete: bool, is_partial: bool = False) -> "VersionColumns":
        flags = (pa.array(np.full(len(keys), flag)) for flag in (is_delete, is_partial, False))
        return cls(keys, orderings, *flags)

    def marked_early(self, mask: npt.NDArray[np.bool_]) -> "VersionColumns":
        return replace(self, is_early=pa.array(mask))

    def of(self, keys: Any) -> "VersionColumns":
        """The versions of the given keys only."""
        mask = pc.is_in(self.keys, keys)
        columns = (self.keys, self.orderings, self.is_delete, self.is_partial, self.is_early)
        return VersionColumns(*(column.filter(mask) for column in columns))


def versions_of_block(
    block: Any, key_column: str, ordering_fields: Sequence[str], *, is_partial: bool
) -> VersionColumns:
    """The versions in a part of a block from `BlockReader`. `is_partial`: any record may take columns."""
    if isinstance(block, DeleteBlock):
        return VersionColumns.of_keys(block.keys, block.orderings, is_delete=True)
    orderings = orderings_of(block.records, ordering_fields)
    return VersionColumns.of_keys(
        block.records.column(key_column),
        orderings,
        is_delete=False,
        is_partial=is_partial or block.absent is not None,
    )


def common_keys(merged: VersionColumns, left_overs: VersionColumns, *, only_deleted: bool) -> Any:
    """The keys on both sides, in the order of the first side. `only_deleted`: only those with a delete on either side.

    Records that are merged early belong to both sides.
    """
    keys = pc.unique(pa.concat_arrays([merged.keys, left_overs.keys.filter(left_overs.is_early)]))
    keys = keys.filter(pc.is_in(keys, left_overs.keys))
    if not only_deleted:
        return keys
    deleted = pa.concat_arrays([side.keys.filter(side.is_delete) for side in (merged, left_overs)])
    return keys.filter(pc.is_in(keys, deleted))


def histories(
    keys: Any, base: VersionColumns, merged: VersionColumns, left_overs: VersionColumns
) -> tuple[KeyHistory, ...]:
    """The history of each key, from columns that contain only versions of these keys."""
    versions: dict[str, tuple[list[Version], list[Version], list[Version]]] = {
        key: ([], [], []) for key in keys.to_pylist()
    }
    early: dict[str, list[Version]] = {key: [] for key in versions}
    for side, columns in enumerate((base, merged, left_overs)):
        for key, ordering, is_delete, is_partial, is_early in _rows(columns):
            history = versions[key]
            version = Version(ordering, is_delete, sum(len(part) for part in history), is_partial)
            history[side].append(version)
            if is_early:
                early[key].append(version)
    return tuple(
        KeyHistory(key, based[-1] if based else None, tuple(merged_), tuple(remaining_), tuple(early[key]))
        for key, (based, merged_, remaining_) in versions.items()
    )


def _rows(columns: VersionColumns) -> Iterable[tuple[str, Any, bool, bool, bool]]:
    """Each version with a comparable ordering value, and whether it is a delete, may take columns, and is early.

    A record without an ordering value is less than any other, as in the merge (`ordering_values.ranks`). A delete without
    one is in natural order and has None. The value of several fields is a tuple.
    """
    values = _comparable(columns.orderings)
    keys: list[str] = columns.keys.to_pylist()
    flags = [column.to_pylist() for column in (columns.is_delete, columns.is_partial, columns.is_early)]
    for key, value, is_delete, is_partial, is_early in zip(keys, values, *flags, strict=True):
        yield key, LEAST if value is None and not is_delete else value, is_delete, is_partial, is_early


def _comparable(orderings: Any) -> list[Any]:
    """Python values. A time or date is its underlying number, because Python's own types cover fewer years."""
    kind = orderings.type
    if pa.types.is_struct(kind):
        fields = [[LEAST if value is None else value for value in _comparable(field)] for field in orderings.flatten()]
        is_given = orderings.is_valid().to_pylist()
        return [values if given else None for values, given in zip(zip(*fields, strict=True), is_given, strict=True)]
    if pa.types.is_floating(kind):
        orderings = comparable(orderings)  # makes NaN comparable
    elif pa.types.is_timestamp(kind) or pa.types.is_time64(kind):
        orderings = orderings.view(pa.int64())
    elif pa.types.is_date32(kind) or pa.types.is_time32(kind):
        orderings = orderings.view(pa.int32())
    values: list[Any] = orderings.to_pylist()
    return values
