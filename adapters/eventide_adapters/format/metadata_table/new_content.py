"""The content of a metadata table that is made from nothing: the records of each of its file groups."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import pyarrow as pa

from eventide_adapters.format.columns.java_hash import file_group_numbers
from eventide_adapters.format.log_file.delete_block import encode_delete_block
from eventide_adapters.format.metadata_records.base_file_writer import write_base_file
from eventide_adapters.format.metadata_records.records import (
    ALL_PARTITIONS_KEY,
    Value,
    all_partitions_value,
    bloom_filter_key,
    bloom_filter_value,
    encode_value,
    file_group_number,
    files_key,
    files_value,
    record_index_value,
)
from eventide_adapters.format.metadata_table.file_contents import FileContents, Question, filter_of_base, keys_of_rows
from eventide_adapters.format.metadata_table.index_definitions import with_definition
from eventide_adapters.format.metadata_table.rebuilt_stats import RebuiltStatistics
from eventide_adapters.format.metadata_table.record_index import epoch_ms
from eventide_adapters.format.timeline.container import schema_definition
from eventide_core.cure import Cure
from eventide_core.errors import UnsupportedTableError
from eventide_core.ports import NewMetadataContent, NewMetadataTable
from eventide_core.table.files.file_name import BaseFileName, LogFileName, path_in
from eventide_core.table.files.slice_read import SliceRead
from eventide_core.table.records.schema import META_FIELDS, AvroSchema
from eventide_core.table.settings.metadata_table import (
    BLOOM_FILTERS,
    COLUMN_STATS,
    FILES,
    PARTITION_STATS,
)
from eventide_core.table.timeline.commit_metadata import WriteStat
from eventide_core.table.timeline.layout import layout_of

Entry = tuple[bytes, bytes]


@dataclass(frozen=True)
class NewContent:
    contents: FileContents
    new: NewMetadataTable

    def value(self) -> NewMetadataContent:
        new, statistics = self.new, self._statistics
        is_defined = COLUMN_STATS in new.partitions and statistics.has_definition
        return NewMetadataContent(
            AvroSchema.of(json.dumps(self._record_schema)),
            with_definition(self.contents.storage, COLUMN_STATS, statistics.definition) if is_defined else None,
            {name: encode_delete_block(new.instant, name, [], pa.nulls(0)) for name in new.partitions},
            self.write_bases,
        )

    def write_bases(self, partition: str, names: Sequence[BaseFileName]) -> Iterator[WriteStat]:
        for name, entries in zip(names, self._groups(partition, len(names)), strict=True):
            if entries:
                yield self._write_base(partition, name, entries)

    @cached_property
    def _record_schema(self) -> dict[str, Any]:
        return schema_definition(f"metadata_record_{8 if layout_of(self.new.version).needs_hudi_1 else 6}")

    @cached_property
    def _file_schema(self) -> AvroSchema:
        """The schema of the values in files, which has Hudi's meta fields."""
        meta = [{"name": name, "type": ["null", "string"], "doc": "", "default": None} for name in META_FIELDS]
        return AvroSchema.of(json.dumps({**self._record_schema, "fields": [*meta, *self._record_schema["fields"]]}))

    def _groups(self, partition: str, count: int) -> Iterable[list[Entry]]:
        """The entries of each file group, in the order of their keys."""
        match partition:
            case _ if partition == FILES:
                records = self._files()
            case _ if partition == BLOOM_FILTERS:
                records = self._bloom_filters()
            case _ if partition == COLUMN_STATS:
                records = self._statistics.column_stats()
            case _ if partition == PARTITION_STATS:
                records = self._statistics.partition_stats()
            case _:
                return self._record_index(count)
        groups: list[list[Entry]] = [[] for _ in range(count)]
        for key, value in records:
            groups[file_group_number(key, count)].append((key.encode(), encode_value(value, self._file_schema)))
        return map(sorted, groups)

    def _files(self) -> Iterator[tuple[str, Value]]:
        for partition, files in self.new.files.items():
            if files:
                yield files_key(partition), files_value(files, ())
        yield ALL_PARTITIONS_KEY, all_partitions_value(sorted(map(files_key, self.new.files)))

    def _bloom_filters(self) -> Iterator[tuple[str, Value]]:
        files = ((partition, name) for partition, names in self.new.files.items() for name in names)
        bases = [(partition, name) for partition, name in files if BaseFileName.parse(name) is not None]
        answers = self.contents.answers(
            [Question(filter_of_base, (path_in(partition, name),)) for partition, name in bases]
        )
        for (partition, name), known in zip(bases, answers, strict=True):
            if known is not None:
                value = bloom_filter_value(known[0], self.new.instant, known[1].encode())
                yield bloom_filter_key(partition, name), value

    @cached_property
    def _statistics(self) -> RebuiltStatistics:
        return RebuiltStatistics(self.contents, self.new)

    def _record_index(self, count: int) -> Iterator[list[Entry]]:
        """A key of each row that the table shows. The keys of a slice share a value, which is encoded once.

        Raises UnsupportedTableError for a key of several rows, such as one in two partitions.
        """
        shape = self.new.rows.shape
        answers = self.contents.answers([Question(keys_of_rows, (read, shape)) for read in self.new.rows.slices])
        slices: list[tuple[Any, Any, bytes]] = []
        for read, keys in zip(self.new.rows.slices, answers, strict=True):
            instant_ms = epoch_ms(_instant_of(read), is_utc=self.new.has_utc_instants)
            value = record_index_value(read.partition, read.file_id, instant_ms)
            slices.append((keys, file_group_numbers(keys, count), encode_value(value, self._file_schema)))
        for number in range(count):
            entries = sorted(
                (key.encode(), value)
                for keys, numbers, value in slices
                for key in keys.filter(pa.array(numbers == number)).to_pylist()
            )
            repeated = next((key for (key, _), (following, _) in pairwise(entries) if key == following), None)
            if repeated is not None:
                raise UnsupportedTableError(
                    f"{self.contents.storage.root}: several rows have the record key {repeated.decode()!r}, and a record "
                    "index has one place for each key; rebuild the metadata table without it "
                    f"({Cure.rebuild_metadata_table_without_indexes()}, or with the indexes to keep)"
                )
            yield entries

    def _write_base(self, partition: str, name: BaseFileName, entries: Iterable[Entry]) -> WriteStat:
        path = f"{partition}/{name}"
        count, size = write_base_file(
            self.contents.storage, path, entries, self._file_schema, layout_of(self.new.version)
        )
        return WriteStat(
            file_id=name.file_id,
            path=path,
            partition=partition,
            prev_commit="null",
            num_writes=count,
            num_inserts=count,
            total_write_bytes=size,
            file_size_bytes=size,
        )


def _instant_of(read: SliceRead) -> str:
    """The instant in the name of the slice's first file."""
    path = read.base_path or read.log_paths[0][0]
    name = path.rpartition("/")[2]
    parsed = BaseFileName.parse(name) or LogFileName.parse(name)
    assert parsed is not None  # the files of a slice have been recognized by their names
    return parsed.instant
