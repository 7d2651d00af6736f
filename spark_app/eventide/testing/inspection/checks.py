"""Checks of single invariants, on files, on query results, and against the oracle.

testing/invariants.py applies all of them to one moment. Each check raises AssertionError, which names the violation.
"""

import io
import re
from collections import Counter
from collections.abc import Collection, Mapping
from itertools import chain
from typing import TYPE_CHECKING, Any

import fastavro

from eventide.testing.inspection.observation import (
    HEARTBEATS_PREFIX,
    LOCK_PREFIX,
    MARKERS_PREFIX,
    OUTCOMES_PREFIX,
    BlockInstants,
    Files,
    Seen,
)
from eventide.testing.oracle import Oracle, Order, Rows
from eventide_core.table.timeline.contents.plans import CompactionPlan, CutMode, LeftOver, LinkMode
from eventide_core.table.timeline.instant import instant_time

if TYPE_CHECKING:
    from eventide_core.service.common.state.table import TableState

_COMPLETED = re.compile(r"(\d{17})(?:_\d{17})?\.([a-z]+)")


def check_snapshot(seen: Seen, expected: Rows) -> None:
    """I1: no step of a service changes the result of a snapshot query."""
    _same(seen.snapshot, expected, "the snapshot")


def check_read_optimized(seen: Seen, expected: Rows) -> None:
    """I2: the read-optimized view is the one before the compaction until it completes, and then the one after it."""
    _same(seen.read_optimized, expected, "the read-optimized view")


def check_freshness(seen: Seen, oracle: Oracle) -> None:
    """I2: cut and watermark agree with the log files that are not in a base file."""
    assert seen.freshness == oracle.freshness(), f"freshness {seen.freshness}, but the logs say {oracle.freshness()}"


def check_time_travel(seen: Seen, oracle: Oracle) -> None:
    """I4: time travel to a commit returns what a snapshot returned then."""
    for instant, shown in seen.as_of.items():
        _same(shown, oracle.as_of[instant], f"the table as of {instant}")


def check_incremental(seen: Seen, oracle: Oracle) -> None:
    """I3: an incremental query loses no current change of its span, and returns no wrong one.

    At most, it returns the rows that the uncompacted table would return, and those that were current at the span's end: a
    compaction forgets deletes, and by the rules of Hudi 0.x, a late log file wins over a base file. Two kinds of rows may
    be missing: a late version that lost, and a row that was deleted at the span's end and that exists again because of a
    later delete, which loses to it.
    """
    for instants, rows in seen.incremental.items():
        at_its_end = oracle.as_of[max(instants & oracle.as_of.keys())] if oracle.as_of else frozenset()
        most = oracle.incremental_most(instants) | {row for row in at_its_end if row[-1] in instants}
        least = oracle.incremental_least(instants) & at_its_end
        assert least <= rows, f"incremental over {sorted(instants)} lost {sorted(least - rows)}"
        assert rows <= most, f"incremental over {sorted(instants)} made up {sorted(rows - most)}"


def check_links_whole(files: Files, plan: CompactionPlan, *, is_completed: bool) -> None:
    """I5: each left-over of the new slice has the complete content of its source. After completion, none is missing."""
    for op in plan.operations:
        for left in op.left_overs:
            if left.new_name is None:
                continue
            linked = files.get(op.path_of(left.new_name))
            assert linked is not None or not is_completed, f"{left.new_name} is missing"
            if linked is not None and linked.link_target is None:
                source = files.get(left.log_file.path)
                assert source is None or linked.data == _content(files, left.log_file.path), f"{left.new_name} is torn"


def check_nothing_left(files: Files, before: Files) -> None:
    """I6: after a rollback, the table has the files it had before, and a record that the instant is used up.

    The rollback of a completed action is on the timeline, and updates Hudi's metadata table, under a separate instant.
    """
    new = {path for path in files if path not in before and not path.startswith((OUTCOMES_PREFIX, LOCK_PREFIX))}
    rollbacks = {path.rpartition("/")[2].partition(".")[0] for path in new if path.endswith(".rollback.requested")}
    left = {path for path in new if not any(_bears(path, instant) for instant in rollbacks)}
    assert not left, f"a rollback left {sorted(left)}"


