"""Checks of the listing: no file is missing, and no file is without a writer."""

from collections.abc import Iterator, Sequence

from eventide_core.action.verification.facts import TableFacts
from eventide_core.action.verification.lost_completions import lost_completions
from eventide_core.action.verification.result import Finding, Observation, Remark, Unchecked, check, restore_cure
from eventide_core.cure import Cure
from eventide_core.errors import counted
from eventide_core.table.files.file_name import BaseFileName, LogFileName
from eventide_core.table.files.table_path import PARTITION_MARK
from eventide_core.table.timeline.contents.commit_metadata import WriteStat
from eventide_core.table.timeline.contents.plans import CompactionPlan
from eventide_core.table.timeline.file_system_view import DataFile

_LIST_KEYS = f"{Cure.lost_keys()} lists the keys, where something records them"
_MOVE_OUT = "move it out of the table, and keep it until nobody misses its rows"
_RESTORE_HISTORY = "restore the file from a copy; without it, only queries of earlier states lose rows, and none of now"


@check("file-slices", "I9", "base files and log files form file slices, and no slice has two base files")
def check_file_slices(facts: TableFacts) -> Iterator[Observation]:
    """Base and log files make up file slices, in directories that are marked as partitions."""
    if facts.view_problem is not None:
        yield Finding("", facts.view_problem, "repair what it names; until then, the slices cannot be checked")
    for path, named in sorted(_rivals(facts).items()):
        yield Finding(
            path,
            f"is beside {named}, which the commit names: Hudi reads the one that it lists last",
            f"when no engine runs that commit anymore, {Cure.repair()} moves it to the backup, which loses nothing",
        )
    for path in sorted(facts.unmarked):
        is_own = path in facts.committed or path in facts.archived.files
        cure = f"{Cure.repair()} writes it again, which loses nothing" if is_own else _MOVE_OUT
        yield Finding(path, f"is in a directory without {PARTITION_MARK}: readers skip it", cure)
    yield from _slices_of_other_times(facts)


def _slices_of_other_times(facts: TableFacts) -> Iterator[Remark]:
    """Version 6: Hudi 1.x takes the modification time of a completed file for the completion time of its write.

    So it finds log files in the slice that was the latest at that time.
    """
    logs = [
        one.log_files[0].path
        for slices in (() if facts.view is None else facts.view.slices.values())
        for one in slices
        if one.log_files
        and any(
            later.base_file is not None
            and one.base_instant < later.base_instant <= facts.put_at.get(one.base_instant, "")
            for later in slices
        )
    ]
    if logs:
        slices = counted(len(logs), "slice")
        yield Remark(
            f"Hudi 1.x merges the log files of {slices}, such as {logs[0]}, into later slices, and may lose rows: it takes "
            "the modification times of the timeline's files for completion times, and they are too late, as in a copy "
            "without times; eventide reads the right rows. Copy the table again with its times, or upgraded to version 8"
        )


def _rivals(facts: TableFacts) -> dict[str, str]:
    """Base files beside the one of the same file group and instant that a commit names, and that one."""
    named: dict[tuple[str, str, str], str] = {}
    strays: dict[str, tuple[str, str, str]] = {}
    for file in facts.data_files:
        name = BaseFileName.parse(file.name)
        if name is not None:
            place = (file.partition, name.file_id, name.instant)
            if file.path in facts.committed:
                named[place] = file.path
            else:
                strays[file.path] = place
    return {path: named[place] for path, place in strays.items() if place in named}


@check(
    "committed-files",
    "I10",
    "every file that a completed write put into a live slice exists, with the size that was written",
)
def check_committed_files(facts: TableFacts) -> Iterator[Observation]:
    if facts.view is None:
        yield Unchecked("the file slices are not known")
        return
    for path, (time, stat) in sorted(facts.missing.items()):
        lost = _lost_with(facts.committed.get(path, ((time, stat),)))
        problem = f"is missing: the commit {time} wrote it, and its file slice is still in use; {lost}"
        yield Finding(path, problem, f"{restore_cure(facts, path)}; {_LIST_KEYS}")
    for path, (time, _) in sorted(facts.missing_history.items()):
        problem = f"is missing: the commit {time} wrote it, and no clean has removed it"
        yield Finding(path, problem, _RESTORE_HISTORY)
    for file in facts.data_files:
        if file.path in facts.unmarked or file.link_target is not None:
            continue
        if file.path in facts.archived.left_overs or facts.left_overs.get(file.path) in facts.sizes:
            continue  # compared with the log file that it is a copy of
        stats = facts.committed.get(file.path, ())
        # On version 6 a log file may have grown since: others append, and write command blocks. An upgrade keeps its name.
        may_grow = LogFileName.parse(file.name) is not None and not (stats and facts.layout.names_logs_by_write)
        if not stats and file.path in facts.archived.files:
            write, stat = facts.archived.files[file.path]
            stats = ((write.requested_time, stat),)
        wanted = max((stat.file_size_bytes for _, stat in stats), default=file.size)
        if file.size < wanted or (file.size > wanted and not may_grow):
            yield Finding(
                file.path,
                f"has {file.size} bytes, but {wanted} by the commit {stats[-1][0]}",
                restore_cure(facts, file.path),
            )


def _lost_with(stats: Sequence[tuple[str, WriteStat]]) -> str:
    """Which records were in a lost file, as the commits that wrote it state."""
    times = ", ".join(sorted({time for time, _ in stats}))
    if BaseFileName.parse(stats[0][1].path.rpartition("/")[2]) is not None:
        rows = max((stat.num_writes for _, stat in stats), default=0)
        return f"lost with it: {counted(rows, 'record')}, the whole slice as of {times}, of that commit and of earlier ones"
    records = counted(sum(stat.num_writes for _, stat in stats), "record")
    deletes = counted(sum(stat.num_deletes for _, stat in stats), "delete")
    return f"lost with it: {records} and {deletes} of {times}"


