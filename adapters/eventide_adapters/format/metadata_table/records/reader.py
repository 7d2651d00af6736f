"""Reads the current content of Hudi's metadata table of one table.

The metadata table is a separate table in `.hoodie/metadata`. It has HFile base files and log files of HFILE blocks, in
the same slices as any merge-on-read table of that version. It differs as follows:

1. Its delta commit at C is made before the table's commit at C, and counts only after that commit: an instant that is
   pending on the table's timeline does not count.
2. A log file whose delta commit is archived belongs below a base file of a later instant.
3. The versions of a record's key are merged, not replaced. The callers define how.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

import pyarrow as pa

from eventide_adapters.format.metadata_table.records.hfile import HFile
from eventide_adapters.format.metadata_table.records.hudi_key_index import HudiKeyIndex
from eventide_adapters.format.metadata_table.records.merged import RecordSource, can_merge
from eventide_adapters.format.metadata_table.records.records import Value, decode_value
from eventide_adapters.format.slice.log_file.blocks import PlacedBlock, not_rolled_back, read_headers, read_headers_of
from eventide_adapters.format.slice.log_file.delete_block import decode_delete_block
from eventide_adapters.format.timeline.archived_lsm import archived_timeline
from eventide_adapters.format.timeline.codec import HudiMetadataCodec
from eventide_core.access.active_timeline import active_timeline
from eventide_core.access.timeline_files import TimelineFiles
from eventide_core.cure import Cure
from eventide_core.errors import (
    CorruptBaseFileError,
    CorruptLogBlockError,
    NotAHudiTableError,
    RecordDecodeError,
    UnsupportedTableError,
)
from eventide_core.ports import ArchivedTimeline, Storage
from eventide_core.table.files.file_name import BaseFileName, LogFileName
from eventide_core.table.files.file_slice import FileSlice
from eventide_core.table.files.log_block import BlockType, HeaderKey
from eventide_core.table.files.read_ahead import ReadRange
from eventide_core.table.files.slice_read import BlockFilter
from eventide_core.table.files.table_path import METADATA_DIRECTORY
from eventide_core.table.property_keys import (
    METADATA_PARTITIONS,
    METADATA_PARTITIONS_INFLIGHT,
    TABLE_VERSION,
)
from eventide_core.table.schema.avro_schema import AvroSchema
from eventide_core.table.settings.metadata_table import REBUILD_CURE, RECORD_INDEX, MetadataTableFacts, own_properties
from eventide_core.table.settings.properties import (
    PROPERTIES_PATH,
    has_utc_instants,
    names,
    parse_properties,
    settings_text,
)
from eventide_core.table.timeline.file_system_view import DataFile, FileSystemView
from eventide_core.table.timeline.layout import Layout, layout_of
from eventide_core.table.timeline.timeline import Timeline

_SMALL_FILE_BYTES_MAX: Final = 1 << 20  # up to this size, one read costs less than several reads of ranges


@dataclass(frozen=True, slots=True)
class MetadataTableReader:
    """The metadata table at one moment. The paths are relative to the table's root.

    `own_files` is its own timeline, which may not exist if no partition is in use, and `data_files` the table's timeline.
    """

    storage: Storage
    facts: MetadataTableFacts
    archive_path: str
    own_files: TimelineFiles
    data_files: TimelineFiles
    blocks: BlockFilter
    has_utc_instants: bool
    _small_files: dict[tuple[str, int], bytes] = field(default_factory=dict[tuple[str, int], bytes], repr=False)

    @classmethod
    def load(cls, storage: Storage) -> "MetadataTableReader":
        """Raises NotAHudiTableError if the table's properties state no version."""
        properties = parse_properties(settings_text(storage.read_range, storage.root))
        version = int(properties.get(TABLE_VERSION, "0"))
        if not version:
            raise NotAHudiTableError(f"{storage.root}: {PROPERTIES_PATH} has no {TABLE_VERSION}")
        own = own_properties(storage.read_range)
        stated = own.get(TABLE_VERSION, "")
        own_version = int(stated) if stated.isdecimal() else version
        layout, data_layout = layout_of(own_version), layout_of(version)
        own_files = TimelineFiles(storage, f"{METADATA_DIRECTORY}/{layout.timeline_path(own)}")
        archive_path = layout.archive_path(own_files.directory, own)
        timeline = _timeline(own_files, layout, archive_path)
        data_files = TimelineFiles(storage, data_layout.timeline_path(properties))
        data_timeline = _timeline(data_files, data_layout, data_layout.archive_path(data_files.directory, properties))
        pending = {i.requested_time for i in data_timeline.pending}
        completed = {i.requested_time for i in timeline.completed}
        partitions, building = (
            tuple(sorted(names(properties, key))) for key in (METADATA_PARTITIONS, METADATA_PARTITIONS_INFLIGHT)
        )
        return cls(
            storage,
            MetadataTableFacts(own_version, partitions, building, timeline, data_timeline),
            archive_path,
            own_files,
            data_files,
            BlockFilter(frozenset(completed - pending), timeline.start),
            has_utc_instants(properties),
        )

    @property
    def timeline_path(self) -> str:
        return self.own_files.directory

    @property
    def archive(self) -> ArchivedTimeline:
        return archived_timeline(self.storage, self.facts.layout, self.archive_path)

    def slices(self, partition: str) -> tuple[FileSlice, ...]:
        """The latest slice of each file group in a partition of the metadata table, ordered by file group number."""
        return self.view(partition).latest_slices()

    def own_slices(self, partition: str) -> tuple[FileSlice, ...]:
        """`slices` of a partition that has to have some: the settings may name one that a rebuild left out."""
        slices = self.slices(partition)
        if not slices:
            raise UnsupportedTableError(
                f"{METADATA_DIRECTORY}/{partition} has no files, although the table names it; {REBUILD_CURE}"
            )
        return slices

    def view(self, partition: str, completed_before: str | None = None) -> FileSystemView:
        """All slices of a partition of the metadata table.

        With `completed_before`, leaves out the log files that completed at that moment or later (version 8 and later).
        """
        directory = f"{METADATA_DIRECTORY}/{partition}"
        listed = [DataFile(partition, e.path, e.size) for e in self.storage.list(directory) if not e.is_directory]
        if completed_before is not None:
            listed = [file for file in listed if not self._is_completed_since(completed_before, file)]
        kept = self._without_archived(listed)
        return FileSystemView.build(
            self._with_archived_writes_of(kept), kept, layout=self.facts.layout, replaced_at={}, is_named=self._is_named
        )

    def _is_named(self, instant: str, path: str) -> bool:
        """Whether the commit names the file: a rebuild that was paused may put one beside the file of another rebuild."""
        completed, commit = self.facts.timeline.find(instant), self.archive.commit(instant)
        if commit is None and completed is not None:
            commit = HudiMetadataCodec().decode_commit(self.own_files.read(completed), self.own_files.path(completed))
        name = path.rpartition("/")[2]
        return commit is not None and any(stat.path.rpartition("/")[2] == name for stat in commit.stats)

    def records(self, file_slice: FileSlice, keys: Collection[str] | None = None) -> Mapping[str, list[Value]]:
        """The versions of each record, oldest first; with `keys`, only of these keys.

        Raises MissingFileError, CorruptBaseFileError, CorruptLogBlockError, RecordDecodeError; UnsupportedTableError for
        blocks that eventide does not support in the metadata table, such as data blocks other than HFile blocks.
        """
        wanted = None if keys is None else frozenset(key.encode() for key in keys)
        sources, deleted = self.sources(file_slice, wanted)
        versions: dict[str, list[Value]] = {}
        for number, source in enumerate(sources):
            for key, value in source.entries:
                if number >= deleted.get(key, 0):
                    text = _text(key, source.place)
                    versions.setdefault(text, []).append(decode_value(value, source.schema, source.place))
        return versions

    def sources(
        self, file_slice: FileSlice, wanted: Collection[bytes] | None = None
    ) -> tuple[list[RecordSource], Mapping[bytes, int]]:
        """The sources of the slice's records, oldest first, and the deleted keys; see `merged.merged_entries`.

        With `wanted`, the sources have entries of only these keys. Entries are read when they are requested. Raises the
        same errors as `records`.
        """
        sources: list[RecordSource] = []
        deleted: dict[bytes, int] = {}
        if file_slice.base_file is not None:
            path = file_slice.base_file.path
            base = self._base(path, file_slice.base_file.size)
            schema = AvroSchema.of(_text(base.info().get("schema", b""), path))
            sources.append(RecordSource(base.entries(wanted), schema, path, is_merged=True))
        for placed in self._log_blocks(file_slice):
            if placed.block.block_type is BlockType.DELETE:
                deleted.update((key.encode(), len(sources)) for key in _deleted_keys(placed, self.storage))
                continue
            block = self._block(placed, file_slice.log_files[placed.log_number].size)
            sources.append(RecordSource(block.entries(wanted), placed.block.schema, placed.place))
        return sources, deleted

    def schema(self, file_slice: FileSlice) -> AvroSchema | None:
        for placed in reversed(self._log_blocks(file_slice)):
            if HeaderKey.SCHEMA in placed.block.header:
                return placed.block.schema
        if file_slice.base_file is None:
            return None
        schema = self._base(file_slice.base_file.path, file_slice.base_file.size).info().get("schema")
        return None if schema is None else AvroSchema.of(_text(schema, file_slice.base_file.path))

    def can_merge(self, partition: str) -> bool:
        return can_merge(partition)

    def can_read(self, file_slice: FileSlice) -> bool:
        try:
            self.sources(file_slice)
        except UnsupportedTableError:
            return False
        return True

    def record_index(self) -> HudiKeyIndex | None:
        if RECORD_INDEX not in self.facts.partitions or RECORD_INDEX in self.facts.building:
            return None
        return HudiKeyIndex.of(self.slices(RECORD_INDEX), partial(_sources_alone, replace(self, _small_files={})))

    def logs_of(self, instant: str) -> tuple[str, ...]:
        """The log files with records of that instant. Raises UnsupportedTableError if one also has records of others."""
        return tuple(path for partition in self.facts.partitions for path in self._logs_of(instant, partition))

    def _logs_of(self, instant: str, partition: str) -> Iterator[str]:
        for entry in self.storage.list(f"{METADATA_DIRECTORY}/{partition}"):
            name = LogFileName.parse(entry.path.rpartition("/")[2])
            if name is None or (self.facts.layout.names_logs_by_write and name.instant != instant):
                continue
            instants = self.block_instants(entry.path, entry.size)
            if instants == {instant}:
                yield entry.path
            elif instant in instants:
                raise UnsupportedTableError(
                    f"{entry.path} has records of {instant} together with records of others; let eventide drop the "
                    f"metadata table (eventide.metadata.table=drop), then rebuild it ({Cure.rebuild_metadata_table()})"
                )

    def data_schema(self) -> AvroSchema | None:
        """The Avro schema of the table, by the latest write of its active timeline that states one."""
        return _schema_of_writes(self.facts.data_timeline, self.data_files)

    def own_schema(self) -> AvroSchema | None:
        """The Avro schema of the metadata table's records, in the form of `data_schema`."""
        return _schema_of_writes(self.facts.timeline, self.own_files)

    def block_instants(self, path: str, size: int) -> frozenset[str | None]:
        """The instants of the blocks of a log file, including torn ones; None for a header that states no instant."""
        return frozenset(b.block.instant_time for b in read_headers(self.storage, path, size))

    def _is_completed_since(self, moment: str, file: DataFile) -> bool:
        if not isinstance(file.parsed, LogFileName):
            return False
        completion = self.facts.timeline.completion_time(file.parsed.instant)
        return completion is not None and completion >= moment

    def _without_archived(self, files: list[DataFile]) -> list[DataFile]:
        """Leaves out log files of archived delta commits if their file group has a later base file.

        Most file groups have one, so that nobody has to read the archived timeline.
        """
        if not self.facts.layout.names_logs_by_write:
            return files
        latest: dict[str, str] = {}
        for file in files:
            base = BaseFileName.parse(file.name)
            if base is not None and self.facts.timeline.is_completed(base.instant):
                latest[base.file_id] = max(latest.get(base.file_id, ""), base.instant)

        def is_below(file: DataFile) -> bool:
            log = LogFileName.parse(file.name)
            if log is None or self.facts.timeline.find(log.instant) is not None:
                return False
            return self.facts.timeline.is_completed(log.instant) and log.instant < latest.get(log.file_id, "")

        return [file for file in files if not is_below(file)]

    def _with_archived_writes_of(self, files: Iterable[DataFile]) -> Timeline:
        """The timeline with the archived delta commits of these log files.

        A file group in which no key lies keeps the empty log file that it began with, and is never compacted.
        """
        logs = (file.parsed.instant for file in files if isinstance(file.parsed, LogFileName))
        archived = sorted({instant for instant in logs if self.facts.timeline.is_archived(instant)})
        if not (archived and self.facts.layout.names_logs_by_write):
            return self.facts.timeline
        archive = self.archive
        return self.facts.timeline.with_archived(
            write for time in archived if (write := archive.find(time)) is not None
        )

    def _log_blocks(self, file_slice: FileSlice) -> list[PlacedBlock]:
        of_logs = (
            [
                PlacedBlock(log.path, number, block)
                for block in read_headers_of(self._ranges(log.path, log.size), log.path, log.size, is_strict=True)
            ]
            for number, log in enumerate(file_slice.log_files)
        )
        return not_rolled_back(of_logs, self._is_wanted)

    def _is_wanted(self, placed: PlacedBlock) -> bool:
        if not self.blocks.accepts(placed.instant):
            return False
        kind = placed.block.block_type
        if kind not in (BlockType.HFILE_DATA, BlockType.DELETE) or placed.merged_instants:
            raise UnsupportedTableError(
                f"{placed.place}: {kind.name} blocks and log compactions are not supported in the metadata table; "
                f"{REBUILD_CURE}"
            )
        return True

    def _ranges(self, path: str, size: int) -> ReadRange:
        """Reads ranges of a file. A small file is read once, as a whole."""
        known = self._small_files.get((path, size))
        if known is None and size <= _SMALL_FILE_BYTES_MAX:
            known = self._small_files[path, size] = self.storage.read(path)

        def read(offset: int, length: int) -> bytes:
            return self.storage.read_range(path, offset, length) if known is None else known[offset : offset + length]

        return read

    def _base(self, path: str, size: int) -> HFile:
        def torn(what: str) -> CorruptBaseFileError:
            return CorruptBaseFileError(f"HFile {path} is torn: {what}; {REBUILD_CURE}")

        return HFile(self._ranges(path, size), size, torn)

    def _block(self, placed: PlacedBlock, size: int) -> HFile:
        ranges = self._ranges(placed.path, size)

        def read(offset: int, length: int) -> bytes:
            return ranges(placed.block.content_offset + offset, length)

        def torn(what: str) -> CorruptLogBlockError:
            return CorruptLogBlockError(f"{placed.place} is torn: {what}; {REBUILD_CURE}")

        return HFile(read, placed.block.content_length, torn)


