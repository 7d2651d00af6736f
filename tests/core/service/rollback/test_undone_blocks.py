"""The blocks that a restore of stock Hudi leaves in the log files of version 6 count for no reader and no service."""

from pathlib import Path
from typing import Any

import pytest

from eventide import Table
from eventide_adapters.format.timeline.codec import HudiMetadataCodec
from eventide_core.errors import CorruptLogBlockError
from eventide_core.table.timeline.contents.rollback_metadata import RestorePlan, RollbackTarget
from golden.histories import PLAIN
from support.pasts import golden
from support.run.command_line import run, run_json

RESTORED = "20991231235959999"


def rows(path: Path, moment: str | None = None) -> list[dict[str, Any]]:
    table = Table.open(str(path))
    query = table.snapshot() if moment is None else table.as_of(moment)
    return query.to_arrow(PLAIN.names).sort_by("id").to_pylist()


def test_blocks_that_a_restore_left_are_skipped(tmp_path: Path) -> None:
    path = golden.unpack("v6_no_deletes", tmp_path)
    *_, saved, undone = Table.open(str(path)).state().timeline.writes
    kept, everything = rows(path, saved.requested_time), rows(path)
    assert kept != everything

    for file in (path / ".hoodie").glob(f"{undone.requested_time}.*"):
        file.unlink()
    restore(path, saved.requested_time)
    with pytest.raises(CorruptLogBlockError, match=f"{undone.requested_time}, which is not on the timeline"):
        rows(path)  # nothing says that the write was undone
    restore(path, saved.requested_time, RollbackTarget(undone.requested_time, undone.action))

    assert rows(path) == kept
    assert run("verify", path, "--deep").exit_code == 0
    run_json("compact", path, "--before", max(row["event_ts"] for row in everything) + 1, "--engine", "local")
    assert rows(path) == kept
    assert run("verify", path, "--deep").exit_code == 0


def test_a_plan_of_a_restore_that_cannot_be_read_explains_nothing(tmp_path: Path) -> None:
    path = golden.unpack("v6_no_deletes", tmp_path)
    kept = rows(path)
    for data in (b"", b"no container"):
        (path / f".hoodie/{RESTORED}.restore.requested").write_bytes(data)
        (path / f".hoodie/{RESTORED}.restore").write_bytes(data)
        assert rows(path) == kept


def restore(path: Path, savepoint: str, *targets: RollbackTarget) -> None:
    """The files of a restore that has completed."""
    plan = HudiMetadataCodec().encode_restore_plan(RestorePlan(RESTORED, savepoint, targets))
    (path / f".hoodie/{RESTORED}.restore.requested").write_bytes(plan)
    (path / f".hoodie/{RESTORED}.restore.inflight").write_bytes(b"")
    (path / f".hoodie/{RESTORED}.restore").write_bytes(
        plan
    )  # no reader of eventide asks for more than that it is there
