"""Plans the four queries: which slices to read, and how. An adapter reads the rows, here or on executors."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from eventide_core.action.query.change_planner import ChangePlanner
from eventide_core.action.query.key_places import looks_no_key_up
from eventide_core.action.query.planner import (
    earliest_request,
    parse_time,
    plan_incremental,
    plan_slices,
    settled_until,
    skipped_later,
    slices_of_span,
    span,
    with_null_fields,
)
from eventide_core.errors import CleanedHistoryError, MissingFileError, UnsupportedTableError
from eventide_core.service.common.facts.history import check_history, check_history_when
from eventide_core.service.common.facts.moments import moment_as_instant
from eventide_core.service.common.facts.needed_files import savepoints_of
from eventide_core.service.common.facts.planning import schema_since
from eventide_core.service.common.facts.watermark_views import base_files_of, last_write_of, view_as_of_watermark
from eventide_core.service.common.state.committed_files import looked_again
from eventide_core.service.common.state.table import TableState
from eventide_core.service.common.state.table_files import TableFiles
from eventide_core.service.rollback.savepoint import find_tag
from eventide_core.table.files.file_name import BaseFileName
from eventide_core.table.files.file_slice import FileSlice
from eventide_core.table.files.slice_read import BlockFilter, QueryPlan, SliceRead
from eventide_core.table.property_keys import CDC_ENABLED, POPULATE_META_FIELDS
from eventide_core.table.settings.metadata_table import RECORD_INDEX
from eventide_core.table.timeline.file_system_view import DataFile
from eventide_core.table.timeline.instant import Instant


@dataclass(frozen=True, slots=True)
class QueryService:
    """The queries, each of the table's current state, or all of its state at one `moment`."""

    files: TableFiles
    moment: TableState | None = None

    def of_one_moment(self) -> "QueryService":
        """The queries of the table's current state, which is loaded once."""
        return replace(self, moment=self._state())

    def snapshot(self) -> QueryPlan:
        """Every row as of now."""
        state = self._state()
        slices = plan_slices(state.view.latest_slices(), state.blocks_of_slices(), schema_since=_schema_since(state))
        return replace(_plan(state, slices), completed=_completed_with_unique_keys(state))

    def read_optimized(self) -> QueryPlan:
        """The rows of base files alone: fast, and as fresh as the last compaction."""
        state = self._state()
        slices = plan_slices(state.view.latest_base_files(), state.blocks(), schema_since=_schema_since(state))
        # A base file still has what log files have deleted or moved, and what no index of keys knows any more.
        has_logs = any(file_slice.log_files for file_slice in state.view.latest_slices())
        return replace(_plan(state, slices), completed=None if has_logs else _completed_with_unique_keys(state))

    def as_of_watermark(self, threshold_ms: int, compaction: str | None = None) -> QueryPlan:
        """The rows of base files alone, as left by the compaction that answers T (action/freshness/watermark_view.py).

        That is `compaction`, if it is given. With the columns that the table had then. Raises WatermarkNotFoundError,
        CleanedHistoryError.
        """
        state = self._state()
        view = view_as_of_watermark(state, threshold_ms, compaction=compaction)
        self._require_kept(state, last_write_of(state, view))
        slices = plan_slices(base_files_of(state, view), state.blocks())
        return _plan(state, slices, as_of=view.compaction.requested_time)

    def tagged(self, name: str) -> QueryPlan:
        """Every row as of the commit that has the tag. Raises TagNotFoundError."""
        return self.as_of(looked_again(lambda: find_tag(self.files, self._state(), name)).instant)

    def tagged_read_optimized(self, name: str) -> QueryPlan:
        """The rows of the base files that the savepoint with this tag keeps. Raises TagNotFoundError, MissingFileError."""
        state = self._state()
        tag = find_tag(self.files, state, name)
        self._require_kept(state, tag.instant)
        kept = tag.savepoint.paths
        bases = [file for file in state.listing if file.path in kept and BaseFileName.parse(file.name) is not None]
        slices = plan_slices(state.view_of(bases, lambda _: False).latest_base_files(), state.blocks())
        return _plan(state, slices, as_of=tag.instant)

    def as_of(self, instant: str) -> QueryPlan:
        """Every row as of an instant, inclusive (requested time), with the columns that the table had then.

        Raises InstantNotFoundError for what isn't a time, CleanedHistoryError if files of that time have been cleaned.
        """
        state = self._state()
        time = self._instant_time(state, instant, is_end=True)
        check_history(state, time)
        self._require_kept(state, time)
        slices = plan_slices(state.view.latest_slices(time), state.blocks_of_slices(time))
        plan = _plan(state, slices, as_of=time)
        first = None if slices else next(iter(state.timeline.writes), None)
        if first is None or first.requested_time <= time:
            return plan
        return replace(plan, note=f"there are no rows as of {time}: the first commit is {first.requested_time}")

    def instant_time(self, time: str) -> str:
        """A user's time as an instant time of the table's timeline. Raises InstantNotFoundError."""
        parsed = parse_time(time)
        if isinstance(parsed, str):
            return parsed
        config = self.files.config()
        return moment_as_instant(config, self.files.timeline(config), parsed, self.files.clock)

    def settled_until(self) -> str:
        """The end of the longest span from the beginning whose rows in `incremental` are final."""
        config = self.files.config()
        return settled_until(self.files.timeline(config), config.layout)

    def incremental(self, begin: str, end: str | None) -> QueryPlan:
        """The latest state of the rows that commits in (begin, end] changed.

        Where cleaning has removed files of that span, the rows come from the slices as they are now, or where later commits
        have changed them as they were at the span's end; CleanedHistoryError if those are gone, too. Raises
        UnsupportedTableError for a table without meta fields, as Hudi does.
        """
        state = self._state()
        if state.config.virtual_key_fields:
            raise UnsupportedTableError(
                f"{self.files.storage.root}: records of a table without meta fields don't record which commit "
                "wrote them, so there are no incremental queries; compare two time travels, or rewrite the "
                "table with hoodie.populate.meta.fields=true"
            )
        after = self._instant_time(state, begin)
        until = self._instant_time(state, end) if end else None
        instants = span(_writes_since(state, after), after, until)
        present = {file.path: file for file in state.listing}
        written: dict[str, DataFile | None] = {}
        for stat in (stat for instant in instants for stat in state.commit(instant).stats):
            written[stat.path] = present.get(stat.path)
            if written[stat.path] is None:
                break  # there may be years of older archived commits
        files = [file for file in written.values() if file is not None]
        if len(files) == len(written):
            # What was replaced after the span's end stays readable.
            ended = {write.requested_time for write in span(state.timeline.writes, "", until)}
            slices = slices_of_span(state.view_of(files, ended.__contains__))
        else:
            slices = _slices_until(state, until)
        note = skipped_later(state.timeline, instants, state.config.layout)
        whole = _whole_slices(state, slices, until)
        return replace(_plan(state, plan_incremental(slices, instants, whole)), note=note)

    def changes(self, begin: str, end: str | None) -> QueryPlan:
        """What each commit in (begin, end] changed, as Hudi's incremental queries of format `cdc` have it.

        Raises CleanedHistoryError if files of that span, or what they were written on, have been cleaned, and
        UnsupportedTableError for a table without change data capture, or without meta fields.
        """
        state = self._state()
        if not state.config.captures_changes or state.config.virtual_key_fields:
            key = POPULATE_META_FIELDS if state.config.captures_changes else CDC_ENABLED
            raise UnsupportedTableError(
                f"{self.files.storage.root}: {key} is not true, so there are no queries of changes; query the latest "
                "state of the rows instead, or write the table again with that setting"
            )
        after = self._instant_time(state, begin)
        until = self._instant_time(state, end) if end else None
        planner = ChangePlanner(state.timeline, state.view, state.config.layout)
        writes = span(_writes_since(state, after), after, until)
        reads = tuple(change for write in writes for change in planner.plan(write, state.commit(write)))
        return QueryPlan(reads, state.shape(None))

    def _require_kept(self, state: TableState, instant: str) -> None:
        """Raises MissingFileError if a savepoint of that instant keeps a file which is not there."""
        if not state.timeline.has_savepoint(instant):
            return
        kept = savepoints_of(self.files, state)[instant].paths
        missing = kept - {file.path for file in state.listing}
        if missing:
            raise MissingFileError(
                f"{min(missing)} is missing: the savepoint at {instant} keeps it; restore the file from a copy"
            )

    def _instant_time(self, state: TableState, time: str, *, is_end: bool = False) -> str:
        parsed = parse_time(time, is_end=is_end)
        if isinstance(parsed, str):
            return parsed
        return moment_as_instant(state.config, state.timeline, parsed, self.files.clock)

    def _state(self) -> TableState:
        return self.moment or TableState.load_committed(self.files)


