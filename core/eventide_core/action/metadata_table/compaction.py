"""When the metadata table is compacted, and at which instant M.

A compaction is due when `hoodie.metadata.compact.max.delta.commits` delta commits have completed since the last one. M is:

    version 6      `<L>001`; L is the requested time of the latest delta commit. No compaction starts while an action of the
                   table at L or before is pending, or while a delta commit of the metadata table is pending, whose log
                   file may be in an old slice
    8 and later    the completion time of the table's commit that has just been made. Later delta commits of the metadata
                   table complete at M or later, and so belong to the new slices. If actions that are complete in the
                   metadata table are still pending in the table, M is before the first of them: its delta commit may be
                   rolled back

In any version, no compaction starts beside a pending plan, or beside an open write without a heartbeat: its writer shares no
lock, and compacts independently.

Each file group keeps its latest slice and the previous one. A reader that began on the previous slice finds it until the
next compaction. Neither Hudi nor eventide needs an older one: the metadata table has no savepoints, and no query reads its
past.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from eventide_core.table.files.file_name import BaseFileName, path_in
from eventide_core.table.files.file_slice import FileSlice
from eventide_core.table.schema.avro_schema import AvroSchema
from eventide_core.table.settings.metadata_table import MetadataTableFacts
from eventide_core.table.timeline.contents.plans import CompactionPlan, LinkMode, PlannedLog, PlannedOperation
from eventide_core.table.timeline.instant import Action, instant_epoch_ms, instant_time

VERSIONS_KEPT: Final = 2
_SUFFIX_6: Final = "001"
"""Hudi's suffix for a compaction of the metadata table in version 6."""
_INSTANT_LENGTH: Final = 17
_TOKEN: Final = "0-7-0"
_EXTENSION: Final = ".hfile"


def due_instant(facts: MetadataTableFacts, delta_commits_max: int, moment: str) -> str | None:
    """The instant of the compaction that is due; None if none is due, or none is possible beside what is pending.

    `moment` is the completion time of the commit of the table that has just been made.
    """
    if facts.status.delta_commits < delta_commits_max or facts.building or facts.timeline.pending_plans:
        return None
    is_timed = facts.layout.records_completion_times
    instant = _instant_by_completion(facts, moment) if is_timed else _instant_6(facts)
    used = {i.requested_time for timeline in (facts.timeline, facts.data_timeline) for i in timeline.instants}
    return None if instant is None or instant <= facts.last_compaction or instant in used else instant


def _instant_by_completion(facts: MetadataTableFacts, moment: str) -> str:
    ahead = [
        i.requested_time
        for i in facts.data_timeline.pending
        if (update := facts.timeline.find(i.requested_time)) is not None and update.is_completed
    ]
    return min((moment, *(instant_time(instant_epoch_ms(time) - 1) for time in ahead)))


def _instant_6(facts: MetadataTableFacts) -> str | None:
    latest = max((i.requested_time for i in facts.timeline.completed if i.action is Action.DELTA_COMMIT), default="")
    if len(latest) != _INSTANT_LENGTH:
        return None  # Hudi is building an index: the instant already has a suffix, and another delta commit follows
    is_behind = any(i.requested_time <= latest for i in facts.data_timeline.pending)
    is_written = any(i.action is Action.DELTA_COMMIT for i in facts.timeline.pending)
    return None if is_behind or is_written else f"{latest}{_SUFFIX_6}"


def end_of_update(facts: MetadataTableFacts, completion_time: str) -> str:
    """When an update completes: a millisecond before the table's commit, whose time a compaction may take as its instant.

    Not before the instant of any existing compaction: a log file that completes before it would belong below its base file.
    """
    before = instant_time(instant_epoch_ms(completion_time) - 1)
    plans = (Action.COMPACTION, Action.COMMIT)
    last = max((i.requested_time for i in facts.timeline.instants if i.action in plans), default="")
    return max(before, last)


def plan(slices: Iterable[FileSlice], instant: str, schema: AvroSchema) -> CompactionPlan:
    """The compaction of all log files of these slices. `schema` is the schema of the metadata table's records."""
    return CompactionPlan(
        instant=instant,
        link_mode=LinkMode.PREFIX,
        link_reason="every log is merged",
        operations=tuple(_operation(file_slice, instant) for file_slice in slices),
        schema=schema,
    )


def _operation(file_slice: FileSlice, instant: str) -> PlannedOperation:
    partition = file_slice.partition
    base = file_slice.base_file
    return PlannedOperation(
        partition=partition,
        file_id=file_slice.file_id,
        base_instant=file_slice.base_instant,
        base_path=None if base is None else path_in(partition, str(base.name)),
        base_size=0 if base is None else base.size,
        compacted=tuple(PlannedLog(path_in(partition, str(log.name)), log.size, None) for log in file_slice.log_files),
        new_base_name=str(BaseFileName(file_slice.file_id, _TOKEN, instant, _EXTENSION)),
        reason="every log is merged",
    )


def old_slices(group: Sequence[FileSlice]) -> Sequence[FileSlice]:
    """The slices of a file group, given from the oldest on, that no reader needs."""
    return group[:-VERSIONS_KEPT]


def earliest_needed(facts: MetadataTableFacts, slices: Iterable[FileSlice]) -> str:
    """The earliest instant on the metadata table's timeline that its slices need; empty if all instants are needed.

    1. Needed are the compaction below which all slices are old, and every write that completed since then. With fewer
       than VERSIONS_KEPT compactions, or while Hudi builds an index, all instants are needed.
    2. From version 8 on, a log file's delta commit is also needed if the log file's slice began after the delta commit was
       requested: without its completion time, the log file would belong to the previous slice.
    """
    compactions = [i.requested_time for i in facts.timeline.completed if i.action is Action.COMMIT]
    if len(compactions) < VERSIONS_KEPT or facts.building:
        return ""
    oldest = compactions[-VERSIONS_KEPT]
    since = [i.requested_time for i in facts.timeline.writes if (i.completion_time or i.requested_time) >= oldest]
    if not facts.layout.names_logs_by_write:
        return min(since)
    straddling = [log.name.instant for s in slices for log in s.log_files if log.name.instant < s.base_instant]
    return min((*since, *straddling))
