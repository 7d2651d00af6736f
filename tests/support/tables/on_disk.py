"""Puts a table from memory onto a local disk, to test what only a real file system shows."""

import os
import posixpath
import time
from collections.abc import Mapping
from pathlib import Path

from eventide.testing.crash_enumeration import Bench, Moment
from eventide_adapters.storage.local import LocalStorage
from eventide_adapters.storage.memory import MemoryFile
from eventide_core.table.files.file_group_write import HEARTBEATS
from support.pasts.served import EARLY


def lay_out(files: Mapping[str, MemoryFile], root: Path) -> Path:
    """Writes the files, with links as links, and their modification times. Returns the root."""
    for path, file in files.items():
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        if file.link_target is None:
            target.write_bytes(file.data)
            os.utime(target, (file.modified_ms / 1000, file.modified_ms / 1000))
        else:
            target.symlink_to(posixpath.relpath(f"/{file.link_target}", f"/{posixpath.dirname(path)}"))
    return root


def begin(moment: Moment, root: Path) -> tuple[Bench, LocalStorage]:
    """The table of that moment on a disk, and a bench that uses the disk's clock."""
    bench = Bench("on-disk", EARLY)
    bench.load(moment)
    bench.clock.time_ms = time.time_ns() // 1_000_000
    return bench, LocalStorage(lay_out(moment.files, root))


def expire_heartbeats_of(root: Path) -> None:
    """Makes every heartbeat so old that its writer counts as dead."""
    for heartbeat in (root / HEARTBEATS).glob("*"):
        os.utime(heartbeat, (0, 0))


def tree(root: Path) -> dict[str, bytes | None]:
    """Everything below a directory by path: the content of files, None for directories. Doesn't follow links."""
    return {
        str(path.relative_to(root)): path.read_bytes() if path.is_file() else None
        for path in root.rglob("*")
        if not path.is_symlink()
    }
