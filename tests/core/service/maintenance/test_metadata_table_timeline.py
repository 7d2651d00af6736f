"""The metadata table's own timeline, archived: it stays short, and nothing that it says is lost."""

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from eventide import Table
from eventide.bootstrap import assemble
from eventide.testing.histories import NoLock
from eventide_adapters.format.metadata_table.records.reader import MetadataTableReader
from eventide_adapters.storage.local import LocalStorage
from eventide_core.table.timeline.instant import Action
from golden.histories import PLAIN
from support.files import metadata_updates
from support.files.metadata_updates import crashed_copies, listed, on_disk
from support.pasts import golden

pytestmark = pytest.mark.slow

OPTIONS = {
    "hoodie.keep.min.commits": "4",
    "hoodie.keep.max.commits": "6",
    "hoodie.cleaner.commits.retained": "2",
    "hoodie.metadata.compact.max.delta.commits": "3",
    "hoodie.compact.inline.max.delta.commits": "2",
    "hoodie.bucket.index.num.buckets": "2",
    "hoodie.time.generator.max_expected_clock_skew_time_ms": "0",
}
Row = dict[str, Any]


@pytest.fixture(params=["v6_mdt", "v9_mdt"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return golden.unpack(str(request.param), tmp_path)


def opened(path: Path, **options: str) -> Table:
    return Table.open(str(path), {**OPTIONS, **options})


def upsert(path: Path, number: int) -> None:
    table = opened(path)
    shown = table.snapshot().to_arrow(PLAIN.names).sort_by("id").slice(0, 3).to_pylist()
    changed: list[Row] = [{**row, "val": f"n{number}", "event_ts": 2 * 10**12 + number} for row in shown]
    table.upsert(pa.Table.from_pylist(changed, schema=PLAIN))


def grow(path: Path, *numbers: int) -> None:
    """Upserts; every tenth is followed by a compaction and a clean."""
    for number in numbers:
        upsert(path, number)
        if number % 10 == 9:
            opened(path).compact(before=2 * 10**12 + number + 1)
            opened(path).clean(2)


def own_timeline(path: Path) -> set[str]:
    return {i.requested_time for i in MetadataTableReader.load(LocalStorage(path)).facts.timeline.instants}


def archived(path: Path) -> set[str]:
    return {i.requested_time for i in MetadataTableReader.load(LocalStorage(path)).archive.writes("", "9" * 20)}


def check(path: Path, before: list[Row]) -> None:
    """The metadata table names the files that exist, follows every instant, and hides no row."""
    assert listed(path) == on_disk(path)
    table = opened(path)
    timeline = table.state().timeline
    followed = {i.requested_time for i in timeline.completed if i.action is not Action.SAVEPOINT}
    assert metadata_updates.opened(path).listing(followed) == on_disk(path)
    assert rows(table) == before
    assert table.verify().ok


def rows(table: Table) -> list[Row]:
    return table.snapshot().to_arrow(PLAIN.names).sort_by("id").to_pylist()


def test_archiving_shortens_the_timeline_of_the_metadata_table(path: Path) -> None:
    grow(path, *range(16))
    before, known = rows(opened(path)), own_timeline(path)
    opened(path).archive()
    left = own_timeline(path)
    assert len(left) < len(known) / 2
    assert archived(path) >= known - left
    check(path, before)
    opened(path).archive()
    assert own_timeline(path) == left
    grow(path, *range(16, 21))
    check(path, rows(opened(path)))


@pytest.mark.broad
def test_beside_services_nothing_of_the_metadata_table_grows(path: Path) -> None:
    counts: list[int] = []
    for begin in range(0, 40, 5):
        grow(path, *range(begin, begin + 5))
        opened(path).archive()
        directories = (path / ".hoodie/metadata", path / ".hoodie/timeline", path / ".hoodie/metadata/files")
        history = [f for d in directories for f in d.rglob("*") if "history" in f.parts or "archived" in f.parts]
        files = [f for f in (path / ".hoodie/metadata").rglob("*") if f.is_file() and f.suffix != ".crc"]
        counts.append(len(set(files) - set(history)))
    assert max(counts[5:]) <= max(counts[2:5]) + 3
    check(path, rows(opened(path)))


def test_what_the_table_has_on_its_timeline_stays_on_that_of_the_metadata_table(path: Path) -> None:
    """Otherwise its readers, who ask whether it has followed each of these, would stop listing by it."""
    grow(path, *range(16))
    opened(path).savepoint(writes(path)[0])
    opened(path).archive()
    known = own_timeline(path)
    assert known >= set(writes(path))
    opened(path, **{"hoodie.archive.beyond.savepoint": "true"}).archive()
    assert own_timeline(path) < known
    check(path, rows(opened(path)))


def writes(path: Path) -> list[str]:
    return [i.requested_time for i in opened(path).state().timeline.writes]


@pytest.mark.parametrize("path", ["v6_mdt"], indirect=True)
def test_whatever_write_a_crash_precedes_no_instant_is_lost(path: Path, tmp_path: Path) -> None:
    grow(path, *range(10))
    files, known = on_disk(path), own_timeline(path)
    done = tmp_path / "done"
    shutil.copytree(path, done)
    opened(done).archive()
    check(done, rows(opened(path)))
    assert (expected := own_timeline(done)) < known
    crashes = 0
    for copy, has_crashed in crashed_copies(
        path,
        tmp_path,
        lambda copy, storage: assemble(str(copy), OPTIONS, storage=storage, lock=NoLock()).archiver.archive(),
        step=3,
    ):
        assert own_timeline(copy) | archived(copy) >= known
        assert listed(copy) == files
        opened(copy).archive()
        assert expected <= own_timeline(copy) <= known  # the table's own stays longer after some crashes
        assert own_timeline(copy) | archived(copy) >= known
        assert listed(copy) == files
        crashes += has_crashed
    assert 3 * crashes > len(known - expected)
