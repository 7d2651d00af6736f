"""While a clean, a rollback or a restore runs on a local disk, someone puts a link that leads out of the table in its way.

Before each of its storage operations in turn that has to do with the place: a partition, the timeline, or a file that the
service removes. Outside lies the like of all that is in the table, and none of it may be touched. What happens between the
system calls of one operation is tested in tests/adapters/storage/local/test_swapped_links.py.
"""

import os
import posixpath
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

from eventide.testing.crash_enumeration import Bench
from eventide.testing.histories import Layout, Story
from eventide_adapters.storage.local import LocalStorage
from eventide_core.errors import EventideError
from eventide_core.ports import Storage
from eventide_core.table.files.file_name import LogFileName
from support.pasts.served import LAYOUTS, Past, Service, begin_past, clean, restore, rows, undo_completed
from support.run.reach import reached
from support.tables.on_disk import begin as begin_on_disk
from support.tables.on_disk import lay_out, tree

V6, V9 = LAYOUTS
OPERATIONS = frozenset(name for name in vars(Storage) if not name.startswith("_")) - {"root", "capabilities"}


@dataclass(slots=True)
class Interrupted:
    """ports.Storage that does something once, before the operation of that number; the paths of all of them."""

    inner: LocalStorage
    act: Callable[[], None]
    number: int | None = None
    paths: list[tuple[str, ...]] = field(default_factory=list[tuple[str, ...]])

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.inner, name)
        if name not in OPERATIONS:
            return found

        def call(*arguments: Any, **options: Any) -> Any:
            if len(self.paths) == self.number:
                self.act()
            self.paths.append(tuple(word for word in arguments[:2] if isinstance(word, str)))
            return found(*arguments, **options)

        return call


def swap(root: Path, outside: Path, place: str) -> None:
    """Takes what exists away, if it is still there, and puts a link to its like outside."""
    path = root / place
    if path.exists():
        path.rename(root.parent / "taken away")
        path.symlink_to(outside / place)


def has_to_do_with(paths: tuple[str, ...], place: str) -> bool:
    return any(path in (place, posixpath.dirname(place)) or path.startswith(f"{place}/") for path in paths)


@dataclass(frozen=True, slots=True)
class Scene:
    """A table with a past, and beside it a directory of the same content that no service may touch."""

    past: Past
    outside: Path
    content: dict[str, bytes | None]

    def run(self, root: Path, place: str, number: int | None) -> tuple[Interrupted, EventideError | None, Bench]:
        """Runs the service, the link put in the way before the operation of that number."""
        bench, inner = begin_on_disk(self.past.start, root)
        storage = Interrupted(inner, lambda: swap(root, self.outside, place), number)
        failure: EventideError | None = None
        try:
            self.past.service.run(bench.process(cast(Storage, storage)))
        except EventideError as error:
            failure = error
        assert tree(self.outside) == self.content, f"before {storage.paths[number or 0]} a link was put at {place}"
        return storage, failure, bench


@pytest.mark.parametrize(
    ("begin", "layout"),
    [(clean, V6), (clean, V9), (undo_completed, V6), (undo_completed, V9), (restore, V9)],
    ids=lambda value: f"v{value.version}" if isinstance(value, Layout) else value.__name__,
)
def test_a_link_put_in_the_way_of_a_service_leads_it_nowhere(
    begin: Callable[[Story, Bench], Service], layout: Layout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)
    past = begin_past(begin, layout)
    outside = lay_out(past.start.files, tmp_path / "outside")
    scene = Scene(past, outside, tree(outside))
    undisturbed, failure, bench = scene.run(tmp_path / "undisturbed" / "table", "", None)
    assert failure is None
    assert rows(bench.process(undisturbed.inner)) == past.service.after.snapshot()
    log = min(path for path in past.start.files if LogFileName.parse(posixpath.basename(path)))
    # The timeline of version 6 lies in `.hoodie` itself, to which almost every operation goes.
    timeline = () if layout.version == 6 else (".hoodie/timeline",)
    refusals = 0
    for place in (posixpath.dirname(log), log, *timeline):
        numbers = [number for number, paths in enumerate(undisturbed.paths) if has_to_do_with(paths, place)]
        assert numbers
        for number in numbers:
            _, failure, _ = scene.run(tmp_path / f"{posixpath.basename(place)} {number}" / "table", place, number)
            reached(f"links swapped, {begin.__name__}")
            refusals += failure is not None
    assert refusals >= 3
