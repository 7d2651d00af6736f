"""What every kind of query shows of a table at one moment, and the named checks that hold it to the oracle.

Each check raises AssertionError and says which promise was broken. The numbers are those of docs/rfc74.md's invariants.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from eventide.bootstrap import Application
from eventide.progress import NoProgress
from eventide.reader import Rows as RowReader
from eventide.testing.oracle import ExpectedFreshness, Oracle, Order, Row, Rows
from eventide_adapters.format.avro_container import read_container
from eventide_adapters.storage.memory import MemoryFile
from eventide_core.table.log_block import read_blocks
from eventide_core.table.plans import CompactionPlan, Cut
from eventide_core.table.slice_read import QueryPlan, SliceRead

if TYPE_CHECKING:
    from eventide_core.service.table import TableState

_COLUMNS = ("_hoodie_partition_path", "key", "ms", "word", "_hoodie_commit_time")
LOCK_PREFIX = ".hoodie/lock"
MARKERS_PREFIX = ".hoodie/.temp/"
OUTCOMES_PREFIX = ".hoodie/.aux/eventide/"

Files = Mapping[str, MemoryFile]


@dataclass(frozen=True, slots=True)
class Seen:
    """What the queries answered. `incremental` is by the instants of the commits asked for."""

    snapshot: Rows
    read_optimized: Rows
    as_of: Mapping[str, Rows]
    incremental: Mapping[frozenset[str], Rows]
    freshness: ExpectedFreshness


class Observer:
    """Asks a table every query. A slice whose files it has read before it knows by heart."""

    def __init__(self) -> None:
        self._known: dict[object, tuple[Row, ...]] = {}

    def look(self, application: Application, instants: Sequence[str]) -> Seen:
        """Time travel goes to each of the instants, incremental queries over each, and over all up to each."""
        queries = application.queries
        state = application.state()
        now = application.freshness.now(state)
        spans: dict[frozenset[str], Rows] = {}
        for last in range(len(instants)):
            for first in {0, last}:
                begin = "0" if first == 0 else _position(state, instants[first - 1])
                plan = queries.incremental(begin, _position(state, instants[last]))
                spans[frozenset(instants[first : last + 1])] = self._rows(application, plan)
        # Without an end, the span takes in the compactions that came after the last commit.
        open_ended = self._rows(application, queries.incremental("0", None))
        return Seen(
            snapshot=self._rows(application, queries.snapshot()),
            read_optimized=self._rows(application, queries.read_optimized()),
            as_of={instant: self._rows(application, queries.as_of(instant)) for instant in instants},
            incremental=spans | {frozenset({*instants, "now"}): open_ended},
            freshness=ExpectedFreshness(now.cut_ms, now.watermark_ms, now.late_records, now.unknown_event_time_records),
        )

    def _rows(self, application: Application, plan: QueryPlan) -> Rows:
        rows = [row for part in plan.slices for row in self._of_slice(application, part, plan)]
        assert len({row[:2] for row in rows}) == len(rows), f"a key is there twice: {sorted(rows)}"
        return frozenset(rows)

    def _of_slice(self, application: Application, part: SliceRead, plan: QueryPlan) -> tuple[Row, ...]:
        paths = [part.base_path] if part.base_path else []
        paths += [path for path, _ in part.log_paths]
        seen = (part, *(application.storage.read(path) for path in paths))
        if seen not in self._known:
            reader = RowReader(replace(plan, slices=(part,)), application.reader, application.engine)
            rows: list[Row] = []
            for batch in reader.to_batches(columns=_COLUMNS):
                rows += zip(*(batch.column(name).to_pylist() for name in _COLUMNS), strict=True)
            self._known[seen] = tuple(rows)
        return self._known[seen]


def check_snapshot(seen: Seen, expected: Rows) -> None:
    """S1: no step of a service changes what a snapshot shows."""
    _same(seen.snapshot, expected, "the snapshot")


def check_read_optimized(seen: Seen, expected: Rows) -> None:
    """I2: the read-optimized view is the one before the compaction until it completes, and then the one after it."""
    _same(seen.read_optimized, expected, "the read-optimized view")


def check_time_travel(seen: Seen, oracle: Oracle) -> None:
    """I4: as of each commit a reader sees what a snapshot showed then."""
    for instant, expected in oracle.as_of.items():
        _same(seen.as_of[instant], expected, f"the table as of {instant}")


def check_incremental(seen: Seen, oracle: Oracle) -> None:
    """I3: no current change of a span is lost, none made up.

    What shows at most is what the uncompacted table would, and what was current at the span's end: a compaction forgets
    deletes, and by the rules of Hudi 0.x a late log beats a base. A late loser may vanish.
    """
    for instants, rows in seen.incremental.items():
        at_its_end = oracle.as_of[max(instants & oracle.as_of.keys())]
        most = oracle.incremental_most(instants) | {row for row in at_its_end if row[-1] in instants}
        least = oracle.incremental_least(instants)
        assert least <= rows, f"incremental over {sorted(instants)} lost {sorted(least - rows)}"
        assert rows <= most, f"incremental over {sorted(instants)} made up {sorted(rows - most)}"


def check_freshness(seen: Seen, oracle: Oracle) -> None:
    """I2, I8: cut and watermark say what is true of the logs that are not in a base file."""
    assert seen.freshness == oracle.freshness(), f"freshness {seen.freshness}, but the logs say {oracle.freshness()}"


def check_plan(plan: CompactionPlan, before: Oracle, after: Oracle, reader_orders: Collection[Order]) -> None:
    """The plan merges all that lies before T and nothing that it need not, and no reader sees a difference.

    Where the rest of a slice's logs stays, that goes for each engine's reader: the merged part may not change what it sees
    of a key that both parts hold.
    """
    assert plan.cut_ms is not None, "a plan for T publishes it"
    assert after.snapshot() == before.snapshot(), "the plan would change the snapshot"
    merged = merged_counts(plan)
    for partition, count in before.log_counts().items():
        is_exact = plan.cut is Cut.EXACT
        fewest = (before.longest_prefix if is_exact else before.fewest_merged)(partition, plan.cut_ms)
        taken = merged.get(partition, 0)
        has_some = before.is_waiting(partition, plan.cut_ms) if is_exact else fewest > 0
        assert (partition in merged) == has_some, f"{partition} has something before T: {has_some}; planned: {merged}"
        assert taken in (fewest * has_some, count), f"{taken} logs of {partition} are merged, {fewest} lie before T"
        if taken == count or not has_some:
            continue
        shared = before.shared_keys(partition, taken)
        for order in reader_orders:
            old, new = (
                {row for row in oracle.snapshot(order) if row[0] == partition and row[1] in shared}
                for oracle in (before, after)
            )
            assert old == new, f"a reader by {order} would see {new} instead of {old}"


def merged_counts(plan: CompactionPlan) -> dict[str, int]:
    """How many logs of each file group a plan merges; a partition is one file group here."""
    return {op.partition: len(op.compacted) for op in plan.operations}


def check_files_untouched(files: Files, before: Files) -> None:
    """I9: what was there before is there as it was: no name taken twice, nothing overwritten, nothing foreign deleted."""
    for path, file in before.items():
        if path.startswith((LOCK_PREFIX, MARKERS_PREFIX)):
            continue
        assert path in files, f"{path} is gone"
        assert files[path].data == file.data, f"{path} was overwritten"


def check_nothing_left(files: Files, before: Files) -> None:
    """I6: after a rollback the table has the files it had, and the note that the instant is used up.

    That of a completed action stands on the timeline, and tells Hudi's metadata table, under an instant of its own.
    """
    new = {path for path in files if path not in before and not path.startswith((OUTCOMES_PREFIX, LOCK_PREFIX))}
    rollbacks = {path.rpartition("/")[2].partition(".")[0] for path in new if path.endswith(".rollback.requested")}
    left = {path for path in new if not any(_bears(path, instant) for instant in rollbacks)}
    assert not left, f"a rollback left {sorted(left)}"


def _bears(path: str, instant: str) -> bool:
    """Whether a file is of that instant; a log of the version 6 metadata table has the time of day in its write token."""
    return instant in path or (path.startswith(".hoodie/metadata/") and path.endswith(f"-{instant[8:]}"))


def check_verified(application: Application, *, is_deep: bool = False) -> None:
    """What `eventide verify` finds in the table, by names, sizes, headers and footers, deep by every record: nothing."""
    found = application.verifier.verify(is_deep=is_deep, progress=NoProgress())
    assert found.ok, f"verify finds {[(check.name, check.findings) for check in found.failed]}"


def check_single_completion(files: Files, instant: str) -> None:
    """I12: a plan completes once."""
    names = [path.rpartition("/")[2] for path in files]
    completed = [name for name in names if name.startswith(instant) and name.endswith(".commit")]
    assert len(completed) <= 1, f"{instant} completed as {completed}"


def check_each_version_once(state: TableState, files: Files, oracle: Oracle, block_instants: BlockInstants) -> None:
    """I10: the visible logs hold the blocks of exactly those commits that are in no base file, each in one log."""
    for found in state.view.latest_slices():
        logs = [frozenset(block_instants(files, log.path)) for log in found.log_files]
        expected = oracle.log_instants(found.partition)
        assert logs == expected, f"{found.partition}: logs of {list(map(sorted, logs))}, not {expected}"


def check_links_whole(files: Files, plan: CompactionPlan, *, is_completed: bool) -> None:
    """I5: each left-over of the new slice has its source's whole content, and once completed none is missing."""
    for op in plan.operations:
        for left in op.remaining:
            if left.linked_name is None:
                continue
            linked = files.get(op.path_of(left.linked_name))
            assert linked is not None or not is_completed, f"{left.linked_name} is missing"
            assert linked is None or linked.data == files[left.log.path].data, f"{left.linked_name} is torn"


