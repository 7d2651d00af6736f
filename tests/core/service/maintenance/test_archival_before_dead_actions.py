"""Archival beside a write or plan that died: every reader still leaves out the files that it had written.

Readers take each file for committed whose instant is before the first completed write of the active timeline. hudi-rs reads
here; stock Hudi does in tests/conformance/test_archival_bounds.py.
"""

import shutil
from pathlib import Path

import pyarrow as pa
import pytest

from eventide import Table
from eventide_core.table.files.file_name import BaseFileName
from eventide_core.table.timeline.instant import next_instant_time
from golden.histories import EPOCH_MS, PLAIN
from support.judge import hudi_rs

EARLY = {
    "hoodie.keep.min.commits": 2,
    "hoodie.keep.max.commits": 3,
    "hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS",  # by commits, cleaning keeps what is before a pending commit
    "hoodie.compact.inline.max.delta.commits": 1,
    "hoodie.time.generator.max_expected_clock_skew_time_ms": 0,
}
DEAD = "00000000-0000-4000-8000-00000000dead-0"


def upsert(table: Table, ms: int) -> None:
    rows = [{"id": f"k{n}", "part": "a", "event_ts": EPOCH_MS + ms, "val": f"{ms}", "amount": 1.0} for n in range(3)]
    table.upsert(pa.Table.from_pylist(rows, schema=PLAIN))


def shown_by_hudi_rs(path: Path) -> list[tuple[object, ...]]:
    return sorted((row["id"], row["event_ts"]) for row in hudi_rs.read(path, "snapshot").to_pylist())


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[int, tuple[Path, str]]:
    """By version, a table of eight writes, the second one a compaction, and an instant right after that."""
    found: dict[int, tuple[Path, str]] = {}
    for version in (6, 9):
        path = tmp_path_factory.mktemp("tables") / str(version)
        table = Table.create(
            str(path),
            schema=PLAIN,
            record_key="id",
            partition="part",
            event_time="event_ts",
            version=version,
            options=EARLY,
        )
        upsert(table, 10)
        table.compact(before=EPOCH_MS + 20)
        last = table.state().timeline.writes[-1]
        for ms in range(30, 60, 5):
            upsert(table, ms)
        found[version] = path, next_instant_time(last.completion_time or last.requested_time)
    return found


@pytest.mark.parametrize("states", [("requested",), ("requested", "inflight")], ids="-".join)
@pytest.mark.parametrize(
    ("version", "action"),
    [
        (6, "deltacommit"),
        (6, "commit"),
        (6, "replacecommit"),
        (9, "deltacommit"),
        (9, "commit"),
        (9, "replacecommit"),
        (9, "clustering"),
    ],
)
def test_no_reader_shows_what_a_dead_action_wrote(
    version: int, action: str, states: tuple[str, ...], tables: dict[int, tuple[Path, str]], tmp_path: Path
) -> None:
    original, dead = tables[version]
    path = shutil.copytree(original, tmp_path / "t")
    table = Table.open(str(path), EARLY)
    for state in states:
        (path / table.state().config.timeline_path / f"{dead}.{action}.{state}").touch()
    base = min(path.glob("part=a/*.parquet"))
    shutil.copy(base, base.with_name(str(BaseFileName(DEAD, "0-0-0", dead))))
    before = shown_by_hudi_rs(path)
    assert before == [(f"k{n}", EPOCH_MS + 55) for n in range(3)]
    known = {write.requested_time for write in table.state().timeline.writes}
    table.archive()
    assert shown_by_hudi_rs(path) == before
    assert len(table.snapshot().to_arrow()) == len(before)
    left = {write.requested_time for write in table.state().timeline.writes}
    assert known - left == {min(known)}, "the one before the dead one stays"
