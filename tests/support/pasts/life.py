"""The life of one table, the same on every storage.

Its clock stands still and its file groups are counted. So two lives leave the same names, rows and plans, and differ
only in what left-overs become.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import pyarrow as pa

from eventide import Table
from eventide.bootstrap import assemble
from eventide.results.plan import Plan
from eventide.rows.reader import Rows
from eventide.testing.histories import ManualClock
from eventide_core.config import BUCKETS
from support.tables.backends import Backend, files_of
from support.values.columns import schema_of

HOUR_MS = 3_600_000
MIDNIGHT_MS = 1_700_006_400_000
SCHEMA = schema_of(id=pa.string(), part=pa.string(), ms=pa.int64(), word=pa.string())


@dataclass(frozen=True, slots=True)
class Chapter:
    """The state after an action: the rows of the queries that ran, the watermark, the files, and the targets of links.

    Also has the output of the action itself. `kept` are files that exist only because a link leads to them.
    """

    deed: str
    queries: Mapping[str, list[dict[str, Any]]]
    watermark_ms: int | None
    files: frozenset[str]
    links: Mapping[str, str]
    kept: frozenset[str]
    told: Any

    @property
    def rows(self) -> set[tuple[str, int, str]]:
        """The snapshot. Raises KeyError if it wasn't queried."""
        return {(row["id"], row["ms"], row["word"]) for row in self.queries["snapshot"]}

    def as_with_copies(self) -> tuple[object, ...]:
        """Everything in it that must not depend on what left-overs become."""
        return self.deed, self.queries, self.watermark_ms, self.files - self.kept, self.told


@dataclass(slots=True)
class TableLife:
    """A table of version 6, in which no compaction can be back-dated, of two partitions with one file group each.

    `written` are the versions of all keys so far, in the order of writing. None is a delete.
    """

    there: Backend
    written: list[tuple[str, int, str | None]] = field(default_factory=list[tuple[str, int, str | None]])
    _clock: ManualClock = field(default_factory=ManualClock)
    _writes: list[str] = field(default_factory=list[str])
    _kept: frozenset[str] = frozenset()

    @property
    def expected(self) -> set[tuple[str, int, str]]:
        """The latest version of each key by event time, and the later written one of two at the same time.

        Omits deletes.
        """
        latest: dict[str, tuple[int, str | None]] = {}
        for key, ms, word in self.written:
            if key not in latest or ms >= latest[key][0]:
                latest[key] = ms, word
        return {(key, ms, word) for key, (ms, word) in latest.items() if word is not None}

    def chapters(self) -> Iterator[Chapter]:
        """The chapters in order. An action runs when its chapter is requested."""
        table = self._created()
        self._upsert(table, "base", range(8), hour=0)
        self._upsert(table, "first", (0, 1, 2, 3), hour=1)
        self._upsert(table, "third", (0, 1, 4, 5), hour=3)
        self._upsert(table, "late", (2, 6), hour=0.5)
        self._delete(table, (7,), hour=3.5)
        yield self._seen(table, "ingested")

        plan = self._scheduled(table, before_hour=2)
        yield self._seen(table, "rolled back the plan", (said_by(plan), table.rollback(plan.instant)), is_read=False)

        plan = self._scheduled(table, before_hour=2)
        table.execute(plan.instant)
        yield self._seen(table, "compacted up to the second hour", said_by(plan))

        self._upsert(table, "fourth", (0, 3), hour=4)
        self._upsert(table, "later still", (2, 6), hour=1.5)
        yield self._seen(table, "cleaned below the left-overs", self._cleaned(table))

        plan = self._scheduled(table, before_hour=3.75)
        table.execute(plan.instant)
        yield self._seen(table, "compacted again", said_by(plan), is_read=False)
        yield self._seen(table, "rolled back the compaction", table.rollback(plan.instant))

        plan = self._scheduled(table, before_hour=24)
        table.execute(plan.instant)
        self._upsert(table, "evening", (0, 1), hour=22)
        self._upsert(table, "night", (0, 2), hour=23)
        yield self._seen(table, "compacted the whole day and cleaned", (said_by(plan), self._cleaned(table)))

        table.savepoint(self._writes[-1])
        self._upsert(table, "regretted", (0, 1), hour=23.5)
        del self.written[-2:]
        yield self._seen(table, "restored", table.restore(self._writes.pop(-2)))

    def _created(self) -> Table:
        uri, options = self.there.uri, {**self.there.options, BUCKETS: "1"}
        Table.create(
            uri,
            schema=SCHEMA,
            record_key="id",
            partition="part",
            event_time="ms",
            version=6,
            options=options,
        )
        numbers = count()
        application = assemble(
            uri, options, clock=self._clock, new_uuid=lambda: f"00000000-0000-0000-0000-{next(numbers):012}"
        )
        return Table(uri, options, application)

    def _upsert(self, table: Table, word: str, keys: tuple[int, ...] | range, *, hour: float) -> None:
        rows = self._rows(keys, hour, word)
        self._writes.append(table.upsert(rows.append_column("word", pa.array([word] * len(keys)))).instant)

    def _delete(self, table: Table, keys: tuple[int, ...], *, hour: float) -> None:
        table.delete(self._rows(keys, hour, None))

    def _rows(self, keys: tuple[int, ...] | range, hour: float, word: str | None) -> pa.Table:
        """Keys of both partitions, a minute after everything before. Each has a different millisecond."""
        self._clock.sleep(60_000)
        times = [MIDNIGHT_MS + round(hour * HOUR_MS) + key for key in keys]
        names = [f"k{key}" for key in keys]
        self.written += [(name, ms, word) for name, ms in zip(names, times, strict=True)]
        return pa.table({"id": names, "part": [("south", "north")[key % 2] for key in keys], "ms": times})

    def _scheduled(self, table: Table, *, before_hour: float) -> Plan:
        self._clock.sleep(60_000)
        return table.schedule(table.plan_compaction(MIDNIGHT_MS + round(before_hour * HOUR_MS)))

    def _cleaned(self, table: Table) -> set[str]:
        cleaned = table.clean(1)
        told = {*cleaned.deleted, *cleaned.kept_targets} - self._kept
        self._kept = frozenset(cleaned.kept_targets)
        return told

    def _seen(self, table: Table, deed: str, told: object = None, *, is_read: bool = True) -> Chapter:
        """`is_read`: whether to run the queries, which take more requests than most actions."""
        files, before_last = files_of(self.there.storage), self._writes[-2]
        queries: dict[str, Callable[[], Rows]] = {
            "snapshot": table.snapshot,
            "read optimized": table.read_optimized,
            "as of": lambda: table.as_of(before_last),
            "incremental": lambda: table.incremental(before_last),
        }
        return Chapter(
            deed,
            {name: _by_key(ask()) for name, ask in queries.items() if is_read},
            table.freshness().watermark_ms,
            frozenset(files),
            {path: target for path, target in files.items() if target is not None},
            self._kept,
            told,
        )


def said_by(plan: Plan) -> dict[str, Any]:
    """The plan without what depends on its links."""
    said = plan.to_json()
    for key in ("link_mode", "link_reason", "bytes"):
        said.pop(key)
    for operation in said["operations"]:
        operation.pop("link_mode")
    return said


def _by_key(found: Rows) -> list[dict[str, Any]]:
    return found.to_arrow().sort_by("id").to_pylist()
