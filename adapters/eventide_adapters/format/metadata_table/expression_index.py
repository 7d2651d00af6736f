"""The changes of a compaction to an expression index of the metadata table: ranges of a function of a column, by file.

Spark computes the function, which can depend on the time zone of a session. eventide doesn't compute it:

    of column_stats     a new base file has only rows of its sources, so the span of the sources' ranges contains its range.
                        A left-over has the range of its source. A file of carried deletes has none. A partition's range
                        stays: it contains every row that is left
    of bloom_filters    nothing: Hudi reads each file that the index doesn't know

Hudi recomputes the range of a partition from those of its files. So an index can't be kept if a source has no range.
"""

from collections.abc import Sequence

from eventide_adapters.format.metadata_records.merged import merged_statistics
from eventide_adapters.format.metadata_records.reader import MetadataTableReader
from eventide_adapters.format.metadata_records.records import Value, column_stats_key, column_stats_value
from eventide_adapters.format.metadata_table.index_definitions import IndexDefinition
from eventide_adapters.format.metadata_table.stats import SourceFile, known_statistics
from eventide_core.ports import AddedFile
from eventide_core.table.files.file_name import BaseFileName


def expression_records(
    reader: MetadataTableReader, partition: str, definition: IndexDefinition, added: Sequence[AddedFile]
) -> list[tuple[str, Value | None]] | None:
    """Keys and values of the index for the files that a compaction adds; None if the index can't be kept."""
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
