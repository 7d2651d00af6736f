"""Archival beside a write or plan that died: every reader still leaves out the files that it had written.

Readers take each file for committed whose instant is before the first completed write of the active timeline. hudi-rs reads
here; stock Hudi does in tests/conformance/test_archival_bounds.py.
"""

import shutil
from pathlib import Path

import pytest

from eventide import Table
from support.faults.dead_actions import ACTIONS, EARLY, SHOWN, die, make_table
from support.judge import hudi_rs


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[int, tuple[Path, str]]:
    paths = {version: tmp_path_factory.mktemp("tables") / str(version) for version in (6, 9)}
    return {version: (path, make_table(path, version)) for version, path in paths.items()}


@pytest.mark.parametrize("states", [("requested",), ("requested", "inflight")], ids="-".join)
@pytest.mark.parametrize(("version", "action"), ACTIONS)
def test_no_reader_shows_what_a_dead_action_wrote(
    version: int, action: str, states: tuple[str, ...], tables: dict[int, tuple[Path, str]], tmp_path: Path
) -> None:
    original, instant = tables[version]
    path = shutil.copytree(original, tmp_path / "t")
    die(path, instant, action, states)
    table = Table.open(str(path), EARLY)
    known = {write.requested_time for write in table.state().timeline.writes}
    assert shown_by_hudi_rs(path) == SHOWN
    table.archive()
    assert shown_by_hudi_rs(path) == SHOWN
    assert len(table.snapshot().to_arrow()) == len(SHOWN)
    left = {write.requested_time for write in table.state().timeline.writes}
    assert known - left == {min(known)}, "the one before the dead one stays"


def shown_by_hudi_rs(path: Path) -> list[tuple[object, ...]]:
    return sorted((row["id"], row["event_ts"]) for row in hudi_rs.read(path, "snapshot").to_pylist())
