"""The requirements of a table with change data capture (`hoodie.table.cdc.enabled`) on a compaction.

Hudi derives the changes of a write from its files: those of a new base file are inserts, and those of a log file follow from
the slice that its write stat names. A compaction changes no row, so it adds no change, and leaves the change logs as they
are.

This does not hold for an index that writes inserts as log files (BUCKET, FLINK_STATE): there Flink may read changes from
compactions alone, from the change logs (`.cdc`) that Hudi writes beside the new base files. eventide doesn't write
these, and refuses. Compactions of Hudi 1.1 write them under every index, but nobody reads those.
"""

from collections.abc import Iterable

from eventide_core import config as keys
from eventide_core.config import Options
from eventide_core.errors import UnsupportedTableError
from eventide_core.table.bucket import PURE_LOG_INDEXES, bucket_of_file_id, is_flink_file_id
from eventide_core.table.file_slice import FileSlice
from eventide_core.table.table_config import TableConfig


def require_derived_changes(config: TableConfig, options: Options, slices: Iterable[FileSlice], place: str) -> None:
    """Raises UnsupportedTableError if the changes of the table may be read from its compactions."""
    if not config.captures_changes:
        return
    said = options.text(keys.INDEX_TYPE) or config.properties.get(keys.INDEX_TYPE)
    if said is None:
        is_pure_log = any(map(_is_of_pure_logs, slices))
        found = "file groups that begin with logs"
    else:
        is_pure_log = said.upper() in PURE_LOG_INDEXES
        found = f"{keys.INDEX_TYPE}={said}"
    if is_pure_log:
        raise UnsupportedTableError(
            f"{place}: hoodie.table.cdc.enabled=true, with {found}: compactions of this table must write change logs, which "
            "eventide doesn't; compact it with Hudi, or set hoodie.table.cdc.enabled=false there if nobody reads its changes"
        )


def _is_of_pure_logs(found: FileSlice) -> bool:
    is_bucket = bucket_of_file_id(found.file_id) is not None
    return is_bucket or found.base_file is None or is_flink_file_id(found.file_id)
