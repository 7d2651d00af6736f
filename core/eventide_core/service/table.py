"""What a table is at this moment: its settings, timeline, commits and file slices, read through the storage port."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain

from eventide_core.action.freshness import CUT_KEY, EVENT_TIME_FIELD_KEY
from eventide_core.errors import (
    CorruptBaseFileError,
    CorruptLogBlockError,
    CorruptTimelineError,
    InstantNotFoundError,
    MissingFileError,
    RecordDecodeError,
    UnsupportedTableError,
)
from eventide_core.ports import ArchivedTimeline, MetadataCodec, MetadataTable, Storage
from eventide_core.service.outcome import instants_with_outcome
from eventide_core.table.clean_metadata import CleanMetadata, CleanPlan
from eventide_core.table.commit_metadata import CommitMetadata
from eventide_core.table.file_name import BaseFileName, LogFileName, path_in
from eventide_core.table.file_system_view import DataFile, FileGroup, FileSystemView
from eventide_core.table.instant import Action, Instant, State
from eventide_core.table.internal_schema import (
    LATEST_SCHEMA_KEY,
    SCHEMA_COMMIT_SUFFIX,
    SCHEMA_FOLDER,
    SchemaVersion,
    parse_version,
    parse_versions,
    require_stable_names,
)
from eventide_core.table.plans import CompactionPlan, ForeignPlan
from eventide_core.table.properties import settings_text
from eventide_core.table.record_shape import DeleteMarker, RecordShape
from eventide_core.table.restore_metadata import RestorePlan
from eventide_core.table.savepoint_metadata import SavepointMetadata
from eventide_core.table.slice_read import BlockFilter
from eventide_core.table.table_config import TableConfig
from eventide_core.table.timeline import Timeline

PARTITION_MARK = ".hoodie_partition_metadata"
_END_OF_TIME = "9" * 20
# What a metadata table that is damaged, unknown or being compacted raises: nothing that makes the table itself unreadable.
_UNREADABLE = (
    CorruptBaseFileError,
    CorruptLogBlockError,
    CorruptTimelineError,
    MissingFileError,
    RecordDecodeError,
    UnsupportedTableError,
)


@dataclass(slots=True)
class TableFiles:
    """The metadata files of one table, each read at most once where it cannot change.

    `delete_marker` is by what the reader wants log records to be deletes; Hudi's readers take it from their options, too.
    """

    storage: Storage
    codec: MetadataCodec
    metadata_table: MetadataTable
    open_archive: Callable[[Storage, TableConfig], ArchivedTimeline]
    delete_marker: DeleteMarker | None = None
    _commits: dict[str, CommitMetadata] = field(default_factory=dict[str, CommitMetadata])
    _archives: dict[str, ArchivedTimeline] = field(default_factory=dict[str, ArchivedTimeline])

    def config(self) -> TableConfig:
        """The table's settings. Raises NotAHudiTableError, UnsupportedTableError."""
        return TableConfig.parse(settings_text(self.storage.read, self.storage.root), self.storage.root)

    def timeline(self, config: TableConfig) -> Timeline:
        """The active timeline, listed anew."""
        entries = self.storage.list(config.timeline_path)
        return Timeline.of_file_names(e.path.rpartition("/")[2] for e in entries if not e.is_directory)

    def archive(self, config: TableConfig) -> ArchivedTimeline:
        """The archived timeline, as it is from now on. Asked for after the active one: an instant then is in either."""
        archive = self._archives.get(config.archive_path)
        if archive is None:
            archive = self._archives[config.archive_path] = self.open_archive(self.storage, config)
        archive.refresh()
        return archive

    def commit(self, config: TableConfig, instant: Instant) -> CommitMetadata:
        """The metadata of a completed write."""
        path = f"{config.timeline_path}/{instant.file_name}"
        if path not in self._commits:
            self._commits[path] = self.codec.decode_commit(self.storage.read(path), path)
        return self._commits[path]

    def plan(self, config: TableConfig, instant: str) -> CompactionPlan | ForeignPlan:
        """The plan of a scheduled compaction. Raises InstantNotFoundError."""
        path = f"{config.timeline_path}/{instant}.compaction.requested"
        try:
            data = self.storage.read(path)
        except MissingFileError:
            raise InstantNotFoundError(f"{self.storage.root}: no compaction was scheduled at {instant}") from None
        return self.codec.decode_plan(data, path, instant)

    def clean_plan(self, config: TableConfig, instant: str) -> CleanPlan:
        """The plan of a clean that was begun."""
        path = f"{config.timeline_path}/{Instant(instant, Action.CLEAN, State.REQUESTED).file_name}"
        return self.codec.decode_clean_plan(self.storage.read(path), path, instant)

    def clean(self, config: TableConfig, instant: Instant) -> CleanMetadata:
        """What a completed clean did."""
        path = f"{config.timeline_path}/{instant.file_name}"
        return self.codec.decode_clean(self.storage.read(path), path)

    def restore_plan(self, config: TableConfig, instant: str) -> RestorePlan:
        """The plan of a restore that was begun."""
        path = f"{config.timeline_path}/{Instant(instant, Action.RESTORE, State.REQUESTED).file_name}"
        return self.codec.decode_restore_plan(self.storage.read(path), path, instant)

    def savepoint(self, config: TableConfig, instant: Instant) -> SavepointMetadata:
        """What a completed savepoint keeps."""
        path = f"{config.timeline_path}/{instant.file_name}"
        return self.codec.decode_savepoint(self.storage.read(path), path)

    def schema_versions(self, commits: Mapping[str, CommitMetadata]) -> tuple[SchemaVersion, ...]:
        """Hudi's internal schemas of the table, where its writes say one: those of the commits and of the history."""
        said = {
            m.extra_metadata[LATEST_SCHEMA_KEY] for m in commits.values() if m.extra_metadata.get(LATEST_SCHEMA_KEY)
        }
        if not said:
            return ()
        versions = [parse_version(text, f"{LATEST_SCHEMA_KEY} of a commit") for text in sorted(said)]
        history = [e.path for e in self.storage.list(SCHEMA_FOLDER) if e.path.endswith(SCHEMA_COMMIT_SUFFIX)]
        if history:
            versions += parse_versions(self.storage.read(max(history)).decode(errors="replace"), max(history))
        return tuple(versions)

    def partitions(self) -> tuple[str, ...]:
        """Every partition path, sorted: the folders that hold Hudi's partition mark, at any depth.

        A link to a folder is passed over: it may lead round in a circle.
        """
        found: list[str] = []
        waiting = [""]
        while waiting:
            directory = waiting.pop()
            for entry in self.storage.list(directory):
                name = entry.path.rpartition("/")[2]
                if entry.is_directory and entry.link_target is None and name != ".hoodie":
                    waiting.append(entry.path)
                elif not entry.is_directory and name.startswith(PARTITION_MARK):
                    found.append(directory)
        return tuple(sorted(set(found)))

    def committed_files(self, config: TableConfig, timeline: Timeline) -> tuple[DataFile, ...] | None:
        """The base and log files as the metadata table lists them, for who needs no file of a pending action.

        None where that may not be all: there is none, it has not followed each completed action of the active timeline (a
        writer went on without it, or it is younger than they are), or it cannot be read. Then the folders tell.
        """
        if not config.metadata_partitions:
            return None
        followed = {i.requested_time for i in timeline.completed if i.action is not Action.SAVEPOINT}
        try:
            listing = self.metadata_table.listing(followed)
        except _UNREADABLE:
            return None
        if listing is None:
            return None
        return tuple(
            DataFile(partition, path_in(partition, name), listing[partition][name])
            for partition in sorted(listing)
            for name in sorted(listing[partition])
        )

    def data_files(self, partitions: Iterable[str]) -> tuple[DataFile, ...]:
        """The base and log files of these partitions, by path."""
        return tuple(
            DataFile(partition, entry.path, entry.size, entry.link_target)
            for partition in partitions
            for entry in self.storage.list(partition)
            if not entry.is_directory
        )


