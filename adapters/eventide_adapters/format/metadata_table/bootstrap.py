"""Makes a metadata table from nothing, as Hudi does at the first write of a table that has none.

Hudi writes a delta commit for each partition of the metadata table. eventide writes one for all of them:

    version 6      at the last completed instant of the table, followed by "010"
    8 and later    at 00000000000000000

In this order, below `.hoodie/metadata` except for the second step:

1. For each partition: its mark, and for each of its file groups an empty log file, which makes the group exist, and a base
   file if it has records.
2. The definition of `column_stats`, beside the table's other definitions (8 and later).
3. `hoodie.properties`.
4. The requested, the inflight and the completed file of the delta commit.

No reader uses any of it until the table's own settings name the partitions, which the caller writes last. A run after a
crash begins with the removal of the whole directory.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from typing import Any, Final

import pyarrow as pa

from eventide_adapters.format.log_file.delete_block import encode_delete_block
from eventide_adapters.format.metadata_table.base_file_writer import write_base_file
from eventide_adapters.format.metadata_table.file_contents import Answering, FilterOfBase, KeysOfRows, Question
from eventide_adapters.format.metadata_table.file_groups import file_group_numbers
from eventide_adapters.format.metadata_table.index_definitions import define_index
from eventide_adapters.format.metadata_table.reader import MetadataTableReader
from eventide_adapters.format.metadata_table.rebuilt_stats import RebuiltStatistics
from eventide_adapters.format.metadata_table.record_index import epoch_ms
from eventide_adapters.format.metadata_table.records import (
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
from eventide_adapters.format.timeline.codec import HudiMetadataCodec
from eventide_core.errors import ConfigError
from eventide_core.ports import Engine, NewMetadataTable, Storage
from eventide_core.table.files.file_name import BaseFileName, LogFileName, path_in
from eventide_core.table.files.slice_read import SliceRead
from eventide_core.table.files.table_path import METADATA_DIRECTORY
from eventide_core.table.records.schema import META_FIELDS
from eventide_core.table.settings.metadata_table import (
    BLOOM_FILTERS,
    COLUMN_STATS,
    FILES,
    PARTITION_STATS,
    RECORD_INDEX,
)
from eventide_core.table.settings.properties import table_checksum
from eventide_core.table.timeline.commit_metadata import CommitMetadata, WriteStat
from eventide_core.table.timeline.instant import Action, Instant, State
from eventide_core.table.timeline.layout import Layout, layout_of

REBUILT: Final = (FILES, BLOOM_FILTERS, COLUMN_STATS, PARTITION_STATS, RECORD_INDEX)
"""The partitions that can be made. The next write of Hudi adds the others that it is configured to have."""

_FILE_GROUPS: Final = {
    FILES: ("files", 1),
    BLOOM_FILTERS: ("bloom-filters", 4),
    COLUMN_STATS: ("col-stats", 2),
    PARTITION_STATS: ("partition-stats", 1),
    RECORD_INDEX: ("record-index", 10),
}
"""The prefix of the file ids, and the number of file groups that Hudi makes by default."""

_FIRST_INSTANT: Final = "00000000000000000"
_BELOW_VERSION_8: Final = "010"
_NO_INSTANT: Final = "00000000000000"
_LOG_TOKEN: Final = "0-0-0"
_BASE_TOKEN: Final = "0-1-0"

Entry = tuple[bytes, bytes]


@dataclass(frozen=True)
class MetadataTableBootstrap:
    """One metadata table to make. Without an engine, this process reads the data files."""

    storage: Storage
    engine: Engine | None
    new: NewMetadataTable

    def run(self) -> None:
        """Raises ConfigError for a partition that cannot be made, and what reading the data files raises."""
        unknown = sorted(set(self.new.partitions) - set(REBUILT))
        if unknown:
            raise ConfigError(
                f"eventide cannot make {', '.join(unknown)} of the metadata table, only {', '.join(REBUILT)}: leave it to "
                "the next write of Hudi"
            )
        stats = {partition: tuple(self._write_partition(partition)) for partition in self.new.partitions}
        if COLUMN_STATS in self.new.partitions and self._statistics.has_definition:
            define_index(self.storage, COLUMN_STATS, self._statistics.definition)
        self.storage.put(f"{METADATA_DIRECTORY}/.hoodie/hoodie.properties", self._properties().encode())
        metadata = CommitMetadata(stats, {"schema": json.dumps(self._record_schema)}, "BULK_INSERT")
        self._put_instant(State.REQUESTED, b"")
        self._put_instant(State.INFLIGHT, b"")
        self._put_instant(State.COMPLETED, HudiMetadataCodec().encode_commit(metadata, self.new.version))

    @property
    def instant(self) -> str:
        """The requested time of its delta commit."""
        if self._layout.records_completion_times:
            return _FIRST_INSTANT
        return f"{self.new.last_instant or _NO_INSTANT}{_BELOW_VERSION_8}"

    @property
    def _layout(self) -> Layout:
        return layout_of(self.new.version)

    @cached_property
    def _record_schema(self) -> dict[str, Any]:
        name = f"metadata_record_{8 if self._layout.needs_hudi_1 else 6}.avsc"
        found: dict[str, Any] = json.loads(
            (resources.files("eventide_adapters.format") / "schemas" / name).read_bytes()
        )
        return found

    @cached_property
    def _schema(self) -> str:
        """The schema of the values in files, which has Hudi's meta fields."""
        meta = [{"name": name, "type": ["null", "string"], "doc": "", "default": None} for name in META_FIELDS]
        return json.dumps({**self._record_schema, "fields": [*meta, *self._record_schema["fields"]]})

    def _answers(self, questions: list[Question]) -> Iterator[Any]:
        answering = Answering(self.storage)
        yield from map(answering, questions) if self.engine is None else self.engine.map(answering, questions)

    def _write_partition(self, partition: str) -> Iterator[WriteStat]:
        directory = f"{METADATA_DIRECTORY}/{partition}"
        mark = f"#partition metadata\ncommitTime={self.instant}\npartitionDepth=1\n"
        self.storage.put(f"{directory}/.hoodie_partition_metadata", mark.encode())
        prefix, count = _FILE_GROUPS[partition]
        empty = encode_delete_block(self.instant, partition, [], pa.nulls(0))
        for number, entries in enumerate(self._groups(partition, count)):
            file_id = f"{prefix}-{number:04d}-0"
            log = LogFileName(file_id, self.instant, 1, _LOG_TOKEN, "")
            self.storage.put(f"{directory}/{log}", empty)
            if entries:
                yield self._write_base(partition, BaseFileName(file_id, _BASE_TOKEN, self.instant, ".hfile"), entries)

    def _groups(self, partition: str, count: int) -> Iterator[list[Entry]]:
        """The entries of each file group, in the order of their keys."""
        match partition:
            case _ if partition == FILES:
                yield _sorted(self._files())
            case _ if partition == BLOOM_FILTERS:
                yield from _divided(self._bloom_filters(), count)
            case _ if partition == COLUMN_STATS:
                yield from _divided(self._encoded(self._statistics.column_stats()), count)
            case _ if partition == PARTITION_STATS:
                yield from _divided(self._encoded(self._statistics.partition_stats()), count)
            case _:
                yield from self._record_index(count)

    def _files(self) -> Iterator[tuple[str, bytes]]:
        named = {files_key(partition): files for partition, files in self.new.files.items()}
        for key, files in named.items():
            if files:
                yield key, encode_value(files_value(files, ()), self._schema)
        yield ALL_PARTITIONS_KEY, encode_value(all_partitions_value(sorted(named)), self._schema)

    def _bloom_filters(self) -> Iterator[tuple[str, bytes]]:
        bases = [
            (partition, name)
            for partition, files in self.new.files.items()
            for name in files
            if BaseFileName.parse(name) is not None
        ]
        answers = self._answers([FilterOfBase(path_in(partition, name)) for partition, name in bases])
        for (partition, name), known in zip(bases, answers, strict=True):
            if known is not None:
                value = bloom_filter_value(known[0], self.instant, known[1].encode())
                yield bloom_filter_key(partition, name), encode_value(value, self._schema)

    @cached_property
    def _statistics(self) -> RebuiltStatistics:
        return RebuiltStatistics(self.storage, self.new, self._answers)

    def _encoded(self, records: Iterable[tuple[str, Value]]) -> Iterator[tuple[str, bytes]]:
        for key, value in records:
            yield key, encode_value(value, self._schema)

    def _record_index(self, count: int) -> Iterator[list[Entry]]:
        """A key of each row that the table shows. The keys of a slice share a value, which is encoded once."""
        shape = self.new.rows.shape
        answers = self._answers([KeysOfRows(found, shape) for found in self.new.rows.slices])
        slices: list[tuple[Any, Any, bytes]] = []
        for found, keys in zip(self.new.rows.slices, answers, strict=True):
            instant_ms = epoch_ms(_instant_of(found), is_utc=self.new.has_utc_instants)
            value = record_index_value(found.partition, found.file_id, instant_ms)
            slices.append((keys, file_group_numbers(keys, count), encode_value(value, self._schema)))
        for number in range(count):
            yield sorted(
                (key.encode(), value)
                for keys, numbers, value in slices
                for key in keys.filter(pa.array(numbers == number)).to_pylist()
            )

    def _write_base(self, partition: str, name: BaseFileName, entries: Iterable[Entry]) -> WriteStat:
        path = f"{partition}/{name}"
        count, size = write_base_file(self.storage, path, entries, self._schema, self._layout)
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

    def _put_instant(self, state: State, data: bytes) -> None:
        end = self._layout.recorded_completion(self.new.completion_time) if state is State.COMPLETED else None
        directory = f"{METADATA_DIRECTORY}/{self._layout.timeline_path({})}"
        self.storage.put(f"{directory}/{Instant(self.instant, Action.DELTA_COMMIT, state, end).file_name}", data)

    def _properties(self) -> str:
        name = f"{self.new.name}_metadata"
        pairs = {
            "hoodie.table.name": name,
            "hoodie.table.type": "MERGE_ON_READ",
            "hoodie.table.version": str(self.new.version),
            "hoodie.table.base.file.format": "HFILE",
            "hoodie.table.recordkey.fields": "key",
            "hoodie.table.checksum": table_checksum({"hoodie.table.name": name}),
            "hoodie.compaction.payload.class": "org.apache.hudi.metadata.HoodieMetadataPayload",
            "hoodie.populate.meta.fields": "false",
            "hoodie.datasource.write.drop.partition.columns": "false",
            **(_of_completion_times(self.new.version) if self._layout.needs_hudi_1 else _BELOW_8),
        }
        return "".join(f"{key}={value}\n" for key, value in pairs.items())


