"""Gathers what the checks of a verification look at: timeline, listing, headers and footers, but no records.

In this order, since others work on the table: timeline, listing, timeline once more. What belongs to an instant that came
between is nobody's orphan.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from eventide_core.action.freshness import Freshness
from eventide_core.action.slice_selection import LogFacts
from eventide_core.action.verification.facts import BlockFacts, LogScan, TableFacts
from eventide_core.config import Options
from eventide_core.errors import CorruptTimelineError, EventideError, StorageError
from eventide_core.ports import ContentAudit, Engine, Storage
from eventide_core.service.attempt import Attempt, Problem
from eventide_core.service.event_time_field import are_stats_proof, event_time_field_of
from eventide_core.service.freshness import FreshnessReader
from eventide_core.service.liveness import Liveness
from eventide_core.service.table import TableState
from eventide_core.service.table_files import PARTITION_MARK, TableFiles
from eventide_core.service.write_leavings import instants_with_leavings
from eventide_core.table.commit_metadata import CommitMetadata
from eventide_core.table.file_name import BaseFileName, LogFileName, is_data_file, path_in
from eventide_core.table.file_system_view import DataFile
from eventide_core.table.instant import Action, Instant
from eventide_core.table.log_block import BlockType, HeaderKey, read_blocks
from eventide_core.table.plans import CompactionPlan, ForeignPlan
from eventide_core.table.publication import Publication
from eventide_core.table.record_shape import RecordShape
from eventide_core.table.slice_read import BlockFilter
from eventide_core.table.table_config import TableConfig
from eventide_core.table.timeline import Timeline


@dataclass(frozen=True, slots=True)
class Gathered:
    """The facts; and, where the table can be loaded, its state and the shape of its records."""

    facts: TableFacts
    state: TableState | None
    shape: RecordShape | None


@dataclass(frozen=True, slots=True)
class FactsReader:
    files: TableFiles
    freshness: FreshnessReader
    audit: ContentAudit
    engine: Engine
    liveness: Liveness
    options: Options

    def timeline_names(self, config: TableConfig) -> tuple[str, ...]:
        """The files of the timeline folder."""
        entries = self.files.storage.list(config.timeline_path)
        return tuple(e.path.rpartition("/")[2] for e in entries if not e.is_directory)

    def gather(self, *, is_deep: bool) -> Gathered:
        config = self.files.config()
        names = self.timeline_names(config)
        timeline = Timeline.of_file_names(names)
        unreadable: dict[str, str] = {}
        state, view_problem = self._state()
        if state is not None:
            timeline = state.timeline
        commits = self._commits(config, timeline, unreadable)
        if unreadable:
            view_problem = None  # the timeline's own check says why
        listing, unmarked = self._listing()
        later = self.files.timeline(config)
        plans = self._plans(config, timeline, unreadable)
        logs = self._scans(listing)
        blocks = BlockFilter(frozenset(i.requested_time for i in timeline.completed), timeline.start)
        going = self._going(config, timeline, unreadable)
        saved = self._saved(config, timeline, unreadable)
        self._check_readable(config, timeline, unreadable)
        left_overs = _left_overs(config, timeline, commits, unreadable)
        archived = self._archived(config, timeline, commits, listing, logs, unreadable)
        bases, base_problems = self._row_counts(state)
        shape, fresh, logs_told, fresh_problem = self._freshness(state, is_deep)
        indexed, index_problem = self._indexed(config, timeline)
        facts = TableFacts(
            slices_by_completion_time=config.slices_by_completion_time,
            timeline_path=config.timeline_path,
            timeline_names=names,
            timeline=timeline,
            later=later,
            commits=commits,
            unreadable=unreadable,
            listing=listing,
            unmarked=unmarked,
            view=None if state is None else state.view,
            view_problem=view_problem,
            blocks=blocks,
            plans=plans,
            left_overs=left_overs,
            going=going,
            saved=saved,
            archived=archived,
            logs=logs,
            row_counts=bases,
            base_problems=base_problems,
            freshness=fresh,
            event_times={path: fact.event_times for path, fact in logs_told.items()},
            waiting={path: fact.waiting for path, fact in logs_told.items()},
            freshness_problem=fresh_problem,
            has_metadata_table=bool(config.metadata_partitions),
            indexed_files=indexed,
            index_problem=index_problem,
            leavings=tuple(self._leavings(timeline)),
        )
        return Gathered(facts, state, shape)

    def _state(self) -> tuple[TableState | None, str | None]:
        try:
            return TableState.load(self.files, requires_files=False), None
        except EventideError as error:
            _require_damage(error)
            return None, str(error)

    def _commits(
        self, config: TableConfig, timeline: Timeline, unreadable: dict[str, str]
    ) -> Mapping[str, CommitMetadata]:
        found: dict[str, CommitMetadata] = {}
        for instant in timeline.writes:
            with _Noting(unreadable, f"{config.timeline_path}/{instant.file_name}"):
                found[instant.requested_time] = self.files.commit(config, instant)
        return found

    def _plans(
        self, config: TableConfig, timeline: Timeline, unreadable: dict[str, str]
    ) -> Mapping[str, CompactionPlan | ForeignPlan]:
        """Those of compactions, pending or completed, whose requested file is there."""
        there = {i.requested_time for i in map(Instant.parse, self.timeline_names(config)) if i and _is_plan(i)}
        found: dict[str, CompactionPlan | ForeignPlan] = {}
        for time in sorted(there):
            if timeline.find(time) is not None:
                with _Noting(unreadable, f"{config.timeline_path}/{time}.compaction.requested"):
                    found[time] = self.files.plan(config, time)
        return found

    def _going(self, config: TableConfig, timeline: Timeline, unreadable: dict[str, str]) -> frozenset[str]:
        found: set[str] = set()
        for pending in timeline.pending:
            path = f"{config.timeline_path}/{pending.requested_time}.{pending.action}.requested"
            with _Noting(unreadable, path):
                if pending.action is Action.CLEAN:
                    found.update(self.files.clean_plan(config, pending.requested_time).deleted_paths)
                elif pending.action is Action.ROLLBACK:
                    data = self.files.storage.read(path)
                    plan = self.files.codec.decode_rollback_plan(data, path, pending.requested_time)
                    found.update(plan.deleted_paths)
        return frozenset(found)

    def _saved(
        self, config: TableConfig, timeline: Timeline, unreadable: dict[str, str]
    ) -> Mapping[str, frozenset[str]]:
        found: dict[str, frozenset[str]] = {}
        for instant in timeline.completed:
            if instant.action is Action.SAVEPOINT:
                with _Noting(unreadable, f"{config.timeline_path}/{instant.file_name}"):
                    found[instant.requested_time] = self.files.savepoint(config, instant).paths
        return found

    def _check_readable(self, config: TableConfig, timeline: Timeline, unreadable: dict[str, str]) -> None:
        """What completed cleans and rollbacks say can be read."""
        for instant in timeline.completed:
            path = f"{config.timeline_path}/{instant.file_name}"
            with _Noting(unreadable, path):
                if instant.action is Action.CLEAN:
                    self.files.clean(config, instant)
                elif instant.action is Action.ROLLBACK:
                    self.files.codec.decode_rollback(self.files.storage.read(path), path)

    def _listing(self) -> tuple[tuple[DataFile, ...], frozenset[str]]:
        """All files of partitions, and of other folders the data files and links; the data files of those."""
        found: list[DataFile] = []
        unmarked: list[str] = []
        waiting = [""]
        while waiting:
            folder = waiting.pop()
            entries = self.files.storage.list(folder)
            names = {entry.path: entry.path.rpartition("/")[2] for entry in entries}
            is_marked = any(name.startswith(PARTITION_MARK) for name in names.values())
            for entry in entries:
                if entry.is_directory and entry.link_target is None:
                    if names[entry.path] != ".hoodie":
                        waiting.append(entry.path)
                elif is_marked or entry.link_target is not None or is_data_file(names[entry.path]):
                    found.append(DataFile(folder, entry.path, entry.size, entry.link_target))
                    if not is_marked and is_data_file(names[entry.path]):
                        unmarked.append(entry.path)
        return tuple(sorted(found, key=lambda file: file.path)), frozenset(unmarked)

    def _scans(self, listing: tuple[DataFile, ...]) -> Mapping[str, LogScan]:
        """The blocks of each log, but of links that lead nowhere."""
        there = {file.path for file in listing if file.link_target is None}
        logs = [f for f in listing if LogFileName.parse(f.name) is not None and (f.link_target or f.path) in there]
        scans = self.engine.map(Attempt(_ScanLog(self.files.storage)), logs)
        return {
            log.path: LogScan((), scan.text) if isinstance(scan, Problem) else scan
            for log, scan in zip(logs, scans, strict=True)
        }

    def _row_counts(self, state: TableState | None) -> tuple[Mapping[str, int], Mapping[str, str]]:
        slices = () if state is None else tuple(state.view.slices.values())
        paths = [found.base_file.path for group in slices for found in group if found.base_file is not None]
        answers = dict(zip(paths, self.engine.map(Attempt(self.audit.row_count), paths), strict=True))
        return (
            {path: rows for path, rows in answers.items() if not isinstance(rows, Problem)},
            {path: problem.text for path, problem in answers.items() if isinstance(problem, Problem)},
        )

    def _archived(
        self,
        config: TableConfig,
        timeline: Timeline,
        commits: Mapping[str, CommitMetadata],
        listing: Iterable[DataFile],
        logs: Mapping[str, LogScan],
        unreadable: dict[str, str],
    ) -> frozenset[str]:
        """What archived writes wrote, of those that wrote the files that no active one names."""
        named = {stat.path for commit in commits.values() for stat in commit.stats}
        times: set[str] = set()
        for file in listing:
            if file.path in named:
                continue
            log, base = LogFileName.parse(file.name), BaseFileName.parse(file.name)
            if log is not None and not config.slices_by_completion_time:
                times.update(logs[file.path].instants if file.path in logs else ())
            elif log is not None or base is not None:
                times.add(log.instant if log is not None else base.instant if base is not None else "")
        found: set[str] = set()
        with _Noting(unreadable, config.archive_path):
            archive = self.files.archive(config)
            for time in sorted(filter(timeline.is_archived, times)):
                commit = archive.commit(time) if archive.find(time) is not None else None
                found.update(stat.path for stat in (commit.stats if commit is not None else ()))
        return frozenset(found)

    def _freshness(
        self, state: TableState | None, is_deep: bool
    ) -> tuple[RecordShape | None, Freshness | None, Mapping[str, LogFacts], str | None]:
        """The shape of the records, the freshness now, and the facts of the logs, as the planner is told them."""
        if state is None:
            return None, None, {}, "the file slices are not known"
        shape, fresh = state.shape(None), None
        told: dict[str, LogFacts] = {}
        try:
            if state.cut_ms is None and not is_deep:
                return shape, None, {}, None
            shape = state.shape(event_time_field_of(state, self.options))
            told = self._log_facts(state, shape)
            fresh = self.freshness.now(state)
        except EventideError as error:
            _require_damage(error)
            return shape, None, told, None if state.cut_ms is None else str(error)
        return shape, fresh, told, None

    def _log_facts(self, state: TableState, shape: RecordShape) -> dict[str, LogFacts]:
        """Those of the logs of the latest slices that can be read."""
        proof = are_stats_proof(shape.schema, shape.event_time_field or "", self.options)
        logs = [log for found in state.view.latest_slices() for log in found.log_files]
        facts, errors = self.freshness.facts.read_each(state, shape, logs, are_stats_proof=proof)
        for error in errors.values():
            _require_damage(error)
        return facts

    def _indexed(self, config: TableConfig, timeline: Timeline) -> tuple[Mapping[str, int] | None, str | None]:
        if not config.metadata_partitions:
            return None, None
        followed = {i.requested_time for i in timeline.completed if i.action is not Action.SAVEPOINT}
        try:
            listing = self.files.metadata_table.listing(followed)
        except EventideError as error:
            _require_damage(error)
            return None, f"cannot be read: {error}"
        if listing is None:
            return None, None
        return {path_in(part, name): size for part, names in listing.items() for name, size in names.items()}, None

    def _leavings(self, timeline: Timeline) -> Iterable[str]:
        pending = {i.requested_time for i in timeline.pending}
        for time in sorted(instants_with_leavings(self.files.storage) - pending):
            yield f"{time}: markers or a heartbeat of what is no longer under way; harmless, the next clean removes them"
        for instant in timeline.pending:
            if self.liveness.is_dead(instant):
                yield (
                    f"{instant.requested_time}: the writer of this pending {instant.action} is dead; the next write, or "
                    f"`eventide rollback TABLE {instant.requested_time}`, rolls it back"
                )


@dataclass(frozen=True, slots=True)
class _ScanLog:
    """A picklable reading of a log's headers."""

    storage: Storage

    def __call__(self, file: DataFile) -> LogScan:
        blocks: list[BlockFacts] = []

        def read(offset: int, length: int) -> bytes:
            return self.storage.read_range(file.path, offset, length)

        try:
            for block in read_blocks(read, file.size, file.path, is_strict=False):
                is_torn = block.block_type is BlockType.CORRUPT
                is_command = block.block_type is BlockType.COMMAND
                target = block.header.get(HeaderKey.TARGET_INSTANT_TIME) if is_command else None
                blocks.append(BlockFacts(block.offset, block.instant_time, is_torn, is_command, target))
        except EventideError as error:
            _require_damage(error)
            return LogScan(tuple(blocks), str(error))
        return LogScan(tuple(blocks))


