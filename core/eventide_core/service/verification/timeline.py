"""Reads the timeline for a verification. Records unreadable files, which a check reports."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from eventide_core.action.verification.parts import ArchivedFacts, LogScan
from eventide_core.errors import CorruptTimelineError, EmptyPlanError
from eventide_core.ports import ArchivedTimeline, Storage
from eventide_core.service.common.state.begun_cleans import begun_cleans
from eventide_core.service.common.state.returned_groups import returned_files
from eventide_core.service.common.state.table_files import TableFiles
from eventide_core.service.verification.archived_files import ArchivedFiles
from eventide_core.service.verification.problems import noting
from eventide_core.table.files.file_name import path_in
from eventide_core.table.settings.table_config import TableConfig
from eventide_core.table.timeline.contents.commit_metadata import CommitMetadata
from eventide_core.table.timeline.contents.compaction_extra_metadata import CompactionExtraMetadata
from eventide_core.table.timeline.contents.plans import CompactionPlan, ForeignPlan
from eventide_core.table.timeline.file_system_view import DataFile
from eventide_core.table.timeline.instant import Action, Instant, State
from eventide_core.table.timeline.timeline import Timeline

_LATER_VERSION, _LATER_TIMELINE = 8, ".hoodie/timeline"


@dataclass(frozen=True, slots=True)
class TimelineReader:
    """Reads the files of the instants of `timeline`.

    `unreadable` gets what cannot be read, and why, by path; `unplanned` the instants of compactions whose plan is empty.
    """

    files: TableFiles
    config: TableConfig
    timeline: Timeline
    unreadable: dict[str, str] = field(default_factory=dict[str, str])
    unplanned: set[str] = field(default_factory=set[str])

    def commits(self) -> Mapping[str, CommitMetadata]:
        """The commits of the completed writes, by requested time."""
        commits: dict[str, CommitMetadata] = {}
        for instant in self.timeline.writes:
            with noting(self.unreadable, self._path(instant)):
                commits[instant.requested_time] = self.files.commit(self.config, instant)
        return commits

    def plans(self) -> Mapping[str, CompactionPlan | ForeignPlan]:
        """The plans of compactions, pending or completed, whose requested file exists."""
        names = timeline_names(self.files.storage, self.config)
        there = {i for i in map(Instant.parse, names) if i and i.file_name.endswith(".compaction.requested")}
        plans: dict[str, CompactionPlan | ForeignPlan] = {}
        for instant in sorted(there):
            time = instant.requested_time
            if self.timeline.find(time) is not None:
                with noting(self.unreadable, self._path(instant)):
                    try:
                        plans[time] = self.files.plan(self.config, time)
                    except EmptyPlanError:
                        self.unplanned.add(time)
        return plans

    def being_removed(self) -> frozenset[str]:
        """The files that cleans and rollbacks will remove which have not ended."""
        paths: set[str] = set()
        cleans: tuple[Instant, ...] = ()
        with noting(self.unreadable, self.config.timeline_path):
            cleans = begun_cleans(self.files, self.config, self.timeline)
        for pending in (*cleans, *self.timeline.pending):
            with noting(self.unreadable, self._path(replace(pending, state=State.REQUESTED, completion_time=None))):
                if pending.action is Action.CLEAN:
                    paths.update(self.files.clean_plan(self.config, pending.requested_time).deleted_paths)
                elif pending.action is Action.ROLLBACK:
                    paths.update(self.files.rollback_plan(self.config, pending.requested_time).deleted_paths)
        return frozenset(paths)

    def saved(self) -> Mapping[str, frozenset[str]]:
        """What each savepoint keeps, by the requested time of its commit."""
        saved: dict[str, frozenset[str]] = {}
        for instant in self.timeline.completed:
            if instant.action is Action.SAVEPOINT:
                with noting(self.unreadable, self._path(instant)):
                    saved[instant.requested_time] = self.files.savepoint(self.config, instant).paths
        return saved

    def cleans(self) -> Mapping[str, frozenset[str]]:
        """What each completed clean removed, by its requested time. The files of completed rollbacks can be read, too."""
        cleans: dict[str, frozenset[str]] = {}
        for instant in self.timeline.completed:
            with noting(self.unreadable, self._path(instant)):
                if instant.action is Action.CLEAN:
                    done = self.files.clean(self.config, instant)
                    removed = {path_in(part, name) for part, names in done.deleted.items() for name in names}
                    cleans[instant.requested_time] = frozenset(removed)
                elif instant.action is Action.ROLLBACK:
                    self.files.rollback(self.config, instant)
        return cleans

    def undone(self) -> frozenset[str]:
        """The instants that rollbacks and restores on the timeline undo or have undone."""
        instants: set[str] = set()
        for instant in self.timeline.instants:
            if not instant.is_undoing:
                continue
            time = instant.requested_time
            path = self._path(replace(instant, state=State.REQUESTED, completion_time=None))
            requested = self.files.storage.stat(path)
            is_planned = requested is not None and requested.size > 0  # early Hudi planned in memory
            if not is_planned and not instant.is_completed:
                continue
            with noting(self.unreadable, path if is_planned else self._path(instant)):
                if not is_planned and instant.action is Action.ROLLBACK:
                    instants.update(t.instant for t in self.files.rollback(self.config, instant).targets)
                elif is_planned and instant.action is Action.ROLLBACK:
                    instants.add(self.files.rollback_plan(self.config, time).target.instant)
                elif is_planned:
                    instants.update(t.instant for t in self.files.restore_plan(self.config, time).targets)
        return frozenset(instants)

    def archived(
        self, commits: Mapping[str, CommitMetadata], listing: Sequence[DataFile], logs: Mapping[str, LogScan]
    ) -> ArchivedFacts:
        """What archived writes wrote, beside what active ones name."""
        named = {stat.path for commit in commits.values() for stat in commit.stats}
        times: set[str] = set()
        for file in listing:
            if file.path in named:
                continue
            if file.parsed is not None:
                times.add(file.parsed.instant)
            # On version 6 the name of a log file contains its slice, and still does after an upgrade: the blocks say who
            # wrote it.
            times.update(logs[file.path].instants if file.path in logs else ())
        written = ArchivedFiles.beside(commits.values(), listing, self.timeline)
        predating_archive: set[str] = set()
        missing_from_archive: set[str] = set()
        returned: dict[str, str] = {}
        with noting(self.unreadable, self.config.archive_path):
            archives = self._archives()
            returned = returned_files(archives, self.timeline, commits.values(), listing)
            for archive in archives:
                written.read(archive)
            for time in sorted(filter(self.timeline.is_archived, times)):
                if all(archive.find(time) is None for archive in archives):
                    is_oldest = all(next(archive.writes("0", time), None) is None for archive in archives)
                    (predating_archive if is_oldest else missing_from_archive).add(time)
        return ArchivedFacts(
            written.files,
            written.absent(self.config.layout),
            frozenset(written.left_overs),
            frozenset(predating_archive),
            frozenset(missing_from_archive),
            returned,
        )

    def _archives(self) -> tuple[ArchivedTimeline, ...]:
        """The archived timeline; and on version 6 the one of version 8 and later, which a downgrade leaves where it is."""
        archives = [self.files.archive(self.config)]
        if not self.config.layout.needs_hudi_1:
            later = replace(self.config, version=_LATER_VERSION, timeline_path=_LATER_TIMELINE)
            archives.append(self.files.archive(later))
        for archive in archives:
            self.unreadable.update(archive.lost_files())
        return tuple(archives)

    def left_overs(self, commits: Mapping[str, CommitMetadata]) -> Mapping[str, str]:
        """Of each link and copy that a commit names, the log file that it is of."""
        origins: dict[str, str] = {}
        for instant in self.timeline.writes:
            metadata = commits.get(instant.requested_time)
            publication = None if metadata is None else CompactionExtraMetadata.of(instant.requested_time, metadata)
            if publication is None:
                continue
            try:
                origins.update(publication.origins)
            except CorruptTimelineError as error:
                self.unreadable[self._path(instant)] = str(error)
        return origins

    def _path(self, instant: Instant) -> str:
        return self.files.on_timeline(self.config).path(instant)


def timeline_names(storage: Storage, config: TableConfig) -> tuple[str, ...]:
    """The files of the timeline directory."""
    return tuple(e.path.rpartition("/")[2] for e in storage.list(config.timeline_path) if not e.is_directory)
