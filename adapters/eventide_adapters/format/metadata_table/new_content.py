"""The content of a metadata table that is made from nothing: the records of each of its file groups."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Final

import pyarrow as pa

from eventide_adapters.format.encoding.avro.schema import table_fields
from eventide_adapters.format.encoding.columns.java_hash import file_group_numbers
from eventide_adapters.format.metadata_table.column_ranges import log_ranges, table_ranges
from eventide_adapters.format.metadata_table.file_contents import FileContents, Question, filter_of_base, keys_of_rows
from eventide_adapters.format.metadata_table.index_definitions import IndexDefinition, index_definition, with_definition
from eventide_adapters.format.metadata_table.record_index import epoch_ms
from eventide_adapters.format.metadata_table.records.base_file_writer import write_base_file
from eventide_adapters.format.metadata_table.records.records import (
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
from eventide_adapters.format.metadata_table.stats import (
    PartitionRanges,
    Ranges,
    StatRecords,
    empty_statistics,
    range_records,
    span_records,
    widen,
)
from eventide_adapters.format.metadata_table.value_forms import ValueForm
from eventide_adapters.format.slice.log_file.delete_block import encode_delete_block
from eventide_adapters.format.timeline.container import schema_definition
from eventide_core.cure import Cure
from eventide_core.errors import UnsupportedTableError
from eventide_core.ports import NewMetadataContent, NewMetadataTable
from eventide_core.table.files.file_name import BaseFileName, LogFileName, path_in
from eventide_core.table.files.slice_read import SliceRead
from eventide_core.table.schema.avro_schema import COMMIT_TIME, META_FIELDS, PARTITION_PATH, RECORD_KEY, AvroSchema
from eventide_core.table.settings.metadata_table import (
    BLOOM_FILTERS,
    COLUMN_STATS,
    FILES,
    PARTITION_STATS,
)
from eventide_core.table.timeline.contents.commit_metadata import WriteStat
from eventide_core.table.timeline.layout import layout_of

_INDEXED_META_FIELDS: Final = (COMMIT_TIME, PARTITION_PATH, RECORD_KEY)
_COLUMNS_MAX: Final = 32  # hoodie.metadata.index.column.stats.max.columns.to.index
_VERSION_WITH_VALUE_TYPES: Final = 9


@dataclass(frozen=True)
class RebuiltStatistics:
    """Column statistics of all files of a table, for a metadata table that is made from nothing.

    1. The columns are those in the table's index definition. If it names none, they are Hudi's default: on version 6 all
       columns with an order; from version 8 on three meta fields, and the first 32 of them.
    2. A base file has the ranges in its footer, in the types of the table. A column that it lacks gets none: Hudi takes it
       for null, as it is in a file from before the column was added.
    3. A log file of a current slice has the ranges of its records that count, by all log files of the slice; none if it has
       only deletes. A file without statistics is never skipped.
    4. A partition has the ranges over all files of its current slices.
    """

    contents: FileContents
    new: NewMetadataTable

    def column_stats(self) -> StatRecords:
        for (partition, path), ranges in self._ranges.items():
            yield from range_records(partition, path.rpartition("/")[2], ranges, self._models)

    def partition_stats(self) -> StatRecords:
        spans = PartitionRanges()
        for read in self.new.rows.slices:
            for path in (read.base_path, *(path for path, _ in read.log_paths)):
                widen(spans, read.partition, self._ranges.get((read.partition, path or ""), {}))
        return span_records(spans, self._models, is_merged=False)

    @cached_property
    def definition(self) -> IndexDefinition:
        """The table's definition of the index, or the one that Hudi would write. Version 6 has none."""
        known = index_definition(self.contents.storage, COLUMN_STATS)
        if known.fields:
            return known
        return IndexDefinition(COLUMN_STATS, self._default, self.new.version >= _VERSION_WITH_VALUE_TYPES)

    @property
    def has_definition(self) -> bool:
        return layout_of(self.new.version).needs_hudi_1

    @property
    def _default(self) -> tuple[str, ...]:
        ordered = self._ordered(has_value_types=self.new.version >= _VERSION_WITH_VALUE_TYPES)
        if not self.has_definition:
            return ordered
        return (*_INDEXED_META_FIELDS, *[name for name in ordered if name not in META_FIELDS][:_COLUMNS_MAX])

    @cached_property
    def _models(self) -> Mapping[str, Value]:
        """A form for each of the indexed columns that have an order."""
        has_value_types = self.definition.is_of_second_version
        ordered = frozenset(self._ordered(has_value_types=has_value_types))
        return {
            name: empty_statistics(name, has_value_types=has_value_types)
            for name in self.definition.fields
            if name in ordered
        }

    def _ordered(self, *, has_value_types: bool) -> tuple[str, ...]:
        """The columns of the table that have an order."""
        fields = (field.arrow for field in table_fields(self.new.rows.shape.schema))
        return tuple(f.name for f in fields if ValueForm.of(f.type, has_value_types=has_value_types) is not None)

    @cached_property
    def _ranges(self) -> Mapping[tuple[str, str], Ranges]:
        """The ranges of each file by its partition and path."""
        tables, slices = [*self._tables()], [*self._slices()]
        answers = iter(self.contents.answers([question for _, question in (*tables, *slices)]))
        by_file: dict[tuple[str, str], Ranges] = {place: next(answers) for place, _ in tables}
        for (partition, _), of_logs in zip(slices, answers, strict=True):
            by_file.update({(partition, path): ranges for path, ranges in of_logs.items()})
        return {place: ranges for place, ranges in by_file.items() if any(one.value_count for one in ranges.values())}

    def _tables(self) -> Iterator[tuple[tuple[str, str], Question]]:
        """A question about each base file, with the partition and the path of the file."""
        columns, shape = frozenset(self._models), self.new.rows.shape
        for partition, files in self.new.files.items():
            for path in (path_in(partition, name) for name in files if BaseFileName.parse(name) is not None):
                yield (partition, path), Question(table_ranges, (path, shape, columns))

    def _slices(self) -> Iterator[tuple[str, Question]]:
        """A question about the log files of each slice, with its partition: one of them may roll back blocks of another."""
        columns, shape = frozenset(self._models), self.new.rows.shape
        for read in self.new.rows.slices:
            if read.log_paths:
                yield read.partition, Question(log_ranges, (read.log_paths, shape, read.blocks, columns))


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
