"""Gathers the facts for the checks: timeline, listing, headers and footers, but no records.

In this order, since others work on the table: timeline, listing, timeline once more. What belongs to an instant that came
between is not an orphan.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from eventide_core.access.block_headers import block_headers
from eventide_core.action.repair.repairs import BACKUP_DIRECTORY
from eventide_core.action.verification.facts import TableFacts
from eventide_core.action.verification.parts import (
    BaseFacts,
    BlockFacts,
    EventTimeFacts,
    IndexFacts,
    LogScan,
    RemovalFacts,
)
from eventide_core.config import EVENT_TIME_FIELD, METADATA_COMPACT_AFTER, Options
from eventide_core.cure import Cure
from eventide_core.errors import CorruptTimelineError, EventideError, MissingFileError
from eventide_core.ports import ContentAudit, Engine, Storage
from eventide_core.service.common.facts.event_time_field import are_stats_proof, event_time_field_of, zone_notes
from eventide_core.service.common.facts.freshness import FreshnessReader
from eventide_core.service.common.facts.moments import put_times
from eventide_core.service.common.metadata_table.upkeep import rebuilt_indexes
from eventide_core.service.common.state.data_directories import directories_of_data, is_another_table
from eventide_core.service.common.state.foreign_directories import foreign_directories
from eventide_core.service.common.state.liveness import Liveness
from eventide_core.service.common.state.markers_and_heartbeats import instants_with_markers_or_heartbeat
from eventide_core.service.common.state.table import TableState
from eventide_core.service.common.state.table_files import TableFiles
from eventide_core.service.verification.problems import OrProblem, Problem, require_damage
from eventide_core.service.verification.timeline import TimelineReader, timeline_names
from eventide_core.table.files.file_name import LogFileName, is_data_file, path_in
from eventide_core.table.files.log_block import BlockType, HeaderKey
from eventide_core.table.files.log_facts import LogFacts
from eventide_core.table.files.slice_read import BlockFilter
from eventide_core.table.files.table_path import PARTITION_MARK
from eventide_core.table.records.record_shape import RecordShape
from eventide_core.table.schema.operation_column import refuse_operations
from eventide_core.table.settings.metadata_table import MetadataTableStatus
from eventide_core.table.settings.properties import PROPERTIES_PATH, properties_bytes, settings_problem
from eventide_core.table.settings.table_config import TableConfig
from eventide_core.table.timeline.file_system_view import DataFile
from eventide_core.table.timeline.timeline import Timeline


@dataclass(frozen=True, slots=True)
class Gathered:
    """The `facts`; and, where the table can be loaded, its `state` and the shape of its records.

    Without these two, no records are read. The shape has no event-time field if the table has no cut and records aren't
    read, or if the field isn't known.
    """

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

    def gone_since(self, gathered: Gathered) -> list[str]:
        """The files that were listed then and are gone, by path."""
        now, _ = list_everything(self.files.storage)
        then = {file.path for file in gathered.facts.listing}
        if gathered.state is not None:
            then |= {file.path for file in gathered.state.listing}
        return sorted(then - {file.path for file in now})

    def gather(self, *, is_deep: bool) -> Gathered:
        config = self.files.config()
        before = self._settings_problem()
        names = timeline_names(self.files.storage, config)
        state, view_problem = self._state()
        timeline = self._timeline(config, names) if state is None else state.timeline
        reader = TimelineReader(self.files, config, timeline)
        commits = reader.commits()
        if reader.unreadable:
            view_problem = None  # the timeline's own check reports it
        listing, unmarked = list_everything(self.files.storage)
        foreign = foreign_directories(self.files, config, timeline, commits.values(), listing)
        listing = tuple(file for file in listing if file.partition not in foreign)
        marked = instants_with_markers_or_heartbeat(self.files.storage)
        later = self._timeline(config, timeline_names(self.files.storage, config))
        plans = reader.plans()
        blocks = BlockFilter(frozenset(i.requested_time for i in timeline.completed), timeline.start)
        logs = scan_logs(self.files.storage, self.engine, listing, blocks)
        cleans = reader.cleans()
        removals = RemovalFacts(
            reader.being_removed(), reader.saved(), cleans, self._cleans_known_since(config, cleans)
        )
        left_overs = reader.left_overs(commits)
        archived = reader.archived(commits, listing, logs)
        bases = self._bases(state)
        shape, times = self._event_times(state, is_deep)
        facts = TableFacts(
            settings=config.identity_settings,
            settings_problem=before if before == self._settings_problem() else None,
            layout=config.layout,
            timeline_path=config.timeline_path,
            timeline_names=names,
            timeline=timeline.with_archived(write for write, _ in archived.absent.values()),
            later=later,
            commits=commits,
            unreadable=reader.unreadable,
            listing=listing,
            unmarked=unmarked.intersection(file.path for file in listing),
            put_at=put_times(config, timeline, self.files.clock),
            view=None if state is None else state.view,
            view_problem=view_problem,
            blocks=blocks,
            plans=plans,
            unplanned=frozenset(reader.unplanned),
            left_overs=left_overs,
            removals=removals,
            undone=reader.undone(),
            marked=marked,
            archived=archived,
            log_scans=logs,
            bases=bases,
            event_times=times,
            index=self._index(config),
            markers_and_heartbeats=tuple(self._markers_and_heartbeats(timeline)),
        )
        return Gathered(facts, state, shape)

    def _timeline(self, config: TableConfig, names: Iterable[str]) -> Timeline:
        """The timeline, with all of its files if the archive can't be read, which shows what doesn't count."""
        with suppress(CorruptTimelineError):
            return self.files.timeline(config)
        return Timeline.of_file_names(names)

    def _settings_problem(self) -> str | None:
        """Why hoodie.properties alone can't be used. A writer that changes it leaves it to its backup for a moment."""
        try:
            return settings_problem(properties_bytes(self.files.storage.read_range, PROPERTIES_PATH))
        except MissingFileError:
            return "is missing"

    def _cleans_known_since(self, config: TableConfig, cleans: Iterable[str]) -> str | None:
        """The instant from which on the active timeline has all cleans; None if it may lack any of them."""
        if self.files.storage.list(BACKUP_DIRECTORY):
            return None  # a repair may have taken a clean away
        return min(cleans, default=None) if self.files.storage.list(config.archive_path) else ""

    def _state(self) -> tuple[TableState | None, str | None]:
        try:
            return TableState.load(self.files, requires_files=False), None
        except EventideError as error:
            require_damage(error)
            return None, str(error)

    def _bases(self, state: TableState | None) -> BaseFacts:
        slices = () if state is None else tuple(state.view.slices.values())
        paths = [
            file_slice.base_file.path for group in slices for file_slice in group if file_slice.base_file is not None
        ]
        answers = dict(zip(paths, self.engine.map(OrProblem(self.audit.row_count), paths), strict=True))
        return BaseFacts(
            {path: rows for path, rows in answers.items() if not isinstance(rows, Problem)},
            {path: problem.text for path, problem in answers.items() if isinstance(problem, Problem)},
        )

    def _event_times(self, state: TableState | None, is_deep: bool) -> tuple[RecordShape | None, EventTimeFacts]:
        """The shape of the records, and the event times, as the planner gets them.

        Raises ConfigError for an option that names no field of the table.
        """
        if state is None:
            return None, EventTimeFacts(None, {}, {}, "the file slices are not known")
        asked = self.options.get(EVENT_TIME_FIELD)
        if asked is not None and (schema := state.known_schema) is not None:
            schema.is_nullable(asked, EVENT_TIME_FIELD)
        shape, fresh, problem = state.shape(None), None, None
        logs: dict[str, LogFacts] = {}
        notes: tuple[str, ...] = ()
        has_cut = True  # unless the timeline, of which a part may be lost, shows that it has none
        try:
            has_cut, notes = state.cut_ms is not None, zone_notes(state, self.options)
            if has_cut or is_deep:
                shape = state.shape(event_time_field_of(state, self.options))
                logs = self._log_facts(state, shape)
                fresh = self.freshness.now(state)
        except EventideError as error:
            require_damage(error)
            problem = str(error) if has_cut else None
        of_logs = {path: fact.event_times for path, fact in logs.items()}
        uncompacted = {path: fact.uncompacted for path, fact in logs.items()}
        return shape, EventTimeFacts(fresh, of_logs, uncompacted, problem, notes)

    def _log_facts(self, state: TableState, shape: RecordShape) -> dict[str, LogFacts]:
        """The facts of each log file of the latest slices that can be read, by path."""
        proof = are_stats_proof(shape, self.options, state.config.properties)
        logs = [log for file_slice in state.view.latest_slices() for log in file_slice.log_files]
        facts, errors = self.freshness.facts.read_each(state, shape, logs, are_stats_proof=proof)
        for error in errors.values():
            require_damage(error)
        return facts

    def _index(self, config: TableConfig) -> IndexFacts:
        if not config.metadata_partitions:
            return IndexFacts((), (), None, frozenset(), None, None)
        partitions, rebuilt = config.metadata_partitions, rebuilt_indexes(self.files.storage, config)
        try:
            own = self.files.metadata_table.load()
            listing = self.files.metadata_table.listing(())  # whichever actions it has followed: Hudi's readers use it
        except EventideError as error:
            require_damage(error)
            return IndexFacts(partitions, rebuilt, None, frozenset(), f"cannot be read: {error}", None)
        files = None
        if listing is not None:
            files = {path_in(part, name): size for part, names in listing.items() for name, size in names.items()}
        writes = frozenset(i.requested_time for i in own.facts.timeline.completed)
        return IndexFacts(partitions, rebuilt, files, writes, None, self._late_compaction(own.facts.status))

    def _late_compaction(self, status: MetadataTableStatus) -> str | None:
        limit = self.options.get(METADATA_COMPACT_AFTER)
        if status.delta_commits <= limit:
            return None
        return (
            f"the metadata table's compaction is overdue, so its readers get slower: {status}, of at most {limit} "
            f"({METADATA_COMPACT_AFTER}); the next write, compaction or clean compacts it unless something is pending"
        )

    def _markers_and_heartbeats(self, timeline: Timeline) -> Iterable[str]:
        pending = {i.requested_time for i in timeline.pending}
        for time in sorted(instants_with_markers_or_heartbeat(self.files.storage) - pending):
            yield (
                f"{time}: markers or a heartbeat of an action that is no longer pending; harmless, the next "
                "clean removes them"
            )
        for instant in timeline.pending:
            if self.liveness.is_dead(instant):
                yield (
                    f"{instant.requested_time}: the writer of this pending {instant.action} is dead; the next write, or "
                    f"{Cure.rollback(instant.requested_time)}, rolls it back"
                )


