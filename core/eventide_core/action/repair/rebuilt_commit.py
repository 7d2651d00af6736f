"""The metadata of a commit whose timeline file is lost, from the files that it wrote."""

from typing import Final

from eventide_core.action.verification.facts import TableFacts
from eventide_core.table.files.file_name import BaseFileName, LogFileName
from eventide_core.table.timeline.contents.commit_metadata import SCHEMA_KEY, CommitMetadata, WriteStat, by_partition
from eventide_core.table.timeline.file_system_view import DataFile

_OPERATION: Final = "UPSERT"  # Hudi's name for a write that may hold anything


def rebuilt_commit(facts: TableFacts, time: str) -> CommitMetadata | None:
    """The commit of the files that hold its records.

    None if there are none, or two base files of one file group, or no other commit states the schema.
    """
    schemas = [(other, metadata.schema) for other, metadata in facts.commits.items() if metadata.schema]
    stats = [stat for file in facts.data_files if (stat := _stat(facts, file, time)) is not None]
    bases = [(s.partition, s.file_id) for s in stats if s.log_version is None]
    if not schemas or not stats or len(set(bases)) < len(bases):
        return None
    earlier = [schema for other, schema in sorted(schemas, key=lambda stated: stated[0]) if other < time]
    schema = earlier[-1] if earlier else min(schemas, key=lambda stated: stated[0])[1]
    assert schema is not None
    return CommitMetadata(by_partition(stats), {SCHEMA_KEY: schema.text}, _OPERATION)


def _stat(facts: TableFacts, file: DataFile, time: str) -> WriteStat | None:
    """The write stat of a file that the write at `time` made or appended to; None for any other file."""
    name = file.parsed
    if isinstance(name, BaseFileName):
        if name.instant != time:
            return None
        return WriteStat(name.file_id, file.path, file.partition, "null", file_size_bytes=file.size)
    if name is None or name.suffix or file.path in facts.left_overs or time not in instants_in(facts, file):
        return None
    base = _base_below(facts, file, name, time)
    return WriteStat(
        name.file_id,
        file.path,
        file.partition,
        prev_commit=base.instant if base is not None else name.instant,
        file_size_bytes=file.size,
        log_version=name.version,
        base_file=str(base) if base is not None else "",
        log_files=(file.name,),
    )


def instants_in(facts: TableFacts, file: DataFile) -> frozenset[str]:
    scan = facts.log_scans.get(file.path)
    return frozenset() if scan is None else scan.instants


def _base_below(facts: TableFacts, file: DataFile, log: LogFileName, time: str) -> BaseFileName | None:
    """The base file of the slice that the log file belongs to."""
    bases = facts.bases_of((file.partition, log.file_id))
    if not facts.layout.names_logs_by_write:
        return next((name for name in bases if name.instant == log.instant), None)
    return max((name for name in bases if name.instant < time), key=lambda name: name.instant, default=None)
