"""A rollback or restore whose files are empty: its engine died before it wrote the plan, or a power failure took it."""

from pathlib import Path

import pytest

from eventide import Table
from eventide_core.errors import BusyError
from support.faults.damages import CODEC
from support.run.command_line import run
from support.tables.small import HOUR_MS, LATER_MS, make, rows, seen

pytestmark = pytest.mark.slow

SOON_ABANDONED = {"eventide.pending.service.stale_ms": "0"}


def requested(path: Path, version: int, action: str) -> tuple[Path, str]:
    """The table with such a file, and its instant."""
    table = make(path, version)
    first = table.upsert(rows(("k1", 1, "old"), ("k2", 1, "old")))
    table.savepoint(first.instant)
    last = table.upsert(rows(("k1", 2, "new")))
    instant = str(int(last.instant) + 5)
    directory = path / ".hoodie" if version == 6 else path / ".hoodie" / "timeline"
    file = directory / f"{instant}.{action}.requested"
    file.write_bytes(b"")
    return file, instant


@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize("action", ["rollback", "restore"])
def test_the_command_that_the_message_names_removes_it(action: str, version: int, tmp_path: Path) -> None:
    path = tmp_path / "t"
    file, instant = requested(path, version, action)
    before = seen(Table.open(str(path)).snapshot().to_arrow())
    assert run("rollback", path, instant).exit_code == 4, "its engine may be about to write the plan"
    assert run("rollback", path, instant, "--force").exit_code == 0
    assert not file.exists()
    table = Table.open(str(path))
    assert seen(table.snapshot().to_arrow()) == before
    table.upsert(rows(("k3", 3, "next")))
    assert run("compact", path, "--before", LATER_MS - HOUR_MS, "--engine", "local").exit_code == 0
    assert run("verify", path).exit_code == 0


@pytest.mark.parametrize("version", [6, 9])
def test_a_write_removes_an_abandoned_request_of_a_rollback(version: int, tmp_path: Path) -> None:
    path = tmp_path / "t"
    file, _ = requested(path, version, "rollback")
    table = Table.open(str(path), SOON_ABANDONED)
    table.upsert(rows(("k3", 3, "next")))
    assert not file.exists()
    assert seen(table.snapshot().to_arrow()).keys() == {"k1", "k2", "k3"}


@pytest.mark.parametrize("version", [6, 9])
def test_a_restore_begins_again_after_an_abandoned_request(version: int, tmp_path: Path) -> None:
    path = tmp_path / "t"
    file, _ = requested(path, version, "restore")
    table = Table.open(str(path), SOON_ABANDONED)
    saved = table.state().timeline.writes[0].requested_time
    table.restore(saved)
    assert not file.exists()
    assert {key: word for key, (_, word) in seen(table.snapshot().to_arrow()).items()} == {"k1": "old", "k2": "old"}


def died(path: Path, version: int) -> tuple[Table, Path]:
    """The table, whose last write was rolled back, and the rollback's completed file."""
    table = make(path, version)
    table.upsert(rows(("k1", 1, "old"), ("k2", 1, "old")))
    table.rollback(table.upsert(rows(("k1", 2, "new"))).instant)
    (completed,) = (path / ".hoodie").glob("*.rollback" if version == 6 else "timeline/*.rollback")
    return table, completed


@pytest.mark.parametrize("version", [6, 9])
def test_a_rollback_that_began_and_lost_its_plan_is_made_again(version: int, tmp_path: Path) -> None:
    path = tmp_path / "t"
    table, completed = died(path, version)
    instant = completed.name[:17]
    kept = {"k1": "old", "k2": "old"}
    undone = table.upsert(rows(("k1", 3, "half")))
    (done,) = completed.parent.glob(f"{undone.instant}*.deltacommit")
    done.unlink()  # as a rollback of a completed write leaves it that died before it removed a file
    completed.unlink()
    requested = completed.with_name(f"{instant}.rollback.requested")
    requested.write_bytes(b"")
    for stopped in (path / ".hoodie" / ".heartbeat").glob("*"):
        stopped.unlink()
    assert requested.with_name(f"{instant}.rollback.inflight").exists()
    assert str(requested.relative_to(path)) in run("verify", path).stdout
    assert run("rollback", path, instant).exit_code == 4, "its engine may be at work"
    assert run("rollback", path, instant, "--force").exit_code == 0
    assert not [*completed.parent.glob(f"{instant}*")]
    table = Table.open(str(path))
    assert {key: word for key, (_, word) in seen(table.snapshot().to_arrow()).items()} == kept
    table.rollback(undone.instant, force=True)
    assert {key: word for key, (_, word) in seen(table.snapshot().to_arrow()).items()} == kept
    assert run("verify", path, "--deep").exit_code == 0


@pytest.mark.parametrize("version", [6, 9])
def test_a_write_takes_an_abandoned_rollback_without_a_plan_away(version: int, tmp_path: Path) -> None:
    path = tmp_path / "t"
    _, completed = died(path, version)
    completed.with_name(f"{completed.name[:17]}.rollback.requested").write_bytes(b"")
    completed.unlink()
    table = Table.open(str(path), SOON_ABANDONED)
    table.upsert(rows(("k3", 3, "next")))
    assert not [*completed.parent.glob(f"{completed.name[:17]}*")]
    assert seen(table.snapshot().to_arrow()).keys() == {"k1", "k2", "k3"}
    assert run("verify", path, "--deep").exit_code == 0


@pytest.mark.parametrize("version", [6, 9])
def test_a_restore_that_began_and_lost_its_plan_is_made_again(version: int, tmp_path: Path) -> None:
    path = tmp_path / "t"
    requested_file, instant = requested(path, version, "restore")
    requested_file.with_name(f"{instant}.restore.inflight").write_bytes(b"")
    with pytest.raises(BusyError, match="a restore is in progress"):
        Table.open(str(path), SOON_ABANDONED).upsert(rows(("k3", 3, "next")))
    assert run("rollback", path, instant, "--force").exit_code == 4, "it may have undone a part"
    table = Table.open(str(path), SOON_ABANDONED)
    table.restore(table.state().timeline.writes[0].requested_time)
    assert not [*requested_file.parent.glob(f"{instant}*")]
    assert {key: word for key, (_, word) in seen(table.snapshot().to_arrow()).items()} == {"k1": "old", "k2": "old"}


@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize("bytes_", [b"", b"torn"], ids=["empty", "torn"])
def test_a_completed_rollback_that_cannot_be_read_is_told_by_its_plan_and_repaired(
    bytes_: bytes, version: int, tmp_path: Path
) -> None:
    path = tmp_path / "t"
    table, completed = died(path, version)
    targets = CODEC.decode_rollback(completed.read_bytes(), "").targets
    completed.write_bytes(bytes_)
    table = Table.open(str(path))
    table.upsert(rows(("k3", 3, "next")))
    assert run("compact", path, "--before", LATER_MS - HOUR_MS, "--engine", "local").exit_code == 0
    assert run("verify", path).exit_code == 1
    (repair,) = Table.open(str(path)).repair(apply=True).repairs
    assert repair.action == "writes the completed rollback again, from its plan"
    assert CODEC.decode_rollback(completed.read_bytes(), "").targets == targets
    assert run("verify", path, "--deep").exit_code == 0
    assert seen(Table.open(str(path)).snapshot().to_arrow()).keys() == {"k1", "k2", "k3"}
