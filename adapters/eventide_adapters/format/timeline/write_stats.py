"""The write stats of a commit <-> values: HoodieWriteStat, by Avro and by JSON.

The fields have the same names in both. In the stat of a base file, JSON omits the fields of log files. The names of log
files are written, and not read: on version 6, each stat names all log files of its slice, which would be a fourth of the
cost of reading it.

A commit can have a hundred thousand stats, so a partition's stats are read together, field by field. If one of them is
unusual, each is read singly, so that the error names the first wrong field.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, repeat
from sys import intern
from types import NoneType
from typing import Any, Final

from eventide_adapters.format.timeline.document import LONG, Document
from eventide_core.table.timeline.contents.commit_metadata import WriteStat

STATS_FIELD: Final = "partitionToWriteStats"
TEXTS: Final = ("fileId", "path", "prevCommit", "baseFile", "prevBaseFile")
COUNTS: Final = (
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
NUMBERS: Final = ("minEventTime", "maxEventTime", "logVersion")
TIMES: Final = ("totalScanTime", "totalUpsertTime")


def stats_of(by_partition: Document, partition: str) -> Iterable[WriteStat]:
    """The write stats of a partition. If a task had nothing to write, Hudi omits the path: then there is no stat."""
    partition = intern(partition)
    items = by_partition.items(partition)
    stats = _read_together(items, partition)
    return _read_each(items, by_partition.path, partition) if stats is None else stats


def _read_together(items: list[Any], partition: str) -> list[WriteStat] | None:
    """The stats, if all their fields are valid."""
    if not {*map(type, items)} <= {dict}:
        return None
    runtime = [{} if times is None else times for times in _values(items, "runtimeStats")]
    if not {*map(type, runtime)} <= {dict}:
        return None
    texts = [_values(items, name) for name in TEXTS]
    numbers = [_values(items, name) for name in NUMBERS]
    counts = [[0 if count is None else count for count in _values(items, name)] for name in COUNTS]
    times = [[0 if count is None else count for count in _values(runtime, name)] for name in TIMES]
    file_ids, paths, prev_commits, base_files, prev_base_files = texts
    are_valid = (
        {*map(type, chain(file_ids, paths))} <= {str}
        and {*map(type, chain(prev_commits, base_files, prev_base_files))} <= {str, NoneType}
        and all(_are_longs(column, LONG.start, {int, NoneType}) for column in numbers)
        and all(_are_longs(column, 0, {int}) for column in (*counts, *times))
    )
    if not are_valid:
        return None
    return made_stats(repeat(partition, len(items)), texts, counts, numbers, times)


def _values(items: list[Any], name: str) -> list[Any]:
    return [stat.get(name) for stat in items]


def _are_longs(column: list[Any], least: int, types: set[type]) -> bool:
    if not {*map(type, column)} <= types:
        return False
    known = {*column} - {None}  # few: most columns have the same number again and again
    return not known or (min(known) >= least and max(known) < LONG.stop)


def _read_each(items: list[Any], path: str, partition: str) -> Iterator[WriteStat]:
    for values in items:
        document = Document.of(values, path, f"an item of {partition}")
        if document.text("path") is not None:
            yield _read(document, partition)


def made_stats(
    partitions: Iterable[str],
    texts: Sequence[Iterable[Any]],
    counts: Iterable[Iterable[int]],
    numbers: Iterable[Iterable[int | None]],
    times: Iterable[Iterable[int]],
) -> list[WriteStat]:
    """The stats whose fields are these columns, in the order of TEXTS, COUNTS, NUMBERS and TIMES."""
    file_ids, paths, prev_commits, base_files, prev_base_files = texts
    columns: list[Iterable[Any]] = [map(intern, file_ids), paths, partitions, _shared(prev_commits)]
    columns += [*counts, *numbers, _shared(base_files), prev_base_files, *times]
    return list(map(WriteStat._make, zip(*columns, repeat(()), repeat(None), repeat(None), strict=False)))


def _shared(texts: Iterable[str | None]) -> list[str | None]:
    """The texts, each distinct one kept once: many stats share them."""
    return [None if text is None else intern(text) for text in texts]


def _read(stat: Document, partition: str) -> WriteStat:
    runtime = stat.document("runtimeStats")
    values: list[Any] = [stat.required_text("fileId"), stat.required_text("path"), partition, stat.text("prevCommit")]
    values += [*map(stat.count, COUNTS), *map(stat.integer, NUMBERS)]
    values += [stat.text("baseFile"), stat.text("prevBaseFile"), *map(runtime.count, TIMES)]
    return WriteStat(*values)


def _base_stat(stat: WriteStat) -> dict[str, Any]:
    return {
        "fileId": stat.file_id,
        "path": stat.path,
        "cdcStats": None if stat.change_log is None else dict((stat.change_log,)),
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
        "logFiles": None if stat.log_version is None else list(stat.log_files),
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
