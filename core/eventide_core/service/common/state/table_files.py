"""The metadata files of one table, read through the storage port: settings, timeline, commits, plans, listings."""

from collections.abc import Callable, Container, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from operator import attrgetter
from typing import Final, TypeVar

from eventide_core.access.active_timeline import active_timeline
from eventide_core.access.files import discard
from eventide_core.access.requests import Requests
from eventide_core.access.timeline_files import TimelineFiles
from eventide_core.cure import Cure
from eventide_core.errors import (
    CorruptBaseFileError,
    CorruptLogBlockError,
    CorruptTimelineError,
    EmptyPlanError,
    InstantNotFoundError,
    MissingFileError,
    NotAHudiTableError,
    RecordDecodeError,
    ResourceLimitError,
    StorageError,
    StorageFullError,
    UnsafePathError,
    UnsupportedTableError,
    WriteConflictError,
)
from eventide_core.ports import (
    ArchivedTimeline,
    Clock,
    FileInfo,
    Lease,
    MetadataCodec,
    MetadataTable,
    Storage,
    Tracer,
)
from eventide_core.service.common.state.data_directories import directories_of_data, is_another_table
from eventide_core.service.common.transaction.action import Transaction
from eventide_core.service.common.transaction.outcome import record_undone
from eventide_core.service.common.transaction.steps import Kind
from eventide_core.table.files.file_name import path_in
from eventide_core.table.files.table_path import PARTITION_MARK
from eventide_core.table.records.custom_merger import CustomMergers
from eventide_core.table.records.event_time_texts import ISO_WITH_ZONE, EventTimeTexts
from eventide_core.table.records.record_shape import DeleteMarker
from eventide_core.table.schema.internal_schema import (
    LATEST_SCHEMA_KEY,
    SCHEMA_COMMIT_SUFFIX,
    SCHEMA_DIRECTORY,
    SchemaVersion,
    parse_version,
    parse_versions,
    schema_commit_instant,
)
from eventide_core.table.settings.properties import PROPERTIES_PATH, known_settings, settings_text
from eventide_core.table.settings.table_config import TableConfig
from eventide_core.table.timeline.contents.clean_metadata import CleanPlan
from eventide_core.table.timeline.contents.commit_metadata import CommitMetadata
from eventide_core.table.timeline.contents.plans import CompactionPlan, ForeignPlan
from eventide_core.table.timeline.contents.rollback_metadata import RestorePlan, RollbackMetadata, RollbackPlan
from eventide_core.table.timeline.contents.savepoint_metadata import SavepointMetadata
from eventide_core.table.timeline.file_system_view import DataFile
from eventide_core.table.timeline.instant import Action, Instant, State
from eventide_core.table.timeline.observed_offset import observed_offset
from eventide_core.table.timeline.outcome_file import record_of
from eventide_core.table.timeline.timeline import Timeline

T = TypeVar("T")

_PATH: Final = attrgetter("path")

_COMMITS_AT_ONCE: Final = 16
_PUTTING_MS: Final = 1_000  # stock Hudi fills a file in less time, even on a busy machine
_PUTTING_POLL_MS: Final = 20
# Raised for a damaged, unknown or busy metadata table; none of them makes the table itself unreadable.
UNREADABLE_METADATA_TABLE: Final = (
    CorruptBaseFileError,
    CorruptLogBlockError,
    CorruptTimelineError,
    MissingFileError,
    RecordDecodeError,
    ResourceLimitError,
    UnsupportedTableError,
)


