"""Writes that completed, and whose completed file is gone from the timeline.

Such a write looks like one whose writer died, and the next rollback removes its rows. Only what completed writes left
elsewhere distinguishes the two:

1. Certain: a completed write or compaction, or a savepoint, builds on a file of it. A plan and a savepoint name a log file
   only if its write has completed, from version 8 on. On version 6, log files hold blocks of several writes, so only base
   files count. Or a committed base file has records of it, if records were read.
2. Likely: it is pending, and its files are there without its markers and its heartbeat, which a writer removes only
   after it has completed. Or it is not on the timeline at all, but the metadata table has its files.

A compaction doesn't count: if its completed file is lost, it is pending again, and runs again.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from eventide_core.action.maintenance.rollback_planner import built_on
from eventide_core.action.verification.facts import TableFacts
from eventide_core.table.files.file_name import BaseFileName, LogFileName, path_in
from eventide_core.table.timeline.contents.plans import CompactionPlan, ForeignPlan
from eventide_core.table.timeline.file_system_view import DataFile
from eventide_core.table.timeline.instant import COMPLETED_ACTION, Action, Instant, State, next_instant_time

_OF_PLANS = frozenset({Action.COMPACTION, Action.LOG_COMPACTION})


@dataclass(frozen=True, slots=True)
class LostCompletion:
    """A write whose completed file is gone. `pending` is what is left of it on the timeline; None if nothing is.

    `evidence` is a clause for people about what shows that it had completed; `is_certain`: that leaves no doubt.
    `completed_as` is the name of its completed file where it is known exactly enough to restore it: the completion time then
    puts each of its log files into the file slice where it was.
    """

    instant: str
    evidence: str
    is_certain: bool
    pending: Instant | None
    completed_as: str | None = None


def lost_completions(facts: TableFacts) -> dict[str, LostCompletion]:
    """The writes that completed and lost their completed files, by requested time.

    While a part of the timeline can't be read, only those that certainly completed: a rollback may be in that part.
    """
    files = _files_of_unknown_writes(facts)
    if not files:
        return {}
    certain = _evidence(facts, frozenset(files))
    lost: dict[str, LostCompletion] = {}
    for instant, written in sorted(files.items()):
        pending = facts.timeline.find(instant)
        evidence = certain.get(instant)
        if evidence is None and not facts.unreadable:
            evidence = _likely(facts, instant, pending, written)
        if evidence is None:
            continue
        is_certain = instant in certain
        name = _completed_name(facts, pending, written) if is_certain and pending is not None else None
        lost[instant] = LostCompletion(instant, evidence, is_certain, pending, name)
    return lost


def _files_of_unknown_writes(facts: TableFacts) -> dict[str, list[DataFile]]:
    """The data files of each instant that no write completed at, was rolled back or is a compaction."""
    by_instant: dict[str, list[DataFile]] = {}
    for file in facts.data_files:
        if file.path in facts.removals.pending or file.path in facts.committed or file.path in facts.archived.files:
            continue
        group = (file.partition, "" if file.parsed is None else file.parsed.file_id)
        for instant in _writers(facts, file):
            if (group, instant) not in facts.rolled_back:
                by_instant.setdefault(instant, []).append(file)
    return {instant: files for instant, files in by_instant.items() if _may_have_completed(facts, instant)}


def _writers(facts: TableFacts, file: DataFile) -> frozenset[str]:
    """The instants of which the file can be, as its name or its blocks state it."""
    name = file.parsed
    if isinstance(name, LogFileName):
        if name.suffix:
            return frozenset()
        if facts.is_named_by_its_slice(file):
            scan = facts.log_scans.get(file.path)
            return frozenset() if scan is None else scan.instants
    return frozenset() if name is None else frozenset((name.instant,))


def _may_have_completed(facts: TableFacts, instant: str) -> bool:
    """Whether the instant is pending or unknown, at the start and at the end of the verification, and nothing undid it."""
    before, after = facts.timeline.find(instant), facts.later.find(instant)
    if before != after or (before is not None and before.is_completed) or facts.timeline.is_archived(instant):
        return False
    if (
        instant in facts.plans
        or instant in facts.unplanned
        or instant in facts.undone
        or instant in facts.archived.predating_archive
    ):
        return False
    return before is None or before.action not in _OF_PLANS


def _evidence(facts: TableFacts, candidates: frozenset[str]) -> dict[str, str]:
    """What builds on a file of these instants, by instant."""
    evidence = built_on(facts.commits, candidates)
    for time, plan in facts.plans.items():
        if facts.timeline.is_completed(time):
            for path in (*_below(plan), *_in_place(plan)):
                instant = _certain_instant(facts, path)
                if instant in candidates:
                    evidence.setdefault(instant, f"the completed compaction {time} took {path}")
    for audit in () if facts.records is None else facts.records.audits:
        for instant in audit.commit_times:
            if instant in candidates:
                evidence.setdefault(
                    instant, f"a base file of {path_in(audit.partition, audit.file_id)} has records of it"
                )
    for time, paths in facts.removals.saved.items():
        for path in paths:
            instant = _certain_instant(facts, path)
            if instant in candidates:
                evidence.setdefault(instant, f"the savepoint {time} keeps {path}")
    return evidence


def _below(plan: CompactionPlan | ForeignPlan) -> Iterator[str]:
    """The files of the slices below the new ones."""
    if isinstance(plan, ForeignPlan):
        yield from plan.paths
        return
    for op in plan.operations:
        if op.base_path is not None:
            yield op.base_path
        yield from (log.path for log in op.compacted)
        yield from (left.log_file.path for left in op.left_overs if left.new_name is not None)


def _in_place(plan: CompactionPlan | ForeignPlan) -> Iterator[str]:
    """The left-overs that belong to the new slices as they are."""
    if isinstance(plan, CompactionPlan):
        for op in plan.operations:
            yield from (left.log_file.path for left in op.left_overs if left.new_name is None)


def _certain_instant(facts: TableFacts, path: str) -> str:
    """The write that must have completed for the file to be named; empty if that doesn't follow."""
    name = path.rpartition("/")[2]
    base = BaseFileName.parse(name)
    if base is not None:
        return base.instant
    log = LogFileName.parse(name)
    return log.instant if log is not None and facts.layout.names_logs_by_write else ""