def check_files_untouched(files: Files, before: Files) -> None:
    """I9: existing files are unchanged: no name is used twice, nothing is overwritten, no file of others is deleted."""
    for path, file in before.items():
        if path.startswith((LOCK_PREFIX, MARKERS_PREFIX, HEARTBEATS_PREFIX)):  # these are renewed and deleted
            continue
        assert path in files, f"{path} is gone"
        assert files[path].data == file.data, f"{path} was overwritten"


def check_each_version_once(state: "TableState", files: Files, oracle: Oracle, block_instants: BlockInstants) -> None:
    """I10: the visible log files have the blocks of exactly the commits that are in no base file, each in one log file."""
    for file_slice in state.view.latest_slices():
        name = group_name(file_slice.partition, file_slice.file_id, oracle.buckets)
        known = frozenset(oracle.instants)
        logs = [frozenset(block_instants(files, log.path)) & known for log in file_slice.log_files]
        expected = oracle.log_instants(name)
        counting = [instants for instants in logs if instants]
        assert counting == expected, f"{name}: logs of {list(map(sorted, counting))}, not {expected}"


def check_single_completion(files: Files, instant: str | None = None) -> None:
    """I12: a plan completes once, as does every other action."""
    completions: Counter[tuple[str, str]] = Counter()
    for path in files:
        directory, _, name = path.rpartition("/")
        match = _COMPLETED.fullmatch(name)
        if match is not None and directory in (".hoodie", ".hoodie/timeline") and instant in (None, match[1]):
            completions[match[1], match[2]] += 1
    twice = [what for what, times in completions.items() if times > 1]
    assert not twice, f"{twice} completed more than once"


def check_plan_is_safe_for_others(files: Files, plan: CompactionPlan, plan_path: str) -> None:
    """I13: an engine that ignores left-overs finds in the plan all log files for a correct compaction.

    These are the merged log files, and the left-overs that get a new name in the new slice. A left-over without a new name
    is already above the new base file.
    """
    (document,) = avro_records(files[plan_path].data)
    for operation, op in zip(document["operations"] or (), plan.operations, strict=True):
        logs = [*op.compacted, *(left.log_file for left in op.left_overs if left.new_name is not None)]
        assert set(operation["deltaFilePaths"]) == {log.name for log in logs}


def check_plan(plan: CompactionPlan, before: Oracle, after: Oracle, reader_orders: Collection[Order]) -> None:
    """The plan merges everything before T and nothing unnecessary, and no query result changes.

    If other log files of a slice stay, that holds for the reader of each engine: the merged part must not change what the
    reader returns for a key in both parts.
    """
    assert plan.cut_ms is not None, "a plan for T publishes it"
    merged = merged_counts(plan, before.buckets)
    check_split(before, after, merged, plan.cut_ms, reader_orders)
    for name, count in before.log_counts().items():
        is_exact = plan.cut is CutMode.EXACT
        fewest = (before.longest_prefix if is_exact else before.fewest_merged)(name, plan.cut_ms)
        taken = merged.get(name, 0)
        has_some = before.is_waiting(name, plan.cut_ms) if is_exact else fewest > 0
        assert (name in merged) == has_some, f"{name} has something before T: {has_some}; planned: {merged}"
        assert taken in (fewest * has_some, count), f"{taken} logs of {name} are merged, {fewest} lie before T"


def check_split(
    before: Oracle,
    after: Oracle,
    merged: Mapping[str, int],
    cut_ms: int,
    reader_orders: Collection[Order],
    later: Collection[str] = (),
) -> None:
    """I2 and I11 of a plan: it merges everything before T, and no engine's query results change.

    Commits that completed `later` than the plan's instant are excepted.
    """
    assert after.snapshot() == before.snapshot(), "I1, the plan would change the snapshot"
    for name in before.log_counts():
        assert not after.is_waiting(name, cut_ms, later), (
            f"I2, logs of {name} hold records before T that are not merged"
        )
    check_readers_alike(before, after, merged, reader_orders)


def check_readers_alike(
    before: Oracle, after: Oracle, merged: Mapping[str, int], reader_orders: Collection[Order]
) -> None:
    """I11: no engine's query results change by a partial compaction; a full compaction affects them as Hudi's own does."""
    for name, taken in merged.items():
        if taken == before.log_counts()[name]:
            continue
        shared = before.shared_keys(name, taken)
        for order in reader_orders:
            old, new = ({row for row in o.snapshot(order, name) if row[1] in shared} for o in (before, after))
            assert old == new, f"I11, a reader by {order.name} would see {new} instead of {old}"
    check_order_of_instants(after, reader_orders)