@dataclass(slots=True)
class TableFiles:
    """The metadata files of one table. Each file that cannot change is read at most once.

    `delete_marker` defines which log records the reader treats as deletes; Hudi's readers also take it from their
    options. `mergers` are the user-defined mergers that may merge the table. `event_time_texts` states how texts of event
    times are read where the table does not state it. `first_settings` is the text of hoodie.properties for a table that its
    first commit creates: until then, nobody else sees a table. `listed` is what the metadata table lists (see
    `metadata_listing`), as it was read last: it shows whose a directory is, and what archived writes wrote. `unmarked` are
    the files that `data_files` found last in directories that aren't marked as partitions.
    """

    storage: Storage
    codec: MetadataCodec
    metadata_table: MetadataTable
    open_archive: Callable[[Storage, TableConfig], ArchivedTimeline]
    requests: Requests
    clock: Clock
    tracer: Tracer
    delete_marker: DeleteMarker | None = None
    mergers: CustomMergers = ()
    event_time_texts: EventTimeTexts = ISO_WITH_ZONE
    first_settings: str | None = None
    listed: Mapping[str, Mapping[str, int]] | None = None
    unmarked: tuple[DataFile, ...] = ()
    _commits: dict[str, CommitMetadata] = field(default_factory=dict[str, CommitMetadata])
    _undone: dict[Instant, frozenset[str] | None] = field(default_factory=dict[Instant, frozenset[str] | None])
    _archives: dict[str, ArchivedTimeline] = field(default_factory=dict[str, ArchivedTimeline])
    _listed: dict[str, DataFile] = field(default_factory=dict[str, DataFile])
    _timeline: tuple[tuple[str, ...], Timeline] | None = None
    _timeline_path: str | None = None

    def config(self) -> TableConfig:
        """The table's settings. Raises NotAHudiTableError, UnsupportedTableError."""
        root = self.storage.root
        return TableConfig.parse(self._first_or_current_settings(root), root, self.mergers, self.event_time_texts)

    def settings_text(self) -> str:
        """The text of the current settings. Raises NotAHudiTableError, also for a place with nothing."""
        root = self.storage.root
        try:
            return settings_text(self.storage.read_range, root)
        except NotAHudiTableError:
            if next(iter(self.storage.list("")), None) is None:
                raise NotAHudiTableError(f"{root} is not a Hudi table: nothing is there; check the path") from None
            raise

    def _first_or_current_settings(self, root: str) -> str:
        if self.first_settings is None:
            return self.settings_text()
        return known_settings(self.storage.read_range, root) or self.first_settings

    @contextmanager
    def created(self, lease: Lease) -> Generator[None]:
        """Around the put of a completed file, under the lock: the table exists from the step before.

        The first commit of a table that does not exist yet creates it. A crash between both leaves an empty table. Raises
        LockError, and WriteConflictError if another process has created another table meanwhile.
        """
        creates = self.first_settings is not None and self._create(self.first_settings, lease)
        try:
            yield
        except StorageFullError:  # the only failure after which the commit is surely not there
            if creates:
                discard(self.storage, PROPERTIES_PATH)
            raise

    def _create(self, settings: str, lease: Lease) -> bool:
        lease.check()
        if self.storage.put_if_absent(PROPERTIES_PATH, settings.encode()):
            return True
        root = self.storage.root
        if settings_text(self.storage.read_range, root) != settings:
            raise WriteConflictError(f"{root}: another process has created the table with other settings; write again")
        return False

    def config_and_timeline(self) -> tuple[TableConfig, Timeline]:
        """Both, read again. They are requested together if an earlier read found where the timeline is.

        If the table has been upgraded since, its timeline may be elsewhere: then it is listed there.
        """
        directory = self._timeline_path
        if directory is None:
            config = self.config()
            return config, self.timeline(config)
        config, entries = self.requests.both(self.config, lambda: self.storage.list(directory))
        is_elsewhere = config.timeline_path != directory
        return config, self.timeline(config) if is_elsewhere else self._timeline_of(config, entries)

    def timeline(self, config: TableConfig) -> Timeline:
        """The active timeline, listed again. Returns the same object if the listing is the same."""
        return self._timeline_of(config, self.storage.list(config.timeline_path))

    def _timeline_of(self, config: TableConfig, entries: Sequence[FileInfo]) -> Timeline:
        self._timeline_path = config.timeline_path
        start = len(config.timeline_path) + 1
        # On version 6, the settings and the lock are beside the timeline.
        names = tuple([e.path[start:] for e in entries if not e.is_directory and e.path[start].isdigit()])
        if self._timeline is None or self._timeline[0] != names or self._timeline[1].strays:
            timeline = active_timeline(
                self.on_timeline(config),
                filter(None, map(Instant.parse, names)),
                lambda: self.archive(config),
                self.codec.decode_commit,
                are_plans_followed=config.layout.writers_follow_plans,
            )
            if not config.has_utc_instants:
                timeline = replace(timeline, offset=observed_offset((e.path[start:], e.modified_ms) for e in entries))
            if not config.layout.records_completion_times:
                put_ms = {e.path[start:]: e.modified_ms for e in entries}
                timeline = replace(timeline, put_ms={i.requested_time: put_ms[i.file_name] for i in timeline.writes})
            self._timeline = (names, timeline)
        return self._timeline[1]

    def on_timeline(self, config: TableConfig) -> TimelineFiles:
        """The files of the active timeline."""
        return TimelineFiles(self.storage, config.timeline_path)

    def transaction(self, config: TableConfig, kind: Kind, action: Action, instant: str) -> Transaction:
        """An action on the active timeline; `action` as it is while it is pending."""
        is_followed = kind is Kind.COMPACTION and config.layout.writers_follow_plans
        return Transaction(kind, action, instant, self.on_timeline(config), lambda: self.archive(config), is_followed)

    def sweep(self, config: TableConfig, timeline: Timeline, lease: Lease) -> None:
        """Removes the files of a timeline that don't count, under the lock. Raises LockError.

        Without the files of an instant that was undone, only its record shows that its data files don't count, either.
        """
        late = (stray for stray in timeline.strays if stray.requested_time in timeline.undone)
        for record in dict.fromkeys(record_of(stray.requested_time, stray.action) for stray in late):
            lease.check()
            record_undone(self.storage, record)
        self.on_timeline(config).sweep(timeline.strays, lease)

    def forget(self) -> None:
        """Forgets what was read of timeline files, which never change but by a repair."""
        self._commits.clear()
        self._archives.clear()

    def archive(self, config: TableConfig) -> ArchivedTimeline:
        """The archived timeline, as it is from now on. Asked for after the active one: an instant then is in either."""
        archive = self._archives.get(config.archive_path)
        if archive is None:
            archive = self._archives[config.archive_path] = self.open_archive(self.storage, config)
        archive.refresh()
        return archive

    def resolve_failed_commit(self, what: str, instant: str, failure: StorageError, cure: str) -> Instant:
        """The commit that failed and has happened anyway, by the timeline; nothing is written again.

        A reply may have been lost, or the lock not have been given back after the commit. Raises StorageError if it has
        not happened.
        """
        write = self.timeline(self.config()).find(instant)
        if write is None or not write.is_completed:
            raise StorageError(f"the {what} at {instant} is not committed: {failure}; {cure}") from failure
        return write

    def commit(self, config: TableConfig, instant: Instant) -> CommitMetadata:
        """The metadata of a completed write."""
        path = self.on_timeline(config).path(instant)
        if path not in self._commits:
            self._commits[path] = self._completed(config, instant, self.codec.decode_commit)
        return self._commits[path]

    def commits(self, config: TableConfig, writes: Sequence[Instant]) -> dict[str, CommitMetadata]:
        """The metadata of these completed writes, by requested time; what else was read before is forgotten."""
        paths = list(map(self.on_timeline(config).path, writes))
        unread = [path for path in paths if path not in self._commits]
        # A few at a time: the bytes of a large commit take more memory than its metadata.
        for start in range(0, len(unread), _COMMITS_AT_ONCE):
            portion = unread[start : start + _COMMITS_AT_ONCE]
            for path, data in zip(portion, self.requests.each(self.storage.read, portion), strict=True):
                self._commits[path] = self._decoded(path, data, self.codec.decode_commit)
        self._commits = {path: self._commits[path] for path in paths}
        return {instant.requested_time: self._commits[path] for instant, path in zip(writes, paths, strict=True)}

    def _completed(self, config: TableConfig, instant: Instant, decode: Callable[[bytes, str], T]) -> T:
        files = self.on_timeline(config)
        return self._decoded(files.path(instant), files.read(instant), decode)

    def _decoded(self, path: str, data: bytes, decode: Callable[[bytes, str], T]) -> T:
        """The content of a completed file, which is read again while a writer is still putting it.

        On local disks and HDFS stock Hudi makes the file first and fills it then. Raises CorruptTimelineError if it
        stays empty, or stays as it is and makes no sense.
        """
        begin_ms = self.clock.now_ms()
        while True:
            try:
                return decode(data, path)
            except CorruptTimelineError:
                self.clock.sleep(_PUTTING_POLL_MS)
                again = self.storage.read(path)
                is_being_put = again != data or not data
                if not is_being_put or self.clock.now_ms() - begin_ms > _PUTTING_MS:
                    raise
                data = again

    def plan(self, config: TableConfig, instant: str) -> CompactionPlan | ForeignPlan:
        """The plan of a scheduled compaction. Raises InstantNotFoundError; EmptyPlanError if the file stays empty.

        On local disks and HDFS stock Hudi makes the file first and fills it then.
        """
        files, requested = self.on_timeline(config), Instant(instant, Action.COMPACTION, State.REQUESTED)
        path = files.path(requested)
        begin_ms = self.clock.now_ms()
        try:
            while not (data := files.read(requested)):
                if self.clock.now_ms() - begin_ms > _PUTTING_MS:
                    raise EmptyPlanError(
                        f"timeline file {path} is empty: an engine requested a compaction, and hasn't written its plan; "
                        f"if the engine has died, run {Cure.rollback(instant, force=True)}"
                    )
                self.clock.sleep(_PUTTING_POLL_MS)
        except MissingFileError:
            raise InstantNotFoundError(f"{self.storage.root}: no compaction was scheduled at {instant}") from None
        return self.codec.decode_plan(data, path, instant)

    def clean_plan(self, config: TableConfig, instant: str) -> CleanPlan:
        """The plan of a clean that was begun."""
        return self._planned(config, Instant(instant, Action.CLEAN, State.REQUESTED), self.codec.decode_clean_plan)

    def clean(self, config: TableConfig, instant: Instant) -> CleanPlan:
        """What a completed clean did."""
        return self._completed(config, instant, self.codec.decode_clean)

    def restore_plan(self, config: TableConfig, instant: str) -> RestorePlan:
        """The plan of a restore that was begun."""
        return self._planned(config, Instant(instant, Action.RESTORE, State.REQUESTED), self.codec.decode_restore_plan)

    def rolled_back(self, config: TableConfig, timeline: Timeline) -> frozenset[str]:
        """The instants that the completed rollbacks of the active timeline have undone; each is read once."""
        done = [i for i in timeline.completed if i.action is Action.ROLLBACK]
        unread = [instant for instant in done if self._undone.get(instant) is None]
        answers = zip(unread, self.requests.each(partial(self._targets, config), unread), strict=True)
        self._undone |= dict(answers)
        return frozenset[str]().union(*(self._undone[instant] or () for instant in done))

    def undone(self, config: TableConfig, timeline: Timeline) -> frozenset[str]:
        """The instants that the completed rollbacks and restores of the active timeline have undone; each is read once.

        One that can't be read is ignored: a query must not fail for it. `verify` names it.
        """
        done = [i for i in timeline.completed if i.is_undoing]
        unread = [instant for instant in done if instant not in self._undone]
        answers = zip(unread, self.requests.each(partial(self._readable_targets, config), unread), strict=True)
        known = self._undone | dict(answers)
        self._undone = {instant: known[instant] for instant in done}
        return frozenset[str]().union(*(targets or () for targets in self._undone.values()))

    def _readable_targets(self, config: TableConfig, instant: Instant) -> frozenset[str] | None:
        """None if the rollback or restore can't be read."""
        with suppress(CorruptTimelineError, UnsafePathError):
            return self._targets(config, instant)
        return None

    def _targets(self, config: TableConfig, instant: Instant) -> frozenset[str]:
        """The instants that a completed rollback or restore has undone."""
        if instant.action is Action.RESTORE:
            # Its plan is enough: a restore completes when everything in it is undone. Early Hudi wrote none.
            with suppress(MissingFileError):
                plan = self.restore_plan(config, instant.requested_time)
                return frozenset(target.instant for target in plan.targets)
            return frozenset()
        try:
            metadata = self.rollback(config, instant)
        except CorruptTimelineError:
            with suppress(MissingFileError, CorruptTimelineError):  # its plan is enough, too
                return frozenset((self.rollback_plan(config, instant.requested_time).target.instant,))
            raise
        return frozenset(target.instant for target in metadata.targets)

    def rollback_plan(self, config: TableConfig, instant: str) -> RollbackPlan:
        """The plan of a rollback that was begun. Raises CorruptTimelineError."""
        return self._planned(
            config, Instant(instant, Action.ROLLBACK, State.REQUESTED), self.codec.decode_rollback_plan
        )

    def _planned(self, config: TableConfig, requested: Instant, decode: Callable[[bytes, str, str], T]) -> T:
        files = self.on_timeline(config)
        return decode(files.read(requested), files.path(requested), requested.requested_time)

    def rollback(self, config: TableConfig, instant: Instant) -> RollbackMetadata:
        """What a completed rollback did. Raises CorruptTimelineError."""
        return self._completed(config, instant, self.codec.decode_rollback)

    def savepoint(self, config: TableConfig, instant: Instant) -> SavepointMetadata:
        """What a completed savepoint keeps."""
        return self._completed(config, instant, self.codec.decode_savepoint)

    def schema_versions(self, commits: Mapping[str, CommitMetadata]) -> tuple[SchemaVersion, ...]:
        """Hudi's internal schemas of the table, if its writes have one: from the commits and from the history."""
        texts = {
            m.extra_metadata[LATEST_SCHEMA_KEY] for m in commits.values() if m.extra_metadata.get(LATEST_SCHEMA_KEY)
        }
        if not texts:
            return ()
        versions = [parse_version(text, f"{LATEST_SCHEMA_KEY} of a commit") for text in sorted(texts)]
        history = self.schema_history(commits)
        if history is not None:
            versions += parse_versions(history[1], history[0])
        return tuple(versions)

    def schema_history(self, commits: Container[str]) -> tuple[str, str] | None:
        """The path and text of the last history file of Hudi's internal schemas; None if there is none.

        The file of a write that has not completed does not count, if others are there.
        """
        paths = [e.path for e in self.storage.list(SCHEMA_DIRECTORY) if e.path.endswith(SCHEMA_COMMIT_SUFFIX)]
        completed = [path for path in paths if schema_commit_instant(path) in commits]
        if not paths:
            return None
        last = max(completed or paths)
        return last, self.storage.read(last).decode(errors="replace")

    def data_files(self) -> tuple[DataFile, ...]:
        """The files of every partition, by path; each directory is listed once.

        A partition is a directory, at any depth, that holds Hudi's partition mark. One that was listed before has the same
        files again. Links to directories are not followed: a link to a directory above it would never end. Other tables
        below this one are left out; a copy of a partition isn't, see `TableState.own`.
        """
        of_partition: dict[str, list[DataFile]] = {}
        unmarked: list[DataFile] = []
        waiting = [""]
        while waiting:
            listings = tuple(zip(waiting, self.requests.each(self.storage.list, waiting), strict=True))
            waiting.clear()
            for directory, entries in listings:
                if is_another_table(self.storage, directory, entries):
                    continue
                waiting += directories_of_data(self.storage.root, entries)
                files = [e for e in entries if not e.is_directory]
                mark = path_in(directory, PARTITION_MARK)
                if any(e.path.startswith(mark) for e in files):
                    of_partition[directory] = [self._data_file(directory, e) for e in files]
                else:
                    unmarked += (DataFile(directory, e.path, e.size) for e in files)
        listed = [file for partition in sorted(of_partition) for file in sorted(of_partition[partition], key=_PATH)]
        self._listed, self.unmarked = {file.path: file for file in listed}, tuple(unmarked)
        return tuple(listed)

    def _data_file(self, partition: str, entry: FileInfo) -> DataFile:
        known = self._listed.get(entry.path)
        if known is not None and (known.size, known.link_target) == (entry.size, entry.link_target):
            return known
        return DataFile(partition, entry.path, entry.size, entry.link_target)

    def delete_all(self, paths: Sequence[str]) -> None:
        """Deletes files, in any order. Those that are absent are ignored."""
        self.requests.each(partial(discard, self.storage), paths)
