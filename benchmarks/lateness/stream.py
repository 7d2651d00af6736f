"""A stream of commits with late records, and what a table must hold of it before a time.

Each commit is an hour. A record's event time is anywhere in that hour; of 4 % it lies earlier by an exponential time with a
mean of five hours. Keys are drawn from five times as many as a commit has records.
"""

from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

HOUR_US: Final = 3_600_000_000
START_US: Final = 1_767_225_600_000_000  # 2026-01-01
LATE: Final = 0.04
MEAN_LATENESS_HOURS: Final = 5
_COLUMNS: "list[pa.Field[Any]]" = [
    pa.field("id", pa.string(), nullable=False),
    pa.field("at", pa.timestamp("us", tz="UTC"), nullable=False),
    pa.field("amount", pa.float64()),
    pa.field("note", pa.string()),
    pa.field("_hoodie_is_deleted", pa.bool_(), nullable=False),
]
SCHEMA = pa.schema(_COLUMNS)
Numbers = npt.NDArray[np.int64]


@dataclass(slots=True)
class Stream:
    """The commits so far, in columns. `deletes` is the share of records that delete their key, with an event time."""

    records_a_commit: int
    deletes: float
    seed: int
    keys: Numbers = field(default_factory=lambda: np.empty(0, np.int64))
    times_us: Numbers = field(default_factory=lambda: np.empty(0, np.int64))
    is_delete: npt.NDArray[np.bool_] = field(default_factory=lambda: np.empty(0, np.bool_))
    commits: int = 0

    def next(self) -> pa.Table:
        """The records of the next commit, one of each key."""
        random = np.random.default_rng((self.seed, self.commits))
        count = self.records_a_commit
        keys = random.choice(5 * count, count, replace=False)
        hours = self.commits + random.random(count)
        hours -= (random.random(count) < LATE) * random.exponential(MEAN_LATENESS_HOURS, count)
        times = START_US + (hours * HOUR_US).astype(np.int64)
        is_delete = random.random(count) < self.deletes
        self.keys = np.concatenate([self.keys, keys])
        self.times_us = np.concatenate([self.times_us, times])
        self.is_delete = np.concatenate([self.is_delete, is_delete])
        self.commits += 1
        notes = [f"a note of some length on number {number}, which differs from commit to commit" for number in times]
        ids = [f"key-{key:09d}" for key in keys]
        columns: list[Any] = [ids, times, random.random(count), notes, is_delete]
        return pa.table([pa.array(column, f.type) for column, f in zip(columns, SCHEMA, strict=True)], schema=SCHEMA)

    def before(self, time_us: int) -> dict[str, int]:
        """The event time of each key, of its latest record before a time; not of keys that this one deletes."""
        chosen = np.flatnonzero(self.times_us < time_us)
        order = chosen[np.lexsort((chosen, self.times_us[chosen], self.keys[chosen]))]
        keys = self.keys[order]
        last = order[np.flatnonzero(np.append(keys[1:] != keys[:-1], True))]
        last = last[~self.is_delete[last]]
        return {f"key-{key:09d}": int(us) for key, us in zip(self.keys[last], self.times_us[last], strict=True)}