def _plan(state: TableState, slices: Iterable[SliceRead], as_of: str | None = None) -> QueryPlan:
    return QueryPlan(with_null_fields(slices, state.config), state.shape(None, as_of=as_of))


def _completed_with_unique_keys(state: TableState) -> frozenset[str] | None:
    """The table's completed actions; None without an index, or if one of them may have inserted a key twice."""
    if RECORD_INDEX not in state.config.metadata_partitions:
        return None
    writes = state.timeline.writes
    inserts = [write for write in writes if looks_no_key_up(state.commits[write.requested_time])]
    is_first = inserts == [*writes[:1]] and next(state.archived_writes(), None) is None
    if inserts and not is_first:
        return None
    return frozenset(instant.requested_time for instant in state.timeline.completed)


def _schema_since(state: TableState) -> str | None:
    """From where on every write has the table's schema, as the active timeline states; None if it evolves on read."""
    if state.internal_schema is not None:
        return None
    return max(schema_since(state), state.timeline.start or "")


def _writes_since(state: TableState, begin: str) -> tuple[Instant, ...]:
    """The completed writes that may have been committed after `begin`, the newest first.

    Reads the archived timeline if the active one does not reach back that far.
    """
    earliest = earliest_request(begin) if state.config.layout.records_completion_times else begin
    start = state.timeline.start
    archived = state.archived_writes(earliest) if start is None or earliest < start else ()
    return (*reversed(state.timeline.writes), *archived)


