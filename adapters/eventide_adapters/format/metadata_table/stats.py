"""Column statistics of the files that an action adds, for `column_stats` and `partition_stats` of the metadata table.

Hudi uses these records to prune files and partitions, and recomputes a partition's range from its files' at its
next write. A live file without a record, even a log file, would be a silent loss of rows. So each added file gets them.

If all rows stay, as in a compaction:

1. A file that repeats another file's records (a left-over) gets that file's statistics under its own name.
2. A new base file gets the ranges of its rows, in the form of its source files' statistics, for the columns for which
   those exist.
3. A file that is removed gets what Hudi's cleans give it: for each indexed column, a removal without values.
4. A partition's range contains every row that is left. Only one with NaN gets a record.

If rows are written:

1. The columns are those in the table's index definition. If it names none, they are the columns for which files of the
   last writes have statistics: each writer covers all columns.
2. A value's wrapper is the one in known statistics of the column. If no file had a value yet, or the column was widened
   since, it is the wrapper of the type.
3. A partition's range becomes wider: a record that is not tight is merged with the earlier ones. With NaN, it
   becomes the range of all numbers.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import pyarrow as pa

from eventide_adapters.format.encoding.avro.schema import table_fields
from eventide_adapters.format.metadata_table.column_ranges import (
    ColumnRange,
    base_columns,
    column_ranges,
    column_types,
    log_ranges,
    widened,
)
from eventide_adapters.format.metadata_table.file_contents import FileContents, Question
from eventide_adapters.format.metadata_table.index_definitions import index_definition
from eventide_adapters.format.metadata_table.records.merged import COUNTS, merged_statistics
from eventide_adapters.format.metadata_table.records.reader import MetadataTableReader
from eventide_adapters.format.metadata_table.records.records import (
    Value,
    column_stats_key,
    column_stats_value,
    file_group_number,
    partition_stats_key,
    partition_stats_value,
    record_name,
)
from eventide_adapters.format.metadata_table.value_forms import ValueForm
from eventide_core.cure import Cure
from eventide_core.errors import UnsupportedTableError
from eventide_core.ports import AddedFile, FileChanges, WrittenRows
from eventide_core.table.files.file_name import BaseFileName
from eventide_core.table.settings.metadata_table import COLUMN_STATS, REBUILD_CURE

_NO_VALUE: Final = 1  # Hudi's value type of a column without values
_UNKNOWN: Final = -1  # Hudi's counts and sizes of a removed file
_EXAMPLES_MAX: Final = 64  # the most files whose statistics are looked up; each write covers all columns

StatRecords: TypeAlias = Iterator[tuple[str, Value]]
"""Keys and values of the metadata table."""

Ranges: TypeAlias = Mapping[str, ColumnRange]
"""The range of each column of a file."""

PartitionRanges: TypeAlias = dict[tuple[str, str], ColumnRange]
"""The range of each partition and column."""


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file of the table, by its name in its partition."""

    partition: str
    name: str


