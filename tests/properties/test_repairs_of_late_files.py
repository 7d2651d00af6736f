"""A late file of an archived instant hides archived writes from stock Hudi. No repair removes their data."""

import shutil
import time
from pathlib import Path
from typing import NamedTuple

import pytest

from eventide import Table
from support.run.command_line import run
from support.tables.small import HOUR_MS, OPTIONS, make, rows, seen

pytestmark = pytest.mark.slow

LATE = [
    (".deltacommit.requested",),
    (".deltacommit.inflight",),
    (".deltacommit",),
    (".compaction.requested",),
    (".compaction.inflight",),
    (".compaction.requested", ".compaction.inflight"),
    (".commit",),
]


class Archived(NamedTuple):
    """A table in `path` with archived writes and compactions. `gone` are the archived files of the `timeline` directory."""

    path: Path
    timeline: Path
    gone: dict[str, bytes]

    def put_late(self, *ends: str) -> list[Path]:
        """Puts the files with these ends of the oldest instant back that has them all."""
        times = sorted({name[:17] for name in self.gone})
        of_times = ([self._name(time, end) for end in ends] for time in times)
        names = next(found for found in of_times if all(found))
        for name in names:
            (self.timeline / name).write_bytes(self.gone[name])
        return [self.timeline / name for name in names]

    def _name(self, time: str, end: str) -> str:
        return next(
            (name for name in self.gone if name.startswith(time) and name[17:].lstrip("_0123456789") == end), ""
        )

    def shown(self) -> dict[str, tuple[int, str]]:
        return seen(Table.open(str(self.path)).snapshot().to_arrow())

    def data_files(self) -> set[Path]:
        return {p for p in self.path.rglob("*") if p.is_file() and ".hoodie" not in p.relative_to(self.path).parts}


@pytest.fixture(scope="module", params=[6, 9])
def written(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Archived:
    path = tmp_path_factory.mktemp("written") / "table"
    made = make(path, request.param)
    timeline = path / ".hoodie" / ("timeline" if request.param >= 8 else "")
    put: dict[str, bytes] = {}
    for step in range(8):
        made.upsert(rows(*((f"k{key}", step, f"w{step}") for key in range(step * 2, step * 2 + 6))))
        if step % 2:
            before = str(time.time_ns() // 1_000_000 + 20 * HOUR_MS)
            assert run("compact", path, "--before", before, *OPTIONS).exit_code == 0
        put |= {file.name: file.read_bytes() for file in timeline.iterdir() if file.is_file()}
    assert run("archive", path, *OPTIONS).exit_code == 0
    left = {file.name for file in timeline.iterdir()}
    return Archived(path, timeline, {name: data for name, data in put.items() if name not in left})


@pytest.fixture
def table(written: Archived, tmp_path: Path) -> Archived:
    copy = tmp_path / "table"
    shutil.copytree(written.path, copy, symlinks=True)
    return Archived(copy, copy / written.timeline.relative_to(written.path), written.gone)


@pytest.mark.parametrize("ends", LATE, ids="+".join)
def test_a_late_file_of_an_archived_instant_is_moved_away_and_nothing_else(
    ends: tuple[str, ...], table: Archived
) -> None:
    rows_before, files_before = table.shown(), table.data_files()
    late = table.put_late(*ends)
    found = run("verify", table.path, "--output", "json").document
    timeline = next(check for check in found["checks"] if check["name"] == "timeline")
    assert [finding["path"] for finding in timeline["findings"]] == sorted(str(p.relative_to(table.path)) for p in late)
    assert all("doesn't count" in finding["problem"] for finding in timeline["findings"])
    assert table.shown() == rows_before

    done = run("repair", table.path, "--apply", "--output", "json")

    assert done.exit_code == 0, done.stdout
    assert {repair["check"] for repair in done.document["repairs"]} == {"timeline"}
    assert not any(file.exists() for file in late)
    assert table.data_files() == files_before
    assert table.shown() == rows_before


@pytest.mark.parametrize("ends", LATE, ids="+".join)
def test_no_data_is_moved_while_a_late_file_hides_archived_writes(ends: tuple[str, ...], table: Archived) -> None:
    files = table.data_files()
    table.put_late(*ends)
    done = run("repair", table.path, "orphan-files", "file-slices", "log-blocks", "--apply", "--output", "json")
    assert done.document["repairs"] == []
    assert table.data_files() == files


@pytest.mark.parametrize("has_data", [False, True], ids=["without-data", "with-data"])
def test_a_late_request_of_an_undone_write_is_left_to_a_clean(has_data: bool, table: Archived) -> None:
    """Which records that a data file of it doesn't count, and removes that file."""
    rows_before = table.shown()
    undone = f"{int(min(table.gone)[:17]) + 1}"
    request = table.timeline / f"{undone}.deltacommit.requested"
    request.write_bytes(b"")
    if has_data:
        base = max((file for file in table.data_files() if file.suffix == ".parquet"), key=lambda file: file.name[-25:])
        shutil.copy(base, base.with_name(f"{base.name[:-25]}{undone}.parquet"))
    files = table.data_files()
    assert table.shown() == rows_before

    done = run("repair", table.path, "--apply", "--output", "json")

    assert (table.data_files(), request.exists()) == (files, True)
    cure = next(one["cure"] for one in done.document["unrepaired"] if one["check"] == "timeline")
    assert "eventide clean TABLE" in cure
    assert table.shown() == rows_before
    assert run("clean", table.path, *OPTIONS).exit_code == 0
    assert not request.exists()
    assert not any(undone in file.name for file in table.data_files())
    assert table.shown() == rows_before
    assert run("verify", table.path, "--deep").exit_code == 0
