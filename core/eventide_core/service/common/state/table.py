"""A table's state at one moment: its settings, timeline, commits and file slices."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import TypeVar

from eventide_core.access.active_timeline import recorded_ends
from eventide_core.errors import (
    CorruptTimelineError,
    MissingFileError,
    UnsupportedTableError,
)
from eventide_core.ports import ArchivedTimeline
from eventide_core.service.common.state.committed_files import NOT_WHOLE, READS_MAX, looked_again, require_files
from eventide_core.service.common.state.foreign_directories import foreign_directories, own_files
from eventide_core.service.common.state.metadata_listing import committed_files
from eventide_core.service.common.state.said_of_sources import Said, said_by
from eventide_core.service.common.state.table_files import TableFiles
from eventide_core.table.files.file_name import CHANGE_LOG_SUFFIX
from eventide_core.table.files.file_slice import LogFile
from eventide_core.table.files.slice_read import BlockFilter, LogWriters
from eventide_core.table.property_keys import CREATE_SCHEMA
from eventide_core.table.records.record_shape import DeleteMarker, RecordShape
from eventide_core.table.schema.avro_schema import AvroSchema
from eventide_core.table.schema.column_names import ColumnNames
from eventide_core.table.schema.internal_schema import LATEST_SCHEMA_KEY, SchemaVersion
from eventide_core.table.settings.table_config import TableConfig
from eventide_core.table.timeline.archived_timeline import END_OF_TIME
from eventide_core.table.timeline.contents.checksums import Checksums
from eventide_core.table.timeline.contents.commit_metadata import CommitMetadata
from eventide_core.table.timeline.contents.compaction_extra_metadata import (
    NO_CUT_YET,
    CompactionExtraMetadata,
    ends_of_logs,
    publications_of,
    writers_of_logs,
)
from eventide_core.table.timeline.contents.plans import CompactionPlan, ForeignPlan
from eventide_core.table.timeline.file_system_view import DataFile, FileGroup, FileSystemView
from eventide_core.table.timeline.instant import Instant
from eventide_core.table.timeline.timeline import Timeline

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class TableState:
    """A table at one moment.

    `archive` reads the archived timeline when it is asked. `commits` are the metadata of the completed writes, by requested
    time. `listing` are all base and log files, committed or not, `view` the slices that they make. `replaced_at` states when
    a replacecommit replaced a file group. `ended` are the instants whose end is recorded: of event-time compactions,
    and of what was undone.
    `schema_versions` are set if the schema evolves on read. `delete_marker`: see TableFiles. `undone` are the instants that
    rollbacks and restores undid: their blocks may still be in log files of version 6, also where no block rolls them
    back. `foreign` are the directories with data files that are not the table's; `listing` has none of their files but
    actions that have not completed.
    """

    config: TableConfig
    timeline: Timeline
    archive: ArchivedTimeline
    commits: dict[str, CommitMetadata]
    listing: tuple[DataFile, ...]
    replaced_at: dict[FileGroup, str]
    view: FileSystemView
    ended: frozenset[str]
    schema_versions: tuple[SchemaVersion, ...] = ()
    delete_marker: DeleteMarker | None = None
    undone: frozenset[str] = frozenset()
    foreign: frozenset[str] = frozenset()

    @classmethod
    def load(cls, files: TableFiles, *, requires_files: bool = True) -> "TableState":
        """Reads the table. By default, compares the listing with what the commits wrote.

        Other processes work on the table: an archival moves an instant between a listing and a read, and a rollback
        removes a commit and its files. So a missing file is looked up again in a new listing. Raises MissingFileError
        for a file that a live slice needs and that is still missing then.
        """
        return looked_again(
            lambda: cls._by_directories(files, *files.config_and_timeline(), requires_files=requires_files)
        )

    @classmethod
    def _by_directories(
        cls, files: TableFiles, config: TableConfig, timeline: Timeline, *, requires_files: bool
    ) -> "TableState":
        state = cls._of(files, config, timeline, files.data_files)
        if requires_files:
            try:
                require_files(state, files.listed, files.unmarked)
            except NOT_WHOLE:
                files.listed = None  # it may be of an earlier moment
                raise
        return state

    @classmethod
    def load_committed(cls, files: TableFiles) -> "TableState":
        """Reads the table for a query, which needs no pending action's file; by the metadata table if it lists all files."""
        return looked_again(lambda: cls._load_committed(files))

    @classmethod
    def _load_committed(cls, files: TableFiles) -> "TableState":
        config, timeline = files.config_and_timeline()
        listing = committed_files(files, config, timeline)
        if listing is None:
            return cls._by_directories(files, config, timeline, requires_files=True)
        with suppress(*NOT_WHOLE):  # then list the directories
            state = cls._of(files, config, timeline, lambda: listing)
            require_files(state, files.listed, ())
            return state
        return cls._by_directories(files, *files.config_and_timeline(), requires_files=True)

    @classmethod
    def _of(
        cls, files: TableFiles, config: TableConfig, timeline: Timeline, list_files: Callable[[], tuple[DataFile, ...]]
    ) -> "TableState":
        # All of these follow the listing of the timeline, and none of them depends on another one.
        listing, archive, commits, ends = files.requests.all_of(
            list_files,
            lambda: files.archive(config),
            lambda: files.commits(config, timeline.writes),
            lambda: recorded_ends(files.storage),
        )
        if ends.undone:
            # An archived writer may have shared its instant with a plan that was undone.
            counting = (
                t
                for t in {record.partition(".")[0] for record in ends.undone}
                if not (timeline.is_archived(t) and archive.find(t) is not None)
            )
            timeline = timeline.with_undone(timeline.undone.union(counting))
        if config.layout.names_logs_by_write:
            timeline = _with_archived_writers(listing, timeline, archive)
        foreign = foreign_directories(files, config, timeline, commits.values(), listing)
        listing = own_files(listing, timeline, foreign)
        replaced_at: dict[FileGroup, str] = {}
        for time, metadata in commits.items():
            for partition, file_ids in metadata.replaced_file_ids.items():
                replaced_at.update({(partition, file_id): time for file_id in file_ids})
        view = FileSystemView.build(
            timeline,
            listing,
            layout=config.layout,
            replaced_at=replaced_at,
            is_named=partial(_is_named, commits, archive),
        )
        if config.is_copy_on_write:
            _refuse_logs(view, files.storage.root)
        versions = files.schema_versions(commits)
        return cls(
            config,
            timeline,
            archive,
            commits,
            listing,
            replaced_at,
            view,
            ends.instants,
            versions,
            files.delete_marker,
            files.undone(config, timeline) | timeline.undone,
            foreign,
        )

    def is_unchanged_in(self, later: "TableState") -> bool:
        """Whether a later state has the same settings, actions and files.

        Then it has the same commits, because a file of the timeline never changes.
        """
        return (
            self.config == later.config
            and self.timeline == later.timeline
            and self.listing == later.listing
            and self.foreign == later.foreign
            and (self.undone, self.ended) == (later.undone, later.ended)
        )

    def still_holds(self, config: TableConfig, timeline: Timeline, ended: frozenset[str]) -> bool:
        """Whether the table is as it was, by its settings, its timeline, and the instants whose end is recorded.

        Its files change with its timeline, unless something is pending or has left strays. What others planned and rolled
        back meanwhile is recorded alone.
        """
        is_quiet = not timeline.pending and not timeline.strays
        return is_quiet and (config, timeline, ended) == (self.config, self.timeline, self.ended)

    def own(self, listing: Iterable[DataFile]) -> tuple[DataFile, ...]:
        """The files of a later listing that are the table's."""
        return own_files(listing, self.timeline, self.foreign)

    def logs_on_top_of(self, plan: CompactionPlan | ForeignPlan) -> tuple[LogFile, ...]:
        """The files that writers have put into the slices that a pending plan begins.

        Only writers of version 6 do that, because they name a log file by its slice. An upgrade of the table keeps
        these names: from version 8 on, nobody sees such a log file until the plan has completed, and without the plan
        nobody ever does. A writer that took the same instant as the plan (`Timeline.shares_its_time`) gives its own log
        files such names.
        """
        if self.config.layout.names_logs_by_write and self.timeline.shares_its_time(plan.instant):
            return ()
        own = set(plan.new_log_paths) if isinstance(plan, CompactionPlan) else set[str]()
        groups = plan.file_groups
        sliced = (file.sliced for file in self.listing if file.path not in own)
        return tuple(
            log
            for log in sliced
            if isinstance(log, LogFile)
            and log.name.suffix != CHANGE_LOG_SUFFIX
            and log.name.instant == plan.instant
            and (log.path.rpartition("/")[0], log.name.file_id) in groups
        )

    @property
    def schema(self) -> AvroSchema:
        """The table's Avro schema, without meta fields, from the last write that states one.

        Raises UnsupportedTableError if there is none, or if names don't identify its fields in every file.
        """
        return self.schema_as_of(None)

    def schema_as_of(self, time: str | None) -> AvroSchema:
        """The Avro schema as of an instant, inclusive: what time travel sees. None: now."""
        schema = self._schema_as_of(time)
        if schema is None:
            raise UnsupportedTableError(
                "no commit on the timeline contains the table's schema; write rows to it, then try again"
            )
        return schema

    @property
    def known_schema(self) -> AvroSchema | None:
        """The table's Avro schema; None if no remaining write has one."""
        return self._schema_as_of(None)

    def _schema_as_of(self, time: str | None) -> AvroSchema | None:
        for instant in chain(reversed(self.timeline.writes), self.archived_writes()):
            if time is None or instant.requested_time <= time:
                schema = self.commit(instant).schema
                if schema is not None:
                    return schema
        text = self.config.properties.get(CREATE_SCHEMA)
        return AvroSchema.of(text) if text else None

    @property
    def internal_schema(self) -> str | None:
        """Hudi's internal schema for the next commit; None if the schema doesn't evolve on read."""
        return self.internal_schema_as_of(None)

    def internal_schema_as_of(self, time: str | None) -> str | None:
        """Hudi's internal schema as of an instant, inclusive. None: now."""
        writes = (i.requested_time for i in reversed(self.timeline.writes))
        texts = (self.commits[t].extra_metadata.get(LATEST_SCHEMA_KEY) for t in writes if time is None or t <= time)
        return next(filter(None, texts), None)

    def said_of_sources(self, before: str = "") -> Said:
        """What the commits of the active timeline say: all of them, or those that completed before an instant."""
        return said_by(self.commits, self.timeline.writes, self.blocks(), before)

    def carried_metadata(self, said: Said, *, schema_of: str | None = None) -> dict[str, str]:
        """The extra metadata that continues from commit to commit: Hudi's internal schema, and what is known of sources.

        The schema as of the instant `schema_of`, as files are written with it; None: now.
        """
        internal = self.internal_schema_as_of(schema_of)
        return said.texts | ({} if internal is None else {LATEST_SCHEMA_KEY: internal})

    def archived_writes(self, begin: str = "") -> Iterator[Instant]:
        """The completed writes requested at or after `begin` that have left the active timeline, the newest first."""
        return archived_writes(self.archive, self.timeline, begin)

    def find_write(self, time: str) -> Instant | None:
        """The instant of that requested time, active or archived."""
        active = self.timeline.find(time)
        return self.archive.find(time) if active is None and self.timeline.is_archived(time) else active

    def commit(self, write: Instant) -> CommitMetadata:
        """The metadata of a completed write, active or archived. Raises CorruptTimelineError if the archive lost it."""
        metadata = self.commits.get(write.requested_time) or self.archive.commit(write.requested_time)
        if metadata is None:
            raise CorruptTimelineError(
                f"{self.config.archive_path} has no metadata of the write at {write.requested_time}; restore it from a copy"
            )
        return metadata

    def shape(self, event_time_field: str | None, *, as_of: str | None = None) -> RecordShape:
        return self.shape_of(self.schema_as_of(as_of), event_time_field, as_of=as_of)

    def shape_of(self, schema: AvroSchema, event_time_field: str | None, *, as_of: str | None = None) -> RecordShape:
        """The shape of records with another schema, such as those being written."""
        config = self.config
        names = self._column_names(event_time_field, as_of)
        if names is not None:
            names.require_readable(file.parsed.instant for file in self.listing if file.parsed)
        if config.partial_update is not None and config.partial_update.unavailable is None:
            schema.refuse_defaults(self.config.name)
        return RecordShape(
            schema,
            config.merge_rule,
            config.ordering_fields,
            event_time_field,
            self.delete_marker,
            config.virtual_key_fields,
            config.partial_update,
            config.orders_deletes,
            config.merger,
            config.event_time_texts,
            names,
            config.marks_local_times,
        )

    def _column_names(self, event_time_field: str | None, as_of: str | None) -> ColumnNames | None:
        if not self.schema_versions:
            return None
        config, marker = self.config, self.delete_marker
        by_name = [*config.record_key_fields, *config.partition_fields, *config.ordering_fields, event_time_field or ""]
        by_name.append("" if marker is None else marker.field)
        if config.captures_changes:
            by_name += [name for version in self.schema_versions for name in version.columns.values()]
        stated = ((time, commit.extra_metadata.get(LATEST_SCHEMA_KEY)) for time, commit in self.commits.items())
        return ColumnNames.of(self.schema_versions, {time: text for time, text in stated if text}, by_name, as_of)

    def view_of(self, files: Iterable[DataFile], is_counted: Callable[[str], bool]) -> FileSystemView:
        """The view of some of the files.

        `is_counted` returns, for a write's requested time, whether its replacements count.
        """
        return FileSystemView.build(
            self.timeline,
            files,
            layout=self.config.layout,
            replaced_at={group: time for group, time in self.replaced_at.items() if is_counted(time)},
            is_named=partial(_is_named, self.commits, self.archive),
        )

    def blocks(self, until: str | None = None) -> BlockFilter:
        """Which log blocks count now, or counted as of `until`."""
        completed = frozenset([i.requested_time for i in self.timeline.completed])
        return BlockFilter(completed, self.timeline.start, until, undone=self.timeline.undone)

    def blocks_of_slices(self, until: str | None = None) -> BlockFilter:
        """The blocks that count for readers of whole slices, which check who wrote the blocks."""
        known = (*self.timeline.instants, *self.timeline.archived)
        instants = self.undone.union(instant.requested_time for instant in known)
        is_final = self.config.layout.names_logs_by_write
        writers = LogWriters(instants, writers_of_logs(self.commits), is_final, ends_of_logs(self.commits))
        return replace(self.blocks(until), writers=writers)

    def blocks_to_merge(self) -> BlockFilter:
        """The blocks that count in a merge of some of a slice's log files.

        On version 6, another log file may roll back their blocks.
        """
        whole = self.blocks_of_slices()
        if whole.writers is None or self.config.is_new_since_version_8:
            return whole
        return replace(whole, writers=replace(whole.writers, instants=None))

    @property
    def checksums(self) -> dict[str, str]:
        """The checksums of the files that active commits of eventide record, by path."""
        return {path: text for commit in self.commits.values() for path, text in Checksums.of(commit).files.items()}

    @property
    def cut_ms(self) -> int | None:
        """The cut that the last completed event-time compaction published; None before the first."""
        return self.published_cut.cut_ms

    @property
    def publications(self) -> dict[str, CompactionExtraMetadata]:
        """What the compactions of eventide on the active timeline published, by requested time."""
        return publications_of(self.commits)

    @property
    def published_cut(self) -> CompactionExtraMetadata:
        """What the last completed compaction with a cut published; NO_CUT_YET before the first.

        By completion, not by instant: a back-dated compaction may be the later one. Raises CorruptTimelineError.
        """
        active = self.publications
        published = [i for i in self.timeline.writes if i.requested_time in active and active[i.requested_time].has_cut]
        if not published or self.config.layout.records_completion_times:
            # On version 6 no archived one is later than an active one, and to find one takes reading the whole archive.
            archived = (self.archive.find(time) for time in sorted(self.ended) if self.timeline.is_archived(time))
            published += [instant for instant in archived if instant is not None]
        for last in sorted(published, key=lambda i: i.completion_time or i.requested_time, reverse=True):
            publication = CompactionExtraMetadata.of(last.requested_time, self.commit(last))
            if publication is not None and publication.has_cut:  # not if Hudi has completed a plan of eventide
                return publication
        return NO_CUT_YET


