"""Plans which files a rollback removes, and checks that nothing else is lost.

Plan, for an instant t that never completed or is undone:

1. Every base file that has t is removed. So is every log file that has t: from version 8 on, t wrote it; on version 6,
   t began its slice.
2. Version 6: a log file of an older slice with blocks of t stays, because it may contain blocks of other writes. A
   command block in the slice's next log file rolls back t's blocks. A log file of t's writer without one whole block is
   removed, because it contains no records. After an upgrade, a log file of version 6 is removed with t if all its
   blocks are t's.

A pending write on whose base file a completed write built had completed: its completed file is lost, and it is not
undone (`built_on`). A completed write is undone only if nothing builds on it, or is about to (`check_nothing_is_lost`).
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from eventide_core.cure import Cure
from eventide_core.errors import BusyError, RefusedError
from eventide_core.table.files.file_name import BaseFileName, LogFileName
from eventide_core.table.timeline.contents.commit_metadata import CommitMetadata
from eventide_core.table.timeline.contents.rollback_metadata import RollbackPlan, RollbackRequest, RollbackTarget
from eventide_core.table.timeline.file_system_view import DataFile, FileGroup
from eventide_core.table.timeline.instant import Action, Instant
from eventide_core.table.timeline.layout import Layout
from eventide_core.table.timeline.timeline import Timeline


@dataclass(frozen=True, slots=True)
class SharedLogs:
    """The version 6 log files with blocks of the instant but another name.

    Those in `with_blocks` stay, and a command block rolls the blocks back; none from version 8 on. Those in `broken` are
    removed: on version 6 because no block in them is whole, after an upgrade because all of their blocks are the instant's.
    """

    with_blocks: tuple[DataFile, ...] = ()
    broken: tuple[DataFile, ...] = ()


def plan_rollback(
    instant: str, target: RollbackTarget, listing: Iterable[DataFile], shared: SharedLogs
) -> RollbackPlan:
    """The plan of a rollback requested at `instant`. Log files before base files, in reader order (docs/invariants.md)."""
    logs: dict[tuple[str, str, str], list[LogFileName]] = {}
    bases: list[RollbackRequest] = []
    for file in listing:
        match file.parsed:
            case LogFileName(instant=target.instant) as log:
                logs.setdefault((file.partition, log.file_id, log.instant), []).append(log)
            case BaseFileName(instant=target.instant) as base:
                bases.append(RollbackRequest(file.partition, base.file_id, base.instant, (file.name,)))
            case _:
                pass  # another write's
    for file in shared.broken:
        log = _log_name(file)
        logs.setdefault((file.partition, log.file_id, log.instant), []).append(log)
    blocks: dict[tuple[str, str, str], dict[str, int]] = {}
    for file in shared.with_blocks:
        log = _log_name(file)
        blocks.setdefault((file.partition, log.file_id, log.instant), {})[file.name] = file.size
    rolled_back = [
        RollbackRequest(*group, log_blocks=dict(sorted(sizes.items()))) for group, sizes in sorted(blocks.items())
    ]
    deleted = [
        RollbackRequest(*group, tuple(map(str, sorted(names, key=lambda name: name.reader_order))))
        for group, names in sorted(logs.items())
    ]
    return RollbackPlan(
        instant, target, (*rolled_back, *deleted, *sorted(bases, key=lambda r: (r.partition, r.deleted)))
    )


@dataclass(frozen=True, slots=True)
class UndoneWrite:
    """A completed write to undo, and the facts that decide whether it can be undone.

    `metadata` is its commit's, `commits` are all of the active timeline, by requested time. `planned` are the file groups of
    pending plans, `cleans` those that have not ended. `merged_paths` are the files that a compaction's plan states it merged
    (None if the plan is no longer known), and `listing` the existing files.
    """

    instant: Instant
    metadata: CommitMetadata
    commits: Mapping[str, CommitMetadata]
    timeline: Timeline
    planned: Collection[FileGroup]
    cleans: Collection[Instant]
    merged_paths: tuple[str, ...] | None
    listing: tuple[DataFile, ...]
    layout: Layout


def check_cleaning(begun: Collection[Instant]) -> None:
    """Raises BusyError while a clean that was begun has not ended."""
    for cleaning in begun:
        raise BusyError(
            f"a clean is pending at {cleaning.requested_time}; complete it with {Cure.clean()}, then try again"
        )


def check_nothing_is_lost(write: UndoneWrite) -> None:
    """Raises RefusedError if undoing the completed write would lose or bring back anything but the write itself.

    Raises BusyError if that depends on a pending action.
    """
    time = write.instant.requested_time
    for savepoint in write.timeline.instants:
        if savepoint.action is Action.SAVEPOINT and savepoint.requested_time >= time:
            raise RefusedError(
                f"the savepoint at {savepoint.requested_time} keeps what {time} wrote; delete the savepoint first"
            )
    check_cleaning(write.cleans)
    if write.metadata.replaced_file_ids:
        raise RefusedError(
            f"{time} replaced other file groups, which a clean may have removed; restore the table to a "
            "savepoint before it instead"
        )
    groups = {(stat.partition, stat.file_id) for stat in write.metadata.stats}
    met = sorted(groups & set(write.planned))
    if met:
        raise RefusedError(
            f"a pending plan covers {met[0][0]}/{met[0][1]}, which {time} wrote; run that plan or roll it back first"
        )
    if write.metadata.is_compacted:
        _check_compaction(write, groups)
    else:
        _check_no_later_write(write, groups)
        _check_slices_below(write)
    writing = next(iter(write.timeline.pending_writes), None)
    if writing is not None:
        # It builds on what it has read, but may not have created a file that shows this.
        raise BusyError(
            f"a {writing.action} is pending at {writing.requested_time} and may build on what {time} wrote; "
            "try again when it has completed, or roll it back first if its writer is dead"
        )


def built_on(commits: Mapping[str, CommitMetadata], candidates: Collection[str]) -> dict[str, str]:
    """Which completed write built on a base file of each of these instants, as text, by instant."""
    evidence: dict[str, str] = {}
    for time, commit in commits.items():
        for stat in commit.stats:
            below = BaseFileName.parse(stat.base_file) if stat.base_file else None
            is_base = BaseFileName.parse(stat.path.rpartition("/")[2]) is not None
            instant = below.instant if below is not None else stat.prev_commit if is_base else None
            if instant is not None and instant in candidates and instant != time:
                place = stat.partition or "."
                evidence.setdefault(instant, f"the completed write {time} built on its base file in {place}")
    return evidence


def _check_no_later_write(write: UndoneWrite, groups: set[FileGroup]) -> None:
    own = _end(write.instant)
    for later in write.timeline.writes:
        if later.requested_time == write.instant.requested_time or _end(later) < own:
            continue
        for stat in write.commits[later.requested_time].stats:
            if (stat.partition, stat.file_id) in groups:
                raise RefusedError(
                    f"{later.requested_time} wrote into {stat.partition}/{stat.file_id} after "
                    f"{write.instant.requested_time}, or merged its records into a base file; restore to a savepoint "
                    "instead"
                )


def _check_slices_below(write: UndoneWrite) -> None:
    """A base file also contains the rows of the slice below it, which cleaning may have removed."""
    present = {(file.partition, name.file_id, name.instant) for file in write.listing if (name := file.parsed)}
    for stat in write.metadata.stats:
        is_base = BaseFileName.parse(stat.path.rpartition("/")[2]) is not None
        if is_base and stat.has_slice_below and (stat.partition, stat.file_id, stat.prev_commit) not in present:
            raise RefusedError(
                f"{write.instant.requested_time} cannot be undone: the slice of {stat.prev_commit} below {stat.path} is "
                "gone, and only this file holds its rows; write the rows that should replace it"
            )


def _check_compaction(write: UndoneWrite, groups: set[FileGroup]) -> None:
    time = write.instant.requested_time
    present = {file.path for file in write.listing}
    missing = [path for path in write.merged_paths or () if path not in present]
    if write.merged_paths is None or missing:
        what = missing[0] if missing else "its plan"
        raise RefusedError(
            f"the compaction at {time} cannot be undone: {what} no longer exists, and only the compaction's "
            "result has the rows"
        )
    own = {stat.path for stat in write.metadata.stats}
    for file in write.listing:
        log = LogFileName.parse(file.name)
        base = BaseFileName.parse(file.name)
        name = log or base
        if name is None or (file.partition, name.file_id) not in groups or file.path in own:
            continue
        is_in_its_slice = (
            log is not None and not log.suffix and not write.layout.names_logs_by_write and log.instant == time
        )
        if is_in_its_slice or (base is not None and base.instant > time and write.timeline.is_completed(base.instant)):
            raise RefusedError(
                f"{file.path} was written on top of the compaction at {time} and would be lost with it; restore "
                "to a savepoint instead"
            )


def _end(instant: Instant) -> str:
    return instant.completion_time or instant.requested_time


def _log_name(file: DataFile) -> LogFileName:
    name = LogFileName.parse(file.name)
    assert name is not None, f"{file.path} is not a log file"
    return name
