"""Rebuilds `hoodie.properties` if it and its backup are lost.

The table's other files show some of the settings. The user states the others, and none of them is guessed: a wrong
ordering field keeps wrong versions of records. Nothing is written before all of them are known. Then, under the table
lock, the file is written as a repair with a backup: an interrupted one is completed by the next, and an undo removes it.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from eventide_core.action.repair.repairs import Replacement
from eventide_core.errors import (
    ConfigError,
    CorruptTimelineError,
    MissingFileError,
    NotAHudiTableError,
    RefusedError,
    UnsupportedTableError,
)
from eventide_core.ports import Clock, TableLock
from eventide_core.service.facts.planning import instant_beyond
from eventide_core.service.repair.backup import RepairBackup, backups_of
from eventide_core.service.state.outcome import instants_with_outcome
from eventide_core.service.state.table_files import TableFiles
from eventide_core.table.files.file_name import LogFileName
from eventide_core.table.files.table_path import INDEX_DEFINITIONS, METADATA_DIRECTORY, PARTITION_MARK
from eventide_core.table.records.schema import RECORD_KEY, AvroSchema
from eventide_core.table.settings.properties import (
    PROPERTIES_PATH,
    parse_properties,
    properties_bytes,
    stored_properties,
    table_checksum,
)
from eventide_core.table.settings.table_config import METADATA_PARTITIONS_KEY, TableConfig
from eventide_core.table.timeline.archived_timeline import archive_log_number
from eventide_core.table.timeline.checksums import Checksums
from eventide_core.table.timeline.file_system_view import DataFile
from eventide_core.table.timeline.instant import Action, Instant
from eventide_core.table.timeline.timeline import Timeline

_NAME, _VERSION, _TYPE = "hoodie.table.name", "hoodie.table.version", "hoodie.table.type"
_KEYS, _PARTITIONS = "hoodie.table.recordkey.fields", "hoodie.table.partition.fields"
_ORDERING, _ORDERING_0X = "hoodie.table.ordering.fields", "hoodie.table.precombine.field"
_META_FIELDS, _FORMAT = "hoodie.populate.meta.fields", "hoodie.table.base.file.format"
_HIVE_STYLE = "hoodie.datasource.write.hive_style_partitioning"
_ENCODED = "hoodie.datasource.write.partitionpath.urlencode"
_MODE, _STRATEGY = "hoodie.record.merge.mode", "hoodie.record.merge.strategy.id"
_PAYLOAD, _PARTIAL_UPDATE = "hoodie.compaction.payload.class", "hoodie.table.partial.update.mode"
_DELETE_FIELD = "hoodie.record.merge.property.hoodie.payload.delete.field"
_DELETE_MARKER = "hoodie.record.merge.property.hoodie.payload.delete.marker"
_OWN_PATH: Final = f"{METADATA_DIRECTORY}/{PROPERTIES_PATH}"
_PARQUET_TAIL: Final = 8  # the length of the footer, and a magic word

_HINTS: Final = {
    _VERSION: "6, 8 or 9",
    _NAME: "the table's name",
    _TYPE: "MERGE_ON_READ or COPY_ON_WRITE",
    _KEYS: "the fields of the record key",
    _PARTITIONS: "the partition fields",
    _ORDERING: "the fields that order the versions of a record",
    _ORDERING_0X: f"the field that orders the versions of a record, or {_ORDERING} if the table had that key",
    _FORMAT: "PARQUET",
    _META_FIELDS: "true, unless the table has no meta fields",
    _HIVE_STYLE: "whether a partition path is `field=value`",
    _ENCODED: "whether partition paths are URL-encoded",
    "hoodie.table.timeline.timezone": "UTC or LOCAL, the time zone of instants",
    "hoodie.table.cdc.enabled": "whether the table captures changes",
    "hoodie.table.keygenerator.class": "the class of the key generator",
    "hoodie.table.keygenerator.type": "the type of the key generator, such as SIMPLE",
    _PAYLOAD: "the payload class",
    _MODE: "COMMIT_TIME_ORDERING, EVENT_TIME_ORDERING or CUSTOM",
    _STRATEGY: "the ID of the strategy that merges",
    _PARTIAL_UPDATE: "the mode of partial updates",
    _DELETE_FIELD: "the field that marks a delete",
    _DELETE_MARKER: "the value that marks a delete",
}
_OF_FIELDS: Final = (_KEYS, _PARTITIONS, _ORDERING, _ORDERING_0X)


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

        Raises RefusedError if the table has its settings, NotAHudiTableError if this is no table at all, and ConfigError
        for a stated setting that the files contradict.
        """
        storage = self.files.storage
        try:
            self.files.settings_text()
        except NotAHudiTableError as error:
            lost = error
        else:
            raise RefusedError(f"{storage.root} has its {PROPERTIES_PATH}: only a lost one is made anew")
        path, timeline = self._timeline()
        if not timeline.instants:
            raise lost
        evidence = _Evidence(self.files, path, timeline)
        by_evidence = dict(evidence.known())
        if _ORDERING in stated and _ORDERING_0X in by_evidence:
            by_evidence[_ORDERING] = by_evidence.pop(_ORDERING_0X)  # below version 9, either key may have the fields
        known = {**{key: KnownSetting(value, "stated") for key, value in stated.items()}, **by_evidence}
        known |= evidence.style_of_partitions(known) if _HIVE_STYLE not in stated else {}
        for key in stated.keys() & by_evidence.keys():
            if _without_kinds(stated[key]) != _without_kinds(by_evidence[key].value):
                raise ConfigError(
                    f"{key}={stated[key]} contradicts {by_evidence[key].evidence}, which has {by_evidence[key].value!r}"
                )
            known[key] = KnownSetting(stated[key], by_evidence[key].evidence)  # a partition field may state its kind
        evidence.check_fields(known)
        return RecoveredSettings(known, {key: _HINTS[key] for key in _required(known) if key not in known})

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
                    f"{storage.root}: {PROPERTIES_PATH} is lost, and no file tells {named}; state each of them, as an empty "
                    "value if the table had none"
                )
            pairs = {key: setting.value for key, setting in sorted(recovered.known.items()) if setting.value}
            text = stored_properties({**pairs, "hoodie.table.checksum": table_checksum(pairs)})
            config = TableConfig.parse(text, storage.root, self.files.mergers, self.files.event_time_texts)
            taken = {*instants_with_outcome(storage), *(b.instant for b in backups_of(storage))}
            instant = instant_beyond(self.files.timeline(config), taken, config, self.clock)
            backup = RepairBackup(storage, instant)
            repair = {"check": "settings", "path": PROPERTIES_PATH, "problem": "is lost", "action": "makes it anew"}
            backup.begin([Replacement(PROPERTIES_PATH, text.encode())], [repair], (), lease)
            backup.apply(lease)
        return RecoveredSettings(recovered.known, {}, instant)

    def _timeline(self) -> tuple[str, Timeline]:
        """The directory of the timeline, and what is in it: that of version 8 and later if it has instants."""
        timeline = Timeline.of([])
        for path in (".hoodie/timeline", ".hoodie"):
            names = [e.path.rpartition("/")[2] for e in self.files.storage.list(path) if not e.is_directory]
            timeline = Timeline.of_file_names(names)
            if timeline.instants:
                return path, timeline
        return ".hoodie", timeline