def check_order_of_instants(oracle: Oracle, reader_orders: Collection[Order]) -> None:
    """I11: a reader that groups log blocks by instant sees the same as one that merges block by block."""
    for order in reader_orders:
        by_block, by_instant = oracle.snapshot(order), oracle.snapshot(order, by_instant=True)
        assert by_block == by_instant, (
            f"a reader by {order.name} that groups log blocks by instant sees {sorted(by_instant - by_block)} "
            f"instead of {sorted(by_block - by_instant)}"
        )


def check_slices_by_modification_time(state: "TableState") -> None:
    """I11: Hudi 1.x finds each log file of version 6 in the slice that its name states.

    It takes the modification time of a completed file for the completion time, and a log file belongs to the slice that is
    latest at the completion of the instant in its name.
    """
    for file_slice in chain.from_iterable(state.view.slices.values()):
        put_ms = state.timeline.put_ms.get(file_slice.base_instant)
        if put_ms is not None and file_slice.log_files:
            group = state.view.slices[file_slice.file_group]
            bases = (later.base_instant for later in group if later.base_file is not None)
            later = [base for base in bases if file_slice.base_instant < base <= instant_time(put_ms)]
            assert not later, (
                f"Hudi 1.x finds {file_slice.log_files[0].path}, completed at {instant_time(put_ms)}, in {later}"
            )


def merged_counts(plan: CompactionPlan, buckets: int = 1) -> dict[str, int]:
    """The number of log files that a plan merges in each file group."""
    return {group_name(op.partition, op.file_id, buckets): len(op.compacted) for op in plan.operations}


def merged_commits(plan: CompactionPlan, oracle: Oracle, files: Files, blocks: BlockInstants) -> dict[str, int]:
    """The number of log files that a plan merges in each file group, without those that contain only rolled back data."""
    known = frozenset(oracle.instants)
    return {
        group_name(op.partition, op.file_id, oracle.buckets): sum(
            bool(blocks(files, log.path) & known) for log in op.compacted
        )
        for op in plan.operations
    }


def known_commits(
    plan: CompactionPlan, merged: Mapping[str, int], oracle: Oracle, files: Files, blocks: BlockInstants
) -> dict[str, int]:
    """The number of log files in each file group that the plan saw: those it merges (`merged_commits`) and left-overs."""
    seen, known = dict(merged), frozenset(oracle.instants)
    for op in plan.operations:
        left = sum(bool(blocks(files, left.log_file.path) & known) for left in op.left_overs)
        seen[group_name(op.partition, op.file_id, oracle.buckets)] += left
    return seen


def commits_above(
    plan: CompactionPlan, oracle: Oracle, files: Files, blocks: BlockInstants, since: Collection[str] = ()
) -> dict[str, int]:
    """The number of log files in each file group that the plan saw and that completed after its instant.

    `since` are the writes that completed after the plan was first made; the plan has left them over since.
    """
    known = frozenset(oracle.instants)
    if plan.link_mode is LinkMode.PREFIX:
        return {}

    def is_above(left: LeftOver) -> bool:
        instants = blocks(files, left.log_file.path) & known
        return bool(instants) and (left.new_name is None or bool(instants & frozenset(since)))

    return {
        group_name(op.partition, op.file_id, oracle.buckets): sum(map(is_above, op.left_overs))
        for op in plan.operations
    }


def exact_threshold(plan: CompactionPlan) -> int | None:
    """The event time before which records of log files that stay are merged; None if only whole log files are merged."""
    return plan.cut_ms if plan.cut is CutMode.EXACT else None


def group_name(partition: str, file_id: str, buckets: int) -> str:
    """The oracle's name of a file group. The first digits of its ID are its bucket."""
    return partition if buckets == 1 else f"{partition}/{file_id[:8]}"


def _content(files: Files, path: str) -> bytes:
    file = files[path]
    return file.data if file.link_target is None else files[file.link_target].data


def avro_records(data: bytes) -> list[Any]:
    return list(fastavro.reader(io.BytesIO(data)))


def _bears(path: str, instant: str) -> bool:
    """Whether a file belongs to an instant. In a version 6 metadata table, a log file's write token has the time of day."""
    return instant in path or (path.startswith(".hoodie/metadata/") and path.endswith(f"-{instant[8:]}"))


def _same(rows: Rows, expected: Rows, what: str) -> None:
    assert rows == expected, f"{what} lost {sorted(expected - rows)} and shows {sorted(rows - expected)} instead"