@dataclass(slots=True)
class Statistics:
    """The records of an action. The ones of `partition_stats` are known when `column_stats` has been read."""

    reader: MetadataTableReader
    changes: FileChanges
    contents: FileContents
    _known: dict[str, dict[str, Value]] = field(default_factory=dict[str, dict[str, Value]])
    _models: Mapping[str, Value] = field(default_factory=dict[str, Value])
    _spans: PartitionRanges = field(default_factory=PartitionRanges)

    def questions(self) -> list[Question]:
        """The questions about the added files. Raises the same errors as `column_stats`."""
        return [*self._questions().values()]

    def column_stats(self) -> StatRecords:
        """Raises UnsupportedTableError if the form of a column's statistics is not known."""
        questions = self._questions()
        self.contents.ask(questions.values())
        for file in self.changes.added:
            if file in questions:
                answer: Any = self.contents[questions[file]]
                ranges: Ranges = answer[file.path] if questions[file].ask is log_ranges else answer
                yield from range_records(file.partition, file.name, ranges, self._models)
                if self.changes.written is None:
                    ranges = {name: span for name, span in ranges.items() if span.has_nan}
                widen(self._spans, file.partition, ranges)
            elif file.sources:
                yield from file_records(file.partition, file.name, self._known[file.sources[0]])
        yield from _removals(self.reader, self.changes.removed)

    def partition_stats(self) -> StatRecords:
        return span_records(self._spans, self._models, is_merged=True)

    def _questions(self) -> dict[AddedFile, Question]:
        if self.changes.written is not None:
            self._models = self._models or self._models_of(self.changes.written)
            return {file: self._question(file, self.changes.written) for file in self.changes.added}
        bases = [file for file in self.changes.added if BaseFileName.parse(file.name) is not None]
        of_columns = [Question(base_columns, (base.path,)) for base in bases]
        self.contents.ask(of_columns)
        names = {name for question in of_columns for name in self.contents[question]}
        sources = [SourceFile(file.partition, source) for file in self.changes.added for source in file.sources]
        self._known = known_statistics(self.reader, sources, sorted(names))
        self._models = column_models(self._known)
        return {base: Question(column_ranges, (base.path, frozenset(self._models))) for base in bases}

    def _question(self, file: AddedFile, written: WrittenRows) -> Question:
        columns = frozenset(self._models)
        if BaseFileName.parse(file.name) is not None:
            return Question(column_ranges, (file.path, columns))
        return Question(log_ranges, (((file.path, file.size),), written.shape, written.slices[0].blocks, columns))

    def _models_of(self, written: WrittenRows) -> Mapping[str, Value]:
        definition = index_definition(self.reader.storage, COLUMN_STATS)
        wanted, has_value_types = definition.fields, definition.is_of_second_version
        # All columns, and the dotted names of the fields in structs.
        names = wanted or [*column_types(pa.schema([field.arrow for field in table_fields(written.shape.schema)]))]
        examples = [SourceFile(partition, name) for partition, name in written.known_files[:_EXAMPLES_MAX]]
        models = dict(column_models(known_statistics(self.reader, examples, names)))
        if not models and not wanted:
            raise UnsupportedTableError(
                f"{self.reader.storage.root}: no file of the last writes has column statistics, so eventide "
                "cannot determine which columns have; rebuild the metadata table with them "
                f"({Cure.rebuild_metadata_table(COLUMN_STATS)})"
            )
        return {name: empty_statistics(name, has_value_types=has_value_types) for name in wanted} | models


def file_records(partition: str, name: str, statistics: Mapping[str, Value]) -> StatRecords:
    """The records of a file, from its statistics by column."""
    for column, stats in statistics.items():
        yield column_stats_key(column, partition, name), column_stats_value(stats | {"fileName": name})


def range_records(partition: str, name: str, ranges: Ranges, models: Mapping[str, Value]) -> StatRecords:
    """The records of a file, from its ranges. Raises UnsupportedTableError if Hudi has no statistics of a type."""
    return file_records(
        partition, name, {column: _statistics(r, column, models[column]) for column, r in ranges.items()}
    )


def widen(spans: PartitionRanges, partition: str, ranges: Ranges) -> None:
    """Widens the partition's ranges by the ranges of one of its files."""
    for column, span in ranges.items():
        known = spans.get((partition, column))
        spans[partition, column] = span if known is None else widened(known, span)


def span_records(spans: PartitionRanges, models: Mapping[str, Value], *, is_merged: bool) -> StatRecords:
    """The records of partitions. `is_merged`: a range is merged with the earlier ones, which would otherwise go.

    A merge would keep an earlier end that is NaN, which is greater than infinity. So a range with NaN takes the place of
    the earlier ones in any case, and contains every value and null.
    """
    for (partition, column), span in spans.items():
        record = _statistics(span, column, models[column]) | {"fileName": partition, "isTightBound": not is_merged}
        if is_merged and span.has_nan:
            nulls = max(span.null_count, 1)
            counts = {"nullCount": nulls, "valueCount": max(span.value_count, nulls + 1)}
            record |= {"isTightBound": True} | counts
        yield partition_stats_key(column, partition), partition_stats_value(record)