def _sources_alone(
    reader: MetadataTableReader, file_slice: FileSlice, wanted: Collection[bytes] | None
) -> tuple[list[RecordSource], Mapping[bytes, int]]:
    """The sources, by a reader that remembers no file for the next slice, and sends none to other tasks."""
    return replace(reader, _small_files={}).sources(file_slice, wanted)


def _text(data: bytes, place: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise RecordDecodeError(f"{place}: a key or schema of the metadata table is not UTF-8: {error}") from error


def _deleted_keys(placed: PlacedBlock, storage: Storage) -> list[str]:
    keys, _ = decode_delete_block(placed.read_content(storage), pa.null(), placed.place)
    return [str(key) for key in keys.to_pylist()]


def _timeline(files: TimelineFiles, layout: Layout, archive_path: str) -> Timeline:
    listed = (instant for instant, _ in files.entries())
    archive = partial(archived_timeline, files.storage, layout, archive_path)
    return active_timeline(files, listed, archive, HudiMetadataCodec().decode_commit)


def _schema_of_writes(timeline: Timeline, files: TimelineFiles) -> AvroSchema | None:
    decode = HudiMetadataCodec().decode_commit
    schemas = (decode(files.read(write), files.path(write)).schema for write in reversed(timeline.writes))
    return next(filter(None, schemas), None)