@dataclass(frozen=True, slots=True)
class TableState:
    """A table at one moment.

    `commits` are the metadata of the completed writes, by requested time; `listing` all base and log files, committed or
    not; `replaced_at` says when a replacecommit took a file group's place. `compactions` are the instants that an
    event-time compaction has ever used. `schema_versions` are there where the schema evolves on read. `delete_marker`: see
    TableFiles.
    """

    config: TableConfig
    timeline: Timeline
    archive: ArchivedTimeline
    commits: dict[str, CommitMetadata]
    listing: tuple[DataFile, ...]
    replaced_at: dict[FileGroup, str]
    view: FileSystemView
    compactions: frozenset[str]
    schema_versions: tuple[SchemaVersion, ...] = ()
    delete_marker: DeleteMarker | None = None

    @classmethod
    def load(cls, files: TableFiles, *, requires_files: bool = True) -> "TableState":
        """Reads the table as it is. The listing is held against what the commits say they wrote, unless not asked for.

        Raises MissingFileError for a file that a live slice needs and the listing lacks.
        """
        config = files.config()
        timeline = files.timeline(config)
        state = cls._of(files, config, timeline, files.data_files(files.partitions()))
        if requires_files:
            state.require_files()
        return state

    @classmethod
    def load_committed(cls, files: TableFiles) -> "TableState":
        """The same for queries, which need no file of a pending action: by the metadata table where it tells all."""
        config = files.config()
        timeline = files.timeline(config)
        listing = files.committed_files(config, timeline)
        if listing is not None:
            with suppress(MissingFileError):  # then the folders have the last word
                state = cls._of(files, config, timeline, listing)
                state.require_files()
                return state
        return cls.load(files)

    @classmethod
    def _of(
        cls, files: TableFiles, config: TableConfig, timeline: Timeline, listing: tuple[DataFile, ...]
    ) -> "TableState":
        archive = files.archive(config)
        commits = {instant.requested_time: files.commit(config, instant) for instant in timeline.writes}
        if config.slices_by_completion_time:
            timeline = timeline.with_archived(_archived_writers(listing, timeline, archive))
        replaced_at: dict[FileGroup, str] = {}
        for time, metadata in commits.items():
            for partition, file_ids in metadata.replaced_file_ids.items():
                replaced_at.update({(partition, file_id): time for file_id in file_ids})
        view = FileSystemView.build(
            timeline,
            listing,
            slices_by_completion_time=config.slices_by_completion_time,
            replaced_at=replaced_at,
        )
        compactions = instants_with_outcome(files.storage)
        versions = files.schema_versions(commits)
        return cls(
            config,
            timeline,
            archive,
            commits,
            listing,
            replaced_at,
            view,
            compactions,
            versions,
            files.delete_marker,
        )

    def require_files(self) -> None:
        """Raises MissingFileError where a commit wrote a file into a slice that is still live, and it is not there."""
        present = {file.path for file in self.listing}
        # By base files, not by slices: without its base file a slice would go by its first log's later instant.
        live = {s.file_group: s.base_instant for s in self.view.latest_base_files()}
        for time, metadata in self.commits.items():
            for stat in metadata.stats:
                group = (stat.partition, stat.file_id)
                if stat.path in present or self.view.is_replaced(group):
                    continue
                slice_instant = self._slice_instant(stat.path)
                if slice_instant is not None and slice_instant >= live.get(group, ""):
                    raise MissingFileError(
                        f"{stat.path} is missing: the commit {time} wrote it and its file slice is still in use; "
                        "restore the file, or restore the table to an instant before it"
                    )

    def _slice_instant(self, path: str) -> str | None:
        name = path.rpartition("/")[2]
        if (base := BaseFileName.parse(name)) is not None:
            return base.instant
        log = LogFileName.parse(name)
        if log is None:
            return None
        return self.timeline.completion_time(log.instant) if self.config.slices_by_completion_time else log.instant

    @property
    def schema(self) -> str:
        """The table's Avro schema, without meta fields, as the last write that says one left it.

        Raises UnsupportedTableError where there is none, or where names don't tell its fields in every file.
        """
        return self.schema_as_of(None)

    def schema_as_of(self, time: str | None) -> str:
        """The same as of an instant, inclusive: what time travel sees. None: now."""
        require_stable_names(self.schema_versions, (file.name for file in self.listing))
        for instant in chain(reversed(self.timeline.writes), self.archived_writes()):
            if time is None or instant.requested_time <= time:
                schema = self.commit(instant).schema
                if schema is not None:
                    return schema
        created = self.config.properties.get("hoodie.table.create.schema")
        if created:
            return created
        raise UnsupportedTableError(
            "no commit on the timeline says the table's schema; write to the table once with Hudi, then try again"
        )

    @property
    def internal_schema(self) -> str | None:
        """What the next commit has to say as Hudi's internal schema; None where the schema doesn't evolve on read."""
        said = (self.commits[i.requested_time].extra_metadata.get(LATEST_SCHEMA_KEY) for i in self.timeline.writes)
        return next((text for text in reversed(list(said)) if text), None)

    def archived_writes(self, begin: str = "") -> Iterator[Instant]:
        """The completed writes requested at or after `begin` that have left the active timeline, the newest first."""
        return (i for i in self.archive.writes(begin, _END_OF_TIME) if self.timeline.find(i.requested_time) is None)

    def commit(self, write: Instant) -> CommitMetadata:
        """The metadata of a completed write, be it archived. Raises CorruptTimelineError where the archive lost it."""
        found = self.commits.get(write.requested_time) or self.archive.commit(write.requested_time)
        if found is None:
            raise CorruptTimelineError(
                f"{self.config.archive_path} has no metadata of the write at {write.requested_time}; restore it from a copy"
            )
        return found

    def shape(self, event_time_field: str | None, *, as_of: str | None = None) -> RecordShape:
        schema, config = self.schema_as_of(as_of), self.config
        return RecordShape(
            schema,
            config.merge_rule,
            config.ordering_fields,
            event_time_field,
            self.delete_marker,
            config.virtual_key_fields,
        )

    def blocks(self, until: str | None = None) -> BlockFilter:
        """Which log blocks count now, or counted as of `until`."""
        completed = frozenset(i.requested_time for i in self.timeline.completed)
        return BlockFilter(completed, self.timeline.start, until)

    @property
    def cut_ms(self) -> int | None:
        """The cut that the last completed event-time compaction published; None before the first.

        By completion, not by instant: a back-dated compaction may be the later one. Raises CorruptTimelineError.
        """
        last = self._last_cut()
        if last is None:
            return None
        text = last.extra_metadata[CUT_KEY]
        if not text.removeprefix("-").isdecimal():
            raise CorruptTimelineError(
                f"a completed compaction says {CUT_KEY}={text!r}, which is no number of milliseconds"
            )
        return int(text)

    @property
    def cut_field(self) -> str | None:
        """The field whose event times the published cut is in terms of."""
        last = self._last_cut()
        return None if last is None else last.extra_metadata.get(EVENT_TIME_FIELD_KEY)

    def _last_cut(self) -> CommitMetadata | None:
        published = [i for i in self.timeline.writes if CUT_KEY in self.commits[i.requested_time].extra_metadata]
        if not published or self.config.slices_by_completion_time:
            # On version 6 no archived one is later than an active one, and to find one takes reading the whole archive.
            archived = (self.archive.find(time) for time in sorted(self.compactions) if self.timeline.is_archived(time))
            published += [instant for instant in archived if instant is not None]
        for last in sorted(published, key=lambda i: i.completion_time or i.requested_time, reverse=True):
            metadata = self.commit(last)
            if CUT_KEY in metadata.extra_metadata:  # not where Hudi has completed a plan of ours
                return metadata
        return None


def _archived_writers(
    listing: Iterable[DataFile], timeline: Timeline, archive: ArchivedTimeline
) -> tuple[Instant, ...]:
    """The archived instants that wrote logs which are still there."""
    names = (LogFileName.parse(file.name) for file in listing)
    times = {name.instant for name in names if name is not None and timeline.is_archived(name.instant)}
    return tuple(found for time in sorted(times, reverse=True) if (found := archive.find(time)) is not None)