def _removals(reader: MetadataTableReader, removed: Mapping[str, Sequence[str]]) -> StatRecords:
    """The records that remove the statistics of files, given by partition.

    The columns are those in the table's index definition. If it names none, they are the columns of the latest schema.
    """
    if not any(removed.values()):
        return
    definition = index_definition(reader.storage, COLUMN_STATS)
    columns = definition.fields or _latest_columns(reader)
    gone = dict.fromkeys(COUNTS, _UNKNOWN) | {"isDeleted": True}
    of_file = {name: empty_statistics(name, has_value_types=definition.is_of_second_version) | gone for name in columns}
    for partition, names in removed.items():
        for name in names:
            yield from file_records(partition, name, of_file)


def _latest_columns(reader: MetadataTableReader) -> list[str]:
    schema = reader.data_schema()
    return [] if schema is None else [field.arrow.name for field in table_fields(schema)]


def empty_statistics(column: str, *, has_value_types: bool) -> Value:
    """The statistics of a column without values, but for the file's name and the counts."""
    return {
        "columnName": column,
        "minValue": None,
        "maxValue": None,
        "isDeleted": False,
        "isTightBound": False,
        "valueType": {"typeOrdinal": _NO_VALUE, "additionalInfo": None} if has_value_types else None,
    }


def known_statistics(
    reader: MetadataTableReader, files: Sequence[SourceFile], columns: Sequence[str], partition: str = COLUMN_STATS
) -> dict[str, dict[str, Value]]:
    """The statistics of each file by column, from that partition of the metadata table."""
    slices = reader.own_slices(partition)
    wanted: list[dict[str, tuple[str, str]]] = [{} for _ in slices]
    statistics: dict[str, dict[str, Value]] = {}
    for file in files:
        statistics[file.name] = {}
        for column in columns:
            key = column_stats_key(column, file.partition, file.name)
            wanted[file_group_number(key, len(slices))][key] = (file.name, column)
    for part, keys in zip(slices, wanted, strict=True):
        if keys:
            for key, versions in reader.records(part, keys).items():
                source, column = keys[key]
                stats = merged_statistics(version["ColumnStatsMetadata"] for version in versions)
                if stats is not None:
                    statistics[source][column] = stats
    return statistics


def column_models(known: Mapping[str, Mapping[str, Value]]) -> Mapping[str, Value]:
    """For each column, one of the known records: preferably one with values, then one of a base file."""
    models: dict[str, Value] = {}
    for source, statistics in known.items():
        for column, stats in statistics.items():
            if column not in models or _rank(source, stats) > _rank(models[column]["fileName"], models[column]):
                models[column] = stats
    return models


def _rank(file_name: str, stats: Value) -> tuple[bool, bool]:
    return stats["minValue"] is not None, BaseFileName.parse(file_name) is not None


def _statistics(span: ColumnRange, column: str, model: Value) -> Value:
    """A column's range as statistics in the model's form, or in the form of the column's type if the model has another one.

    Raises UnsupportedTableError if Hudi has no statistics of the type.
    """
    least = greatest = None
    if span.least is not None:
        model = _in_form_of(span, column, model)
        least, greatest = span.wrapped(record_name(model["minValue"]), column)
    return model | {
        "minValue": least,
        "maxValue": greatest,
        "valueCount": span.value_count,
        "nullCount": span.null_count,
        # Writers count sizes differently, and no reader prunes by them.
        "totalSize": 0,
        "totalUncompressedSize": 0,
    }


def _in_form_of(span: ColumnRange, column: str, model: Value) -> Value:
    """The model with the form of the type that the column has now.

    The model may be from before Hudi widened the column, or from when the column had no values. Raises
    UnsupportedTableError if it is of no form that Hudi has for the type.
    """
    form = ValueForm.of(span.arrow, has_value_types=model.get("valueType") is not None)
    if form is None:
        if model["minValue"] is None:
            raise UnsupportedTableError(
                f"column {column} of type {span.arrow} has values, and Hudi has no statistics of that type; "
                f"{REBUILD_CURE}"
            )
        return model
    return model if model["minValue"] is not None and form.is_form_of(model, span.arrow) else model | form.statistics()
