"""The results of every kind of query at one moment, which testing/invariants.py checks."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from eventide.bootstrap import Application
from eventide.reader import Rows as RowReader
from eventide.testing.decode_cache import Decoded, KnownLogContent
from eventide.testing.oracle import ExpectedFreshness, Row, Rows
from eventide_adapters.storage.memory import MemoryFile
from eventide_core.errors import CleanedHistoryError
from eventide_core.ports import NoProgress
from eventide_core.table.log_block import read_blocks
from eventide_core.table.slice_read import QueryPlan, SliceRead

if TYPE_CHECKING:
    from eventide_core.service.state.table import TableState

_COMMIT_TIME = "_hoodie_commit_time"
_COLUMNS = ("_hoodie_partition_path", "key", "ms", "word", _COMMIT_TIME)
LOCK_PREFIX = ".hoodie/lock"
MARKERS_PREFIX = ".hoodie/.temp/"
OUTCOMES_PREFIX = ".hoodie/.aux/eventide/"
HEARTBEATS_PREFIX = ".hoodie/.heartbeat/"

Files = Mapping[str, MemoryFile]


@dataclass(frozen=True, slots=True)
class Seen:
    """What the queries answered, and the table's state then. `incremental` is by the instants of the commits requested."""

    state: TableState
    snapshot: Rows
    read_optimized: Rows
    as_of: Mapping[str, Rows]
    incremental: Mapping[frozenset[str], Rows]
    freshness: ExpectedFreshness


class Observer:
    """Asks a table every query. A slice whose files and counting blocks it has read before it knows by heart.

    So it does the content of a block or a base file that it has met in another slice.
    """

    def __init__(self) -> None:
        self._known: dict[object, tuple[Row, ...]] = {}
        self._instants = BlockInstants()
        self._decoded = Decoded()

    def look(
        self,
        application: Application,
        instants: Sequence[str],
        promised: Collection[str] | None = None,
        *,
        tries_the_rest: bool = False,
    ) -> Seen:
        """Of a table with these commits. Time travel goes to each, incremental queries over each, and over all up to each.

        Where only some are `promised`, to those; the rest, if it is tried, may have been cleaned.
        """
        with self._decoded.used():
            return self._look(application, instants, promised, tries_the_rest=tries_the_rest)

    def _look(
        self,
        application: Application,
        instants: Sequence[str],
        promised: Collection[str] | None,
        *,
        tries_the_rest: bool,
    ) -> Seen:
        queries = application.queries.of_one_moment()
        state = queries.moment
        if state is None or state.config.metadata_partitions:  # a query's listing has no files of pending actions then
            state = application.state()
        if not state.config.slices_by_completion_time:
            instants = sorted(instants)  # spans go by the requested time, whichever of two writes completed first
        content = KnownLogContent(application.storage, self._decoded)
        facts = replace(application.freshness.facts, content=content)
        now = replace(application.freshness, content=content, facts=facts).now(state)
        read = cache(application.storage.read)  # of one moment, in which nothing changes
        answered = [i for i in instants if promised is None or i in promised]
        as_of = {instant: self._rows(application, read, queries.as_of(instant)) for instant in answered}
        spans: dict[frozenset[str], Rows] = {}
        for instant in answered:
            last = instants.index(instant)
            for first in {0, last}:
                begin = "0" if first == 0 else state.timeline.completion_time(instants[first - 1])
                end = state.timeline.completion_time(instant)
                assert end is not None, f"{instant} has not completed"
                if begin is not None:  # an archived one says no more when it completed
                    with suppress(CleanedHistoryError):
                        plan = queries.incremental(begin, end)
                        spans[frozenset(instants[first : last + 1])] = self._rows(application, read, plan)
        # Without an end, the span takes in the compactions that came after the last commit.
        spans[frozenset({*instants, "now"})] = self._rows(application, read, queries.incremental("0", None))
        for instant in instants if tries_the_rest else ():
            with suppress(CleanedHistoryError):
                as_of[instant] = self._rows(application, read, queries.as_of(instant))
        return Seen(
            state=state,
            snapshot=self._rows(application, read, queries.snapshot()),
            read_optimized=self._rows(application, read, queries.read_optimized()),
            as_of=as_of,
            incremental=spans,
            freshness=ExpectedFreshness(now.cut_ms, now.watermark_ms, now.late_records, now.unknown_event_time_records),
        )

    def _rows(self, application: Application, read: Callable[[str], bytes], plan: QueryPlan) -> Rows:
        rows = [row for part in plan.slices for row in self._of_slice(application, read, part, plan)]
        assert len({row[:2] for row in rows}) == len(rows), f"I10, a key is there twice: {sorted(rows)}"
        return frozenset(rows)

    def _of_slice(
        self, application: Application, read: Callable[[str], bytes], part: SliceRead, plan: QueryPlan
    ) -> tuple[Row, ...]:
        base = read(part.base_path) if part.base_path else None
        logs = tuple(read(path) for path, _ in part.log_paths)
        counting = frozenset(i for log in logs for i in self._instants.of(log) if part.blocks.accepts(i))
        times = part.commit_times
        if times is not None:
            here = counting if base is None else counting | self._instants.of_base(base)
            times = None if times >= here else times & here  # others choose no row here, and all of them every row
        seen = (part.partition, base, logs, counting, times)
        if seen not in self._known:
            reader = RowReader(replace(plan, slices=(part,)), application.reader, application.engine)
            rows: list[Row] = []
            for batch in reader.to_batches(columns=_COLUMNS):
                rows += zip(*(batch.column(name).to_pylist() for name in _COLUMNS), strict=True)
            self._known[seen] = tuple(rows)
        return self._known[seen]


class BlockInstants:
    """The instants of the blocks in a log file, and of the rows in a base file, each file read once."""

    def __init__(self) -> None:
        self._known: dict[bytes, frozenset[str]] = {}
        self._of_bases: dict[bytes, frozenset[str]] = {}

    def __call__(self, files: Files, path: str) -> frozenset[str]:
        link = files[path].link_target
        return self.of(files[link].data if link is not None else files[path].data)

    def of(self, log: bytes) -> frozenset[str]:
        if log not in self._known:
            blocks = read_blocks(lambda at, size: log[at : at + size], len(log), "a log", is_strict=False)
            self._known[log] = frozenset(block.instant_time or "" for block in blocks)
        return self._known[log]

    def of_base(self, base: bytes) -> frozenset[str]:
        if base not in self._of_bases:
            table = pq.ParquetFile(pa.BufferReader(base)).read(columns=[_COMMIT_TIME], use_threads=False)
            self._of_bases[base] = frozenset(str(time) for time in table.column(_COMMIT_TIME).to_pylist())
        return self._of_bases[base]


def check_verified(application: Application, *, is_deep: bool = False) -> None:
    """What `eventide verify` finds in the table, by names, sizes, headers and footers, deep by every record: nothing."""
    found = application.verifier.verify(is_deep=is_deep, progress=NoProgress())
    assert found.ok, f"verify finds {[(check.name, check.findings) for check in found.failed]}"