def list_everything(storage: Storage) -> tuple[tuple[DataFile, ...], frozenset[str]]:
    """All files of partitions, with the data files and links of other directories; and the data files among them."""
    files: list[DataFile] = []
    unmarked: list[str] = []
    waiting = [""]
    while waiting:
        directory = waiting.pop()
        entries = storage.list(directory)
        if is_another_table(storage, directory, entries):
            continue
        names = {entry.path: entry.path.rpartition("/")[2] for entry in entries}
        is_marked = any(name.startswith(PARTITION_MARK) for name in names.values())
        waiting += directories_of_data(storage.root, entries)
        for entry in entries:
            if entry.is_directory and entry.link_target is None:
                continue
            if is_marked or entry.link_target is not None or is_data_file(names[entry.path]):
                files.append(DataFile(directory, entry.path, entry.size, entry.link_target))
                if not is_marked and is_data_file(names[entry.path]):
                    unmarked.append(entry.path)
    return tuple(sorted(files, key=lambda file: file.path)), frozenset(unmarked)


def scan_logs(
    storage: Storage, engine: Engine, listing: tuple[DataFile, ...], counted: BlockFilter
) -> Mapping[str, LogScan]:
    """The blocks of each log file, except dangling links. Raises UnsupportedTableError for records with operations."""
    there = {file.path for file in listing if file.link_target is None}
    logs = [f for f in listing if LogFileName.parse(f.name) is not None and (f.link_target or f.path) in there]
    scans = engine.map(OrProblem(partial(_scan, storage, counted)), logs)
    return {
        log.path: LogScan((), scan.text) if isinstance(scan, Problem) else scan
        for log, scan in zip(logs, scans, strict=True)
    }


def _scan(storage: Storage, counted: BlockFilter, file: DataFile) -> LogScan:
    """Reads a log file's headers."""
    blocks: list[BlockFacts] = []
    try:
        for block in block_headers(storage, file.path, file.size):
            if counted.accepts(block.instant_time or ""):
                refuse_operations(block.schema, f"log file {file.path}")
            is_torn = block.block_type is BlockType.CORRUPT
            is_command = block.block_type is BlockType.COMMAND
            target = block.header.get(HeaderKey.TARGET_INSTANT_TIME) if is_command else None
            blocks.append(BlockFacts(block.offset, block.instant_time, is_torn, is_command, target))
    except EventideError as error:
        require_damage(error)
        return LogScan(tuple(blocks), str(error))
    return LogScan(tuple(blocks))
