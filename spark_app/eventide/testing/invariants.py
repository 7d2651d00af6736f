"""The invariants I1 to I14 of a merge-on-read table under partial compaction, each with a check and a counterexample.

`check_invariants` checks all of them at one moment of a table. The state machine, the crash enumeration, and the
schedules call it and pass what they know of that moment. A check without the input that it needs passes. A failed check
raises AssertionError with its number. The oracle knows what was committed and compacted; it never asks eventide.
"""

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from eventide.testing.inspection.checks import (
    avro_records,
    check_each_version_once,
    check_files_untouched,
    check_freshness,
    check_incremental,
    check_links_whole,
    check_nothing_left,
    check_order_of_instants,
    check_plan_is_safe_for_others,
    check_read_optimized,
    check_readers_alike,
    check_single_completion,
    check_slices_by_modification_time,
    check_snapshot,
    check_time_travel,
    commits_above,
    exact_threshold,
    known_commits,
    merged_commits,
)
from eventide.testing.inspection.observation import BlockInstants, Files, Seen
from eventide.testing.oracle import Oracle, Order
from eventide_adapters.storage.faulty import Operation
from eventide_core.table.timeline.contents.plans import CompactionPlan

if TYPE_CHECKING:
    from eventide_core.service.common.state.table import TableState

