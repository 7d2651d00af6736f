"""Nothing is said of a table of which a committed file isn't whole: no plan, no cut, no "is met"."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from eventide import Table
from eventide_core.errors import CorruptBaseFileError, CorruptLogBlockError, MissingFileError
from golden.histories import EPOCH_MS, PLAIN
from support.pasts import golden
from support.run.command_line import run

T_MS = EPOCH_MS + 50


def empty(file: Path, _: Path) -> None:
    file.write_bytes(b"")


def cut_in_half(file: Path, _: Path) -> None:
    data = file.read_bytes()
    file.write_bytes(data[: len(data) // 2])


def cut_by_a_byte(file: Path, _: Path) -> None:
    file.write_bytes(file.read_bytes()[:-1])


def a_dangling_link(file: Path, outside: Path) -> None:
    file.unlink()
    file.symlink_to(outside / "nothing")


def a_link_out_of_the_table(file: Path, outside: Path) -> None:
    (outside / "file").write_bytes(file.read_bytes())
    file.unlink()
    file.symlink_to(outside / "file")


def gone(file: Path, _: Path) -> None:
    file.unlink()


@pytest.fixture(params=[6, 9])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A table of two slices; each has one log file with a record before T."""
    path = tmp_path / "t"
    options = {"hoodie.time.generator.max_expected_clock_skew_time_ms": "0"}
    table = Table.create(
        str(path),
        schema=PLAIN,
        record_key="id",
        partition="part",
        event_time="event_ts",
        version=request.param,
        options=options,
    )
    for parts, ms in (("ab", 10), ("a", 30), ("b", 25)):
        values = [{"id": part, "part": part, "event_ts": EPOCH_MS + ms, "val": "", "amount": 0.0} for part in parts]
        table.upsert(pa.Table.from_pylist(values, schema=PLAIN))
        if ms == 10:
            table.compact(before=EPOCH_MS + 20)
    return path


@pytest.mark.parametrize("damage", [empty, cut_in_half, cut_by_a_byte, a_dangling_link, a_link_out_of_the_table, gone])
def test_a_file_that_is_not_whole_is_named_and_holds_everything(
    damage: Callable[[Path, Path], None], path: Path, tmp_path: Path
) -> None:
    commits = [write.requested_time for write in Table.open(str(path)).state().timeline.writes]
    (log,) = (found for found in path.glob("part=b/.*.log.*") if not found.name.endswith(".crc"))
    damage(log, tmp_path)
    table, error = Table.open(str(path)), MissingFileError if damage is gone else CorruptLogBlockError
    before = sorted(path.rglob("*"))
    for ask in (
        lambda: table.freshness(),
        lambda: table.plan_compaction(T_MS),
        lambda: table.compact(before=T_MS),
        lambda: table.snapshot().to_arrow(),
    ):
        with pytest.raises(error, match=log.name):
            ask()
    assert sorted(path.rglob("*")) == before
    gate = run("freshness", path, "--require", "2023-11-14T22:13:20.015Z")
    assert (gate.exit_code, log.name in gate.stderr) == (error.exit_code, True)
    assert not table.verify().ok
    table.rollback(commits[-1])
    table.compact(before=T_MS)
    assert table.freshness().cut_ms == T_MS


def test_an_empty_file_of_an_archived_write_is_named(tmp_path: Path) -> None:
    """Its commit, which says how many bytes it has, has left the timeline."""
    options = {
        "hoodie.time.generator.max_expected_clock_skew_time_ms": "0",
        "hoodie.keep.min.commits": "2",
        "hoodie.keep.max.commits": "3",
        "hoodie.clean.commits.retained": "1",
    }
    table = Table.create(
        str(tmp_path / "t"), schema=PLAIN, record_key="id", partition="part", event_time="event_ts", options=options
    )
    for number, part in enumerate("abbbbbb"):
        values = [{"id": part, "part": part, "event_ts": EPOCH_MS + number, "val": "", "amount": 0.0}]
        table.upsert(pa.Table.from_pylist(values, schema=PLAIN))
    table.compact(before=EPOCH_MS + 50)
    table.clean()
    table.archive()
    (base,) = (tmp_path / "t").glob("part=a/*.parquet")
    instant = base.stem.rpartition("_")[2]
    assert Table.open(table.uri, options).state().timeline.find(instant) is None
    base.write_bytes(b"")
    with pytest.raises(CorruptBaseFileError, match="is empty: it has lost its records"):
        Table.open(table.uri, options).freshness()


@pytest.mark.parametrize("damage", [cut_in_half, cut_by_a_byte])
@pytest.mark.parametrize("name", ["v6_no_deletes", "v9_no_deletes"])
def test_a_log_file_of_hudi_that_lacks_bytes_holds_the_gate(
    name: str, damage: Callable[[Path, Path], None], tmp_path: Path
) -> None:
    """Hudi's figure of its size isn't believed; that a block of each write is there, is."""
    path = golden.unpack(name, tmp_path)
    table = Table.open(str(path))
    is_by_write = name.startswith("v9")
    if is_by_write:  # on version 6, left-overs would be copies of eventide's
        table.compact(before=EPOCH_MS + 1)
    (*_, last) = (file for one in table.state().view.latest_slices() for file in one.log_files)
    log = path / last.path
    damage(log, tmp_path)
    with pytest.raises(CorruptLogBlockError, match=log.name):
        Table.open(str(path)).freshness()
    if is_by_write:
        assert run("freshness", path, "--require", "2023-11-14T22:13:20Z").exit_code == 2
