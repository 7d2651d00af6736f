"""What change data capture (`hoodie.table.cdc.enabled`) requires of a compaction.

Hudi derives the changes of a write from its files: a new base file has inserts, and the changes of a log file follow from
the slice that its write stat names. A compaction changes no row, so it adds no change.

This is different under an index that writes inserts as log files (BUCKET, FLINK_STATE). There, Flink by default reads
changes from compactions (`read.cdc.from.changelog`): from the change log (`.cdc`) that Hudi's compaction writes beside each
new base file of a slice with a base file, or else as inserts, if it wrote nothing but inserts. Otherwise the query fails.
Hudi on Spark reads none of them. eventide writes these change logs, too
(`adapters/eventide_adapters/format/slice/log_file/change_log.py`).

1. The change log holds what is different between the old and the new base file. So a compaction of the first log files
   leaves the changes of the others to the next one.
2. An exact cut would merge early records, which stay in a left-over. The next compaction of Hudi would log them again, as
   updates that change nothing. So such a slice is compacted in full.
"""

from collections.abc import Iterable
from dataclasses import replace

from eventide_core import config as keys
from eventide_core.action.compaction.slice_selection import Selection
from eventide_core.table.files.bucket import PURE_LOG_INDEXES, bucket_of_file_id, is_flink_file_id
from eventide_core.table.files.file_slice import FileSlice
from eventide_core.table.records.supplemental_logging import SupplementalLogging
from eventide_core.table.settings.table_config import TableConfig
from eventide_core.table.timeline.contents.plans import CompactionPlan, FallbackReason


def writes_change_logs(config: TableConfig, index_type: str | None, slices: Iterable[FileSlice]) -> bool:
    """Whether compactions of the table write change logs. Raises UnsupportedTableError for an unknown kind of these.

    `index_type` is the index that the user states, if any.
    """
    if not config.captures_changes:
        return False
    index = index_type or config.properties.get(keys.INDEX_TYPE)
    is_pure_log = any(map(_is_of_pure_logs, slices)) if index is None else index.upper() in PURE_LOG_INDEXES
    if is_pure_log:
        SupplementalLogging.of(config.properties)
    return is_pure_log


def with_change_logs(plan: CompactionPlan) -> CompactionPlan:
    """The plan whose operations write change logs."""
    return replace(plan, operations=tuple(replace(op, captures_changes=True) for op in plan.operations))


def without_early_records(selection: Selection) -> Selection:
    """The selection without an exact cut: in full, or later if that is not possible now."""
    if not selection.early:
        return selection
    if selection.above:
        return replace(selection, has_to_wait=True)
    return selection.in_full(
        FallbackReason.CHANGE_CAPTURE, "change data capture would log the records of an exact cut twice"
    )


def _is_of_pure_logs(file_slice: FileSlice) -> bool:
    is_bucket = bucket_of_file_id(file_slice.file_id) is not None
    return is_bucket or file_slice.base_file is None or is_flink_file_id(file_slice.file_id)
