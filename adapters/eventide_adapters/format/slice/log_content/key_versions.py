"""Finds the versions of some keys in a slice, in columns.

1. Of each log file, only the keys and their ordering values are read, as columns.
2. The keys that are on both sides are found in the columns. If only deletes count, keys without a delete are dropped.
3. Only the remaining versions become Python objects.

Versions are tables in reader order. `key` is the record key, and `ordering` the ordering value, null if not set. Three
flags follow: `is_delete`; `is_partial`, the version may take columns from others; `is_early`, it is merged although its log
file stays.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide_adapters.format.encoding.columns.arrow_numpy import null_flags
from eventide_adapters.format.slice.log_file.ordering_values import orderings_of, ranks
from eventide_adapters.format.slice.log_file.records import DeleteBlock, LogPart
from eventide_core.table.records.key_history import KeyHistory
from eventide_core.table.records.record_order import Version

_FLAGS = ("is_delete", "is_partial", "is_early")


def versions_of_keys(keys: Any, orderings: Any, *, is_delete: bool = False, is_partial: bool = False) -> pa.Table:
    flags = (pa.array(np.full(len(keys), flag)) for flag in (is_delete, is_partial, False))
    return pa.table([keys, orderings, *flags], names=["key", "ordering", *_FLAGS])


def versions_of_block(block: LogPart, ordering_fields: Sequence[str], *, is_partial: bool) -> pa.Table:
    """The versions in a part of a block from `BlockReader`. `is_partial`: any record may take columns."""
    if isinstance(block, DeleteBlock):
        return versions_of_keys(block.keys, block.orderings, is_delete=True)
    orderings = orderings_of(block.records, ordering_fields)
    return versions_of_keys(block.keys, orderings, is_partial=is_partial or block.absent is not None)


def all_versions(parts: Iterable[pa.Table], ordering: pa.DataType) -> pa.Table:
    """The versions of all parts, in order. `ordering` is the type of the ordering values."""
    return pa.concat_tables([versions_of_keys(pa.array([], pa.string()), pa.array([], ordering)), *parts])


def of_keys(versions: pa.Table, keys: Any) -> pa.Table:
    """The versions of these keys only."""
    return versions.filter(pc.is_in(versions["key"], keys))


def common_keys(merged: pa.Table, left_overs: pa.Table, *, only_deleted: bool) -> Any:
    """The keys on both sides, in the order of the first side. `only_deleted`: only those with a delete on either side.

    Records that are merged early belong to both sides.
    """
    early = left_overs.filter(left_overs["is_early"])
    keys: Any = pc.unique(pa.chunked_array([*merged["key"].chunks, *early["key"].chunks], pa.string()))
    keys = keys.filter(pc.is_in(keys, left_overs["key"]))
    if not only_deleted:
        return keys
    deleted: list[Any] = [side["key"].filter(side["is_delete"]) for side in (merged, left_overs)]
    return keys.filter(pc.or_(*(pc.is_in(keys, of_side) for of_side in deleted)))


def histories(keys: Any, base: pa.Table, merged: pa.Table, left_overs: pa.Table) -> tuple[KeyHistory, ...]:
    """The history of each key, from tables that contain only versions of these keys.

    An ordering value is its rank among all of them. A record without one is less than any other, as in the merge, and a
    delete without one is in natural order.
    """
    versions: dict[str, tuple[list[Version], list[Version], list[Version]]] = {
        key: ([], [], []) for key in keys.to_pylist()
    }
    early: dict[str, list[Version]] = {key: [] for key in versions}
    every = pa.concat_tables([base, merged, left_overs]).combine_chunks()
    orderings: Any = every["ordering"].combine_chunks()
    side_of = np.repeat(range(3), [len(base), len(merged), len(left_overs)])
    columns = (every[name].to_pylist() for name in ("key", *_FLAGS))
    for side, number, is_natural, key, is_delete, is_partial, is_early in zip(
        side_of.tolist(), ranks(orderings).tolist(), null_flags(orderings).tolist(), *columns, strict=True
    ):
        history = versions[key]
        position = sum(len(part) for part in history)
        version = Version(None if is_natural and is_delete else number, is_delete, position, is_partial)
        history[side].append(version)
        if is_early:
            early[key].append(version)
    return tuple(
        KeyHistory(key, based[-1] if based else None, tuple(merged_), tuple(remaining_), tuple(early[key]))
        for key, (based, merged_, remaining_) in versions.items()
    )
