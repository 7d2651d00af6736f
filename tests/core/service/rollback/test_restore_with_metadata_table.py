"""A restore that dies at any write leaves what readers of Hudi's metadata table and readers of directories see alike."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from eventide import Table
from eventide.bootstrap import assemble
from eventide.rows.writer import incoming_records
from eventide_adapters.storage.faulty import FaultyStorage, SimulatedCrash
from eventide_adapters.storage.local import LocalStorage
from eventide_core.errors import EventideError
from eventide_core.ports import NoProgress, Storage
from eventide_core.table.settings.write_shape import WriteOperation
from golden.histories import EPOCH_MS, PLAIN
from support.files.metadata_updates import crashed_copies, listed, on_disk
from support.judge import hudi_rs
from support.pasts import golden

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


class _Overtaken(FaultyStorage):
    """The process of a write falls asleep before it updates the metadata table; then it goes on, or dies with the update."""

    def __init__(self, inner: Storage, others: Callable[[], object], *, dies: bool) -> None:
        super().__init__(inner)
        self.others, self.dies = others, dies

    def put(self, path: str, data: bytes) -> None:
        if path.startswith(".hoodie/metadata/files/"):
            self.others()
        super().put(path, data)

    def put_if_absent(self, path: str, data: bytes) -> bool:
        if path.startswith(".hoodie/metadata/files/"):
            self.others()
        done = super().put_if_absent(path, data)
        if self.dies and path.startswith(".hoodie/metadata/.hoodie/") and path.endswith(".deltacommit"):
            raise SimulatedCrash(path)
        return done


@pytest.mark.parametrize("dies", [False, True], ids=["wakes", "dies"])
@pytest.mark.parametrize("name", ["v6_mdt", "v9_mdt"])
def test_a_late_update_of_a_write_that_a_restore_undid_names_no_file(name: str, tmp_path: Path, *, dies: bool) -> None:
    path = golden.unpack(name, tmp_path)
    table = Table.open(str(path), OPTIONS)
    rows = table.snapshot().to_arrow(PLAIN.names)
    table.savepoint(table.state().timeline.writes[-1].requested_time)

    def restore() -> None:
        (path / ".hoodie/lock").unlink()  # it has expired
        for heartbeat in (path / ".hoodie/.heartbeat").iterdir():
            heartbeat.unlink()
        table.restore(table.state().timeline.writes[-1].requested_time)

    storage = _Overtaken(LocalStorage(path), restore, dies=dies)
    late = assemble(str(path), dict(OPTIONS), storage=storage)
    written = pa.Table.from_pylist([{**rows.to_pylist()[0], "event_ts": EPOCH_MS + 10**9}], schema=PLAIN)
    records = incoming_records(late, WriteOperation.UPSERT, written)
    with pytest.raises((EventideError, SimulatedCrash)):
        late.append.write(WriteOperation.UPSERT, records, NoProgress())
    (path / ".hoodie/lock").unlink(missing_ok=True)
    after = Table.open(str(path), {**OPTIONS, "hoodie.metadata.compact.max.delta.commits": "1"})
    for number in range(3):
        upserted = [{**row, "event_ts": EPOCH_MS + 2 * 10**9 + number} for row in rows.slice(0, 2).to_pylist()]
        after.upsert(pa.Table.from_pylist(upserted, schema=PLAIN))
        assert listed(path) == on_disk(path)
        assert _rows(hudi_rs.read(path)) == _rows(after.snapshot().to_arrow(PLAIN.names))
    assert after.verify().ok


def _rows(found: pa.Table) -> list[tuple[Any, ...]]:
    return sorted((row["part"], row["id"], row["event_ts"], row["val"]) for row in found.to_pylist())