def read_from(load: Callable[[], TableState], read: Callable[[TableState], T]) -> T:
    """What `read` finds in the table's state; in a later one while others remove the files of the one that was loaded.

    A restore, a rollback or a clean does that. A file that a loaded state needs is damage, which `load` raises.
    """
    for _ in range(READS_MAX - 1):
        state = load()
        with suppress(MissingFileError):
            return read(state)
    return read(load())


def archived_writes(archive: ArchivedTimeline, timeline: Timeline, begin: str = "") -> Iterator[Instant]:
    """The writes requested at or after `begin` that have been archived, the newest first.

    An archival that was interrupted leaves writes in both places: they are active, and none at all once they are
    undone.
    """
    writes = archive.writes(begin, END_OF_TIME)
    return writes if timeline.start is None else (i for i in writes if timeline.is_archived(i.requested_time))


def _is_named(commits: Mapping[str, CommitMetadata], archive: ArchivedTimeline, instant: str, path: str) -> bool:
    commit = commits.get(instant) or archive.commit(instant)
    return commit is not None and any(stat.path == path for stat in commit.stats)


def _refuse_logs(view: FileSystemView, root: str) -> None:
    """Raises UnsupportedTableError for a log file in a copy-on-write table: its readers would skip the records."""
    for slices in view.slices.values():
        for file_slice in slices:
            for log in file_slice.log_files:
                raise UnsupportedTableError(
                    f"{root}: hoodie.table.type=COPY_ON_WRITE, but the table has the log file {log.path}: set MERGE_ON_READ "
                    "if that is what the table is; if its type was changed by Hudi, clean the slices with log files first"
                )


def _with_archived_writers(listing: Iterable[DataFile], timeline: Timeline, archive: ArchivedTimeline) -> Timeline:
    """The timeline that knows the archived instants of log files that still exist: what wrote them, or that it was undone.

    A log file may arrive after the rollback of its write was archived: its process died, or was paused.
    """
    written = {log.name.instant for file in listing if isinstance(log := file.sliced, LogFile)}
    times = sorted(filter(timeline.is_archived, written), reverse=True)
    archived = tuple(instant for time in times if (instant := archive.find(time)) is not None)
    if len(archived) < len(times):
        lost = set(times).difference(instant.requested_time for instant in archived)
        timeline = timeline.with_undone(timeline.undone | (lost & archive.undone(min(lost))))
    return timeline.with_archived(archived) if archived else timeline
