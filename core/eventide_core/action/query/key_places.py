"""Which file groups a filter on record keys reads, by the record index of Hudi's metadata table.

The index has one place for each key. A key that is in a second place too, or that the index has lost, would be missing
from the answer, so the index decides only if

1. the writers look keys up in it, as `hoodie.index.type=RECORD_INDEX` of the table or of the options states. Beside another
   index, Hudi loses keys that were deleted and inserted again, and a key may be in several partitions;
2. the active timeline has no insert operation but the table's first write, because inserts look nothing up;
3. rows have Hudi's record keys, as the index has;
4. it is of the very state that is read (service/query/record_index_lookup.py).

A key that it lacks is nowhere if a delete always wins. By event time, a delete may lose against an older row, which Hudi's
index has forgotten then. So the key may be anywhere.
"""

from collections.abc import Collection, Mapping, Sequence

from eventide_core.config import INDEX_TYPE
from eventide_core.table.files.slice_read import KeyForms, QueryPlan, SliceRead
from eventide_core.table.records.record_order import MergeRule
from eventide_core.table.settings.metadata_table import RECORD_INDEX
from eventide_core.table.settings.table_config import TableConfig
from eventide_core.table.timeline.contents.commit_metadata import CommitMetadata

_GLOBAL = frozenset(("RECORD_INDEX", "GLOBAL_RECORD_LEVEL_INDEX"))
_REPEATS_NO_KEY = frozenset(
    (
        "UPSERT",
        "UPSERT_PREPPED",
        "DELETE",
        "DELETE_PREPPED",
        "DELETE_PARTITION",
        "CLUSTER",
        "COMPACT",
        "LOG_COMPACT",
        "ALTER_SCHEMA",
    )
)
_SLICES_MIN = 4
"""A look-up costs about as many requests as the footers of these slices."""


def looks_no_key_up(commit: CommitMetadata) -> bool:
    """Whether the write may have inserted a key that the table had."""
    return not (commit.is_compacted or commit.operation_type.upper() in _REPEATS_NO_KEY)


def is_looked_up(
    config: TableConfig,
    index_type: str | None,
    plan: QueryPlan,
    slices: Sequence[SliceRead],
    named: Sequence[KeyForms] | None,
) -> bool:
    """Whether the record index may say which of the plan's `slices` hold the keys, and is likely to cost less than these.

    `index_type` is the index that the user states, if any.
    """
    is_there = RECORD_INDEX in config.metadata_partitions and not config.virtual_key_fields
    if named is None or plan.completed is None or not is_there:
        return False
    index_types = {text.upper() for text in (index_type, config.properties.get(INDEX_TYPE)) if text}
    return bool(index_types) and index_types <= _GLOBAL and len(slices) > _SLICES_MIN + len(named)


def slices_by_places(
    config: TableConfig,
    slices: Sequence[SliceRead],
    groups: Collection[tuple[str, str]],
    named: Sequence[KeyForms],
    places: Mapping[str, tuple[str, str]],
) -> tuple[SliceRead, ...] | None:
    """Of the slices those that hold the keys. None if a key may be anywhere.

    `groups` are the table's file groups, by partition and file ID. `places` are those that the index has of the keys.
    """
    is_missing = any(places.keys().isdisjoint(forms) for forms in named)
    if is_missing and config.merge_rule is not MergeRule.COMMIT_TIME_ORDERING:
        return None
    located = set(places.values())
    if not located <= set(groups):
        return None  # the index is of another state after all
    return tuple(one for one in slices if (one.partition, one.file_id) in located)
