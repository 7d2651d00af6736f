"""One table that engines share: its location, its oracle, and the actions on it so far."""

import random
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from eventide import Table
from eventide.testing.oracle import Change, Oracle, Row, Rows
from eventide_core.config import BLOOM_ENTRIES, CLOCK_SKEW_MS, EVENT_TIME_FIELD, HEARTBEAT_INTERVAL_MS
from support.turns.kinds import ONE_BUCKET, Kind
from support.values.columns import schema_of

EPOCH_MS = 1_700_000_000_000
SCHEMA = schema_of(
    id=pa.string(), part=pa.string(), event_ts=pa.int64(), word=pa.string(), _hoodie_is_deleted=pa.bool_()
)
SEEN_COLUMNS = ("_hoodie_partition_path", "id", "event_ts", "word", "_hoodie_commit_time")
# A writer without a heartbeat is dead immediately, and planning doesn't wait for other writers.
SOON: dict[str, str] = {
    BLOOM_ENTRIES: "100",
    CLOCK_SKEW_MS: "1",
    HEARTBEAT_INTERVAL_MS: "1",
    EVENT_TIME_FIELD: "event_ts",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.cleaner.commits.retained": "1",
    "hoodie.compact.inline.max.delta.commits": "1",
}
_NAME = re.compile(r"(\d{17})(?:_\d{17})?\.(\w+?)(?:\.(requested|inflight))?")


@dataclass(frozen=True, slots=True)
class Scheduled:
    """A compaction on the timeline.

    Counts are log files of a partition's file group: all that existed, and those that eventide or Hudi will merge.
    """

    instant: str
    planner: str
    cut_ms: int | None
    planned: Mapping[str, int]
    merged: Mapping[str, int]
    merged_by_hudi: Mapping[str, int]
    is_written_above: bool = False


@dataclass(slots=True)
class Life:
    """`known` are the commits that the oracle has. `cut_ms` is the cut that was published last.

    `undoable` is the last write and the oracle before it, until something builds on it.
    """

    seed: int
    kind: Kind
    path: Path
    chance: random.Random = field(init=False)
    oracle: Oracle = field(init=False)
    turn: int = 0
    told: list[str] = field(default_factory=list[str])
    known: set[str] = field(default_factory=set[str])
    cut_ms: int = EPOCH_MS
    scheduled: Scheduled | None = None
    undoable: tuple[str, Oracle] | None = None
    has_dead_write: bool = False
    has_other_bases: bool = True

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        self.oracle = Oracle(self.kind.order)

    @property
    def table(self) -> Table:
        return Table.open(str(self.path), self.options)

    @property
    def options(self) -> dict[str, str]:
        """The options for eventide. Tables that Hudi created don't state their number of buckets."""
        return {**SOON, **ONE_BUCKET}

    @property
    def now_ms(self) -> int:
        """The event time of a record of this turn that is neither early nor late."""
        return EPOCH_MS + 10 * self.turn

    def instants(self, *actions: str, is_completed: bool = True) -> list[str]:
        """The requested times of these actions on the active timeline, from the names of its files."""
        directory = self.path / ".hoodie" / ("timeline" if self.kind.version >= 8 else "")
        names = (_NAME.fullmatch(file.name) for file in directory.iterdir()) if directory.exists() else ()
        files = [name.groups() for name in names if name is not None]
        completed = {(time, action) for time, action, state in files if state is None}
        if is_completed:
            return sorted(time for time, action in completed if action in actions)
        pending = {(time, action) for time, action, state in files if state == "requested"}
        ended = {time for time, _ in completed}
        return sorted(time for time, action in pending if action in actions and time not in ended)

    def is_hidden_from_hudi_0x(self) -> bool:
        """Hudi 0.x stops reading a log file of version 6 at a rollback block that is later than the last commit."""
        rollbacks = self.instants("rollback")
        commits = self.instants("commit", "deltacommit")
        return self.kind.version == 6 and bool(rollbacks) and (not commits or commits[-1] < rollbacks[-1])

    def is_hidden_from_hudi_rs(self) -> bool:
        """hudi-rs 0.5 doesn't read the log files that writers of version 6 put above a pending compaction."""
        return self.kind.version == 6 and self.scheduled is not None and self.scheduled.is_written_above

    def lacks_metadata_table(self) -> bool:
        """The table should have a metadata table, which nobody has created yet."""
        return (
            self.kind.options.get("hoodie.metadata.enable") == "true" and not (self.path / ".hoodie/metadata").exists()
        )

    def has_column_stats(self) -> bool:
        """Hudi gives its metadata table column statistics by default. Then eventide writes no column that they lack."""
        return (self.path / ".hoodie/metadata/column_stats").exists()

    def is_empty(self) -> bool:
        """Nothing is written, or every write was rolled back: no commit has the columns."""
        return not self.oracle.instants

    def story(self) -> str:
        return f"seed {self.seed}, {self.kind.name}, {self.path}:\n  " + "\n  ".join(self.told)


def rows_of(changes: tuple[Change, ...]) -> pa.Table:
    """The rows for these changes. Changes without a word are marked as deletes, for which Hudi requires an event time."""
    rows = [
        (
            c.key,
            c.partition.partition("=")[2],
            EPOCH_MS if c.word is None and c.ms is None else c.ms,
            c.word,
            c.word is None,
        )
        for c in changes
    ]
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], schema=SCHEMA)


def seen(found: pa.Table) -> Rows:
    """The rows of a reader. Fails if a key exists twice."""
    rows: list[Row] = list(zip(*(found.column(name).to_pylist() for name in SEEN_COLUMNS), strict=True))
    assert len({row[:2] for row in rows}) == len(rows), f"a key is there twice: {sorted(map(repr, rows))}"
    return frozenset(rows)