@check("savepoints", "I7", "every file that a savepoint keeps exists")
def check_savepoints(facts: TableFacts) -> Iterator[Observation]:
    for time, paths in sorted(facts.removals.saved.items()):
        for path in sorted(paths - facts.sizes.keys()):
            cure = (
                "restore the file; or delete the savepoint, which gives up the state of that time: "
                f"{Cure.delete_savepoint(time)}"
            )
            yield Finding(path, f"is missing, but the savepoint at {time} keeps it", cure)


@check("orphan-files", "I6", "every base file and log file belongs to a completed or pending write")
def check_orphans(facts: TableFacts) -> Iterator[Observation]:
    """Each base and log file is named by a write that completed, or belongs to one that is under way.

    Version 6 names its log files by their slice, and rolls back by command blocks. The writers of such a log file, also on
    an upgraded table, are the instants in its blocks. A log file without a block that counts is harmless.
    """
    if facts.view is None or facts.unreadable:
        yield Unchecked("a part of the timeline could not be read")
        return
    saved = {path for paths in facts.removals.saved.values() for path in paths}
    known = (
        facts.committed.keys()
        | facts.archived.files.keys()
        | facts.removals.pending
        | saved
        | _planned(facts)
        | _rivals(facts).keys()
        | facts.archived.returned.keys()
    )
    lost = lost_completions(facts)
    for path, time in sorted(facts.archived.returned.items()):
        problem = f"is there again: the archived write at {time} replaced its file group; readers may show its rows"
        yield Finding(path, problem, _MOVE_OUT)
    for file in facts.data_files:
        if file.path in known or (file.parsed is not None and file.parsed.instant in lost):
            continue  # the check of the timeline reports a lost write in more detail
        log = LogFileName.parse(file.name)
        is_written = log is not None and (facts.timeline.find(log.instant) or facts.timeline.is_archived(log.instant))
        if log is not None and log.suffix and is_written:
            continue  # a change log, in which no reader looks for records
        if log is not None and facts.is_named_by_its_slice(file):
            yield from _orphaned_blocks(facts, file, log)
        else:
            yield from _orphan(facts, file, "" if file.parsed is None else file.parsed.instant)


def _planned(facts: TableFacts) -> set[str]:
    """The files that pending compactions of eventide make."""
    plans = [p for time, p in facts.plans.items() if time not in facts.commits and isinstance(p, CompactionPlan)]
    return {op.path_of(name) for p in plans for op in p.operations for name in (*op.new_log_names, op.new_base_name)}


def _orphan(facts: TableFacts, file: DataFile, instant: str) -> Iterator[Observation]:
    write = facts.timeline.find(instant) or facts.later.find(instant)
    if write is not None and (not write.is_completed or facts.timeline.find(instant) != write):
        return  # being written now, or during the listing
    if instant in facts.archived.predating_archive:
        yield _of_unknown_write(file, instant)
        return
    if instant in facts.archived.missing_from_archive:
        yield _of_forgotten_write(file, instant)
        return
    cure = _MOVE_OUT
    if write is not None or facts.timeline.is_archived(instant):
        yield Finding(file.path, f"is not named by the commit {instant}, but readers treat it as a part of it", cure)
    else:
        problem = f"belongs to no write: there is no instant {instant} on the timeline"
        yield Finding(
            file.path,
            problem,
            f"{Cure.rollback(instant)} if it was a compaction; otherwise move it out of the table, and keep it "
            "until you know that no write of that instant completed",
        )


def _of_unknown_write(file: DataFile, instant: str) -> Remark:
    return Remark(
        f"{file.path} is of {instant}, which is older than the archived timeline: nothing records what it wrote"
    )


def _of_forgotten_write(file: DataFile, instant: str) -> Finding:
    """Either the instant was rolled back, or the archived timeline has lost it: never advise to remove the file."""
    return Finding(
        file.path,
        f"has records of {instant}, which is older than the active timeline and missing in the archived one",
        "leave it if files of the archived timeline may be lost: then its records are good, and readers show them; if a "
        "rollback of that instant left it behind, move it out of the table and keep it",
    )


def _orphaned_blocks(facts: TableFacts, file: DataFile, log: LogFileName) -> Iterator[Observation]:
    scan = facts.log_scans.get(file.path)
    if scan is None or scan.problem is not None:
        yield Remark(f"{file.path} is named by no commit, and its blocks could not be read")
        return
    group = (file.path.rpartition("/")[0], log.file_id)
    if log.instant in facts.archived.predating_archive:
        yield _of_unknown_write(file, log.instant)
        return
    if unknown := sorted(scan.instants & facts.archived.predating_archive):
        yield _of_unknown_write(file, unknown[0])
    for instant in sorted(scan.instants - facts.archived.predating_archive):
        # After archival, a rolled-back write looks like a completed one, except for its command block.
        if instant in facts.archived.missing_from_archive and (group, instant) not in facts.rolled_back:
            yield _of_forgotten_write(file, instant)
            return
        if facts.blocks.accepts(instant) and (group, instant) not in facts.rolled_back:
            problem = f"holds records of {instant} under the slice {log.instant}, but no commit names the file"
            cure = f"{Cure.rollback(log.instant)} removes it if a compaction was rolled back; otherwise, {_MOVE_OUT}"
            yield Finding(file.path, problem, cure)
            return
