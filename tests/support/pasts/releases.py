"""Makes the tables that a release leaves in each state: `python -m support.pasts.releases 0.1.0`, in a committed tree.

Each becomes `tests/golden/releases/<version>/<state>.tar.gz`. `expected.json` beside them names the commit that made them,
and has the rows of each table. Clock, names and modification times are fixed, so that a second run makes the same bytes.
"""

import functools
import gzip
import io
import itertools
import json
import re
import subprocess
import sys
import tarfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar
from unittest.mock import patch

from eventide import Table
from eventide.bootstrap import assemble
from eventide.rows.writer import create, new_table
from eventide.table.done_markers import mark_done
from eventide.testing.living_table.stock_engine import schedule_as_stock
from eventide_adapters.lock import file_system_based, heartbeats
from eventide_adapters.storage.faulty import FaultyStorage, SimulatedCrash
from eventide_adapters.storage.memory import MemoryFile, MemoryStorage
from eventide_core.config import EVENT_TIME_FIELD, MARKER_EVERY, Options
from support.doubles.clocks import ManualClock
from support.tables.hourly import SCHEMA, SOON, at, rows

ROOT = Path(__file__).parents[3]
DIRECTORY = ROOT / "tests/golden/releases"
RELEASES = sorted(path.parent for path in DIRECTORY.glob("*/expected.json"))
BEGIN_MS = 1_795_000_000_000
_STEP_MS = 1000
T = TypeVar("T")


class _Dying(FaultyStorage):
    """The storage of a process that dies before it makes a file whose path has that pattern."""

    def __init__(self, inner: MemoryStorage, pattern: str) -> None:
        super().__init__(inner)
        self._pattern = re.compile(pattern)

    def _write(self, kind: str, path: str, write: Callable[[], T]) -> T:
        if self._pattern.search(path):
            raise SimulatedCrash(path)
        return super()._write(kind, path, write)


class StepClock(ManualClock):
    def sleep(self, milliseconds: int) -> None:
        if milliseconds > 0:  # by the clock skew of a plan of another engine, there may be nothing to wait for
            super().sleep(milliseconds)


@dataclass
class Maker:
    """One table in memory, with a clock that each step advances."""

    name: str
    version: int = 9
    clock: ManualClock = field(default_factory=lambda: StepClock(BEGIN_MS))
    _numbers: "itertools.count[int]" = field(default_factory=itertools.count)

    def __post_init__(self) -> None:
        self.storage = MemoryStorage.from_dump(self.name, {}, now_ms=self.clock.now_ms)
        fields: Any = {"record_key": "id", "partition": None, "ordering": None, "event_time": "ms"}
        create(self.storage, new_table(self.storage.root, SCHEMA, SOON, version=self.version, **fields))

    def table(self, *, dies_before: str = "") -> Table:
        """The table, opened by a new process. `dies_before` is a pattern of a path."""
        self.clock.sleep(_STEP_MS)
        options = {**SOON, EVENT_TIME_FIELD: "ms"}
        storage = _Dying(self.storage, dies_before) if dies_before else self.storage
        application = assemble(self.storage.root, options, storage=storage, clock=self.clock, new_uuid=self._uuid)
        return Table(self.storage.root, options, application)

    def upsert(self, *hours: float, **more: Any) -> None:
        self.table().upsert(rows(*hours), **more)

    def _uuid(self) -> str:
        return f"00000000-0000-4000-8000-{next(self._numbers):012d}"


def _written(name: str, version: int = 9) -> Maker:
    """A base file, a log file of late rows, and one of rows that no T below hour 3 merges."""
    maker = Maker(name, version)
    maker.upsert(0, 1)
    maker.upsert(0.5, 1)
    maker.upsert(1.5, 5)
    return maker


def _pending_plan(version: int) -> Maker:
    maker = _written(f"pending_plan_v{version}", version)
    table = maker.table()
    table.schedule(table.plan_compaction(before=at(1)))
    return maker


def _dead_compaction(version: int) -> Maker:
    """It claimed its outcome, and died before its commit."""
    maker = _written(f"dead_compaction_v{version}", version)
    with suppress(SimulatedCrash):
        maker.table(dies_before=r"\d+\.commit$").compact(before=at(1))
    return maker


def _windows() -> Maker:
    """The first window is done, the second one is held by a runner that died."""
    maker = _written("windows_half_done")
    maker.table().compact(before=at(2))
    windows = maker.table().windows(every="1h", consumer="bills", since=at(0))
    next(iter(windows)).done()
    assert windows.take("dead") is not None
    return maker


def _tags() -> Maker:
    maker = _written("tags")
    maker.table().compact(before=at(1))
    maker.table().tag("day/1")
    maker.upsert(2, 3)
    return maker


def _sources() -> Maker:
    """One source is stated, one declared, and one is a table."""
    raw = _written("raw")
    raw.table().compact(before=at(2))
    maker = Maker("sources")
    table = raw.table()
    maker.upsert(0, 1, sources={table: table.freshness()})
    maker.upsert(0.5, 5, sources={"orders": at(3)})
    maker.table().sources.declare("returns", idle="2h")
    maker.table().compact(before=at(1))
    return maker


def _repair_undone() -> Maker:
    maker = _written("repair_undone")
    maker.table().compact(before=at(1))
    stray = next(path for path in maker.storage.dump() if path.endswith(".parquet"))
    maker.storage.put(stray.replace("00000000-", "0000dead-"), maker.storage.read(stray))
    assert maker.table().repair(apply=True).repairs
    maker.table().undo_repair()
    return maker


