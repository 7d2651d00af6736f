"""The results of every kind of query at one moment. testing/invariants.py checks them."""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from eventide.bootstrap import Application
from eventide.rows.reader import Rows as RowReader
from eventide.testing.inspection.decode_cache import Decoded, KnownLogContent
from eventide.testing.oracle import ExpectedFreshness, Row, Rows
from eventide_adapters.storage.memory import MemoryFile
from eventide_core.errors import CleanedHistoryError
from eventide_core.ports import NoProgress
from eventide_core.table.files.log_block import read_blocks
from eventide_core.table.files.slice_read import QueryPlan, SliceRead

if TYPE_CHECKING:
    from eventide_core.service.common.state.table import TableState

_COMMIT_TIME = "_hoodie_commit_time"
_COLUMNS = ("_hoodie_partition_path", "key", "ms", "word", _COMMIT_TIME)
LOCK_PREFIX = ".hoodie/lock"
MARKERS_PREFIX = ".hoodie/.temp/"
OUTCOMES_PREFIX = ".hoodie/.aux/eventide/"
HEARTBEATS_PREFIX = ".hoodie/.heartbeat/"

Files = Mapping[str, MemoryFile]


@dataclass(frozen=True, slots=True)
class Seen:
    """The results of the queries, and the table's state at that moment.

    `incremental` maps the instants of the commits that a query covers to its rows.
    """

    state: "TableState"
    snapshot: Rows
    read_optimized: Rows
    as_of: Mapping[str, Rows]
    incremental: Mapping[frozenset[str], Rows]
    freshness: ExpectedFreshness


class Observer:
    """Runs every kind of query on a table.

    It caches the rows of a slice by the content of the slice's files and by the blocks that count. It also caches the
    decoded content of blocks and base files, so that other slices can reuse it.
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
        """Runs the queries on a table that has the commits at `instants`.

        Time travel queries go to each commit. Incremental queries cover each commit alone, and all commits up to it. If
        `promised` is given, the queries are limited to these commits. With `tries_the_rest`, time travel queries also go
        to all other commits, and skip those that a clean has removed.
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
        if state is None or state.config.metadata_partitions:  # then a query's listing has no files of pending actions
            state = application.state()
        if not state.config.layout.records_completion_times:
            instants = sorted(instants)  # spans go by the requested time, not by which write completed first
        content = KnownLogContent(application.storage, self._decoded)
        facts = replace(application.freshness.facts, content=content)
        now = replace(application.freshness, facts=facts).now(state)
        read = cache(application.storage.read)  # safe, because the table doesn't change during the queries
        answered = [i for i in instants if promised is None or i in promised]
        as_of = {instant: self.rows(application, read, queries.as_of(instant)) for instant in answered}
        spans: dict[frozenset[str], Rows] = {}
        for instant in answered:
            last = instants.index(instant)
            for first in {0, last}:
                begin = "0" if first == 0 else state.timeline.completion_time(instants[first - 1])
                end = state.timeline.completion_time(instant)
                assert end is not None, f"{instant} has not completed"
                if begin is not None:  # the completion time of an archived commit is unknown
                    with suppress(CleanedHistoryError):
                        plan = queries.incremental(begin, end)
                        spans[frozenset(instants[first : last + 1])] = self.rows(application, read, plan)
        # Without an end, the span includes the compactions after the last commit.
        spans[frozenset({*instants, "now"})] = self.rows(application, read, queries.incremental("0", None))
        for instant in instants if tries_the_rest else ():
            with suppress(CleanedHistoryError):
                as_of[instant] = self.rows(application, read, queries.as_of(instant))
        return Seen(
            state=state,
            snapshot=self.rows(application, read, queries.snapshot()),
            read_optimized=self.rows(application, read, queries.read_optimized()),
            as_of=as_of,
            incremental=spans,
            freshness=ExpectedFreshness(
                now.cut_ms,
                now.watermark_ms,
                now.late_records,
                now.unknown_event_time_records,
                now.unreadable_event_time_records,
            ),
        )

    def rows(self, application: Application, read: Callable[[str], bytes], plan: QueryPlan) -> Rows:
        """The rows of a query. A file of the same path has the same content as long as `read` says so."""
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
            times = (
                None if times >= here else times & here
            )  # other times select no row; all of `here` selects every row
        seen = (part.partition, base, logs, counting, times)
        if seen not in self._known:
            reader = RowReader(replace(plan, slices=(part,)), application.reader, application.engine)
            rows: list[Row] = []
            for batch in reader.to_batches(columns=_COLUMNS):
                columns = {name: batch.column(name).to_pylist() for name in _COLUMNS}
                columns["ms"] = list(map(_time, columns["ms"]))
                rows += zip(*columns.values(), strict=True)
            self._known[seen] = tuple(rows)
        return self._known[seen]


def _time(value: int | str | None) -> int | str | None:
    """An event time of a column of numbers or of texts."""
    return int(value) if isinstance(value, str) and value.isdigit() else value


class BlockInstants:
    """The instants of the blocks in a log file, and of the rows in a base file. Each content is read only once."""

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


def is_immutable(path: str) -> bool:
    """True for data files, and for the timeline files of completed actions."""
    name = path.rpartition("/")[2]
    return not path.startswith(".hoodie/") or (name[:17].isdigit() and not name.endswith(("requested", "inflight")))


def check_verified(application: Application, *, is_deep: bool = False) -> None:
    """Checks that `Table.verify` has no findings.

    It verifies names, sizes, headers and footers; if `is_deep`, also every record.
    """
    verification = application.verifier.verify(is_deep=is_deep, progress=NoProgress())
    assert verification.ok, f"verify finds {[(check.name, check.findings) for check in verification.failed]}"