def _required(known: Mapping[str, KnownSetting]) -> Iterator[str]:
    yield from (_VERSION, _NAME, _TYPE, _KEYS, _PARTITIONS, _FORMAT, _META_FIELDS)
    yield from ("hoodie.table.timeline.timezone", "hoodie.table.cdc.enabled")
    if _PARTITIONS not in known or known[_PARTITIONS].value:
        yield from (_HIVE_STYLE, _ENCODED)
    if _VERSION in known:
        version = known[_VERSION].value
        yield _ORDERING if version == "9" or _ORDERING in known else _ORDERING_0X
        yield "hoodie.table.keygenerator.class" if version == "6" else "hoodie.table.keygenerator.type"
        yield _PAYLOAD if version == "6" else _MODE
        yield from _of_merges(known, version)


def _of_merges(known: Mapping[str, KnownSetting], version: str) -> Iterator[str]:
    """Without these, readers would merge versions of a record differently, without an error."""
    if version == "9":
        yield _PARTIAL_UPDATE
    if version != "6":
        yield _DELETE_FIELD
    if _DELETE_FIELD in known and known[_DELETE_FIELD].value:
        yield _DELETE_MARKER
    if _MODE in known and known[_MODE].value == "CUSTOM":
        yield from (_STRATEGY, _PAYLOAD)


def _own_properties(files: TableFiles) -> Mapping[str, str]:
    """The settings of the metadata table; none if it has no complete ones."""
    try:
        own = parse_properties(properties_bytes(files.storage.read_range, _OWN_PATH).decode(errors="replace"))
    except MissingFileError:
        return {}
    return own if own.get("hoodie.table.checksum") == table_checksum(own) else {}


