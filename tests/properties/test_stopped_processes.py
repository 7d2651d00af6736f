"""A real process that is stopped by a signal before a change of the timeline, until others have gone on, harms nobody.

The pauses before all changes are in test_paused_owners.
"""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eventide import Table
from eventide_core.config import LOCK_EXPIRE_MINUTES
from support.faults.stopped import let_expire, stopped, wake
from support.run.command_line import run_json
from support.tables.small import LATER_MS, OPTIONS, SERVE, make, rows, seen

pytestmark = pytest.mark.slow

WORDS = (*OPTIONS, "--option", f"{LOCK_EXPIRE_MINUTES}=1")
OWN = rows(("k0", 1, "own"), ("k9", 1, "own"))


def ingest(path: Path, batch: pa.Table, name: str) -> tuple[object, ...]:
    source = path / f"{name}.parquet"
    pq.write_table(batch, source)
    return ("ingest", path / "table", source, *WORDS)


def begun(path: Path, version: int) -> Table:
    table = make(path / "table", version)
    for hours, name in ((-3, "first"), (-2, "second")):
        run_json(*ingest(path, rows(*((f"k{n}", hours, name) for n in range(4))), name))
    return table


def others_go_on(path: Path) -> pa.Table:
    """Others write, and undo, compact, clean and archive in rounds. Returns the rows that they wrote last."""
    let_expire(path / "table")
    written = pa.table({})
    for number in range(4):
        written = rows(("k0", 2, f"others {number}"), ("k1", 2, f"others {number}"))
        run_json(*ingest(path, written, f"others-{number}"))
        served = run_json("serve", path / "table", "--rounds", 1, *SERVE[:-2], *WORDS)
        assert served["troubles"] == []
    return written


@pytest.mark.parametrize(
    ("version", "suffix"),
    [
        (9, ".deltacommit"),
        pytest.param(6, ".deltacommit", marks=pytest.mark.broad),
        pytest.param(9, ".deltacommit.inflight", marks=pytest.mark.proof),
        pytest.param(6, ".deltacommit.requested", marks=pytest.mark.proof),
    ],
)
def test_an_ingest_that_was_stopped_fails_and_leaves_nothing(version: int, suffix: str, tmp_path: Path) -> None:
    table = begun(tmp_path, version)
    before = seen(table.snapshot().to_arrow())
    with stopped(suffix, *ingest(tmp_path, OWN, "own")) as process:
        written = others_go_on(tmp_path)
        exit_code, said = wake(process)
    assert exit_code != 0
    assert "lock" in said or "rolled back" in said, said
    assert seen(table.snapshot().to_arrow()) == before | seen(written)
    assert table.verify(deep=True).failed == ()


@pytest.mark.parametrize(
    ("version", "suffix"),
    [
        pytest.param(9, ".commit", marks=pytest.mark.broad),
        pytest.param(6, ".compaction.inflight", marks=pytest.mark.proof),
        pytest.param(9, ".compaction.requested", marks=pytest.mark.proof),
    ],
)
def test_a_compaction_that_was_stopped_changes_no_row(version: int, suffix: str, tmp_path: Path) -> None:
    table = begun(tmp_path, version)
    before = seen(table.snapshot().to_arrow())
    with stopped(suffix, "compact", tmp_path / "table", "--before", LATER_MS, *WORDS) as process:
        written = others_go_on(tmp_path)
        wake(process)
    assert seen(table.snapshot().to_arrow()) == before | seen(written)
    assert table.verify(deep=True).failed == ()
    run_json(*ingest(tmp_path, OWN, "own"))
    assert seen(table.snapshot().to_arrow()).keys() == {*before, "k9"}
