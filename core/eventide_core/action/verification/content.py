"""Checks of file headers and footers, and of Hudi's own index of files."""

from collections import Counter
from collections.abc import Collection, Iterator

from eventide_core.action.verification.facts import TableFacts
from eventide_core.action.verification.lost_completions import lost_completions
from eventide_core.action.verification.parts import LogScan
from eventide_core.action.verification.result import Finding, Observation, Remark, Unchecked, check, restore_cure
from eventide_core.cure import Cure
from eventide_core.table.files.file_slice import LogFile
from eventide_core.table.files.table_path import METADATA_DIRECTORY
from eventide_core.table.settings.metadata_table import REBUILD_CURE
from eventide_core.table.timeline.instant import is_instant_time


@check("log-blocks", "I10", "every block that a completed write added to a log file is whole, and names that write")
def check_log_blocks(facts: TableFacts) -> Iterator[Observation]:
    """Checks log files.

    1. Each log file of a slice can be read to its end, except for what a write left that was interrupted.
    2. It holds a block of each completed write that put records into it, and no block of an unknown write.
    """
    if facts.view is None:
        yield Unchecked("the file slices are not known")
        return
    lost = lost_completions(facts)
    logs = [log for slices in facts.view.slices.values() for file_slice in slices for log in file_slice.log_files]
    for log in logs:
        scan = facts.log_scans.get(log.path)
        if scan is None:
            continue  # a link that leads nowhere
        if scan.problem is not None:
            yield Finding(log.path, scan.problem, restore_cure(facts, log.path))
        for block in scan.blocks:
            if facts.is_lost(log.path, block):
                whose = f"of {block.instant}" if block.instant is not None else "that doesn't name its write"
                problem = f"has a torn block {whose} at byte {block.offset}: readers skip its records"
                yield Finding(log.path, problem, restore_cure(facts, log.path))
        if scan.problem is None and log.path not in facts.misplaced:
            yield from _wrong_instants(facts, log, scan, lost)


def _wrong_instants(facts: TableFacts, log: LogFile, scan: LogScan, lost: Collection[str]) -> Iterator[Observation]:
    """Blocks whose header names the wrong write: readers skip their records, or attribute them to another write."""
    writers = facts.log_writers.get(log.path, {})
    counts = Counter(block.instant for block in scan.blocks if not block.is_command)
    for writer, least in sorted(writers.items()):
        if counts[writer] < least:
            yield Finding(
                log.path,
                f"has {counts[writer]} blocks of {writer}, but that commit wrote {least}",
                restore_cure(facts, log.path),
            )
    of_name = log.name.instant
    layout = facts.layout
    is_of_one_write = layout.names_logs_by_write and of_name in writers
    is_left_over = layout.may_be_left_over(log.name) or _may_be_left_over(facts, log)
    is_of_slice = not layout.names_logs_by_write and not is_left_over
    group = (log.path.rpartition("/")[0], log.name.file_id)
    if log.path in facts.doubled:
        size = facts.doubled[log.path]
        problem = (
            f"has blocks of completed writes behind the {size} bytes that these left: its content may be there twice"
        )
        cure = f"cut the file to {size} bytes if what follows repeats them, as {Cure.repair()} does; this loses nothing"
        yield Finding(log.path, problem, cure)
    for block in scan.blocks:
        instant = block.instant
        if block.is_torn or block.is_command or instant is None or (group, instant) in facts.rolled_back:
            continue
        place = f"has a block of {instant!r} at byte {block.offset}"
        if not is_instant_time(instant):
            wrong = "which is not an instant: readers refuse the file"
        elif not facts.knows(instant) and instant not in lost:
            wrong = "but no write on the timeline has this instant"
        elif is_of_one_write and instant not in writers:
            wrong = f"but the file is of {of_name}"
        elif is_of_slice and instant < of_name and instant not in writers:
            wrong = f"but its slice began later, at {of_name}"
        else:
            continue
        yield Finding(log.path, f"{place}, {wrong}", restore_cure(facts, log.path))


def _may_be_left_over(facts: TableFacts, log: LogFile) -> bool:
    """On version 6, the name states the slice, and nothing in a slice is older than it, except left-overs and open writes.

    Those from before a downgrade are named as any log file, and the compaction that made them may be archived, or older than
    the archived timeline.
    """
    return (
        log.path in facts.left_overs
        or log.path in facts.archived.left_overs
        or log.name.instant in facts.archived.predating_archive
    )


@check("base-files", "I10", "every base file can be opened, and has as many records as its commit says")
def check_base_files(facts: TableFacts) -> Iterator[Observation]:
    for path, why in sorted(facts.bases.problems.items()):
        yield Finding(path, why, restore_cure(facts, path))
    for path, rows in sorted(facts.bases.row_counts.items()):
        for time, stat in facts.committed.get(path, ()):
            if stat.num_writes != rows:
                yield Finding(
                    path, f"has {rows} records, but {stat.num_writes} by the commit {time}", restore_cure(facts, path)
                )


@check("metadata-table", "I11", "Hudi's metadata table lists exactly the committed files that exist")
def check_metadata_table(facts: TableFacts) -> Iterator[Observation]:
    """Hudi's metadata table lists the committed files that exist, with their sizes, and no others."""
    if not facts.index.partitions:
        yield Unchecked("the table has no metadata table")
        return
    if facts.index.problem is not None:
        yield Finding(METADATA_DIRECTORY, facts.index.problem, REBUILD_CURE)
        return
    if facts.index.late_compaction is not None:
        yield Remark(facts.index.late_compaction)
    if facts.index.files is None:
        yield Unchecked("Hudi is building the listing of the metadata table, so readers list the directories instead")
        return
    known = facts.committed.keys() | facts.archived.files.keys() | facts.index.files.keys()
    there = {f.path: f.size for f in facts.data_files if f.path in known}
    for path in sorted(there.keys() - facts.index.files.keys()):
        yield Finding(
            path, "is not in the listing of Hudi's metadata table: readers that use it don't see the file", REBUILD_CURE
        )
    for path in sorted(facts.index.files.keys() - there.keys() - facts.removals.pending):
        cure = restore_cure(facts, path) if path in facts.missing else REBUILD_CURE
        yield Finding(path, "is in the listing of Hudi's metadata table, but not in its directory", cure)
    # Hudi 0.x lists the log file of a write that it rolled back with another size, and reads nothing of it.
    for path, size in sorted(item for item in facts.index.files.items() if item[0] in facts.committed):
        if there.get(path, size) != size:
            problem = f"has {there[path]} bytes, but {size} in the listing of Hudi's metadata table"
            yield Finding(path, problem, REBUILD_CURE)


@check("abandoned-files", "I6", "files of dead writers are in no reader's way; what is left is reported")
def check_markers_and_heartbeats(facts: TableFacts) -> Iterator[Observation]:
    yield from (Remark(text) for text in facts.markers_and_heartbeats)