def _undone() -> Maker:
    """A compaction that had completed was rolled back, and so was one that had not."""
    maker = _written("undone")
    maker.table().compact(before=at(1))
    maker.table().rollback(maker.table().state().timeline.writes[-1].requested_time)
    with suppress(SimulatedCrash):
        maker.table(dies_before=r"\.parquet$").compact(before=at(1))
    (pending,) = maker.table().state().timeline.pending
    maker.table().rollback(pending.requested_time, force=True)
    return maker


def _attempt_at_foreign_plan() -> Maker:
    maker = _written("foreign_attempt")
    schedule_as_stock(maker.table()._application)
    with suppress(SimulatedCrash):
        maker.table(dies_before=r"\d+\.commit$").resume()
    return maker


def mark_hours(table: Table) -> list[tuple[str, int]]:
    """What becomes of the markers of hours: the events, each with the begin of its window."""
    options = Options({**table.options, MARKER_EVERY: "1h"})
    return [(event.kind, event.begin_ms) for event in mark_done(table._application, options)]


def _done_markers() -> Maker:
    """The second hour is marked as done; the first one was, too, until late data came."""
    maker = _written("done_markers")
    maker.table().compact(before=at(2))
    mark_hours(maker.table())
    maker.upsert(0.25)
    mark_hours(maker.table())
    return maker


def _pending_clean() -> Maker:
    """It died before it deleted a file."""
    maker = _written("pending_clean")
    maker.table().compact(before=at(2))
    maker.upsert(2)
    maker.table().compact(before=at(3))
    with suppress(SimulatedCrash):
        maker.table(dies_before=r"\.clean\.inflight$").clean()
    return maker


def _unfinished_rebuild() -> Maker:
    """It died before the commit of its metadata table."""
    maker = _written("rebuild_unfinished")
    with suppress(SimulatedCrash):
        maker.table(dies_before=r"/metadata/.*\.deltacommit$").rebuild_metadata_table()
    return maker


def _deleted_savepoint() -> Maker:
    maker = _written("savepoint_deleted")
    kept = maker.table().state().timeline.writes[-1].requested_time
    maker.table().savepoint(kept)
    maker.table().delete_savepoint(kept)
    return maker


STATES: Mapping[str, Callable[[], Maker]] = {
    "pending_plan_v6": lambda: _pending_plan(6),
    "pending_plan_v9": lambda: _pending_plan(9),
    "dead_compaction_v6": lambda: _dead_compaction(6),
    "dead_compaction_v9": lambda: _dead_compaction(9),
    "windows_half_done": _windows,
    "tags": _tags,
    "sources": _sources,
    "repair_undone": _repair_undone,
    "undone": _undone,
    "foreign_attempt": _attempt_at_foreign_plan,
    "done_markers": _done_markers,
    "pending_clean": _pending_clean,
    "rebuild_unfinished": _unfinished_rebuild,
    "savepoint_deleted": _deleted_savepoint,
}


def opened(files: Mapping[str, MemoryFile]) -> Table:
    """The table with these files, a day later."""
    clock = StepClock(BEGIN_MS + 24 * 60 * 60 * 1000)
    storage = MemoryStorage.from_dump("opened", files, now_ms=clock.now_ms)
    options = {**SOON, EVENT_TIME_FIELD: "ms"}
    return Table(storage.root, options, assemble(storage.root, options, storage=storage, clock=clock))


def shown(table: Table) -> list[tuple[str, int]]:
    """The rows, by key."""
    found = table.snapshot().to_arrow()
    return sorted((str(row["id"]), int(row["ms"])) for row in found.select(["id", "ms"]).to_pylist())


@functools.cache
def made(state: str) -> tuple[dict[str, MemoryFile], list[tuple[str, int]]]:
    """The files of a table in a state, and its rows."""
    nobody = SimpleNamespace(gethostname=lambda: "host")
    with (
        patch.object(file_system_based, "this_process", dict),
        patch.object(heartbeats, "this_process", dict),
        patch("eventide.bootstrap.socket", nobody),
        patch("eventide.bootstrap.getpid", lambda: 1),
    ):
        maker = STATES[state]()
    return maker.storage.dump(), shown(maker.table())


def packed(files: Mapping[str, MemoryFile]) -> bytes:
    """An archive whose bytes depend on the files alone."""
    archive = io.BytesIO()
    with gzip.GzipFile(fileobj=archive, mode="wb", mtime=0) as zipped, tarfile.open(fileobj=zipped, mode="w") as tar:
        for path, file in files.items():
            member = tarfile.TarInfo(path)
            member.size, member.mtime = len(file.data), file.modified_ms // 1000
            tar.addfile(member, io.BytesIO(file.data))
    return archive.getvalue()


def unpacked(archive: Path) -> dict[str, MemoryFile]:
    with tarfile.open(archive) as tar:
        return {
            member.name: MemoryFile(_bytes_of(tar, member), int(member.mtime) * 1000)
            for member in tar
            if member.isfile()
        }


def _bytes_of(tar: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    content = tar.extractfile(member)
    assert content is not None, member.name
    return content.read()


def main(version: str) -> None:
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    directory = DIRECTORY / version
    directory.mkdir(parents=True, exist_ok=True)
    tables = {}
    for state in STATES:
        files, tables[state] = made(state)
        (directory / f"{state}.tar.gz").write_bytes(packed(files))
    expected = {"commit": commit.strip(), "rows": tables}
    (directory / "expected.json").write_text(f"{json.dumps(expected, indent=1)}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