class _Evidence:
    """What the files of a table show of its settings."""

    def __init__(self, files: TableFiles, path: str, timeline: Timeline) -> None:
        self._files, self._path, self._timeline = files, path, timeline
        self._data = files.data_files()
        self._own = _own_properties(files)
        self._schema: AvroSchema | None = None
        self._recorded: Mapping[str, str] = {}
        self._recorded_by = ""
        for instant in reversed(timeline.writes):
            self._look(instant)
            if self._schema and self._recorded:
                break

    def known(self) -> Iterator[tuple[str, KnownSetting]]:
        """Each setting that the files show for certain."""
        layout, history = ("2", "history") if self._path != ".hoodie" else ("1", "archived")
        yield "hoodie.timeline.layout.version", KnownSetting(layout, "the directory of the timeline")
        yield "hoodie.archivelog.folder", self._archive_folder(layout, history)
        if layout == "2":
            yield "hoodie.timeline.path", KnownSetting("timeline", "the directory of the timeline")
            yield "hoodie.timeline.history.path", KnownSetting(history, "the layout of the timeline")
        yield from self._of_metadata_table()
        yield from self._of_commits()
        logs = next((f.path for f in self._data if isinstance(f.parsed, LogFileName)), None)
        if logs or any(i.action is Action.DELTA_COMMIT for i in self._timeline.instants):
            yield _TYPE, KnownSetting("MERGE_ON_READ", logs or "the delta commits")
        base = next((f for f in self._data if f.path.endswith(".parquet") and f.size), None)
        if base is not None:
            yield _FORMAT, KnownSetting("PARQUET", base.path)
            has_meta_fields = RECORD_KEY.encode() in self._footer(base)
            yield _META_FIELDS, KnownSetting(str(has_meta_fields).lower(), f"the footer of {base.path}")
        if {f.partition for f in self._data} == {""}:
            yield _PARTITIONS, KnownSetting("", f"{PARTITION_MARK} of the table's own directory")

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
        fields = [f.partition(":")[0] for f in known[_PARTITIONS].value.split(",")] if _PARTITIONS in known else [""]
        paths = [f.partition.split("/") for f in self._data if f.partition]
        if not fields[0] or not paths:
            return {}
        is_hive = all(
            len(path) == len(fields) and all(part.startswith(f"{f}=") for part, f in zip(path, fields, strict=True))
            for path in paths
        )
        return {_HIVE_STYLE: KnownSetting(str(is_hive).lower(), "the partition paths")}

    def check_fields(self, known: Mapping[str, KnownSetting]) -> None:
        """Raises ConfigError if a field is no column of the table's schema."""
        if self._schema is None:
            return
        try:
            columns = self._schema.field_names
        except UnsupportedTableError:
            return
        for key in _OF_FIELDS:
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
                self._recorded, self._recorded_by = Checksums.of(commit).settings, path

    def _of_metadata_table(self) -> Iterator[tuple[str, KnownSetting]]:
        storage, path, own = self._files.storage, _OWN_PATH, self._own
        if own.get(_VERSION):
            yield _VERSION, KnownSetting(own[_VERSION], path)
        if own.get(_NAME, "").endswith("_metadata"):
            yield _NAME, KnownSetting(own[_NAME].removesuffix("_metadata"), path)
        directories = [e.path for e in storage.list(METADATA_DIRECTORY) if e.is_directory]
        used = [d.rpartition("/")[2] for d in directories if storage.stat(f"{d}/{PARTITION_MARK}") is not None]
        if used:
            yield (
                METADATA_PARTITIONS_KEY,
                KnownSetting(",".join(sorted(used)), f"the directories of {METADATA_DIRECTORY}"),
            )
        if storage.stat(INDEX_DEFINITIONS) is not None:
            yield "hoodie.table.index.defs.path", KnownSetting(INDEX_DEFINITIONS, INDEX_DEFINITIONS)

    def _of_commits(self) -> Iterator[tuple[str, KnownSetting]]:
        """What the latest commit of eventide records; a setting that it lacks was not set."""
        if not self._recorded:
            return
        version, own = self._recorded.get(_VERSION, ""), self._own.get(_VERSION, "")
        if own not in ("", version):
            return  # an upgrade since may have changed the others, too
        ordering = _ORDERING if version == "9" else _ORDERING_0X
        for key, recorded in ((_KEYS, _KEYS), (_PARTITIONS, _PARTITIONS), (ordering, _ORDERING), (_VERSION, _VERSION)):
            yield key, KnownSetting(self._recorded.get(recorded, ""), self._recorded_by)

    def _footer(self, base: DataFile) -> bytes:
        """The footer of a Parquet file, which has the names of its columns; empty if the file is torn."""
        read_range = self._files.storage.read_range
        length = int.from_bytes(read_range(base.path, max(0, base.size - _PARQUET_TAIL), 4), "little")
        start = base.size - _PARQUET_TAIL - length
        return read_range(base.path, start, length) if start > 0 else b""


def _without_kinds(fields: str) -> str:
    return ",".join(field.partition(":")[0].strip() for field in fields.split(","))
