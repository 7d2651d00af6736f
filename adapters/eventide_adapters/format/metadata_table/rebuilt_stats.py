"""Column statistics of all files of a table, for a metadata table that is made from nothing.

1. The columns are those in the table's index definition. If it names none, they are Hudi's default: on version 6 all columns
   with an order; from version 8 on three meta fields, and the first 32 of them.
2. A base file has the ranges in its footer, in the types of the table. A column that it lacks gets none: Hudi takes it
   for null, as it is in a file from before the column was added.
3. A log file of a current slice has the ranges of its records that count, by all log files of the slice; none if it has
   only deletes. A file without statistics is never skipped.
4. A partition has the ranges over all files of its current slices.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from eventide_adapters.format.avro.schema import table_fields
from eventide_adapters.format.metadata_records.records import Value
from eventide_adapters.format.metadata_table.column_ranges import log_ranges, table_ranges
from eventide_adapters.format.metadata_table.file_contents import FileContents, Question
from eventide_adapters.format.metadata_table.index_definitions import IndexDefinition, index_definition
from eventide_adapters.format.metadata_table.stats import (
    Ranges,
    Records,
    Spans,
    empty_statistics,
    range_records,
    span_records,
    widen,
)
from eventide_adapters.format.metadata_table.value_forms import ValueForm
from eventide_core.ports import NewMetadataTable
from eventide_core.table.files.file_name import BaseFileName, path_in
from eventide_core.table.records.schema import COMMIT_TIME, META_FIELDS, PARTITION_PATH, RECORD_KEY
from eventide_core.table.settings.metadata_table import COLUMN_STATS
from eventide_core.table.timeline.layout import layout_of

_INDEXED_META_FIELDS: Final = (COMMIT_TIME, PARTITION_PATH, RECORD_KEY)
_COLUMNS_MAX: Final = 32  # hoodie.metadata.index.column.stats.max.columns.to.index
_VERSION_WITH_VALUE_TYPES: Final = 9


@dataclass(frozen=True)
class RebuiltStatistics:
    contents: FileContents
    new: NewMetadataTable

    def column_stats(self) -> Records:
        for (partition, path), ranges in self._ranges.items():
            yield from range_records(partition, path.rpartition("/")[2], ranges, self._models)

    def partition_stats(self) -> Records:
        spans = Spans()
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