_BELOW_8: Final[Mapping[str, str]] = {
    "hoodie.timeline.layout.version": "1",
    "hoodie.archivelog.folder": "archived",
    "hoodie.table.keygenerator.class": "org.apache.hudi.metadata.HoodieTableMetadataKeyGenerator",
    "hoodie.compaction.record.merger.strategy": "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5",
}


def _of_completion_times(version: int) -> Mapping[str, str]:
    return {
        "hoodie.table.initial.version": str(version),
        "hoodie.timeline.layout.version": "2",
        "hoodie.timeline.path": "timeline",
        "hoodie.timeline.history.path": "history",
        "hoodie.archivelog.folder": "history",
        "hoodie.table.keygenerator.type": "HOODIE_TABLE_METADATA",
        "hoodie.record.merge.mode": "CUSTOM",
        "hoodie.record.merge.strategy.id": "00000000-0000-0000-0000-000000000000",
    }


def actions_before_bootstrap(reader: MetadataTableReader) -> frozenset[str]:
    """The requested times of the actions whose files Hudi or eventide listed when it made the metadata table.

    Version 8 and later: those that completed before the first delta commit did. Version 6: those up to the instant that the
    first delta commit names. None if that commit has been archived.
    """
    first = min(reader.timeline.completed, key=lambda i: i.requested_time, default=None)
    if first is None:
        return frozenset()
    completed = reader.data_timeline.completed
    if reader.layout.records_completion_times:
        if first.requested_time != _FIRST_INSTANT or first.completion_time is None:
            return frozenset()
        return frozenset(i.requested_time for i in completed if (i.completion_time or "9") <= first.completion_time)
    path = f"{reader.timeline_path}/{first.file_name}"
    if not first.requested_time.endswith(_BELOW_VERSION_8) or len(first.requested_time) <= len(_FIRST_INSTANT):
        return frozenset()
    if FILES not in HudiMetadataCodec().decode_commit(reader.storage.read(path), path).write_stats:
        return frozenset()  # an index that was added later
    last = first.requested_time.removesuffix(_BELOW_VERSION_8)
    return frozenset(i.requested_time for i in completed if i.requested_time <= last)


def _divided(records: Iterable[tuple[str, bytes]], count: int) -> Iterator[list[Entry]]:
    """The entries of each file group."""
    groups: list[list[tuple[str, bytes]]] = [[] for _ in range(count)]
    for key, value in records:
        groups[file_group_number(key, count)].append((key, value))
    yield from map(_sorted, groups)


def _sorted(records: Iterable[tuple[str, bytes]]) -> list[Entry]:
    return sorted((key.encode(), value) for key, value in records)


def _instant_of(found: SliceRead) -> str:
    """The instant in the name of the slice's first file."""
    path = found.base_path or found.log_paths[0][0]
    name = path.rpartition("/")[2]
    parsed = BaseFileName.parse(name) or LogFileName.parse(name)
    assert parsed is not None  # the files of a slice have been recognized by their names
    return parsed.instant
