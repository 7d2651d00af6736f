"""Files of archived writes that are lost or torn: the gate holds what it sees, and `verify` sees all of it."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest

from eventide import Table
from eventide_core.action.verification.result import Finding
from eventide_core.errors import CorruptBaseFileError, CorruptLogBlockError, EventideError, MissingFileError
from golden.histories import EPOCH_MS, PLAIN
from support.run.command_line import run

MARK = ".hoodie_partition_metadata"
OPTIONS = {
    "hoodie.time.generator.max_expected_clock_skew_time_ms": "0",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.clean.commits.retained": "1",
}


def rows(*of: tuple[str, str, int]) -> pa.Table:
    values = [{"id": key, "part": part, "event_ts": EPOCH_MS + ms, "val": "", "amount": 0.0} for key, part, ms in of]
    return pa.Table.from_pylist(values, schema=PLAIN)


def written(path: Path, version: int, *, has_metadata_table: bool) -> None:
    """A table whose writes to partition `a` are archived: a base file alone, and one with a log file."""
    table = Table.create(
        str(path),
        schema=PLAIN,
        record_key="id",
        partition="part",
        event_time="event_ts",
        version=version,
        options=OPTIONS,
    )
    if has_metadata_table:
        table.rebuild_metadata_table()
    table.upsert(rows(("a1", "a", 1), ("a2", "a", 2)))
    table.compact(before=EPOCH_MS + 20)
    table.upsert(rows(("a1", "a", 30)))
    for number in range(6):
        table.upsert(rows((f"b{number}", "b", 30 + number)))
    table.compact(before=EPOCH_MS + 25)
    table.clean()
    table.archive()
    (log,) = logs_of(path)
    named = {stat.path for commit in table.state().commits.values() for stat in commit.stats}
    assert f"part=a/{log.name}" not in named
    assert bool(table.state().config.metadata_partitions) == has_metadata_table


@dataclass(frozen=True)
class ArchivedTable:
    """A copy of such a table that a test may damage."""

    path: Path
    version: int

    @property
    def table(self) -> Table:
        return Table.open(str(self.path), OPTIONS)

    @property
    def findings(self) -> list[Finding]:
        return [finding for check in self.table.verify().checks for finding in check.findings]

    @property
    def keys(self) -> list[str]:
        return sorted(map(str, self.table.snapshot().to_arrow()["id"].to_pylist()))

    @property
    def content(self) -> dict[str, bytes]:
        files = (file for file in self.path.rglob("*") if file.is_file())
        return {str(file.relative_to(self.path)): file.read_bytes() for file in files}


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int, bool], Path]:
    made: dict[tuple[int, bool], Path] = {}

    def original(version: int, has_metadata_table: bool) -> Path:
        key = version, has_metadata_table
        if key not in made:
            made[key] = tmp_path_factory.mktemp("original") / "t"
            written(made[key], version, has_metadata_table=has_metadata_table)
        return made[key]

    return original


@pytest.fixture
def copied(originals: Callable[[int, bool], Path], tmp_path: Path) -> Callable[[int, bool], ArchivedTable]:
    def copy(version: int, has_metadata_table: bool) -> ArchivedTable:
        shutil.copytree(originals(version, has_metadata_table), tmp_path / "t")
        return ArchivedTable(tmp_path / "t", version)

    return copy


def bases_of(path: Path) -> list[Path]:
    return sorted(path.glob("part=a/*.parquet"))


def logs_of(path: Path) -> list[Path]:
    return [file for file in path.glob("part=a/.*.log.*") if not file.name.endswith(".crc")]


def halve(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def lose_mark(path: Path) -> None:
    (path / "part=a" / MARK).unlink()


def lose_bases(path: Path) -> None:
    for base in bases_of(path):
        base.unlink()


def lose_base_below_log(path: Path) -> None:
    (log,) = logs_of(path)
    (base,) = path.glob(f"part=a/{log.name[1:].partition('_')[0]}_*.parquet")
    base.unlink()


def lose_log(path: Path) -> None:
    for log in logs_of(path):
        log.unlink()


def lose_partition(path: Path) -> None:
    shutil.rmtree(path / "part=a")


def halve_base(path: Path) -> None:
    halve(bases_of(path)[0])


def halve_log(path: Path) -> None:
    halve(logs_of(path)[0])


Damage = Callable[[Path], None]
ERRORS: dict[Damage, type[EventideError]] = {
    lose_mark: MissingFileError,
    lose_bases: MissingFileError,
    lose_base_below_log: MissingFileError,
    lose_log: MissingFileError,
    lose_partition: MissingFileError,
    halve_base: CorruptBaseFileError,
    halve_log: CorruptLogBlockError,
}
versions = pytest.mark.parametrize("version", [6, 9])
HELD = [
    *((damage, version, True) for damage in ERRORS for version in (6, 9)),
    *((damage, version, False) for damage in (lose_mark, halve_log) for version in (6, 9)),
    (lose_bases, 6, False),
    (lose_base_below_log, 6, False),
]
"""The damages that the gate sees: with a metadata table all of them, without one what the directories make suspect."""


@pytest.mark.parametrize(
    ("damage", "version", "has_metadata_table"),
    HELD,
    ids=[f"{damage.__name__}-{version}-{'metadata' if has else 'directories'}" for damage, version, has in HELD],
)
def test_what_an_archived_write_lost_holds_the_watermark(
    damage: Damage, version: int, has_metadata_table: bool, copied: Callable[[int, bool], ArchivedTable]
) -> None:
    sound = copied(version, has_metadata_table)
    gate = ("freshness", sound.path, "--require", "2023-11-14T22:13:20.015Z")
    assert run(*gate).exit_code == 0
    whole = sound.content
    damage(sound.path)
    before, error = sound.content, ERRORS[damage]
    table = sound.table
    for ask in (
        table.freshness,
        lambda: table.plan_compaction(EPOCH_MS + 40),
        lambda: table.compact(before=EPOCH_MS + 40),
    ):
        with pytest.raises(error):
            ask()
    assert sound.content == before
    assert run(*gate).exit_code == error.exit_code
    assert not table.verify().ok
    for name, data in whole.items():
        (sound.path / name).parent.mkdir(exist_ok=True)
        (sound.path / name).write_bytes(data)
    assert run(*gate).exit_code == 0
    assert sound.table.verify().ok


@versions
@pytest.mark.parametrize(
    ("damage", "has_metadata_table"),
    [(lose_bases, True), (halve_log, True), *((d, False) for d in ERRORS if d is not lose_mark)],
)
def test_verify_names_what_an_archived_write_lost_and_its_cure_loses_nothing(
    damage: Damage, version: int, has_metadata_table: bool, copied: Callable[[int, bool], ArchivedTable]
) -> None:
    table = copied(version, has_metadata_table)
    before = {name: len(data) for name, data in table.content.items() if name.startswith("part=a") and MARK not in name}
    damage(table.path)
    left = {name: len(data) for name, data in table.content.items()}
    damaged = {name for name, size in before.items() if left.get(name) != size}
    assert damaged
    findings = table.findings
    assert {finding.path for finding in findings} == damaged
    assert all(finding.cure.startswith("restore the file from a copy") for finding in findings)
    table.table.repair(apply=True)
    assert {finding.path for finding in table.findings} == damaged, "the metadata table still lists what is lost"


@versions
@pytest.mark.parametrize("has_metadata_table", [True, False])
def test_repair_marks_a_partition_of_archived_writes_again(
    version: int, has_metadata_table: bool, copied: Callable[[int, bool], ArchivedTable]
) -> None:
    table = copied(version, has_metadata_table)
    keys = table.keys
    lose_mark(table.path)
    with pytest.raises(MissingFileError, match=rf"if part=a/{MARK} is missing, `table\.repair\(\)` writes it again"):
        table.table.upsert(rows(("a2", "a", 40)))
    assert {finding.cure for finding in table.findings} == {"`table.repair()` writes it again, which loses nothing"}
    (repair,) = table.table.repair(apply=True).repairs
    assert repair.path == f"part=a/{MARK}"
    assert table.keys == keys
    table.table.upsert(rows(("a2", "a", 40)))
    assert table.keys == keys


@versions
def test_a_rebuilt_metadata_table_lists_no_more_what_is_lost_for_good(
    version: int, copied: Callable[[int, bool], ArchivedTable]
) -> None:
    table = copied(version, True)
    lose_partition(table.path)
    with pytest.raises(MissingFileError, match="or rebuild the metadata table"):
        table.table.freshness()
    table.table.rebuild_metadata_table()
    assert table.table.freshness().cut_ms == EPOCH_MS + 25
    assert all(key.startswith("b") for key in table.keys)


@versions
def test_a_base_file_that_was_changed_within_is_found_by_reading_it(
    version: int, copied: Callable[[int, bool], ArchivedTable]
) -> None:
    """The gate reads no base file, and the size is right."""
    table = copied(version, True)
    (base, *_) = bases_of(table.path)
    data = bytearray(base.read_bytes())
    data[64:96] = bytes(byte ^ 0x55 for byte in data[64:96])
    base.write_bytes(data)
    assert table.table.freshness().cut_ms == EPOCH_MS + 25
    assert table.table.verify().ok
    deep = table.table.verify(deep=True)
    assert {finding.path for check in deep.failed for finding in check.findings} == {f"part=a/{base.name}"}
    with pytest.raises(CorruptBaseFileError, match=base.name):
        table.table.snapshot().to_arrow()
