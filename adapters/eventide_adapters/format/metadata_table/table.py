"""Keeps Hudi's metadata table up to date with commits that Hudi doesn't make.

Each of its partitions needs, for an action of the table at the instant C:

    files                        the names and sizes of the files; a listing by the metadata table shows only these files
    bloom_filters                the filter in the footer of each new base file; an index that finds none fails. A removal
                                 for each base file that is removed
    column_stats                 `stats`
    partition_stats              nothing if rows stay or are removed: its ranges contain every row that is left, except NaN
    record_index                 nothing if all rows stay: no key moves to another file group
    secondary_index_*            the same: no key has another value
    expr_index_*                 `update.expression_records`

If rows are written, `stats` defines their statistics, `record_index` the file groups of their keys, and
`secondary_index` their values. Records with new columns need statistics whose form no existing record shows: if the
table has column or partition statistics, such writes are refused. Also refused are a rollback of rows if there is a
record index, and any action if the metadata table has a partition that isn't in this list. An index that cannot follow
an action is dropped with it: see `update`.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from eventide_adapters.format.metadata_table.records.records import (
    ALL_PARTITIONS_KEY,
    files_key,
    merged_files,
    partition_of,
)
from eventide_core.errors import RecordDecodeError
from eventide_core.ports import (
    Engine,
    FileAnswers,
    FileChanges,
    MetadataLog,
    MetadataTableState,
    MetadataUpdate,
    NewMetadataContent,
    NewMetadataTable,
    StagedLog,
    Storage,
)
from eventide_core.table.files.table_path import METADATA_DIRECTORY
from eventide_core.table.schema.avro_schema import AvroSchema
from eventide_core.table.settings.metadata_table import (
    FILES,
    REBUILD_CURE,
)

# A method imports what only it needs: most verbs need no metadata table, or its list of files alone.
if TYPE_CHECKING:
    from eventide_adapters.format.metadata_table.records.base_file_writer import MetadataBaseFileWriter
    from eventide_adapters.format.metadata_table.records.reader import MetadataTableReader


@dataclass(frozen=True, slots=True)
class HudiMetadataTable:
    """Implements `ports.MetadataTable`. `storage` has the table that the metadata table describes.

    Tasks of the engine read the data files. Without an engine, this process reads them.
    """

    storage: Storage
    engine: Engine | None = None

    def listing(
        self, instants: Collection[str], made_with: Callable[[MetadataTableState], Collection[str]] = lambda _: ()
    ) -> Mapping[str, Mapping[str, int]] | None:
        reader = _reader(self.storage)
        if FILES not in reader.facts.partitions or FILES in reader.facts.building:
            return None
        # The table's timeline keeps some cleans, rollbacks and restores longer than the metadata table's own.
        missing = set(instants) - {i.requested_time for i in reader.facts.timeline.completed}
        missing = {instant for instant in missing if reader.archive.find(instant) is None}
        if missing and not missing.issubset(made_with(reader)):
            return None
        return _read_files(reader)

    def read_ahead(self, instant: str, changes: FileChanges) -> FileAnswers:
        from eventide_adapters.format.metadata_table.file_contents import FileContents
        from eventide_adapters.format.metadata_table.update import read_ahead

        contents = FileContents(self.storage, self.engine)
        read_ahead(_reader(self.storage), instant, changes, contents)
        return contents.known

    def prepare(self, instant: str, changes: FileChanges, known: FileAnswers = MappingProxyType({})) -> MetadataUpdate:
        from eventide_adapters.format.metadata_table.file_contents import FileContents
        from eventide_adapters.format.metadata_table.update import prepared_update

        contents = FileContents(self.storage, self.engine, dict(known))
        return prepared_update(_reader(self.storage), instant, changes, contents)

    def definitions_without(self, partitions: Collection[str]) -> bytes | None:
        from eventide_adapters.format.metadata_table.index_definitions import definitions_without

        return definitions_without(self.storage, partitions)

    def place(self, logs: Sequence[MetadataLog]) -> None:
        from eventide_adapters.format.metadata_table.group_records import place_logs

        staged: list[tuple[StagedLog, str]] = []
        for log in logs:
            path = f"{METADATA_DIRECTORY}/{log.path}"
            if isinstance(log.content, StagedLog):
                staged.append((log.content, path))
            else:
                self.storage.put(path, log.content)
        place_logs(self.storage, self.engine, staged)

    def indexes_over_rows(self) -> tuple[str, ...]:
        from eventide_adapters.format.metadata_table.update import indexes_over_rows

        return indexes_over_rows(_reader(self.storage))

    def content(self, new: NewMetadataTable) -> NewMetadataContent:
        from eventide_adapters.format.metadata_table.file_contents import FileContents
        from eventide_adapters.format.metadata_table.new_content import NewContent

        return NewContent(FileContents(self.storage, self.engine), new).value()

    def reflects(self, changes: FileChanges) -> bool:
        keys = {files_key(partition) for partition in (*changes.removed, *(file.partition for file in changes.added))}
        listed = _read_files(_reader(self.storage), keys)
        return all(listed.get(file.partition, {}).get(file.name) == file.size for file in changes.added) and not any(
            name in listed.get(partition, {}) for partition, names in changes.removed.items() for name in names
        )

    def load(self) -> "MetadataTableReader":
        return _reader(self.storage)

    def base_file_writer(self, schema: AvroSchema) -> "MetadataBaseFileWriter":
        from eventide_adapters.format.metadata_table.records.base_file_writer import MetadataBaseFileWriter

        return MetadataBaseFileWriter(_reader(self.storage), schema)


def _reader(storage: Storage) -> "MetadataTableReader":
    from eventide_adapters.format.metadata_table.records.reader import MetadataTableReader

    return MetadataTableReader.load(storage)


def _read_files(reader: "MetadataTableReader", keys: Collection[str] | None = None) -> dict[str, dict[str, int]]:
    listed: dict[str, dict[str, int]] = {}
    for file_slice in reader.slices(FILES):
        for key, versions in reader.records(file_slice, keys).items():
            if key != ALL_PARTITIONS_KEY:
                try:
                    listed[partition_of(key)] = merged_files(versions)
                except (KeyError, TypeError, AttributeError) as error:
                    raise RecordDecodeError(
                        f"{reader.storage.root}: the metadata table's record {key!r} names no files ({error!r}); "
                        f"{REBUILD_CURE}"
                    ) from error
    return listed
