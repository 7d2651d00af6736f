"""Hudi's metadata table, kept up to date by commits that are not Hudi's.

What each of its partitions needs when a compaction adds files at the instant C:

    files                        the names and sizes of the files; nothing else makes them visible to a listing by it
    column_stats                 `metadata_table_stats`
    bloom_filters                the filter in the footer of each new base file; an index that finds none fails
    partition_stats              nothing: its ranges hold every row that a compaction keeps
    record_index, secondary_*    nothing: a compaction moves no key to another file group

An expression index prunes by what it computes from each file, which eventide can't: such a table is refused, and so is
any partition that isn't in this list.

Order of the writes, all below `.hoodie/metadata`: `C.deltacommit.requested`, `.inflight`, one log of one HFILE block for
each file group with records, the completed delta commit. The whole goes before the commit at C of the table: readers
ignore it until then. Each name is fixed by C and what the table was, so that a second run makes the same ones; a log that
isn't committed is replaced.

    version 6      log `.<file id>_<base instant>.log.<last + 1>_<token>`
    8 and later    log `.<file id>_<C>.log.1_<token>`
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from eventide_adapters.format.base_parquet import read_footer
from eventide_adapters.format.bloom_filter import FOOTER_KEY, SIMPLE, TYPE_FOOTER_KEY
from eventide_adapters.format.hfile_writer import HFileStyle, encode_hfile
from eventide_adapters.format.log_blocks import read_headers
from eventide_adapters.format.metadata_avro import HudiMetadataCodec
from eventide_adapters.format.metadata_table_reader import (
    BUILDING_KEY,
    METADATA_FOLDER,
    PARTITIONS_KEY,
    PROPERTIES_PATH,
    MetadataTableReader,
)
from eventide_adapters.format.metadata_table_records import (
    ALL_PARTITIONS_KEY,
    BLOOM_FILTERS,
    COLUMN_STATS,
    FILES,
    Value,
    bloom_filter_key,
    bloom_filter_value,
    encode_value,
    file_group_number,
    files_key,
    files_value,
    merged_files,
    partition_of,
)
from eventide_adapters.format.metadata_table_stats import ColumnStatistics
from eventide_core.errors import BusyError, UnsupportedTableError
from eventide_core.ports import AddedFile, Storage
from eventide_core.table.commit_metadata import CommitMetadata, WriteStat
from eventide_core.table.file_name import BaseFileName, LogFileName
from eventide_core.table.file_slice import FileSlice
from eventide_core.table.instant import Action, Instant, State
from eventide_core.table.log_block import BlockType, HeaderKey, encode_block

_KNOWN: Final = frozenset((FILES, COLUMN_STATS, BLOOM_FILTERS, "partition_stats", "record_index"))
_KNOWN_PREFIX: Final = "secondary_index_"
_TOKEN: Final = "0-7-7"
_OPERATION: Final = "UPSERT_PREPPED"  # as Hudi names its own writes to the metadata table

Records = list[tuple[str, Value]]


@dataclass(frozen=True, slots=True)
class _Log:
    """A log to write: its place, and its records in no order."""

    file_slice: FileSlice
    name: LogFileName
    records: Records

    @property
    def path(self) -> str:
        return f"{self.file_slice.partition}/{self.name}"


@dataclass(frozen=True, slots=True)
class HudiMetadataTable:
    """Implements `ports.MetadataTable` over the storage of the table whose metadata it is."""

    storage: Storage

    def partitions(self) -> tuple[str, ...]:
        return MetadataTableReader.load(self.storage).partitions

    def check(self) -> None:
        self._checked()

    def read_files(self) -> Mapping[str, Mapping[str, int]]:
        reader = MetadataTableReader.load(self.storage)
        listed: dict[str, dict[str, int]] = {}
        for file_slice in reader.slices(FILES):
            for key, versions in reader.records(file_slice).items():
                if key != ALL_PARTITIONS_KEY:
                    listed[partition_of(key)] = merged_files(versions)
        return listed

    def write(
        self,
        instant: str,
        completion_time: str,
        added: Sequence[AddedFile],
        removed: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        reader = self._checked()
        known = reader.timeline.find(instant)
        if known is not None and known.is_completed:
            return
        logs = self._logs(reader, instant, added, removed or {})
        stats = [self._stat(reader, instant, log, 0) for log in logs]
        pending = [Instant(instant, Action.DELTA_COMMIT, state) for state in (State.REQUESTED, State.INFLIGHT)]
        self.storage.put_if_absent(f"{reader.timeline_path}/{pending[0].file_name}", b"")
        self.storage.put_if_absent(f"{reader.timeline_path}/{pending[1].file_name}", _commit(stats, {}, reader.version))
        style = HFileStyle.NATIVE if reader.slices_by_completion_time else HFileStyle.HBASE
        stats = []
        for log in logs:
            data = _encoded(log, instant, self._schema(reader, log.file_slice), style)
            self.storage.put(f"{METADATA_FOLDER}/{log.path}", data)
            stats.append(self._stat(reader, instant, log, len(data)))
        completed = Instant(
            instant,
            Action.DELTA_COMMIT,
            State.COMPLETED,
            completion_time if reader.slices_by_completion_time else None,
        )
        commit = _commit(stats, self._extra_metadata(reader), reader.version)
        self.storage.put_if_absent(f"{reader.timeline_path}/{completed.file_name}", commit)

    def names(self, files: Iterable[AddedFile]) -> bool:
        listed = self.read_files()
        return all(listed.get(file.partition, {}).get(file.name) == file.size for file in files)

    def withdraw(self, instant: str) -> None:
        reader = MetadataTableReader.load(self.storage)
        found = reader.timeline.find(instant)
        if found is not None and found.is_completed:
            self.storage.delete(f"{reader.timeline_path}/{found.file_name}")
        for partition in reader.partitions:
            for entry in self.storage.list(f"{METADATA_FOLDER}/{partition}"):
                name = LogFileName.parse(entry.path.rpartition("/")[2])
                if name is not None and self._is_own(name, entry.path, entry.size, instant):
                    self.storage.delete(entry.path)
        for state in (State.INFLIGHT, State.REQUESTED):
            pending = Instant(instant, Action.DELTA_COMMIT, state)
            self.storage.delete(f"{reader.timeline_path}/{pending.file_name}")

    def drop(self) -> None:
        keys = tuple(f"{key}=" for key in (PARTITIONS_KEY, BUILDING_KEY))
        lines = self.storage.read(PROPERTIES_PATH).decode().splitlines(keepends=True)
        self.storage.put(PROPERTIES_PATH, "".join(line for line in lines if not line.startswith(keys)).encode())
        _delete_tree(self.storage, METADATA_FOLDER)

    def _checked(self) -> MetadataTableReader:
        reader = MetadataTableReader.load(self.storage)
        unknown = [p for p in reader.partitions if p not in _KNOWN and not p.startswith(_KNOWN_PREFIX)]
        if unknown or FILES not in reader.partitions:
            raise UnsupportedTableError(
                f"{self.storage.root}: the metadata table has {', '.join(unknown) or f'no partition {FILES}'}, which "
                "eventide cannot keep up to date; drop that index with Hudi, or let eventide drop the metadata table "
                "(eventide.metadata.table=drop)"
            )
        if reader.building:
            raise BusyError(
                f"{self.storage.root}: Hudi is building {', '.join(reader.building)} in the metadata table; try again when "
                "it has ended"
            )
        for plan in reader.timeline.pending_plans:
            if not reader.slices_by_completion_time:
                raise BusyError(
                    f"{self.storage.root}: a {plan.action} of the metadata table is pending at {plan.requested_time}; "
                    "the next write of Hudi ends it"
                )
        return reader

    def _logs(
        self,
        reader: MetadataTableReader,
        instant: str,
        added: Sequence[AddedFile],
        removed: Mapping[str, Sequence[str]],
    ) -> list[_Log]:
        records: dict[str, Records] = {FILES: _files_records(added, removed)}
        if COLUMN_STATS in reader.partitions:
            records[COLUMN_STATS] = list(ColumnStatistics(reader, added).records())
        if BLOOM_FILTERS in reader.partitions:
            records[BLOOM_FILTERS] = self._bloom_filters(instant, added)
        logs: list[_Log] = []
        for partition, found in records.items():
            slices = reader.slices(partition)
            if not slices:
                raise UnsupportedTableError(
                    f"{METADATA_FOLDER}/{partition} has no files though the table names it; drop the metadata table, Hudi "
                    "builds it anew"
                )
            of_group: dict[int, Records] = {}
            for key, value in found:
                of_group.setdefault(file_group_number(key, len(slices)), []).append((key, value))
            logs += [
                _Log(slices[number], self._log_name(reader, slices[number], instant), group)
                for number, group in sorted(of_group.items())
            ]
        return logs

    def _bloom_filters(self, instant: str, added: Sequence[AddedFile]) -> Records:
        found: Records = []
        for file in added:
            if BaseFileName.parse(file.name) is not None:
                footer = read_footer(self.storage, file.path)
                if FOOTER_KEY in footer:
                    value = bloom_filter_value(
                        footer.get(TYPE_FOOTER_KEY, SIMPLE), instant, footer[FOOTER_KEY].encode()
                    )
                    found.append((bloom_filter_key(file.partition, file.name), value))
        return found

    def _log_name(self, reader: MetadataTableReader, file_slice: FileSlice, instant: str) -> LogFileName:
        if reader.slices_by_completion_time:
            return LogFileName(file_slice.file_id, instant, 1, _TOKEN)
        last = max(file_slice.log_files, key=lambda log: log.name.version, default=None)
        if last is None:
            return LogFileName(file_slice.file_id, file_slice.base_instant, 1, _TOKEN)
        if self._is_own(last.name, last.path, last.size, instant):
            return last.name
        return LogFileName(file_slice.file_id, file_slice.base_instant, last.name.version + 1, _TOKEN)

    def _is_own(self, name: LogFileName, path: str, size: int, instant: str) -> bool:
        """Whether a log is one that this writer made at that instant."""
        if name.write_token != _TOKEN:
            return False
        return {b.instant_time for b in read_headers(self.storage, path, size, is_strict=False)} == {instant}

    def _schema(self, reader: MetadataTableReader, file_slice: FileSlice) -> str:
        """The schema that Hudi last wrote with; a file group that never had a record has that of `files`."""
        for candidate in (file_slice, *reader.slices(FILES)):
            schema = reader.schema(candidate)
            if schema is not None:
                return schema
        raise UnsupportedTableError(
            f"{self.storage.root}: no file of the metadata table says its schema; drop it, Hudi builds it anew"
        )

    def _stat(self, reader: MetadataTableReader, instant: str, log: _Log, size: int) -> WriteStat:
        file_slice, name = log.file_slice, str(log.name)
        base = file_slice.base_file
        before = [str(known.name) for known in file_slice.log_files if str(known.name) != name]
        by_time = reader.slices_by_completion_time
        return WriteStat(
            file_id=file_slice.file_id,
            path=log.path,
            partition=file_slice.partition,
            prev_commit=instant if by_time else file_slice.base_instant,
            num_writes=len(log.records),
            num_update_writes=len(log.records),
            total_write_bytes=size,
            file_size_bytes=size,
            log_version=log.name.version,
            base_file="" if by_time or base is None else str(base.name),
            log_files=(name,) if by_time else (*before, name),
        )

    def _extra_metadata(self, reader: MetadataTableReader) -> dict[str, str]:
        """The schema of the last write, which each write repeats."""
        for write in reversed(reader.timeline.writes):
            path = f"{reader.timeline_path}/{write.file_name}"
            schema = HudiMetadataCodec().decode_commit(self.storage.read(path), path).schema
            if schema is not None:
                return {"schema": schema}
        return {}


def _files_records(added: Sequence[AddedFile], removed: Mapping[str, Sequence[str]]) -> Records:
    partitions = sorted({*(file.partition for file in added), *removed})
    return [
        (
            files_key(partition),
            files_value(
                {file.name: file.size for file in added if file.partition == partition},
                tuple(removed.get(partition, ())),
            ),
        )
        for partition in partitions
    ]


def _encoded(log: _Log, instant: str, schema: str, style: HFileStyle) -> bytes:
    entries = sorted((key.encode(), encode_value(value, schema)) for key, value in log.records)
    header = {HeaderKey.INSTANT_TIME: instant, HeaderKey.SCHEMA: schema}
    return encode_block(BlockType.HFILE_DATA, header, encode_hfile(entries, schema, style))


def _commit(stats: Iterable[WriteStat], extra: Mapping[str, str], version: int) -> bytes:
    by_partition: dict[str, tuple[WriteStat, ...]] = {}
    for stat in stats:
        by_partition[stat.partition] = (*by_partition.get(stat.partition, ()), stat)
    return HudiMetadataCodec().encode_commit(CommitMetadata(by_partition, extra, _OPERATION), version)


def _delete_tree(storage: Storage, directory: str) -> None:
    for entry in storage.list(directory):
        if entry.is_directory:
            _delete_tree(storage, entry.path)
        else:
            storage.delete(entry.path)
    storage.delete(directory)
