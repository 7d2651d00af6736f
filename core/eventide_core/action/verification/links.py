"""Checks of left-overs: the links and copies by which they stay visible."""

from collections.abc import Iterator

from eventide_core.action.verification.facts import TableFacts
from eventide_core.action.verification.result import Finding, Observation, Remark, Unchecked, check, deep_check
from eventide_core.cure import Cure
from eventide_core.errors import counted
from eventide_core.table.files.file_slice import FileSlice
from eventide_core.table.timeline.contents.plans import CompactionPlan, LeftOver, LinkMode, PlannedOperation


@check(
    "links",
    "I5, I14",
    "each link points directly to the file of its file group that its commit names, inside the table",
)
def check_links(facts: TableFacts) -> Iterator[Observation]:
    for path, problem in sorted(facts.misplaced.items()):
        yield Finding(path, problem, "point it to its left-over, or replace it with a copy of that; this loses nothing")


_CURE = (
    f"find out which of the two is damaged, and copy the other over it; {Cure.repair()} does so where it can find out"
)


@check("left-over-copies", "I5", "each copy of a left-over has the size of the original log file")
def check_copies(facts: TableFacts) -> Iterator[Observation]:
    """Each copy is as large as the log file it is of, as long as that exists."""
    for path, source in sorted(facts.left_overs.items()):
        size, original = facts.sizes.get(path), facts.sizes.get(source)
        if size is None or original is None or size == original:
            continue
        if not any(file.path == path and file.link_target is not None for file in facts.listing):
            problem = f"has {size} bytes, but the log file {source} that it copies has {original}"
            yield Finding(path, problem, _CURE)


@deep_check(
    "left-over-bytes", "I5", "each copy of a left-over has the bytes of the original log file", is_of_slices=False
)
def check_copied_bytes(facts: TableFacts) -> Iterator[Observation]:
    """Each copy holds what the log file holds that it is of, byte by byte, as long as that exists."""
    assert facts.records is not None
    for path, source in sorted(facts.records.copies.items()):
        yield Finding(path, f"has other bytes than the log file {source} that it copies", _CURE)
    gone = len(facts.left_overs) - facts.records.compared_copies
    if gone:
        yield Remark(f"did not compare {counted(gone, 'left-over')}: links, and copies of log files that were cleaned")


@check("left-overs", "S1", "left-overs are visible in the new slice, before everything written since")
def check_left_overs(facts: TableFacts) -> Iterator[Observation]:
    if facts.view is None:
        yield Unchecked("the file slices are not known")
        return
    for time, plan in sorted(facts.compactions.items()):
        for op in plan.operations:
            file_slice = facts.slice_at((op.partition, op.file_id), time)
            if file_slice is None or file_slice.base_file is None or file_slice.file_group in facts.damaged_groups:
                continue  # cleaned since, or missing, which other checks report
            left = [path for o in op.left_overs if (path := _place(facts, plan, op, o)) is not None]
            visible = [log.path for log in file_slice.log_files]
            moved = _moved_on(facts, file_slice) & {o.log_file.path for o in op.left_overs}
            for path in left:
                if path in facts.sizes and path not in visible and path not in moved:
                    problem = f"was left over by the compaction at {time}, but is not in the compaction's new slice"
                    yield Finding(path, problem, "restore the name that the commit gives it")
            first = [path for path in visible if path in left]
            carried = [path for name in (op.carried_name,) if name and (path := op.path_of(name)) in facts.sizes]
            ahead = [path for path in visible[: len(first) + len(carried)] if path not in (*left, *carried)]
            if ahead or first != [path for path in left if path in first]:
                place = ahead[0] if ahead else first[0]
                problem = f"sorts differently from the left-overs of the compaction at {time}"
                yield Finding(
                    place, problem, "compact the table in full, which loses nothing; then check which record won"
                )


def _moved_on(facts: TableFacts, file_slice: FileSlice) -> set[str]:
    """The log files of the later slices of its file group.

    A log file that keeps its name is in the last slice that begins before it completed. So a left-over moves on with a
    compaction whose quiet moment is later, but still before it.
    """
    assert facts.view is not None, "the slice is of this view"
    slices = facts.view.slices.get(file_slice.file_group, ())
    return {log.path for later in slices if later.base_instant > file_slice.base_instant for log in later.log_files}


def _place(facts: TableFacts, plan: CompactionPlan, op: PlannedOperation, left: LeftOver) -> str | None:
    """The path of a left-over in the new slice; None if no reader looks for it.

    Version 6 knows none that keeps its name: such a plan is from before a downgrade, which compacts all slices in full.
    """
    if plan.link_mode is not LinkMode.PREFIX and left.new_name is not None:
        return op.path_of(left.new_name)
    return left.log_file.path if facts.layout.names_logs_by_write else None