def _whole_slices(state: TableState, slices: Iterable[FileSlice], until: str | None) -> tuple[SliceRead, ...]:
    """Reads of the file groups of these slices as of the end of a span; none if what was there then has been cleaned.

    Only partial updates ask for them, which no table has below version 8 that doesn't declare them.
    """
    if not state.config.layout.needs_hudi_1 and state.config.partial_update is None:
        return ()
    groups = {(one.partition, one.file_id) for one in slices if one.log_files}
    if until is None or not groups:
        latest = [one for one in state.view.latest_slices() if (one.partition, one.file_id) in groups]
        return plan_slices(latest, state.blocks())
    ended = frozenset(write.requested_time for write in span(state.timeline.writes, "", until))
    blocks = BlockFilter(ended, state.timeline.start, until, undone=state.timeline.undone)
    try:
        check_history_when(state, blocks.accepts, until)
    except CleanedHistoryError:
        return ()
    files = [
        file
        for file in state.listing
        if (name := file.parsed) is not None
        and (file.partition, name.file_id) in groups
        and (
            blocks.accepts(name.instant)
            or not (state.config.layout.names_logs_by_write or isinstance(name, BaseFileName))
        )
    ]
    return plan_slices(state.view_of(files, blocks.accepts).latest_slices(), blocks)


def _slices_until(state: TableState, until: str | None) -> tuple[FileSlice, ...]:
    """Slices that hold every row of a span whose own files are gone: as they are now, or as of the span's end.

    A row that was changed again after the span would be missing in slices as they are now. Those as of its end have it:
    base files of an instant up to there merge nothing that was committed later, and of their rows and of the log files'
    blocks the span's alone are read. They can't be read where file groups were replaced by a write that was requested
    by then and completed later.
    """
    later = () if until is None else span(state.timeline.writes, until, None)
    change = next((write for write in later if not state.commit(write).is_compacted), None)
    if until is None or change is None:
        return state.view.latest_slices()
    gone = CleanedHistoryError(
        f"the changes up to {until} can no longer be read: files of that span were cleaned, and "
        f"{change.requested_time} has changed rows since; omit the end, or use a later begin"
    )
    if any(write.requested_time <= until and state.commit(write).replaced_file_ids for write in later):
        raise gone
    try:
        check_history(state, until)
    except CleanedHistoryError as cleaned:
        raise gone from cleaned
    return state.view.latest_slices(until)
