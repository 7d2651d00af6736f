"""Column statistics of the files that a commit adds, for the metadata table.

Hudi uses these records to prune files, and to recompute a partition's range at its next write. A live file without a
record would be a silent loss of rows. So each added file gets them:

1. A file that repeats another file's records (a left-over) gets that file's statistics under its own name.
2. A new base file gets the ranges of its rows, in the form of its source files' statistics, for the columns for which
   those exist.
3. A file that is removed gets what Hudi's cleans give it: for each indexed column, a removal without values.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from eventide_adapters.format.avro.schema import table_fields
from eventide_adapters.format.metadata_records.merged import merged_statistics
from eventide_adapters.format.metadata_records.reader import MetadataTableReader
from eventide_adapters.format.metadata_records.records import (
    Value,
    column_stats_key,
    column_stats_value,
    file_group_number,
    partition_stats_key,
    partition_stats_value,
)
from eventide_adapters.format.metadata_table.column_ranges import ColumnRange, base_columns, column_ranges
from eventide_adapters.format.metadata_table.file_contents import FileContents, Question
from eventide_adapters.format.metadata_table.index_definitions import index_definition
from eventide_adapters.format.metadata_table.value_forms import ValueForm
from eventide_core.errors import UnsupportedTableError
from eventide_core.ports import AddedFile
from eventide_core.table.files.file_name import BaseFileName
from eventide_core.table.settings.metadata_table import COLUMN_STATS, REBUILD_CURE

_NO_VALUE: Final = 1  # Hudi's value type of a column without values
_COUNTS: Final = ("valueCount", "nullCount", "totalSize", "totalUncompressedSize")
_UNKNOWN: Final = -1  # Hudi's counts and sizes of a removed file


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file of the table, by its name in its partition."""

    partition: str
    name: str


@dataclass(slots=True)
class ColumnStatistics:
    """The records to add for `added`. `partition_stats` is empty until `records` has been requested."""

    reader: MetadataTableReader
    added: Sequence[AddedFile]
    contents: FileContents
    _known: dict[str, dict[str, Value]] = field(default_factory=dict[str, dict[str, Value]])
    _with_nan: dict[tuple[str, str], ColumnRange] = field(default_factory=dict[tuple[str, str], ColumnRange])

    def records(self) -> Iterator[tuple[str, Value]]:
        """The records of `column_stats`, by key. Raises UnsupportedTableError for statistics of an unknown form."""
        wanted = self._questions()
        models = column_models(self._known)
        self.contents.ask(wanted.values())
        for file in self.added:
            if file in wanted:
                ranges: Mapping[str, ColumnRange] = self.contents[wanted[file]]
                statistics = {name: range_record(file.name, name, r, models[name]) for name, r in ranges.items()}
                self._with_nan.update({(file.partition, name): r for name, r in ranges.items() if r.has_nan})
            else:
                statistics = self._known[file.sources[0]] if file.sources else {}
            for column, stats in statistics.items():
                key = column_stats_key(column, file.partition, file.name)
                yield key, column_stats_value(stats | {"fileName": file.name})

    def partition_stats(self) -> Iterator[tuple[str, Value]]:
        """The records of `partition_stats`, by key: other ranges contain every row that is left."""
        models = column_models(self._known)
        for (partition, column), span in self._with_nan.items():
            record = range_record(partition, column, span, models[column]) | any_value(span)
            yield partition_stats_key(column, partition), partition_stats_value(record)

    def questions(self) -> list[Question]:
        """The questions about the new base files, after the first one, which is about their columns, has been asked."""
        return [*self._questions().values()]

    def _questions(self) -> dict[AddedFile, Question]:
        bases = [file for file in self.added if BaseFileName.parse(file.name) is not None]
        of_columns = [Question(base_columns, (base.path,)) for base in bases]
        self.contents.ask(of_columns)
        names = {name for question in of_columns for name in self.contents[question]}
        sources = [SourceFile(file.partition, source) for file in self.added for source in file.sources]
        self._known = known_statistics(self.reader, sources, sorted(names))
        columns = frozenset(column_models(self._known))
        return {base: Question(column_ranges, (base.path, columns)) for base in bases}


def removals(reader: MetadataTableReader, removed: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, Value]]:
    """The records that remove the statistics of files, given by partition. Keys and values.

    The columns are those in the table's index definition. If it names none, they are the columns of the latest schema.
    """
    if not any(removed.values()):
        return
    definition = index_definition(reader.storage, COLUMN_STATS)
    columns = definition.fields or _latest_columns(reader)
    for partition, names in removed.items():
        for name in names:
            for column in columns:
                value = empty_statistics(column, has_value_types=definition.is_of_second_version)
                value |= dict.fromkeys(_COUNTS, _UNKNOWN) | {"fileName": name, "isDeleted": True}
                yield column_stats_key(column, partition, name), column_stats_value(value)


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
    slices = reader.slices(partition)
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


def range_record(file_name: str, column: str, span: ColumnRange, model: Value) -> Value:
    """A column's range as statistics in the model's form, or in that of the column's type if the model has another one.

    Raises UnsupportedTableError if Hudi has no statistics of the type.
    """
    least = greatest = None
    if span.least is not None:
        model = in_form_of(span, column, model)
        wrapper = str(model["minValue"][0]).rpartition(".")[2]
        least, greatest = span.wrapped(wrapper, column)
    return model | {
        "fileName": file_name,
        "minValue": least,
        "maxValue": greatest,
        "valueCount": span.value_count,
        "nullCount": span.null_count,
        # Writers count sizes differently, and no reader prunes by them.
        "totalSize": 0,
        "totalUncompressedSize": 0,
    }


def any_value(span: ColumnRange) -> Value:
    """What makes the record of a range with NaN one that contains every value and null, in the place of the earlier ones.

    A merge would keep an earlier end that is NaN, which is greater than infinity.
    """
    nulls = max(span.null_count, 1)
    return {"isTightBound": True, "nullCount": nulls, "valueCount": max(span.value_count, nulls + 1)}


def in_form_of(span: ColumnRange, column: str, model: Value) -> Value:
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
