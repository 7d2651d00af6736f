"""A restore that dies at any write leaves what readers of Hudi's metadata table and readers of directories see alike."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from eventide import Table
from eventide.bootstrap import assemble
from eventide_core.ports import Storage
from golden.histories import EPOCH_MS, PLAIN
from support import golden
from support.judge import hudi_rs
from support.metadata_updates import crashed_copies

pytestmark = pytest.mark.slow

OPTIONS: Mapping[str, str] = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}


@pytest.mark.parametrize("name", ["v6_mdt", "v9_mdt"])
def test_a_write_that_a_restore_undoes_is_there_for_all_readers_or_for_none(name: str, tmp_path: Path) -> None:
    path = golden.unpack(name, tmp_path)
    table = Table.open(str(path), OPTIONS)
    saved = table.state().timeline.writes[-1].requested_time
    table.savepoint(saved)
    states = [_rows(table.snapshot().to_arrow(PLAIN.names))]
    for number in range(2):
        rows = table.snapshot().to_arrow(PLAIN.names).slice(0, 9).to_pylist()
        late = [{**row, "val": f"undone {number}", "event_ts": EPOCH_MS + 10**9 + number} for row in rows]
        table.upsert(pa.Table.from_pylist(late, schema=PLAIN))
        states.append(_rows(table.snapshot().to_arrow(PLAIN.names)))

    def restore(copy: Path, storage: Storage) -> None:
        assemble(str(copy), dict(OPTIONS), storage=storage).restorer.restore(saved)

    shown: list[int] = []
    for copy, _ in crashed_copies(path, tmp_path, restore):
        (copy / ".hoodie/lock").unlink(missing_ok=True)
        seen = _rows(Table.open(str(copy)).snapshot().to_arrow(PLAIN.names))
        assert _rows(hudi_rs.read(copy)) == seen
        shown.append(states.index(seen))
    assert shown == sorted(shown, reverse=True), "what was undone came back"
    assert set(shown) == {0, 1, 2}


def _rows(found: pa.Table) -> list[tuple[Any, ...]]:
    return sorted((row["part"], row["id"], row["event_ts"], row["val"]) for row in found.to_pylist())
