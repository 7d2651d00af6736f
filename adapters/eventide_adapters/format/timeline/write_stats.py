"""The write stats of a commit <-> values: HoodieWriteStat, by Avro and by JSON.

The fields have the same names in both. In the stat of a base file, JSON omits the fields of log files.

A commit can have a hundred thousand stats, so the types of a stat are checked together. An invalid stat is read again field
by field, so that the error names the first wrong field.
"""

from collections.abc import Iterator
from sys import intern
from typing import Any, Final

from eventide_adapters.format.timeline.document import LONG, Document
from eventide_core.table.commit_metadata import WriteStat

_TEXTS: Final = ("fileId", "path", "prevCommit", "baseFile", "prevBaseFile")
_COUNTS: Final = (
    "numWrites",
    "numDeletes",
    "numUpdateWrites",
    "numInserts",
    "totalWriteBytes",
    "fileSizeInBytes",
    "totalLogRecords",
    "totalLogFilesCompacted",
    "totalLogSizeCompacted",
    "totalUpdatedRecordsCompacted",
    "totalLogBlocks",
)
_NUMBERS: Final = ("minEventTime", "maxEventTime", "logVersion")
_TIMES: Final = ("totalScanTime", "totalUpsertTime")
_TEXT_TYPES: Final = frozenset((str, type(None)))
_NUMBER_TYPES: Final = frozenset((int, type(None)))


def stats_of(by_partition: Document, partition: str) -> Iterator[WriteStat]:
    """The write stats of a partition. If a task had nothing to write, Hudi omits the path: then there is no stat."""
    partition = intern(partition)
    for values in by_partition.items(partition):
        stat = _read_at_once(values, partition)
        if stat is None:
            document = Document.of(values, by_partition.path, f"an item of {partition}")
            if document.text("path") is not None:
                yield _read(document, partition)
        else:
            yield stat


def _read_at_once(values: Any, partition: str) -> WriteStat | None:
    """The stat, if all its fields are valid."""
    if type(values) is not dict:
        return None
    get = values.get
    runtime = {} if get("runtimeStats") is None else get("runtimeStats")
    logs = get("logFiles")
    if type(runtime) is not dict or not (logs is None or type(logs) is list):
        return None
    texts = tuple(map(get, _TEXTS))
    counts = (*map(get, _COUNTS), *map(runtime.get, _TIMES))
    numbers = tuple(map(get, _NUMBERS))
    if not (_TEXT_TYPES.issuperset(map(type, texts)) and _NUMBER_TYPES.issuperset(map(type, (*counts, *numbers)))):
        return None
    file_id, path, prev_commit, base_file, prev_base_file = texts
    known = [count or 0 for count in counts]
    ends = [number or 0 for number in numbers]
    if file_id is None or path is None or min(known) < 0 or max(*known, *ends) not in LONG or min(ends) not in LONG:
        return None
    if logs is not None and not {*map(type, logs)} <= {str}:
        return None
    fields: Any = (
        intern(file_id),
        path,
        partition,
        _interned(prev_commit),
        *known[: len(_COUNTS)],
        *numbers,
        _interned(base_file),
        None if logs is None else tuple(map(intern, logs)),
        prev_base_file,
        *known[len(_COUNTS) :],
        None,
    )
    return WriteStat._make(fields)


def _interned(text: str | None) -> str | None:
    return None if text is None else intern(text)  # many stats have the same text


def _read(stat: Document, partition: str) -> WriteStat:
    runtime = stat.document("runtimeStats")
    return WriteStat(
        file_id=stat.required_text("fileId"),
        path=stat.required_text("path"),
        partition=partition,
        prev_commit=stat.text("prevCommit"),
        num_writes=stat.count("numWrites"),
        num_deletes=stat.count("numDeletes"),
        num_update_writes=stat.count("numUpdateWrites"),
        num_inserts=stat.count("numInserts"),
        total_write_bytes=stat.count("totalWriteBytes"),
        file_size_bytes=stat.count("fileSizeInBytes"),
        total_log_records=stat.count("totalLogRecords"),
        total_log_files_compacted=stat.count("totalLogFilesCompacted"),
        total_log_size_compacted=stat.count("totalLogSizeCompacted"),
        total_updated_records_compacted=stat.count("totalUpdatedRecordsCompacted"),
        total_log_blocks=stat.count("totalLogBlocks"),
        min_event_time_ms=stat.integer("minEventTime"),
        max_event_time_ms=stat.integer("maxEventTime"),
        log_version=stat.integer("logVersion"),
        base_file=stat.text("baseFile"),
        log_files=None if stat.values.get("logFiles") is None else stat.texts("logFiles"),
        prev_base_file=stat.text("prevBaseFile"),
        total_scan_time_ms=runtime.count("totalScanTime"),
        total_upsert_time_ms=runtime.count("totalUpsertTime"),
    )


def _base_stat(stat: WriteStat) -> dict[str, Any]:
    return {
        "fileId": stat.file_id,
        "path": stat.path,
        "cdcStats": None,
        "prevCommit": stat.prev_commit,
        "numWrites": stat.num_writes,
        "numDeletes": stat.num_deletes,
        "numUpdateWrites": stat.num_update_writes,
        "numInserts": stat.num_inserts,
        "totalWriteBytes": stat.total_write_bytes,
        "totalWriteErrors": 0,
        "tempPath": None,
        "partitionPath": stat.partition,
        "totalLogRecords": stat.total_log_records,
        "totalLogFilesCompacted": stat.total_log_files_compacted,
        "totalLogSizeCompacted": stat.total_log_size_compacted,
        "totalUpdatedRecordsCompacted": stat.total_updated_records_compacted,
        "totalLogBlocks": stat.total_log_blocks,
        "totalCorruptLogBlock": 0,
        "totalRollbackBlocks": 0,
        "fileSizeInBytes": stat.file_size_bytes,
        "minEventTime": stat.min_event_time_ms,
        "maxEventTime": stat.max_event_time_ms,
        "runtimeStats": {
            "totalScanTime": stat.total_scan_time_ms,
            "totalUpsertTime": stat.total_upsert_time_ms,
            "totalCreateTime": 0,
        },
    }


def _log_fields(stat: WriteStat) -> dict[str, Any]:
    return {
        "logVersion": stat.log_version,
        "logOffset": None if stat.log_version is None else 0,
        "baseFile": stat.base_file,
        "logFiles": None if stat.log_files is None else list(stat.log_files),
    }


def json_stat(stat: WriteStat) -> dict[str, Any]:
    record = _base_stat(stat)
    if stat.prev_base_file is not None:
        record["prevBaseFile"] = stat.prev_base_file
    if stat.log_version is not None:
        # An empty option in Hudi's JSON.
        record |= _log_fields(stat) | {"recordsStats": {"val": None}}
    return record


def avro_stat(stat: WriteStat) -> dict[str, Any]:
    log_times = {"totalLogReadTimeMs": 0, "numUpdates": 0}
    return _base_stat(stat) | _log_fields(stat) | {"prevBaseFile": stat.prev_base_file} | log_times
