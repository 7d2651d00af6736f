"""Rebuilds `hoodie.properties` if it and its backup are lost.

The table's other files show some of the settings. The user states the others, and none of them is guessed: a wrong
ordering field keeps wrong versions of records. Nothing is written before all of them are known. Then, under the table
lock, the file is written as a repair with a backup: an interrupted one is completed by the next, and an undo removes it.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from typing import Final

from eventide_core.action.repair.repairs import Replacement
from eventide_core.errors import (
    ConfigError,
    CorruptTimelineError,
    NotAHudiTableError,
    RefusedError,
    UnsupportedTableError,
)
from eventide_core.ports import Clock, TableLock
from eventide_core.service.common.facts.planning import instant_beyond
from eventide_core.service.common.state.table_files import TableFiles
from eventide_core.service.common.transaction.outcome import instants_with_outcome
from eventide_core.service.repair.backup import RepairBackup, backups_of
from eventide_core.table import property_keys as keys
from eventide_core.table.files.file_name import LogFileName
from eventide_core.table.files.table_path import INDEX_DEFINITIONS, METADATA_DIRECTORY, PARTITION_MARK
from eventide_core.table.records.event_time_texts import ZONE_KEY
from eventide_core.table.schema.avro_schema import RECORD_KEY, AvroSchema
from eventide_core.table.settings.metadata_table import OWN_PROPERTIES_PATH, own_properties
from eventide_core.table.settings.properties import PROPERTIES_PATH, stored_properties, table_checksum
from eventide_core.table.settings.table_config import TableConfig
from eventide_core.table.timeline.archived_timeline import archive_log_number
from eventide_core.table.timeline.contents.checksums import Checksums
from eventide_core.table.timeline.file_system_view import DataFile
from eventide_core.table.timeline.instant import Action, Instant
from eventide_core.table.timeline.timeline import Timeline

_PARQUET_TAIL: Final = 8  # the length of the footer, and a magic word

_HINTS: Final = {
    keys.TABLE_VERSION: "6, 8 or 9",
    keys.TABLE_NAME: "the table's name",
    keys.TABLE_TYPE: "MERGE_ON_READ or COPY_ON_WRITE",
    keys.RECORDKEY_FIELDS: "the fields of the record key",
    keys.PARTITION_FIELDS: "the partition fields",
    keys.ORDERING_FIELDS: "the fields that order the versions of a record",
    keys.PRECOMBINE_FIELD: (
        f"the field that orders the versions of a record, or {keys.ORDERING_FIELDS} if the table had that key"
    ),
    keys.BASE_FILE_FORMAT: "PARQUET",
    keys.POPULATE_META_FIELDS: "true, unless the table has no meta fields",
    keys.HIVE_STYLE_PARTITIONING: "whether a partition path is `field=value`",
    keys.URL_ENCODE_PARTITIONING: "whether partition paths are URL-encoded",
    keys.TIMELINE_TIMEZONE: "UTC or LOCAL, the time zone of instants",
    keys.CDC_ENABLED: "whether the table captures changes",
    keys.KEY_GENERATOR_CLASS_NAME: "the class of the key generator",
    keys.KEY_GENERATOR_TYPE: "the type of the key generator, such as SIMPLE",
    keys.PAYLOAD_CLASS_NAME: "the payload class",
    keys.RECORD_MERGE_MODE: "COMMIT_TIME_ORDERING, EVENT_TIME_ORDERING or CUSTOM",
    keys.RECORD_MERGE_STRATEGY_ID: "the ID of the strategy that merges",
    keys.PARTIAL_UPDATE_MODE: "the mode of partial updates",
    keys.DELETE_FIELD: "the field that marks a delete",
    keys.DELETE_MARKER: "the value that marks a delete",
    ZONE_KEY: "the time zone of event times without one, such as Europe/Berlin; empty if they are UTC, or have a zone",
}
_OF_FIELDS: Final = (keys.RECORDKEY_FIELDS, keys.PARTITION_FIELDS, keys.ORDERING_FIELDS, keys.PRECOMBINE_FIELD)


@dataclass(frozen=True, slots=True)
class KnownSetting:
    """The `value` of a setting as hoodie.properties will have it, unescaped.

    `evidence` is what it is known from: a file, a directory, or `stated` by the user.
    """

    value: str
    evidence: str


@dataclass(frozen=True, slots=True)
class RecoveredSettings:
    """The settings of a lost `hoodie.properties`, by key.

    `known` is what the file gets. `missing` are those that the user has to state, with a hint for each. `backup` is the
    instant of the repair that wrote the file; None if nothing was written.
    """

    known: Mapping[str, KnownSetting]
    missing: Mapping[str, str]
    backup: str | None = None


@dataclass(frozen=True, slots=True)
class SettingsRecovery:
    files: TableFiles
    lock: TableLock
    clock: Clock

    def plan(self, stated: Mapping[str, str]) -> RecoveredSettings:
        """What is known, and what has to be stated. Writes nothing.

        Raises RefusedError if the table has its settings, NotAHudiTableError if this isn't a table, and ConfigError
        for a stated setting that the files contradict.
        """
        storage = self.files.storage
        try:
            self.files.settings_text()
        except NotAHudiTableError as error:
            lost = error
        else:
            raise RefusedError(f"{storage.root} has its {PROPERTIES_PATH}: only a lost one is made again")
        path, timeline = self._timeline()
        if not timeline.instants:
            raise lost
        evidence = _Evidence(self.files, path, timeline)
        by_evidence = dict(evidence.known())
        if keys.ORDERING_FIELDS in stated and keys.PRECOMBINE_FIELD in by_evidence:
            by_evidence[keys.ORDERING_FIELDS] = by_evidence.pop(
                keys.PRECOMBINE_FIELD
            )  # below version 9, either key may have the fields
        known = {**{key: KnownSetting(value, "stated") for key, value in stated.items()}, **by_evidence}
        known |= evidence.style_of_partitions(known) if keys.HIVE_STYLE_PARTITIONING not in stated else {}
        for key in stated.keys() & by_evidence.keys():
            if _without_kinds(stated[key]) != _without_kinds(by_evidence[key].value):
                raise ConfigError(
                    f"{key}={stated[key]} contradicts {by_evidence[key].evidence}, which has {by_evidence[key].value!r}"
                )
            known[key] = KnownSetting(stated[key], by_evidence[key].evidence)  # a partition field may state its kind
        evidence.check_fields(known)
        return RecoveredSettings(
            known, {key: _HINTS[key] for key in chain(_required(known), evidence.required()) if key not in known}
        )

    def apply(self, stated: Mapping[str, str]) -> RecoveredSettings:
        """Writes the file. Raises ConfigError if a setting is missing, UnsupportedTableError for settings unknown here."""
        storage = self.files.storage
        with self.lock.acquire() as lease:
            for backup in backups_of(storage):
                if backup.is_interrupted and not backup.is_undoing and backup.changes_settings:
                    backup.apply(lease)
                    return RecoveredSettings({}, {}, backup.instant)
            recovered = self.plan(stated)
            if recovered.missing:
                named = ", ".join(f"{key} ({hint})" for key, hint in sorted(recovered.missing.items()))
                raise ConfigError(
                    f"{storage.root}: {PROPERTIES_PATH} is lost, and no file records {named}; state each, as an empty "
                    "value if the table had none"
                )
            pairs = {key: setting.value for key, setting in sorted(recovered.known.items()) if setting.value}
            text = stored_properties({**pairs, keys.TABLE_CHECKSUM: table_checksum(pairs)})
            config = TableConfig.parse(text, storage.root, self.files.mergers, self.files.event_time_texts)
            taken = {*instants_with_outcome(storage), *(b.instant for b in backups_of(storage))}
            instant = instant_beyond(self.files.timeline(config), taken, config, self.clock)
            backup = RepairBackup(storage, instant)
            repair = {"check": "settings", "path": PROPERTIES_PATH, "problem": "is lost", "action": "makes it again"}
            backup.begin([Replacement(PROPERTIES_PATH, text.encode())], [repair], (), lease)
            backup.apply(lease)
        return RecoveredSettings(recovered.known, {}, instant)

    def _timeline(self) -> tuple[str, Timeline]:
        """The directory of the timeline, and what is in it: the one of version 8 and later if it has instants."""
        timeline = Timeline.of([])
        for path in (".hoodie/timeline", ".hoodie"):
            names = [e.path.rpartition("/")[2] for e in self.files.storage.list(path) if not e.is_directory]
            timeline = Timeline.of_file_names(names)
            if timeline.instants:
                return path, timeline
        return ".hoodie", timeline


def _required(known: Mapping[str, KnownSetting]) -> Iterator[str]:
    yield from (
        keys.TABLE_VERSION,
        keys.TABLE_NAME,
        keys.TABLE_TYPE,
        keys.RECORDKEY_FIELDS,
        keys.PARTITION_FIELDS,
        keys.BASE_FILE_FORMAT,
        keys.POPULATE_META_FIELDS,
    )
    yield from (keys.TIMELINE_TIMEZONE, keys.CDC_ENABLED)
    if keys.PARTITION_FIELDS not in known or known[keys.PARTITION_FIELDS].value:
        yield from (keys.HIVE_STYLE_PARTITIONING, keys.URL_ENCODE_PARTITIONING)
    if keys.TABLE_VERSION in known:
        version = known[keys.TABLE_VERSION].value
        yield (keys.ORDERING_FIELDS if version == "9" or keys.ORDERING_FIELDS in known else keys.PRECOMBINE_FIELD)
        yield keys.KEY_GENERATOR_CLASS_NAME if version == "6" else keys.KEY_GENERATOR_TYPE
        yield keys.PAYLOAD_CLASS_NAME if version == "6" else keys.RECORD_MERGE_MODE
        yield from _of_merges(known, version)


def _of_merges(known: Mapping[str, KnownSetting], version: str) -> Iterator[str]:
    """Without these, readers would merge versions of a record differently, without an error."""
    if version == "9":
        yield keys.PARTIAL_UPDATE_MODE
    if version != "6":
        yield keys.DELETE_FIELD
    if keys.DELETE_FIELD in known and known[keys.DELETE_FIELD].value:
        yield keys.DELETE_MARKER
    if keys.RECORD_MERGE_MODE in known and known[keys.RECORD_MERGE_MODE].value == "CUSTOM":
        yield from (keys.RECORD_MERGE_STRATEGY_ID, keys.PAYLOAD_CLASS_NAME)


class _Evidence:
    """What the files of a table show of its settings."""

    def __init__(self, files: TableFiles, path: str, timeline: Timeline) -> None:
        self._files, self._path, self._timeline = files, path, timeline
        self._data = files.data_files()
        own = own_properties(files.storage.read_range)
        is_complete = own.get(keys.TABLE_CHECKSUM) == table_checksum(own)
        self._own: Mapping[str, str] = own if is_complete else {}
        self._schema: AvroSchema | None = None
        self._recorded: Mapping[str, str] = {}
        self._options: Mapping[str, str] = {}
        self._recorded_by = ""
        for instant in reversed(timeline.writes):
            self._look(instant)
            if self._schema and self._recorded:
                break

    def known(self) -> Iterator[tuple[str, KnownSetting]]:
        """Each setting that the files show for certain."""
        layout, history = ("2", "history") if self._path != ".hoodie" else ("1", "archived")
        yield keys.TIMELINE_LAYOUT_VERSION, KnownSetting(layout, "the directory of the timeline")
        yield keys.ARCHIVELOG_FOLDER, self._archive_folder(layout, history)
        if layout == "2":
            yield keys.TIMELINE_PATH, KnownSetting("timeline", "the directory of the timeline")
            yield keys.TIMELINE_HISTORY_PATH, KnownSetting(history, "the layout of the timeline")
        yield from self._of_metadata_table()
        yield from self._of_commits()
        logs = next((f.path for f in self._data if isinstance(f.parsed, LogFileName)), None)
        if logs or any(i.action is Action.DELTA_COMMIT for i in self._timeline.instants):
            yield keys.TABLE_TYPE, KnownSetting("MERGE_ON_READ", logs or "the delta commits")
        base = next((f for f in self._data if f.path.endswith(".parquet") and f.size), None)
        if base is not None:
            yield keys.BASE_FILE_FORMAT, KnownSetting("PARQUET", base.path)
            has_meta_fields = RECORD_KEY.encode() in self._footer(base)
            yield keys.POPULATE_META_FIELDS, KnownSetting(str(has_meta_fields).lower(), f"the footer of {base.path}")
        if {f.partition for f in self._data} == {""}:
            yield keys.PARTITION_FIELDS, KnownSetting("", f"{PARTITION_MARK} of the table's own directory")

    def _archive_folder(self, layout: str, usual: str) -> KnownSetting:
        """The directory of the archived timeline: on version 6, any that has files of it."""
        storage = self._files.storage
        for entry in storage.list(".hoodie") if layout == "1" else ():
            name = entry.path.rpartition("/")[2]
            if (
                entry.is_directory
                and name != usual
                and any(archive_log_number(e.path.rpartition("/")[2]) is not None for e in storage.list(entry.path))
            ):
                return KnownSetting(name, f"the archived files in {entry.path}")
        return KnownSetting(usual, "the layout of the timeline")

    def style_of_partitions(self, known: Mapping[str, KnownSetting]) -> dict[str, KnownSetting]:
        """Whether partition paths are `field=value`, if the fields are known."""
        fields = (
            [f.partition(":")[0] for f in known[keys.PARTITION_FIELDS].value.split(",")]
            if keys.PARTITION_FIELDS in known
            else [""]
        )
        paths = [f.partition.split("/") for f in self._data if f.partition]
        if not fields[0] or not paths:
            return {}
        is_hive = all(
            len(path) == len(fields) and all(part.startswith(f"{f}=") for part, f in zip(path, fields, strict=True))
            for path in paths
        )
        return {keys.HIVE_STYLE_PARTITIONING: KnownSetting(str(is_hive).lower(), "the partition paths")}

    @property
    def _columns(self) -> tuple[str, ...]:
        """Empty if they are not known."""
        with suppress(UnsupportedTableError):
            return () if self._schema is None else tuple(self._schema.field_names)
        return ()

    def required(self) -> Iterator[str]:
        """Settings that this table needs: in another zone, its local times are other event times."""
        if self._schema is not None and any(map(self._schema.is_local_time, self._columns)):
            yield ZONE_KEY

    def check_fields(self, known: Mapping[str, KnownSetting]) -> None:
        """Raises ConfigError if a field isn't a column of the table's schema."""
        columns = self._columns
        for key in _OF_FIELDS if columns else ():
            value = known[key].value if key in known else ""
            for name in filter(None, (part.strip() for part in _without_kinds(value).split(","))):
                if name.split(".")[0] not in columns:
                    raise ConfigError(f"{key}={value}: the table has no column {name}; it has {', '.join(columns)}")

    def _look(self, instant: Instant) -> None:
        path = f"{self._path}/{instant.file_name}"
        with suppress(CorruptTimelineError):  # the check of the timeline reports it
            commit = self._files.codec.decode_commit(self._files.storage.read(path), path)
            self._schema = self._schema or commit.schema
            if not self._recorded:
                recorded = Checksums.of(commit)
                self._recorded, self._options, self._recorded_by = recorded.settings, recorded.options, path

    def _of_metadata_table(self) -> Iterator[tuple[str, KnownSetting]]:
        storage, path, own = self._files.storage, OWN_PROPERTIES_PATH, self._own
        if own.get(keys.TABLE_VERSION):
            yield keys.TABLE_VERSION, KnownSetting(own[keys.TABLE_VERSION], path)
        if own.get(keys.TABLE_NAME, "").endswith("_metadata"):
            yield keys.TABLE_NAME, KnownSetting(own[keys.TABLE_NAME].removesuffix("_metadata"), path)
        directories = [e.path for e in storage.list(METADATA_DIRECTORY) if e.is_directory]
        used = [d.rpartition("/")[2] for d in directories if storage.stat(f"{d}/{PARTITION_MARK}") is not None]
        if used:
            yield (
                keys.METADATA_PARTITIONS,
                KnownSetting(",".join(sorted(used)), f"the directories of {METADATA_DIRECTORY}"),
            )
        if storage.stat(INDEX_DEFINITIONS) is not None:
            yield keys.INDEX_DEFINITIONS_PATH, KnownSetting(INDEX_DEFINITIONS, INDEX_DEFINITIONS)

    def _of_commits(self) -> Iterator[tuple[str, KnownSetting]]:
        """What the latest commit of eventide records; a setting that it lacks was not set."""
        if not self._recorded:
            return
        version, own = self._recorded.get(keys.TABLE_VERSION, ""), self._own.get(keys.TABLE_VERSION, "")
        if own not in ("", version):
            return  # an upgrade since may have changed the others, too
        ordering = keys.ORDERING_FIELDS if version == "9" else keys.PRECOMBINE_FIELD
        for key, recorded in (
            (keys.RECORDKEY_FIELDS, keys.RECORDKEY_FIELDS),
            (keys.PARTITION_FIELDS, keys.PARTITION_FIELDS),
            (ordering, keys.ORDERING_FIELDS),
            (keys.TABLE_VERSION, keys.TABLE_VERSION),
        ):
            yield key, KnownSetting(self._recorded.get(recorded, ""), self._recorded_by)
        for key, value in self._options.items():
            yield key, KnownSetting(value, self._recorded_by)

    def _footer(self, base: DataFile) -> bytes:
        """The footer of a Parquet file, which has the names of its columns; empty if the file is torn."""
        read_range = self._files.storage.read_range
        length = int.from_bytes(read_range(base.path, max(0, base.size - _PARQUET_TAIL), 4), "little")
        start = base.size - _PARQUET_TAIL - length
        return read_range(base.path, start, length) if start > 0 else b""


def _without_kinds(fields: str) -> str:
    return ",".join(field.partition(":")[0].strip() for field in fields.split(","))
