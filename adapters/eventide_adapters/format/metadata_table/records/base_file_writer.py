"""Writes base files of the metadata table."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

from eventide_adapters.format.metadata_table.records.hfile_writer import HFileStyle, write_hfile
from eventide_adapters.format.metadata_table.records.merged import merged_entries
from eventide_adapters.format.metadata_table.records.reader import MetadataTableReader
from eventide_core.ports import Storage
from eventide_core.table.files.file_name import BaseFileName, LogFileName
from eventide_core.table.files.file_slice import BaseFile, FileSlice, LogFile
from eventide_core.table.files.table_path import METADATA_DIRECTORY
from eventide_core.table.schema.avro_schema import AvroSchema
from eventide_core.table.timeline.contents.commit_metadata import WriteStat
from eventide_core.table.timeline.contents.plans import PlannedOperation
from eventide_core.table.timeline.layout import Layout


def write_base_file(
    storage: Storage, path: str, entries: Iterable[tuple[bytes, bytes]], schema: AvroSchema, layout: Layout
) -> tuple[int, int]:
    """Writes a base file at a path below the metadata table. Returns the number of its records, and its size in bytes.

    If an earlier run made this file, it stays: its bytes are the same.
    """
    place = f"{METADATA_DIRECTORY}/{path}"
    output = storage.open_output(place)
    try:
        count = write_hfile(output.write, entries, schema, HFileStyle.of(layout), has_key_range=True)
    except BaseException:
        output.abort()
        raise
    output.commit()
    written = storage.stat(place)
    return count, 0 if written is None else written.size


def _slice_of(operation: PlannedOperation) -> FileSlice:
    base = None
    if operation.base_path is not None:
        name = BaseFileName.parse(operation.base_path.rpartition("/")[2])
        assert name is not None  # a decoded plan has only valid names
        base = BaseFile(name, f"{METADATA_DIRECTORY}/{operation.base_path}", operation.base_size)
    logs: list[LogFile] = []
    for log in operation.compacted:
        parsed = LogFileName.parse(log.name)
        assert parsed is not None
        logs.append(LogFile(parsed, f"{METADATA_DIRECTORY}/{log.path}", log.size))
    return FileSlice(operation.partition, operation.file_id, operation.base_instant, base, tuple(logs))


@dataclass(frozen=True, slots=True)
class MetadataBaseFileWriter:
    """Writes the base file of an operation, block by block. None if no records are left. Picklable."""

    reader: MetadataTableReader
    schema: AvroSchema

    def __call__(self, operation: PlannedOperation, /) -> WriteStat | None:
        sources, deleted = self.reader.sources(_slice_of(operation))
        entries = merged_entries(operation.partition, sources, deleted, self.schema)
        first = next(entries, None)
        return None if first is None else self._written(operation, chain((first,), entries), len(sources))

    def _written(self, operation: PlannedOperation, entries: Iterator[tuple[bytes, bytes]], sources: int) -> WriteStat:
        reader, path = self.reader, operation.new_base_path
        count, size = write_base_file(reader.storage, path, entries, self.schema, reader.facts.layout)
        return WriteStat(
            file_id=operation.file_id,
            path=path,
            partition=operation.partition,
            prev_commit=operation.base_instant,
            num_writes=count,
            total_write_bytes=size,
            file_size_bytes=size,
            total_log_files_compacted=len(operation.compacted),
            total_log_size_compacted=sum(log.size for log in operation.compacted),
            total_log_blocks=sources - (operation.base_path is not None),
            prev_base_file=None if operation.base_path is None else operation.base_path.rpartition("/")[2],
        )