def _likely(facts: TableFacts, instant: str, pending: Instant | None, files: list[DataFile]) -> str | None:
    is_indexed = instant in facts.index.writes
    if pending is None:
        return "the metadata table has its files, and no rollback names it" if is_indexed else None
    # Before 0.15, Hudi made no markers for log files, all of which were of version 6.
    has_markers = facts.layout.needs_hudi_1 or any(isinstance(file.parsed, BaseFileName) for file in files)
    if instant in facts.marked or not (has_markers or is_indexed):
        return None
    return "its files exist without its markers and heartbeat, which a writer removes only after it has completed"


def _completed_name(facts: TableFacts, pending: Instant, files: list[DataFile]) -> str | None:
    action = COMPLETED_ACTION.get(pending.action, pending.action)
    time = pending.requested_time
    if not facts.layout.records_completion_times:
        return Instant(time, action, State.COMPLETED).file_name
    completion = _completion_time(facts, time, files)
    return None if completion is None else Instant(time, action, State.COMPLETED, completion).file_name


def _completion_time(facts: TableFacts, time: str, files: list[DataFile]) -> str | None:
    """A completion time that puts each log file of the write into the slice where it was; None if nothing shows which.

    A later base file of a file group has the log file below it if its plan names it, and otherwise began before the write
    completed.
    """
    named = {t: frozenset(_below(plan)) for t, plan in facts.plans.items() if facts.timeline.is_completed(t)}
    lower, upper = next_instant_time(time), ""
    logs = [f for f in files if isinstance(f.parsed, LogFileName)]
    for log in logs:
        assert log.parsed is not None
        group = (log.partition, log.parsed.file_id)
        bases = {*facts.known_bases.get(group, {}), *(base.instant for base in facts.bases_of(group))}
        for above in bases:
            if above <= time:
                continue
            if above not in named:
                return None
            if log.path in named[above]:
                upper = min(above, upper or above)
            else:
                lower = max(lower, next_instant_time(above))
    taken = {i.completion_time for i in facts.timeline.completed}
    while lower in taken:
        lower = next_instant_time(lower)
    return lower if not upper or lower < upper else None
