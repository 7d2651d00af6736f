"""A disk that runs full in the middle of a write, a compaction or another service: a typed error with the cure, nothing that
a reader sees, and the same again ends it once there is room.

The disk takes half of some file, each in turn, and nothing more from then on.
"""

import errno
import io
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from eventide.testing.histories import Layout
from eventide_adapters.storage.local import LocalStorage
from eventide_adapters.storage.paths import TEMPORARY
from eventide_core.errors import EventideError, StorageError
from support.pasts.served import LAYOUTS
from support.pauses.services import ACTIONS, case, shown
from support.run.reach import reached
from support.tables.on_disk import begin, expire_heartbeats_of

ENDLESS = 1 << 40
UNDOING = ("roll back", "restore")  # which are seen from their first step on


@dataclass(slots=True)
class Disk:
    """How many bytes the disk still takes; `taken` are the sizes of what was written to it, one after the other."""

    room: int = ENDLESS
    taken: list[int] = field(default_factory=list[int])

    def opened(self, handle: int, mode: str) -> io.BufferedWriter:
        assert mode == "wb"
        return io.BufferedWriter(_File(handle, self))

    def take(self, size: int) -> int:
        fitting = min(size, self.room)
        if size and not fitting:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.room -= fitting
        self.taken.append(fitting)
        return fitting


class _File(io.FileIO):
    def __init__(self, handle: int, disk: Disk) -> None:
        super().__init__(handle, "wb")
        self._disk = disk

    def write(self, data: Any, /) -> int:
        view = memoryview(data).cast("B")
        fitting = self._disk.take(len(view))
        return super().write(view[:fitting])


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    disk = Disk()
    monkeypatch.setattr(os, "fdopen", disk.opened)
    monkeypatch.setattr(os, "fsync", lambda _: None)
    return disk


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: f"v{layout.version}")
@pytest.mark.parametrize("action", ACTIONS)
def test_a_disk_that_runs_full_costs_an_error_and_the_same_again_when_there_is_room(
    action: str, layout: Layout, disk: Disk, tmp_path: Path
) -> None:
    found = case(action, layout)
    bench, storage = begin(found.start, tmp_path / "undisturbed")
    found.run(bench.process(storage))
    sizes = tuple(disk.taken)
    assert len(sizes) >= 2
    for number, size in enumerate(sizes):
        bench, storage = begin(found.start, tmp_path / str(number))
        disk.room = sum(sizes[:number]) + size // 2
        failure: EventideError | None = None
        try:
            found.run(bench.process(storage))
        except EventideError as error:
            failure = error
        disk.room = ENDLESS
        reached(f"full disk, {action}")
        seen = shown(bench.process(storage))
        if failure is None:
            assert seen == found.after, "what failed was of no consequence"
            continue
        assert isinstance(failure, StorageError)
        assert storage.root in str(failure)
        assert "No space left on device" in str(failure)
        assert "free space" in str(failure)
        assert seen in (found.before, found.after)
        assert seen == found.before or action in UNDOING
        assert list((tmp_path / str(number) / TEMPORARY).iterdir()) == []
        expire_heartbeats_of(tmp_path / str(number))
        found.run(bench.process(storage))
        assert shown(bench.process(storage)) == found.after


def test_a_copy_that_does_not_fit_is_not_begun(disk: Disk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Or every other writer on the disk would fail while it fills up."""
    storage = LocalStorage(tmp_path)
    storage.put("part=a/log", b"1234567")
    disk.taken.clear()
    free = os.statvfs_result((1, 1, 1000, 6, 6, 9, 9, 9, 0, 255))
    monkeypatch.setattr(os, "statvfs", lambda _: free)
    with pytest.raises(StorageError, match=r"part=b/copy.*7 bytes to copy.*6 are free.*free space"):
        storage.copy_if_absent("part=a/log", "part=b/copy")
    assert disk.taken == []
    assert storage.stat("part=b") is None
