"""The facts about a table that its checks use. All paths are relative to the table's root."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property

from eventide_core.action.verification.parts import (
    ArchivedFacts,
    BaseFacts,
    BlockFacts,
    EventTimeFacts,
    IndexFacts,
    LogScan,
    RecordFacts,
    RemovalFacts,
)
from eventide_core.errors import CorruptTimelineError
from eventide_core.table.files.file_name import BaseFileName, LogFileName, is_data_file
from eventide_core.table.files.file_slice import FileSlice
from eventide_core.table.files.slice_read import BlockFilter, LogWriters
from eventide_core.table.timeline.contents.checksums import Checksums
from eventide_core.table.timeline.contents.commit_metadata import CommitMetadata, WriteStat
from eventide_core.table.timeline.contents.compaction_extra_metadata import (
    CompactionExtraMetadata,
    ends_of_logs,
    publications_of,
    writers_of_logs,
)
from eventide_core.table.timeline.contents.plans import CompactionPlan, ForeignPlan
from eventide_core.table.timeline.file_system_view import DataFile, FileGroup, FileSystemView
from eventide_core.table.timeline.layout import Layout
from eventide_core.table.timeline.timeline import Timeline


@dataclass(frozen=True)  # without slots: what follows from the facts is cached
class TableFacts:
    """A table as it was found.

    `settings` are those by which records are keyed, ordered and partitioned. `settings_problem`: why hoodie.properties can't
    be used, so that readers use its backup.

    `timeline_path` is the directory of the active timeline, and `timeline_names` are the names of all files in it, whatever
    they are. `later` is the timeline as it was after the files were listed. `commits` are the metadata of completed writes
    of the active timeline, by requested time. `unreadable` states of timeline files why they cannot be decoded. `plans` are
    of pending and completed compactions, where they are still there, `unplanned` the instants of those whose file is
    empty. `undone` are the instants that rollbacks and restores name. `put_at` is when the completed files of writes on
    version 6 were put, by their modification times, as instants. `archived` has what archived writes wrote.

    `listing` are the files of all directories but `.hoodie`; `unmarked` the files of directories without Hudi's mark of a
    partition. `view` is absent if `view_problem` states why. `blocks` has which blocks of log files count. `left_overs`
    maps each left-over to the log file that it is a copy of, or a link to. `removals` are what removes files or keeps
    them. `marked` are the instants that had markers or a heartbeat when the files were listed. `log_scans` are the blocks
    of each log file that was listed, by path, `bases` the rows of base files, `event_times` the ranges of the latest slices'
    log files. `index` is what Hudi's metadata table has.

    `markers_and_heartbeats` are sentences for people about dead writers and what is left of them. `records` is None unless
    records were read.
    """

    settings: Mapping[str, str]
    settings_problem: str | None
    layout: Layout
    timeline_path: str
    timeline_names: tuple[str, ...]
    timeline: Timeline
    later: Timeline
    commits: Mapping[str, CommitMetadata]
    unreadable: Mapping[str, str]
    listing: tuple[DataFile, ...]
    unmarked: frozenset[str]
    put_at: Mapping[str, str]
    view: FileSystemView | None
    view_problem: str | None
    blocks: BlockFilter
    plans: Mapping[str, CompactionPlan | ForeignPlan]
    unplanned: frozenset[str]
    left_overs: Mapping[str, str]
    removals: RemovalFacts
    undone: frozenset[str]
    marked: frozenset[str]
    archived: ArchivedFacts
    log_scans: Mapping[str, LogScan]
    bases: BaseFacts
    event_times: EventTimeFacts
    index: IndexFacts
    markers_and_heartbeats: tuple[str, ...]
    records: RecordFacts | None = None

    @cached_property
    def sizes(self) -> Mapping[str, int]:
        return {file.path: file.size for file in self.listing}

    @cached_property
    def rolled_back(self) -> frozenset[tuple[FileGroup, str]]:
        """The instants whose blocks a command block rolls back, with the file group where it does so."""
        return frozenset(
            (_file_group(path), block.rollback_target)
            for path, scan in self.log_scans.items()
            for block in scan.blocks
            if block.rollback_target is not None
        )

    @cached_property
    def log_writers(self) -> Mapping[str, Mapping[str, int]]:
        """How many blocks each completed write put into a log file at least, by path, as far as active commits state it."""
        return writers_of_logs(self.commits)

    @cached_property
    def recorded_checksums(self) -> Mapping[str, tuple[str, WriteStat, str]]:
        """The commit, write stat and checksum of each file of which an active commit records one, by path."""
        recorded: dict[str, tuple[str, WriteStat, str]] = {}
        for time, commit in self.commits.items():
            with suppress(CorruptTimelineError):  # the check of the timeline reports it
                files = Checksums.of(commit).files
                recorded.update({s.path: (time, s, files[s.path]) for s in commit.stats if s.path in files})
        return recorded

    def knows(self, instant: str) -> bool:
        """Whether the instant is on the timeline in any state, has been archived, or was undone: its blocks may be left."""
        if self.timeline.find(instant) is not None or self.later.find(instant) is not None or instant in self.undone:
            return True
        return self.timeline.is_archived(instant)

    @cached_property
    def data_files(self) -> tuple[DataFile, ...]:
        """The base and log files."""
        return tuple(file for file in self.listing if is_data_file(file.name))

    @cached_property
    def committed(self) -> Mapping[str, tuple[tuple[str, WriteStat], ...]]:
        """The write stats of each file that completed writes of the active timeline name, with their requested times."""
        by_path: dict[str, list[tuple[str, WriteStat]]] = {}
        for time, metadata in self.commits.items():
            for stat in metadata.stats:
                by_path.setdefault(stat.path, []).append((time, stat))
        return {path: tuple(stats) for path, stats in by_path.items()}

    @cached_property
    def compactions(self) -> Mapping[str, CompactionPlan]:
        """The plans of completed compactions of eventide, as far as they are known and eventide completed them.

        Another engine runs its plan in full, and its commit names no links.
        """
        return {
            time: plan
            for time, plan in self.plans.items()
            if isinstance(plan, CompactionPlan) and time in self.commits and time in self.publications
        }

    @cached_property
    def publications(self) -> Mapping[str, CompactionExtraMetadata]:
        """What compactions of eventide published, by requested time."""
        return publications_of(self.commits)

    def is_named_by_its_slice(self, log: DataFile) -> bool:
        """Whether the instant in the log file's name is its slice's: so version 6 has it, and an upgrade leaves it.

        From version 8 on it is the instant of the write, which the blocks have; or of a compaction's left-over.
        """
        if not self.layout.names_logs_by_write:
            return True
        name, scan = log.parsed, self.log_scans.get(log.path)
        if name is None or scan is None or not scan.instants or name.instant in scan.instants:
            return False
        return any(base.instant == name.instant for base in self.bases_of((log.partition, name.file_id)))

    def bases_of(self, group: FileGroup) -> Sequence[BaseFileName]:
        """The base files of the file group that exist, committed or not."""
        return self._bases.get(group, ())

    @cached_property
    def _bases(self) -> Mapping[FileGroup, Sequence[BaseFileName]]:
        bases: dict[FileGroup, list[BaseFileName]] = {}
        for file in self.data_files:
            if isinstance(file.parsed, BaseFileName):
                bases.setdefault((file.partition, file.parsed.file_id), []).append(file.parsed)
        return bases

    @cached_property
    def doubled(self) -> Mapping[str, int]:
        """The log files with blocks of a completed write behind the size that this write left.

        Each with the greatest size that a write left.
        """
        sizes: dict[str, int] = {}
        for path, stats in self.committed.items():
            scan = self.log_scans.get(path)
            if scan is None:
                continue
            ends: dict[str, int] = {}
            for time, stat in stats:
                ends[time] = max(stat.file_size_bytes, ends.get(time, 0))
            records = [block for block in scan.blocks if block.instant is not None and not block.is_command]
            if any(block.instant in ends and block.offset >= ends[block.instant] > 0 for block in records):
                sizes[path] = max(ends.values())
        return sizes

    def slice_at(self, group: FileGroup, instant: str) -> FileSlice | None:
        """The slice of that base instant."""
        slices = () if self.view is None else self.view.slices.get(group, ())
        return next((file_slice for file_slice in slices if file_slice.base_instant == instant), None)

    @cached_property
    def latest_slices(self) -> tuple[FileSlice, ...]:
        """What a snapshot reads now."""
        return () if self.view is None else self.view.latest_slices()

    @cached_property
    def missing(self) -> Mapping[str, tuple[str, WriteStat]]:
        """The missing files that completed writes put into existing slices, and the commit of each.

        1. Of a slice that is as new as the file group's latest base file, nothing may be gone.
        2. Cleaning takes older slices as a whole: a log file that is gone where its base file stayed was lost. Not so
           where a savepoint keeps that base file, which keeps the log files of its time alone, nor where a clean says that
           it removed the log file: a base file between the two may have gone with it, and its commit into the archive.
        """
        kept = {path for paths in self.removals.saved.values() for path in paths}
        lost: dict[str, tuple[str, WriteStat]] = {}
        for path, (time, stat) in self._absent.items():
            bases = self.known_bases.get((stat.partition, stat.file_id), {})
            at = self.slice_of(path, bases)
            if at is None:
                continue
            if at >= max(bases, default=""):
                lost[path] = (time, stat)
            elif LogFileName.parse(path.rpartition("/")[2]) is not None:
                base = bases.get(at)
                if base is not None and base in self.sizes and base not in kept and path not in self._cleaned:
                    lost[path] = (time, stat)
        return lost

    @cached_property
    def missing_history(self) -> Mapping[str, tuple[str, WriteStat]]:
        """The missing base files of older slices that no clean has removed, and the commit of each.

        Only where all cleans are known that can have removed the file: those after the next base file of its file group.
        """
        since = self.removals.cleans_known_since
        if self.unreadable or since is None:
            return {}
        lost: dict[str, tuple[str, WriteStat]] = {}
        for path, (time, stat) in self._absent.items():
            base = BaseFileName.parse(path.rpartition("/")[2])
            if base is None or path in self.missing or path in self._cleaned:
                continue
            bases = self.known_bases.get((stat.partition, stat.file_id), {})
            after = [instant for instant in bases if instant > base.instant]
            if after and since <= min(after):
                lost[path] = (time, stat)
        return lost

    @cached_property
    def _cleaned(self) -> frozenset[str]:
        """The files that completed cleans say they removed."""
        return frozenset(path for paths in self.removals.cleans.values() for path in paths)

    @cached_property
    def _absent(self) -> Mapping[str, tuple[str, WriteStat]]:
        """The committed files of file groups in use that neither exist nor are being removed, and their last writes."""
        archived = {path: ((write.requested_time, stat),) for path, (write, stat) in self.archived.absent.items()}
        return {
            path: stats[-1]
            for path, stats in (archived | dict(self.committed)).items()
            if path not in self.sizes and path not in self.removals.pending
            if self.view is not None and not self.view.is_replaced((stats[-1][1].partition, stats[-1][1].file_id))
        }

    @cached_property
    def known_bases(self) -> Mapping[FileGroup, Mapping[str, str]]:
        """The base files of each file group by instant, including those that only a commit names."""
        known: dict[FileGroup, dict[str, str]] = {}
        for slices in () if self.view is None else self.view.slices.values():
            for one in slices:
                if one.base_file is not None:
                    known.setdefault(one.file_group, {})[one.base_instant] = one.base_file.path
        for path in (*self.archived.absent, *self.committed):
            directory, _, name = path.rpartition("/")
            base = BaseFileName.parse(name)
            if base is not None:
                known.setdefault((directory, base.file_id), {})[base.instant] = path
        return known

    def slice_of(self, path: str, bases: Mapping[str, str]) -> str | None:
        """The base instant of the slice that a file belongs to; None for a log file of a write that has not completed."""
        return self.layout.slice_of(path, bases, self.timeline)

    @cached_property
    def damaged_groups(self) -> frozenset[FileGroup]:
        """The file groups with missing files, whose slices cannot be checked further."""
        return frozenset((stat.partition, stat.file_id) for _, stat in self.missing.values())

    @cached_property
    def whole_slices(self) -> tuple[FileSlice, ...]:
        """The latest slices of which no file is missing or unreadable."""
        return tuple(file_slice for file_slice in self.latest_slices if self.is_whole(file_slice))

    def is_whole(self, file_slice: FileSlice) -> bool:
        """Whether all that a reader of the slice needs exists and, as far as headers and footers show, can be read."""
        if file_slice.file_group in self.damaged_groups:
            return False
        if file_slice.base_file is not None and file_slice.base_file.path in self.bases.problems:
            return False
        return all(self.is_readable(log.path) for log in file_slice.log_files)

    @cached_property
    def misplaced(self) -> Mapping[str, str]:
        """The problem of each link that doesn't lead, in one hop, to the original file of its file group."""
        links = {file.path: file.link_target for file in self.listing if file.link_target is not None}
        problems: dict[str, str] = {}
        for path, target in links.items():
            if target.startswith("/") or ".." in target.split("/") or ":" in target.split("/")[0]:
                problems[path] = f"points to {target}, outside the table"
            elif target in links:
                problems[path] = f"points to {target}, which is itself a link"
            elif target not in self.sizes:
                problems[path] = f"points to {target}, which does not exist"
            elif _file_group(path) != _file_group(target):
                problems[path] = f"points to {target}, a file of another file group"
            elif self.left_overs.get(path, target) != target:
                problems[path] = f"points to {target}, but to {self.left_overs[path]} in the commit that made it"
        return problems

    def is_readable(self, log_path: str) -> bool:
        if log_path in self.misplaced:
            return False
        scan = self.log_scans.get(log_path)
        return scan is not None and scan.problem is None and not any(self.is_lost(log_path, b) for b in scan.blocks)

    def is_lost(self, log_path: str, block: BlockFacts) -> bool:
        """Whether a torn block may hold records of a completed write.

        One without a readable instant, behind all blocks that were committed, was left by a writer that died.
        """
        if not block.is_torn:
            return False
        if block.instant is not None:
            return self.blocks.accepts(block.instant)
        return not self._blocks_of_logs.is_abandoned(log_path, block.offset)

    @cached_property
    def _blocks_of_logs(self) -> BlockFilter:
        writers = LogWriters(None, {}, self.layout.names_logs_by_write, ends_of_logs(self.commits))
        return replace(self.blocks, writers=writers)


def _file_group(path: str) -> FileGroup:
    directory, _, name = path.rpartition("/")
    parsed = LogFileName.parse(name) or BaseFileName.parse(name)
    return (directory, "" if parsed is None else parsed.file_id)
