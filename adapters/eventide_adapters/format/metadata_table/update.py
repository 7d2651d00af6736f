"""The records and log files with which the metadata table follows an action of the table.

One log file for each file group with records: an HFILE block, and a DELETE block if keys are removed.

    version 6      log file `.<file id>_<base instant>.log.<last + 1>_<token>`
    8 and later    log file `.<file id>_<C>.log.1_<token>`; it completes a millisecond before the commit of the table

The token depends only on C. So a writer that shares no lock and uses the same log number has a different name.

An index that cannot follow the action is dropped, as Hudi drops one:

    expr_index_* of column_stats    if rows are written, because only Spark computes its function; if a source of a new base
                                    file has no range
    secondary_index_*               if rows are written and eventide doesn't know the column's texts

A rollback of a completed write drops indexes before it removes anything (`indexes_over_rows`), because a second run no
longer sees that the write had completed: these two, `partition_stats`, whose ranges may lack the rows that come back, and
`record_index`, if the rollback was begun while the metadata table was to be dropped.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from eventide_adapters.format.metadata_table import group_records
from eventide_adapters.format.metadata_table.file_contents import FileContents, Question, filter_of_base
from eventide_adapters.format.metadata_table.group_records import (
    KeyIndexRules,
    LogForm,
    bytes_to_read,
    encoded_logs,
)
from eventide_adapters.format.metadata_table.index_definitions import IndexDefinition, index_definition
from eventide_adapters.format.metadata_table.record_index import RecordIndexRules, key_questions
from eventide_adapters.format.metadata_table.records.hfile_writer import HFileStyle
from eventide_adapters.format.metadata_table.records.merged import merged_statistics
from eventide_adapters.format.metadata_table.records.reader import MetadataTableReader
from eventide_adapters.format.metadata_table.records.records import (
    ALL_PARTITIONS_KEY,
    Value,
    all_partitions_value,
    bloom_filter_key,
    bloom_filter_value,
    column_stats_key,
    column_stats_value,
    encode_value,
    file_group_number,
    files_key,
    files_value,
    removed_bloom_filter_value,
)
from eventide_adapters.format.metadata_table.secondary_index import SecondaryIndex
from eventide_adapters.format.metadata_table.stats import SourceFile, Statistics, known_statistics
from eventide_core.errors import MetadataTableBusyError, UnsupportedTableError
from eventide_core.ports import AddedFile, FileChanges, MetadataLog, MetadataUpdate
from eventide_core.table.files.file_group_write import staging_directory
from eventide_core.table.files.file_name import BaseFileName, LogFileName
from eventide_core.table.files.file_slice import FileSlice
from eventide_core.table.schema.avro_schema import AvroSchema
from eventide_core.table.settings import metadata_table as names
from eventide_core.table.settings.metadata_table import RowChange, kind_of
from eventide_core.table.timeline.contents.commit_metadata import SCHEMA_KEY

_OVER_ROWS: Final = frozenset((names.PARTITION_STATS, names.RECORD_INDEX))

KeyedValues = list[tuple[str, Value | None]]
"""Keys with values; None for a deleted key."""


def prepared_update(
    reader: MetadataTableReader, instant: str, changes: FileChanges, contents: FileContents
) -> MetadataUpdate:
    """The update of an instant. An index without files, which a paused rebuild may have named, is dropped.

    Raises UnsupportedTableError for column statistics of an unknown form, and MetadataTableBusyError if an index has to
    be dropped while a plan is pending that may include a part of it.
    """
    try:
        return _prepared(reader, instant, changes, contents)
    except UnsupportedTableError:
        unmade = tuple(name for name in reader.facts.partitions if name != names.FILES and not reader.slices(name))
        if not unmade:
            raise
        made = tuple(name for name in reader.facts.partitions if name not in unmade)
        update = _prepared(replace(reader, facts=replace(reader.facts, partitions=made)), instant, changes, contents)
        return replace(update, dropped=(*update.dropped, *unmade))


def _prepared(
    reader: MetadataTableReader, instant: str, changes: FileChanges, contents: FileContents
) -> MetadataUpdate:
    known = reader.facts.timeline.find(instant)
    if known is not None and known.is_completed:
        return MetadataUpdate(reader, instant, None, {})
    read_ahead(reader, instant, changes, contents)
    records: dict[str, KeyedValues] = {names.FILES: _files_records(changes)}
    if names.COLUMN_STATS in reader.facts.partitions:
        statistics = Statistics(reader, changes, contents)
        records[names.COLUMN_STATS] = list(statistics.column_stats())
        if names.PARTITION_STATS in reader.facts.partitions:
            records[names.PARTITION_STATS] = list(statistics.partition_stats())
    if names.BLOOM_FILTERS in reader.facts.partitions:
        records[names.BLOOM_FILTERS] = _bloom_filters(instant, changes, contents)
    by_value = {partition: _by_value(reader, partition, changes) for partition in reader.facts.partitions}
    dropped = [partition for partition, of_partition in by_value.items() if of_partition is None]
    _check_no_plan(reader, dropped)
    records |= {partition: of_partition for partition, of_partition in by_value.items() if of_partition}
    logs: list[MetadataLog] = []
    for partition, of_partition in records.items():
        logs += _logs(reader, instant, partition, of_partition)
    logs += _key_logs(reader, instant, changes, contents)
    own_schema = reader.own_schema()
    extra_metadata = {} if own_schema is None else {SCHEMA_KEY: own_schema.text}
    return MetadataUpdate(reader, instant, tuple(logs), extra_metadata, tuple(dropped))


def indexes_over_rows(reader: MetadataTableReader) -> tuple[str, ...]:
    """The indexes that cannot follow a rollback of rows. Raises MetadataTableBusyError as `prepared_update` does."""
    changes = FileChanges(RowChange.ROLLED_BACK)
    dropped = tuple(
        name for name in reader.facts.partitions if name in _OVER_ROWS or _by_value(reader, name, changes) is None
    )
    _check_no_plan(reader, dropped)
    return dropped


def _check_no_plan(reader: MetadataTableReader, dropped: Sequence[str]) -> None:
    if dropped and reader.facts.timeline.pending_plans:
        raise MetadataTableBusyError(
            f"{reader.storage.root}: {', '.join(dropped)} cannot be dropped while the metadata table has a pending "
            f"{reader.facts.timeline.pending_plans[0].action}; the next write of Hudi completes it"
        )


def read_ahead(reader: MetadataTableReader, instant: str, changes: FileChanges, contents: FileContents) -> None:
    """Reads all files of an action at once, through `contents`, and encodes what is made of many keys.

    Raises UnsupportedTableError for column statistics of an unknown form.
    """
    questions: list[Question] = []
    if names.COLUMN_STATS in reader.facts.partitions:
        questions += Statistics(reader, changes, contents).questions()
    if names.BLOOM_FILTERS in reader.facts.partitions:
        questions += [Question(filter_of_base, (file.path,)) for file in _bases(changes)]
    indexes = _key_indexes(reader, instant, changes)
    if _staging(instant, changes) is None:  # otherwise, `_key_logs` asks about keys
        questions += [question for _, asked in indexes.values() for question in asked]
    contents.ask(questions)
    _key_logs(reader, instant, changes, contents)


def _bases(changes: FileChanges) -> list[AddedFile]:
    return [file for file in changes.added if BaseFileName.parse(file.name) is not None]


def _by_value(reader: MetadataTableReader, partition: str, changes: FileChanges) -> KeyedValues | None:
    """The records for an index over values; empty for any other partition; None for an index that cannot follow."""
    kind = kind_of(partition)
    if kind not in (names.SECONDARY_INDEX_PREFIX, names.EXPRESSION_INDEX_PREFIX):
        return []
    definition = index_definition(reader.storage, partition)
    match kind:
        case names.SECONDARY_INDEX_PREFIX if changes.written is not None:
            return (
                [] if SecondaryIndex(definition).is_followed(changes.written) else None
            )  # `_key_logs` has the records
        case names.SECONDARY_INDEX_PREFIX if changes.rows is not RowChange.NONE:
            return None
        case names.EXPRESSION_INDEX_PREFIX if changes.rows is RowChange.NONE:
            return expression_records(reader, partition, definition, changes.added)
        case names.EXPRESSION_INDEX_PREFIX if not definition.is_of_bloom_filters:
            return None
        case _:
            return []


def _logs(reader: MetadataTableReader, instant: str, partition: str, records: KeyedValues) -> list[MetadataLog]:
    slices = reader.own_slices(partition)
    of_group: dict[int, KeyedValues] = {}
    for key, value in records:
        of_group.setdefault(file_group_number(key, len(slices)), []).append((key, value))
    logs: list[MetadataLog] = []
    for number in sorted(of_group):
        form = _form(reader, slices[number], instant)
        group = of_group[number]
        entries = sorted((key.encode(), encode_value(value, form.schema)) for key, value in group if value is not None)
        data = form.encode(entries, [key for key, value in group if value is None])
        logs.append(MetadataLog(slices[number], _log_name(reader, slices[number], instant), len(group), data))
    return logs


def _key_indexes(
    reader: MetadataTableReader, instant: str, changes: FileChanges
) -> dict[str, tuple[KeyIndexRules, Sequence[Question]]]:
    """The indexes over keys that follow a write, by partition, with their questions about its files."""
    if changes.written is None:
        return {}
    indexes: dict[str, tuple[KeyIndexRules, Sequence[Question]]] = {}
    for partition in reader.facts.partitions:
        if partition == names.RECORD_INDEX:
            rules = RecordIndexRules.of(instant, changes, is_utc=reader.has_utc_instants)
            indexes[partition] = rules, key_questions(changes)
        elif kind_of(partition) == names.SECONDARY_INDEX_PREFIX:
            index = SecondaryIndex(index_definition(reader.storage, partition))
            if index.is_followed(changes.written):
                indexes[partition] = index, index.questions(changes)
    return indexes


def _staging(instant: str, changes: FileChanges) -> str | None:
    """The staging directory of a large write; None for a small one."""
    return staging_directory(instant) if bytes_to_read(changes) > group_records.STAGED_ABOVE_BYTES else None


def _key_logs(
    reader: MetadataTableReader, instant: str, changes: FileChanges, contents: FileContents
) -> list[MetadataLog]:
    """The log files of the indexes over keys. A second call with the same arguments encodes nothing."""
    logs: list[MetadataLog] = []
    for partition, (rules, questions) in _key_indexes(reader, instant, changes).items():
        slices = reader.own_slices(partition)
        forms = [_form(reader, file_slice, instant) for file_slice in slices]
        encoded = encoded_logs(contents, rules, questions, forms, _staging(instant, changes))
        logs += [
            MetadataLog(file_slice, _log_name(reader, file_slice, instant), log.count, log.content)
            for file_slice, log in zip(slices, encoded, strict=True)
            if log.count
        ]
    return logs


def _form(reader: MetadataTableReader, file_slice: FileSlice, instant: str) -> LogForm:
    style = HFileStyle.of(reader.facts.layout)
    partition = file_slice.partition.rpartition("/")[2]
    return LogForm(partition, instant, _schema(reader, file_slice), style)


def _schema(reader: MetadataTableReader, file_slice: FileSlice) -> AvroSchema:
    """The latest schema in the file group. A file group that never had a record uses the schema of `files`."""
    for candidate in (file_slice, *reader.slices(names.FILES)):
        schema = reader.schema(candidate)
        if schema is not None:
            return schema
    raise UnsupportedTableError(
        f"{reader.storage.root}: no file of the metadata table contains its schema; {names.REBUILD_CURE}"
    )


def _log_name(reader: MetadataTableReader, file_slice: FileSlice, instant: str) -> LogFileName:
    token = f"0-7-{int(instant[-9:])}"  # the time of day; Hudi reads its parts as 32-bit integers
    if reader.facts.layout.names_logs_by_write:
        return LogFileName(file_slice.file_id, instant, 1, token)
    last = max(file_slice.log_files, key=lambda log: log.name.version, default=None)
    if last is None:
        return LogFileName(file_slice.file_id, file_slice.base_instant, 1, token)
    if last.name.write_token == token and reader.block_instants(last.path, last.size) == {instant}:
        return last.name
    return LogFileName(file_slice.file_id, file_slice.base_instant, last.name.version + 1, token)


def _files_records(changes: FileChanges) -> KeyedValues:
    partitions = sorted({*(file.partition for file in changes.added), *changes.removed})
    records: KeyedValues = [
        (
            files_key(partition),
            files_value(
                {file.name: file.size for file in changes.added if file.partition == partition},
                changes.removed.get(partition, ()),
            ),
        )
        for partition in partitions
    ]
    with_files = sorted({files_key(file.partition) for file in changes.added})
    return [*records, (ALL_PARTITIONS_KEY, all_partitions_value(with_files))] if with_files else records


def _bloom_filters(instant: str, changes: FileChanges, contents: FileContents) -> KeyedValues:
    records: KeyedValues = []
    for file in _bases(changes):
        known: tuple[str, str] | None = contents[Question(filter_of_base, (file.path,))]
        if known is not None:
            value = bloom_filter_value(known[0], instant, known[1].encode())
            records.append((bloom_filter_key(file.partition, file.name), value))
    for partition, removed in changes.removed.items():
        for name in removed:
            if BaseFileName.parse(name) is not None:
                records.append((bloom_filter_key(partition, name), removed_bloom_filter_value(instant)))
    return records


def expression_records(
    reader: MetadataTableReader, partition: str, definition: IndexDefinition, added: Sequence[AddedFile]
) -> list[tuple[str, Value | None]] | None:
    """The changes of a compaction to an expression index: ranges of a function of a column, by file.

    None if the index can't be kept. Spark computes the function, which can depend on the time zone of a session. eventide
    doesn't compute it:

        of column_stats     a new base file has only rows of its sources, so the span of the sources' ranges contains its
                            range. A left-over has the range of its source. A file of carried deletes has none. A
                            partition's range stays: it contains every row that is left
        of bloom_filters    nothing: Hudi reads each file that the index doesn't know

    Hudi recomputes the range of a partition from its files' ranges. So an index can't be kept if a source has no range.
    """
    if definition.is_of_bloom_filters:
        return []
    if len(definition.fields) != 1:
        return None
    column = definition.fields[0]
    sources = [SourceFile(file.partition, source) for file in added for source in file.sources]
    known = known_statistics(reader, sources, [column], partition)
    ranges = {source.name: known[source.name].get(column) for source in sources}
    records: list[tuple[str, Value | None]] = []
    for file in added:
        is_base = BaseFileName.parse(file.name) is not None
        parts = [ranges[source] for source in file.sources]
        if (is_base and not parts) or None in parts:
            return None
        # A tight range would replace the earlier ones.
        span = merged_statistics(part | {"isTightBound": False} for part in parts if part is not None)
        if span is not None:
            key = column_stats_key(column, file.partition, file.name)
            records.append((key, column_stats_value(span | {"fileName": file.name})))
    return records