_DATA_FILE = re.compile(r".*_(\d{17})(?:\.parquet|\.log\..*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection:
    """One moment of a table, and the known facts about it.

    `untouched` are files that existed before and that nobody had permission to change. `plan` is the pending plan, or,
    if `is_completed`, the one that completed last. `undone_to` are the files from before an action that has just been
    undone. `rolled_back` are the instants of all actions that were undone. `cut_ms` is the T that was
    published by a compaction that nobody has undone.
    """

    files: Files
    state: "TableState"
    seen: Seen
    oracle: Oracle
    blocks: BlockInstants = field(default_factory=BlockInstants)
    plan: CompactionPlan | None = None
    is_completed: bool = False
    reader_orders: Collection[Order] = ()
    untouched: Files = field(default_factory=dict[str, Any])
    undone_to: Files | None = None
    rolled_back: Collection[str] = ()
    cut_ms: int | None = None
    operations: Sequence[Operation] = ()


@dataclass(frozen=True, slots=True)
class Invariant:
    """An invariant with its number and a shortest history in which a table was seen to break it."""

    number: str
    promise: str
    counterexample: str
    check: Callable[[Inspection], None]


def check_invariants(inspection: Inspection) -> None:
    """Checks every invariant at one moment of a table."""
    for invariant in INVARIANTS:
        try:
            invariant.check(inspection)
        except AssertionError as broken:
            raise AssertionError(f"{invariant.number}, {invariant.promise}: {broken}") from broken


def _freshness_is_true(it: Inspection) -> None:
    check_read_optimized(it.seen, it.oracle.read_optimized())
    check_freshness(it.seen, it.oracle)


def _links(it: Inspection) -> None:
    for path, file in it.files.items():
        if file.link_target is not None:
            assert file.link_target in it.files, f"{path} leads to {file.link_target}, which is gone"
            assert it.files[file.link_target].link_target is None, f"{path} leads to another link"
    if it.plan is not None:
        check_links_whole(it.files, it.plan, is_completed=it.is_completed)


def _rolled_back(it: Inspection) -> None:
    for path in it.files:
        match = _DATA_FILE.fullmatch(path)
        bears = match is not None and not path.startswith(".hoodie/") and match[1] in it.rolled_back
        assert not bears, f"{path} is left of what was rolled back"
    if it.undone_to is not None:
        check_nothing_left(it.files, it.undone_to)


def _needed(it: Inspection) -> None:
    for path in _needed_paths(it):
        assert path in it.files, f"{path} is gone, which something needs"


def _needed_paths(it: Inspection) -> Iterator[str]:
    if it.plan is not None and not it.is_completed:
        for op in it.plan.operations:
            yield from (log.path for log in (*op.compacted, *(left.log_file for left in op.left_overs)))
            yield from (op.base_path,) if op.base_path is not None else ()
    for path, file in it.files.items():
        if path.endswith(".savepoint") and file.data:
            (document,) = avro_records(file.data)
            for partition in document["partitionMetadata"].values():
                for name in partition["savepointDataFile"]:
                    yield f"{partition['partitionPath']}/{name}"


def _never_falls(it: Inspection) -> None:
    now_ms = it.seen.freshness.cut_ms
    if it.cut_ms is not None:
        assert now_ms is not None, "the published cut is gone"
        assert now_ms >= it.cut_ms, f"the cut fell from {it.cut_ms} to {now_ms}"


def _once(it: Inspection) -> None:
    is_open = it.plan is not None and not it.is_completed
    if is_open and not it.state.config.layout.names_logs_by_write:
        return  # in version 6, readers merge a pending slice with the one below it: they may see a left-over twice
    check_each_version_once(it.state, it.files, it.oracle, it.blocks)


def _other_readers(it: Inspection) -> None:
    check_slices_by_modification_time(it.state)
    check_order_of_instants(it.oracle, it.reader_orders)
    if it.plan is not None and not it.is_completed:
        # Later writes are merged on top of the new base file, as after Hudi's own compaction.
        merged = merged_commits(it.plan, it.oracle, it.files, it.blocks)
        before = it.oracle.as_planned(known_commits(it.plan, merged, it.oracle, it.files, it.blocks))
        after = before.copy()
        above = commits_above(it.plan, it.oracle, it.files, it.blocks)
        after.compact(it.plan.cut_ms, merged, exact_threshold(it.plan), above=above)
        check_readers_alike(before, after, merged, it.reader_orders)


def _plan_for_others(it: Inspection) -> None:
    if it.plan is not None:
        path = f"{it.state.config.timeline_path}/{it.plan.instant}.compaction.requested"
        if path in it.files:  # it may be archived
            check_plan_is_safe_for_others(it.files, it.plan, path)


def _inside(it: Inspection) -> None:
    for operation in it.operations:
        parts = operation.path.split("/")
        leads_out = operation.path.startswith("/") or ".." in parts or "\\" in operation.path or ":" in parts[0]
        assert not leads_out, f"{operation} leads out of the table"


INVARIANTS = (
    Invariant(
        "I1",
        "a snapshot shows the fold of what was committed, before, during and after every service",
        "log files [a@1, delete b@3], [b@2]; a compaction before 2 merges the first one and forgets its delete: b is back",
        lambda it: check_snapshot(it.seen, it.oracle.snapshot()),
    ),
    Invariant(
        "I2",
        "what is published as fresh is in the base files",
        "a log file whose minimum is T - 1 ms is left over by a wrong comparison; or its event time is null",
        _freshness_is_true,
    ),
    Invariant(
        "I3",
        "an incremental query shows each current change of its span, and nothing else",
        "the RFC's readers skip copies; once the original is cleaned, no incremental query shows its change",
        lambda it: check_incremental(it.seen, it.oracle),
    ),
    Invariant(
        "I4",
        "as of a commit, the table shows what it showed then",
        "the RFC's time travel skips links: as of the compaction's own instant, the left-overs are lost",
        lambda it: check_time_travel(it.seen, it.oracle),
    ),
    Invariant(
        "I5",
        "every link points to a whole file of the table",
        "a compaction of two log files, then a clean that ignores the targets of links: the slice is unreadable",
        _links,
    ),
    Invariant(
        "I6",
        "a rollback restores the earlier state, and removes nothing of a writer",
        "a crash after the first left-over, then a rollback that removes only base files: the copy is read twice",
        _rolled_back,
    ),
    Invariant(
        "I7",
        "every file that a pending plan or a savepoint needs exists",
        "a clean between planning and execution removes the old base: the plan can never run",
        _needed,
    ),
    Invariant(
        "I8",
        "the published cut falls only if its compaction is undone",
        "two plans at once: the one with the lower T completes last",
        _never_falls,
    ),
    Invariant(
        "I9",
        "no file is overwritten, and only the process that made a file removes it",
        "a left-over is named version 1 of the new slice while a writer appends version 1: one of them is lost",
        lambda it: check_files_untouched(it.files, it.untouched),
    ),
    Invariant(
        "I10",
        "each committed version is in the base file or in exactly one visible log file",
        "a write that completes between plan and commit is in neither slice",
        _once,
    ),
    Invariant(
        "I11",
        "no engine's reader sees a difference after the compaction, whatever its merge rules",
        "Hudi 0.x: a log file beats the base file whatever its event time, so [k@2] merged without [k@1] becomes k@1",
        _other_readers,
    ),
    Invariant(
        "I12",
        "an action completes once, however often it is executed",
        "a process wakes after its lease expired, and completes the plan again under another completion time",
        lambda it: check_single_completion(it.files),
    ),
    Invariant(
        "I13",
        "an engine that ignores left-overs runs the plan as a correct compaction",
        "the plan lists only the merged log files: Hudi's executor leaves the others in the old slice, which nobody reads",
        _plan_for_others,
    ),
    Invariant(
        "I14",
        "nothing outside the table is read, written or removed",
        "a plan that names ../other/base.parquet as a file to merge",
        _inside,
    ),
)
