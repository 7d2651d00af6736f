"""Tables on which a write or plan died after it had written a base file, which no reader may show."""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pyarrow as pa

from eventide import Table
from eventide_core.table.files.file_name import BaseFileName
from eventide_core.table.timeline.instant import next_instant_time
from golden.histories import EPOCH_MS, PLAIN

EARLY: Final[Mapping[str, str]] = {
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS",  # by commits, cleaning keeps what is before a pending commit
    "hoodie.compact.inline.max.delta.commits": "1",
    "hoodie.time.generator.max_expected_clock_skew_time_ms": "0",
}
ACTIONS: Final = (
    (6, "deltacommit"),
    (6, "commit"),
    (6, "replacecommit"),
    (9, "deltacommit"),
    (9, "commit"),
    (9, "replacecommit"),
    (9, "clustering"),
)
"""Table versions, and the actions that write base files there."""
SHOWN: Final = [(f"k{n}", EPOCH_MS + 55) for n in range(3)]
"""The keys and event times of each table."""
_FILE_ID: Final = "00000000-0000-4000-8000-00000000dead-0"


def make_table(path: Path, version: int) -> str:
    """A table of eight writes, of which the second one is a compaction. Returns an instant right after that."""
    table = Table.create(
        str(path),
        schema=PLAIN,
        record_key="id",
        partition="part",
        event_time="event_ts",
        version=version,
        options=EARLY,
    )
    _upsert(table, 10)
    table.compact(before=EPOCH_MS + 20)
    last = table.state().timeline.writes[-1]
    for ms in range(30, 60, 5):
        _upsert(table, ms)
    return next_instant_time(last.completion_time or last.requested_time)


def instants_after(path: Path) -> list[str]:
    """For each write of the table, an instant right after it, unless that is the next write's."""
    timeline = Table.open(str(path)).state().timeline
    after = [next_instant_time(write.completion_time or write.requested_time) for write in timeline.writes]
    return [instant for instant in after if timeline.find(instant) is None]


def die(path: Path, instant: str, action: str, states: tuple[str, ...] = ("requested", "inflight")) -> None:
    """Leaves the pending files of the action, and a base file of another file group with the rows of one that is there."""
    for state in states:
        (path / Table.open(str(path)).state().config.timeline_path / f"{instant}.{action}.{state}").touch()
    base = min(path.glob("part=a/*.parquet"))
    shutil.copy(base, base.with_name(str(BaseFileName(_FILE_ID, "0-0-0", instant))))


def _upsert(table: Table, ms: int) -> None:
    rows = [{"id": f"k{n}", "part": "a", "event_ts": EPOCH_MS + ms, "val": f"{ms}", "amount": 1.0} for n in range(3)]
    table.upsert(pa.Table.from_pylist(rows, schema=PLAIN))