class _Noting:
    """Writes down why a file cannot be read, and goes on: what cannot be read has a check that says so."""

    def __init__(self, unreadable: dict[str, str], path: str) -> None:
        self._unreadable, self._path = unreadable, path

    def __enter__(self) -> None:
        """Nothing has been read yet."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> bool:
        if not isinstance(error, EventideError):
            return False
        _require_damage(error)
        self._unreadable[self._path] = str(error)
        return True


def _require_damage(error: EventideError) -> None:
    """Raises what is the world's fault, not the table's."""
    if error.exit_code == StorageError.exit_code:
        raise error


def _is_plan(instant: Instant) -> bool:
    return instant.file_name.endswith(".compaction.requested")


def _left_overs(
    config: TableConfig, timeline: Timeline, commits: Mapping[str, CommitMetadata], unreadable: dict[str, str]
) -> Mapping[str, str]:
    """Of each link and copy that a commit names, the log that it is of."""
    found: dict[str, str] = {}
    for instant in timeline.writes:
        metadata = commits.get(instant.requested_time)
        said = None if metadata is None else Publication.of(instant.requested_time, metadata)
        if said is None:
            continue
        try:
            found.update({path: path_in(path.rpartition("/")[0], name) for path, name in said.links.items()})
        except CorruptTimelineError as error:
            unreadable[f"{config.timeline_path}/{instant.file_name}"] = str(error)
    return found
