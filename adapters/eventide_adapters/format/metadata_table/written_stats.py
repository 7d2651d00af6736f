"""Column statistics of the files of a write, for `column_stats` and `partition_stats` of the metadata table.

Hudi uses them to prune files and partitions, and recomputes a partition's range from those of its files. If a file lacks
them, even a log file, Hudi's next write would silently lose rows.

1. The columns are those in the table's index definition. If it names none, they are the columns for which files of the
   last writes have statistics: each writer covers all columns.
2. A value's wrapper is that of known statistics of the column. If no file had a value yet, or the column was widened
   since, it is the wrapper of the type.
3. A partition's range becomes wider: a record that is not tight is merged with the earlier ones. With NaN, it
   becomes that of all numbers.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa

from eventide_adapters.format.avro.schema import table_fields
from eventide_adapters.format.metadata_records.reader import MetadataTableReader
from eventide_adapters.format.metadata_records.records import (
    Value,
    column_stats_key,
    column_stats_value,
    partition_stats_key,
    partition_stats_value,
)
from eventide_adapters.format.metadata_table.column_ranges import (
    ColumnRange,
    column_names,
    column_ranges,
    log_ranges,
    widened,
)
from eventide_adapters.format.metadata_table.file_contents import FileContents, Question
from eventide_adapters.format.metadata_table.index_definitions import index_definition
from eventide_adapters.format.metadata_table.stats import (
    SourceFile,
    any_value,
    column_models,
    empty_statistics,
    known_statistics,
    range_record,
)
from eventide_core.cure import Cure
from eventide_core.errors import UnsupportedTableError
from eventide_core.ports import AddedFile, FileChanges, WrittenRows
from eventide_core.table.files.file_name import BaseFileName
from eventide_core.table.settings.metadata_table import COLUMN_STATS

_EXAMPLES_MAX: Final = 64  # the most files whose statistics are looked up; each write covers all columns


@dataclass(slots=True)
class WrittenStatistics:
    """`partition_stats` is empty until `column_stats` has been requested."""

    reader: MetadataTableReader
    changes: FileChanges
    written: WrittenRows
    contents: FileContents
    _ranges: dict[tuple[str, str], ColumnRange] = field(default_factory=dict[tuple[str, str], ColumnRange])
    _models: Mapping[str, Value] = field(default_factory=dict[str, Value])

    def questions(self) -> list[Question]:
        """The question about each added file. Raises the same errors as `column_stats`."""
        self._models = self._models or self._found_models()
        return [self._question(file) for file in self.changes.added]

    def column_stats(self) -> Iterator[tuple[str, Value]]:
        """Keys and values. Raises UnsupportedTableError if the form of a column's statistics is not known."""
        questions = self.questions()
        self.contents.ask(questions)
        for file, question in zip(self.changes.added, questions, strict=True):
            answer: Any = self.contents[question]
            ranges: Mapping[str, ColumnRange] = answer[file.path] if question.ask is log_ranges else answer
            for column, span in ranges.items():
                key = column_stats_key(column, file.partition, file.name)
                yield key, column_stats_value(self._record(file.name, column, span))
                known = self._ranges.get((file.partition, column))
                self._ranges[file.partition, column] = span if known is None else widened(known, span)

    def partition_stats(self) -> Iterator[tuple[str, Value]]:
        for (partition, column), span in self._ranges.items():
            record = self._record(partition, column, span)
            record |= any_value(span) if span.has_nan else {"isTightBound": False}
            yield partition_stats_key(column, partition), partition_stats_value(record)

    def _record(self, name: str, column: str, span: ColumnRange) -> Value:
        return range_record(name, column, span, self._models[column])

    def _question(self, file: AddedFile) -> Question:
        columns = frozenset(self._models)
        if BaseFileName.parse(file.name) is not None:
            return Question(column_ranges, (file.path, columns))
        blocks = self.written.slices[0].blocks
        return Question(log_ranges, (((file.path, file.size),), self.written.shape, blocks, columns))

    def _found_models(self) -> Mapping[str, Value]:
        definition = index_definition(self.reader.storage, COLUMN_STATS)
        wanted, has_value_types = definition.fields, definition.is_of_second_version
        # All columns, and the dotted names of the fields in structs.
        names = wanted or [*column_names(pa.schema([field.arrow for field in table_fields(self.written.shape.schema)]))]
        examples = [SourceFile(partition, name) for partition, name in self.written.known_files[:_EXAMPLES_MAX]]
        models = dict(column_models(known_statistics(self.reader, examples, names)))
        if not models and not wanted:
            raise UnsupportedTableError(
                f"{self.reader.storage.root}: no file of the last writes has column statistics, so eventide "
                "cannot determine which columns have; rebuild the metadata table with them "
                f"({Cure.rebuild_metadata_table(COLUMN_STATS)})"
            )
        return {name: empty_statistics(name, has_value_types=has_value_types) for name in wanted} | models
