"""What a compaction has made is looked at under the lock: a commit of files that are gone or cut short would lose rows."""

from collections.abc import Callable
from pathlib import Path

import pytest

from eventide_core.errors import MissingFileError
from eventide_core.ports import NoProgress
from support.tables.append import START_MS, make, rows, seen


class Disturbs(NoProgress):
    """Does something to a file between the slices and the commit."""

    def __init__(self, act: Callable[[], None]) -> None:
        self.act = act

    def advance(self) -> None:
        self.act()


@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize("made", ["*.parquet", ".*.log.*"])
@pytest.mark.parametrize("is_cut", [False, True], ids=["removed", "cut short"])
def test_a_file_that_is_not_as_it_was_made_is_not_committed(
    version: int, made: str, is_cut: bool, tmp_path: Path
) -> None:
    table = make(tmp_path / "t", version, "BUCKET")
    table.upsert(rows(("k0", "a", 10, "base")))
    table.upsert(rows(("k0", "a", 20, "log")))
    table.upsert(rows(("k0", "a", 200, "left over")))
    expected = seen(table)
    planned = table.schedule(table.plan_compaction(START_MS + 100, link_mode="copy")).instant
    before = set((tmp_path / "t").glob(f"**/{made}"))

    def disturb() -> None:
        (path,) = (path for path in (tmp_path / "t").glob(f"**/{made}") if path not in before)
        path.write_bytes(path.read_bytes()[:-1]) if is_cut else path.unlink()

    with pytest.raises(MissingFileError, match="instead of" if is_cut else "is missing"):
        table.execute(planned, progress=Disturbs(disturb))
    assert [pending.requested_time for pending in table.state().timeline.pending] == [planned]
    assert seen(table) == expected
    if not is_cut:
        assert table.execute(planned).instant == planned
        assert seen(table) == expected
