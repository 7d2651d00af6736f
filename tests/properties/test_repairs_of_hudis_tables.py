"""Repairs of tables that Hudi wrote, broken off at each write: the next one ends them, and the rows are as before."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

import pytest

from eventide.bootstrap import Application
from eventide.rows.reader import Rows
from eventide.testing.crash_enumeration import OPTIONS, Bench, Moment, crash_states
from eventide.testing.histories import EPOCH_MS
from eventide_adapters.storage.memory import MemoryFile
from eventide_core.action.repair.repairs import BACKUP_DIRECTORY
from eventide_core.config import EVENT_TIME_FIELD
from eventide_core.errors import NothingToDoError
from eventide_core.ports import NoProgress
from support.pasts import golden
from support.run.reach import reached

pytestmark = pytest.mark.campaign

Files = dict[str, MemoryFile]


def lost_and_cut_off_base_files(files: Files) -> None:
    """Two of those that Hudi's compaction wrote."""
    bases = [path for path in files if path.endswith(".parquet") and ".hoodie" not in path]
    instant = max(path.rpartition("_")[2] for path in bases)
    lost, damaged = sorted(path for path in bases if path.endswith(instant))[:2]
    del files[lost]
    files[damaged] = MemoryFile(files[damaged].data[:-50], files[damaged].modified_ms)


def lost_history(files: Files) -> None:
    del files[max(path for path in files if path.startswith(".hoodie/timeline/history/2"))]


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        pytest.param("v6_compacted", lost_and_cut_off_base_files, marks=pytest.mark.broad),
        ("v9_compacted", lost_and_cut_off_base_files),
        ("v9_archived", lost_history),
    ],
)
def test_a_repair_and_its_undo_are_completed_after_a_crash_anywhere(
    name: str, damage: Callable[[Files], None], tmp_path: Path
) -> None:
    root = golden.unpack(name, tmp_path)
    paths = [path for path in sorted(root.rglob("*")) if path.is_file() and path.suffix != ".crc"]
    sound = {str(path.relative_to(root)): MemoryFile(path.read_bytes(), 1) for path in paths}
    bench = Bench(f"repairs-of-hudis-tables-{name}", {**OPTIONS, EVENT_TIME_FIELD: "event_ts"})
    bench.load(Moment(sound, EPOCH_MS))
    before = shown(bench.process())
    files = dict(sound)
    damage(files)
    damaged = Moment(files, EPOCH_MS)

    for number, crashed in crash_states(bench, damaged, _apply):
        bench.load(crashed.after_the_lock_expired())
        done = bench.process().repairer.apply((), is_deep=False, progress=NoProgress())
        assert done.verification.ok, f"write {number}: {done.verification.failed}"
        assert shown(bench.process()) == before, f"write {number}"
        reached(f"repairs of Hudi's tables broken off at a write, {name}")

    repaired = bench.run(damaged, _apply)
    for number, crashed in crash_states(bench, repaired, _undo):
        bench.load(crashed.after_the_lock_expired())
        with suppress(NothingToDoError):  # died after the last write
            _undo(bench.process())
        assert _of_table(bench.moment().files) == _of_table(damaged.files), f"write {number} of the undo"


def shown(application: Application) -> list[str]:
    """The snapshot."""
    return sorted(
        map(repr, Rows(application.queries.snapshot(), application.reader, application.engine).to_arrow().to_pylist())
    )


def _apply(application: Application) -> None:
    application.repairer.apply((), is_deep=False, progress=NoProgress())


def _undo(application: Application) -> None:
    application.repairer.undo()


def _of_table(files: Mapping[str, MemoryFile]) -> dict[str, bytes]:
    return {path: f.data for path, f in files.items() if not path.startswith((BACKUP_DIRECTORY, ".hoodie/lock"))}