def check_plan_is_safe_for_others(files: Files, plan: CompactionPlan, plan_path: str) -> None:
    """I13: an engine that ignores left-overs finds in the plan what makes a correct compaction.

    That is every log of the slice where left-overs have names in the new slice, the merged ones where they lie above it.
    """
    document = read_container(files[plan_path].data, plan_path)
    operations = list(document.documents("operations"))
    for operation, op in zip(operations, plan.operations, strict=True):
        logs = [*op.compacted, *(left.log for left in op.remaining if left.linked_name is not None)]
        assert set(operation.texts("deltaFilePaths")) == {log.name for log in logs}


class BlockInstants:
    """The instants of the blocks in a log file, each file read once."""

    def __init__(self) -> None:
        self._known: dict[bytes, frozenset[str]] = {}

    def __call__(self, files: Files, path: str) -> frozenset[str]:
        link = files[path].link_target
        data = files[link].data if link is not None else files[path].data
        if data not in self._known:
            blocks = read_blocks(lambda at, size: data[at : at + size], len(data), path, is_strict=True)
            self._known[data] = frozenset(block.instant_time or "" for block in blocks)
        return self._known[data]


def _position(state: TableState, instant: str) -> str:
    """Where a commit lies for an incremental query: its completion time, on version 6 its instant."""
    found = state.timeline.completion_time(instant)
    assert found is not None, f"{instant} has not completed"
    return found


def _same(found: Rows, expected: Rows, what: str) -> None:
    assert found == expected, f"{what} lost {sorted(expected - found)} and shows {sorted(found - expected)} instead"
