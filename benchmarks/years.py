"""`python -m benchmarks.years`: what a commit costs, and which files there are, over the life of a table with its services.

A small table in a directory, with a metadata table, written by eventide alone: each commit is an upsert of a few rows. Every
tenth is followed by a compaction, a clean and an archival. Prints a row for the first hundred commits and for each tenth of
the life: the storage operations and the CPU time of a commit with its share of the services, the files below `.hoodie` by
kind, and the most log files of a file group of the metadata table. Other work on the machine changes the CPU time. So the
last commits of each stretch take turns with as many on a copy of the table after its first hundred: their ratio is what age
costs. Draws two pictures below `--to`.
"""

import argparse
import re
import shutil
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pyarrow as pa

from benchmarks.picture import Curve, picture
from eventide import Table
from eventide.bootstrap import assemble
from eventide.rows.writer import create, new_table
from eventide_adapters.format.metadata_table.records.reader import MetadataTableReader
from eventide_adapters.storage.local import LocalStorage
from eventide_core.ports import Storage, TableLock
from eventide_core.table.settings.metadata_table import REBUILT_INDEXES

SERVICES_EVERY = 10
COLUMNS: "list[pa.Field[Any]]" = [
    pa.field("id", pa.string()),
    pa.field("part", pa.string()),
    pa.field("ms", pa.int64()),
    pa.field("word", pa.string()),
]
_KEYS = 40
_COMMIT_MS = 10 * 60 * 1000  # from commit to commit: a day has 144
_START_MS = 1_795_000_000_000
_FIRST = 100  # commits: what later ones are compared with
_COMPARED = 10 * SERVICES_EVERY  # commits at the end of a stretch
_KINDS = (
    ("outcomes", re.compile(r"\.hoodie/\.aux/eventide/.*")),
    ("markers", re.compile(r"\.hoodie/\.temp/.*")),
    ("heartbeats", re.compile(r"\.hoodie/\.heartbeat/.*")),
    ("temporary files", re.compile(r"\.hoodie/\.eventide_temp/.*")),
    ("archived timeline of the metadata table", re.compile(r"\.hoodie/metadata/.*(/history|/archived)/.*")),
    ("active timeline of the metadata table", re.compile(r"\.hoodie/metadata/\.hoodie/.*")),
    ("files of the metadata table", re.compile(r"\.hoodie/metadata/.*")),
    ("archived timeline", re.compile(r"\.hoodie/(timeline/history|archived)/.*")),
    ("active timeline", re.compile(r"\.hoodie/(timeline/)?[^/]*\d{17}[^/]*")),
    ("others", re.compile(r"\.hoodie/.*")),
)


def kinds_of(paths: Iterable[str]) -> Counter[str]:
    """How many files there are below `.hoodie`, by kind; Hadoop's checksum files don't count."""
    found = Counter({kind: 0 for kind, _ in _KINDS})
    for path in paths:
        if path.startswith(".hoodie/") and not path.endswith(".crc"):
            found[next(kind for kind, form in _KINDS if form.fullmatch(path))] += 1
    return found


class PassingClock:
    """A clock that passes when it is told to."""

    def __init__(self) -> None:
        self.time_ms = _START_MS

    def now_ms(self) -> int:
        return self.time_ms

    def sleep(self, milliseconds: int) -> None:
        self.time_ms += milliseconds

    def local_offset_ms(self, _epoch_ms: int, /) -> int:
        return 0


class CountedStorage:
    """A storage that counts its calls: on an object store, each takes a request or more."""

    def __init__(self, inner: Storage) -> None:
        self._inner = inner
        self.calls = 0

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if not callable(found):
            return found

        def counted(*values: Any, **named: Any) -> Any:
            self.calls += 1
            return found(*values, **named)

        return counted


@dataclass(slots=True)
class Life:
    """A table of eventide's own, and its services. The clock passes `commit_ms` before each commit."""

    uri: str
    storage: Storage
    options: Mapping[str, str] = field(default_factory=dict[str, str])
    clock: PassingClock = field(default_factory=PassingClock)
    commit_ms: int = _COMMIT_MS
    commits: int = 0
    lock: TableLock | None = None

    def create(self, version: int) -> None:
        new = new_table(
            self.uri,
            pa.schema(COLUMNS),
            {"hoodie.bucket.index.num.buckets": "1"},
            record_key="id",
            partition="part",
            ordering=None,
            event_time="ms",
            version=version,
        )
        create(self.storage, new)

    def table(self) -> Table:
        """The table as a new process opens it."""
        application = assemble(self.uri, self.options, storage=self.storage, lock=self.lock, clock=self.clock)
        return Table(self.uri, self.options, application)

    def commit(self) -> None:
        """A write, and the services if it is their turn."""
        self.write()
        if self.commits % SERVICES_EVERY == 0:
            self.table().compact(before=self.clock.time_ms - self.commit_ms)
            self.table().clean()
            self.table().archive()

    def write(self) -> None:
        """An upsert of a tenth of the keys."""
        self.clock.sleep(self.commit_ms)
        first = self.commits * 4
        keys = range(_KEYS) if not self.commits else [(first + n) % _KEYS for n in range(4)]
        rows: dict[str, list[Any]] = {
            "id": [f"k{key:03}" for key in keys],
            "part": ["a" if key % 2 else "b" for key in keys],
            "ms": [self.clock.time_ms - (key % 3) * self.commit_ms for key in keys],
            "word": [f"{self.commits}"] * len(keys),
        }
        self.table().upsert(pa.Table.from_pydict(rows, schema=pa.schema(COLUMNS)))
        self.commits += 1


