"""Which indexes of the metadata table follow an action of the table, and what an action has to wait for.

    files                              every action
    bloom_filters                      every action
    column_stats, partition_stats      every action but one with new columns or types, because the form of their statistics
                                       is in existing records
    record_index                       every action but a rollback of rows
    secondary_index_*, expr_index_*    every action: an index that cannot follow is dropped with it

An action is refused while the metadata table has another partition.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from eventide_core.cure import Cure
from eventide_core.errors import BusyError, MetadataTableBusyError, UnsupportedTableError
from eventide_core.table.files.file_slice import FileSlice
from eventide_core.table.files.table_path import METADATA_DIRECTORY
from eventide_core.table.settings import metadata_table
from eventide_core.table.settings.metadata_table import MetadataTableFacts, RowChange, is_of_whole_table, kind_of
from eventide_core.table.timeline.instant import Instant

_BY_FILE: Final = frozenset((metadata_table.FILES, metadata_table.BLOOM_FILTERS))
_BY_RANGE: Final = frozenset((metadata_table.COLUMN_STATS, metadata_table.PARTITION_STATS))
_BY_VALUE: Final = frozenset((metadata_table.SECONDARY_INDEX_PREFIX, metadata_table.EXPRESSION_INDEX_PREFIX))
_KEPT_OR_DROPPED: Final = {
    RowChange.NONE: _BY_FILE | _BY_RANGE | _BY_VALUE | {metadata_table.RECORD_INDEX},
    RowChange.WRITTEN: _BY_FILE | _BY_RANGE | _BY_VALUE | {metadata_table.RECORD_INDEX},
    RowChange.WIDENED: _BY_FILE | _BY_VALUE | {metadata_table.RECORD_INDEX},
    RowChange.ROLLED_BACK: _BY_FILE | _BY_RANGE | _BY_VALUE,
}
_WHEN: Final = {
    RowChange.NONE: "",
    RowChange.WRITTEN: " when rows are written",
    RowChange.WIDENED: " when rows with new columns or types are written",
    RowChange.ROLLED_BACK: " when rows are rolled back",
}


def check_indexes(facts: MetadataTableFacts, rows: RowChange, root: str) -> None:
    """Raises UnsupportedTableError for an index that cannot follow the action, BusyError while Hudi is building one."""
    unkept = [partition for partition in facts.partitions if kind_of(partition) not in _KEPT_OR_DROPPED[rows]]
    if unkept or metadata_table.FILES not in facts.partitions:
        raise UnsupportedTableError(
            f"{root}: the metadata table has {', '.join(unkept) or f'no partition {metadata_table.FILES}'}, which "
            f"eventide cannot keep up to date{_WHEN[rows]}; drop that index with Hudi, or rebuild the metadata "
            f"table without it ({Cure.rebuild_metadata_table_without_indexes()}, or with the indexes to keep)"
        )
    if facts.building:
        raise BusyError(
            f"{root}: Hudi is building {', '.join(facts.building)} in the metadata table; try again when it has completed"
        )


def check_record_index(slices: Iterable[FileSlice]) -> None:
    """Raises UnsupportedTableError for a record index that has separate file groups for each partition."""
    for file_slice in slices:
        if not is_of_whole_table(file_slice.file_id):
            raise UnsupportedTableError(
                f"{METADATA_DIRECTORY}/{metadata_table.RECORD_INDEX} has the file group {file_slice.file_id}: a record "
                "index by partition is not supported; drop that index with Hudi, or rebuild the metadata table "
                f"({Cure.rebuild_metadata_table()}), which leaves it out"
            )


def check_pending(pending: Sequence[Instant], root: str) -> None:
    """Raises MetadataTableBusyError for a plan of the metadata table that another engine has to complete."""
    for plan in pending:
        raise MetadataTableBusyError(
            f"{root}: a {plan.action} of the metadata table is pending at {plan.requested_time}; the next write of Hudi "
            "completes it"
        )