@dataclass(frozen=True, slots=True)
class Stretch:
    """Some commits of a life: what one cost on average, and the files below `.hoodie` at their end.

    `cpu_ratio` is the CPU time of its last commits, divided by the CPU time of as many on the young table.
    """

    until: int
    cpu_ms: float
    calls: float
    files: Mapping[str, int]
    metadata_logs: int
    cpu_ratio: float


def most_metadata_logs(storage: Storage) -> int:
    """The most log files in the latest slice of a file group of the metadata table."""
    reader = MetadataTableReader.load(storage)
    slices = [found for partition in reader.facts.partitions for found in reader.slices(partition)]
    return max((len(found.log_files) for found in slices), default=0)


@dataclass(frozen=True, slots=True)
class _Young:
    """A copy of a table at an early commit."""

    root: Path
    time_ms: int
    commits: int

    @classmethod
    def copied(cls, life: Life, root: Path) -> "_Young":
        copy = root.with_name(f"{root.name}_young")
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(root, copy)
        return cls(copy, life.clock.time_ms, life.commits)

    def beside(self, life: Life, commits: int) -> tuple[float, float]:
        """The CPU times of that many commits of `life`, and of as many on a copy of this table, in turns."""
        copy = self.root.with_name(f"{self.root.name}_copy")
        shutil.copytree(self.root, copy)
        clock = PassingClock()
        clock.time_ms = self.time_ms
        young = Life(str(copy), cast(Storage, CountedStorage(LocalStorage(copy))), life.options, clock)
        young.commits = self.commits
        spent = [(_cpu_ms(life), _cpu_ms(young)) for _ in range(commits)]
        shutil.rmtree(copy)
        return sum(old for old, _ in spent), sum(new for _, new in spent)


def _cpu_ms(life: Life) -> float:
    """What a commit takes."""
    begun = time.process_time()
    life.commit()
    return (time.process_time() - begun) * 1000


def live(life: Life, counted: CountedStorage, root: Path, commits: int, parts: int = 10) -> list[Stretch]:
    """Lives that many commits; a stretch for each part, and one for the first hundred of a long life."""
    found: list[Stretch] = []
    young: _Young | None = None
    for until in sorted({min(commits, _FIRST), *(commits * (part + 1) // parts for part in range(parts))}):
        calls, first = counted.calls, life.commits
        spent_ms, metadata_logs, cpu_ratio = 0.0, 0, 1.0
        compared = 0 if young is None else min(_COMPARED, (until - first) // 2 // SERVICES_EVERY * SERVICES_EVERY)
        while life.commits < until - compared:
            spent_ms += _cpu_ms(life)
            metadata_logs = max(metadata_logs, most_metadata_logs(LocalStorage(root)))
        if young is None:
            young = _Young.copied(life, root)
        elif compared:
            old_ms, young_ms = young.beside(life, compared)
            spent_ms, cpu_ratio = spent_ms + old_ms, old_ms / young_ms
        count, calls = max(1, until - first), counted.calls - calls
        paths = (str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())
        found.append(Stretch(until, spent_ms / count, calls / count, kinds_of(paths), metadata_logs, cpu_ratio))
        print(_line(found[-1]), flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.years", description=__doc__)
    parser.add_argument("--commits", type=int, default=10_000)
    parser.add_argument("--version", type=int, default=9, choices=(6, 8, 9), help="of the table")
    parser.add_argument("--index", action="append", default=[], choices=REBUILT_INDEXES, help="of the metadata table")
    parser.add_argument("--place", type=Path, default=Path("build/benchmarks"), help="where the table lies")
    parser.add_argument("--to", type=Path, default=Path("build/benchmarks"), help="where the pictures go")
    chosen = parser.parse_args()
    root = chosen.place.resolve() / "years"
    shutil.rmtree(root, ignore_errors=True)
    counted = CountedStorage(LocalStorage(root))
    life = Life(str(root), cast(Storage, counted))
    life.create(chosen.version)
    life.table().rebuild_metadata_table(chosen.index)
    kinds = " | ".join(kind for kind, _ in _KINDS)
    print(f"| commits | CPU, ms | CPU of commit 100 | storage calls | metadata logs of a file group | {kinds} |")
    print("|" + "---|" * (len(_KINDS) + 5))
    stretches = live(life, counted, root, chosen.commits)
    for made in (root, root.with_name(f"{root.name}_young")):
        shutil.rmtree(made)
    for name, title, curves in _curves(stretches):
        drawn = picture(title, [found.until for found in stretches], curves, bottom=1)
        (chosen.to / f"years_{name}.svg").write_text(drawn, encoding="utf-8")


def _line(found: Stretch) -> str:
    counts = " | ".join(str(found.files[kind]) for kind, _ in _KINDS)
    cost = f"{found.cpu_ms:.0f} | {found.cpu_ratio:.2f} | {found.calls:.0f}"
    return f"| {found.until:,} | {cost} | {found.metadata_logs} | {counts} |"


def _curves(stretches: list[Stretch]) -> list[tuple[str, str, list[Curve]]]:
    files = [float(sum(found.files.values())) for found in stretches]
    return [
        ("files", "Files below .hoodie by commits", [Curve("files", files)]),
        (
            "cost",
            "A commit with its share of services, by commits",
            [
                Curve("CPU, ms", [found.cpu_ms for found in stretches]),
                Curve("storage calls", [found.calls for found in stretches]),
            ],
        ),
    ]


if __name__ == "__main__":
    main()
