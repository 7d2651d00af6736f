"""A link that leads out of the table is put in the way of an operation, before each of its system calls in turn.

Whatever is checked first and used afterwards shows here: the content outside would be read, replaced or removed.
"""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from eventide_adapters.storage.local import LocalStorage
from eventide_core.errors import EventideError
from eventide_core.ports import FileInfo

OURS, THEIRS = b"ours", b"what nobody is to see"
CALLS = ("open", "stat", "link", "symlink", "replace", "unlink", "rmdir", "mkdir", "scandir", "listdir", "readlink")


@dataclass(slots=True)
class Swap:
    """Does something once, before the system call of that number; `number` None only counts."""

    act: Callable[[], None]
    number: int | None = None
    calls: int = 0

    def wrapped(self, name: str) -> Callable[..., Any]:
        original = getattr(os, name)

        def call(*arguments: Any, **options: Any) -> Any:
            number, self.calls = self.calls, self.calls + 1
            if number == self.number:
                self.number = None
                self.act()
            return original(*arguments, **options)

        return call


def operations(storage: LocalStorage) -> dict[str, Callable[[], object]]:
    def output() -> bool:
        written = storage.open_output("part=a/new")
        written.write(OURS)
        return written.commit()

    return {
        "list": lambda: storage.list("part=a"),
        "stat": lambda: storage.stat("part=a/file"),
        "stat of a link": lambda: storage.stat("part=a/link"),
        "read": lambda: storage.read("part=a/file"),
        "read by a link": lambda: storage.read("part=a/link"),
        "read of a range": lambda: storage.read_range("part=a/file", 0, 100),
        "replace": lambda: storage.put("part=a/file", OURS),
        "create": lambda: storage.put_if_absent("part=a/new", OURS),
        "create empty": lambda: storage.put_if_absent("part=a/new", b""),
        "write and create": output,
        "copy from": lambda: storage.copy_if_absent("part=a/file", "copy") and storage.read("copy"),
        "copy to": lambda: storage.copy_if_absent("source", "part=a/new"),
        "link to": lambda: storage.link_if_absent("source", "part=a/new", is_symbolic=True),
        "hard link to": lambda: storage.link_if_absent("source", "part=a/new", is_symbolic=False),
        "link from": lambda: storage.link_if_absent("part=a/file", "other", is_symbolic=True) and storage.read("other"),
        "hard link from": lambda: (
            storage.link_if_absent("part=a/file", "other", is_symbolic=False) and storage.read("other")
        ),
        "delete": lambda: storage.delete("part=a/file"),
        "delete of a directory": lambda: storage.delete("part=a/empty"),
    }


def fresh(directory: Path) -> tuple[LocalStorage, Path]:
    """A table, and a directory beside it with the same names."""
    root, outside = directory / "table", directory / "outside"
    for place, content in ((root / "part=a", OURS), (outside, THEIRS)):
        (place / "empty").mkdir(parents=True)
        (place / "file").write_bytes(content)
    (root / "part=a" / "link").symlink_to("file")
    (root / "source").write_bytes(OURS)
    (root / ".hoodie").mkdir()
    return LocalStorage(root), outside


def put_in_the_way(root: Path, outside: Path, name: str) -> None:
    """Takes a file or directory away, and puts a link to what lies outside in its place."""
    path = root / name
    path.rename(root.parent / "taken away")
    path.symlink_to(outside if name == "part=a" else outside / path.name)


def tree(directory: Path) -> dict[str, bytes | None]:
    return {str(p.relative_to(directory)): p.read_bytes() if p.is_file() else None for p in directory.rglob("*")}


def states(directory: Path, operation: str, name: str, patch: pytest.MonkeyPatch) -> Iterator[tuple[object, Path]]:
    """What the operation answers, and what it leaves outside, for each moment at which the link is put in the way."""
    number, count = -1, 0
    while number < count:
        place = directory / str(number)
        storage, outside = fresh(place)
        root = place / "table"
        swap = Swap(lambda root=root, outside=outside: put_in_the_way(root, outside, name), number)  # type: ignore[misc]
        run = operations(storage)[operation]
        answer: object = None
        with patch.context() as calls:
            for call in CALLS:
                calls.setattr(os, call, swap.wrapped(call))
            try:
                answer = run()
            except EventideError as error:
                answer = error
        if number < 0:
            count = swap.calls
            assert not isinstance(answer, EventideError), answer
        yield answer, outside
        number += 1


@pytest.mark.parametrize("name", ["part=a", "part=a/file", "part=a/empty"])
@pytest.mark.parametrize("operation", operations(LocalStorage("/nowhere")))
def test_a_link_put_in_the_way_at_any_moment_leads_nowhere(
    operation: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = 0
    for answer, outside in states(tmp_path, operation, name, monkeypatch):
        seen += 1
        assert tree(outside) == {"file": THEIRS, "empty": None}, f"{operation} changed what lies outside"
        infos = answer if isinstance(answer, tuple) else (answer,)
        assert not any(isinstance(info, FileInfo) and info.size == len(THEIRS) for info in infos)
        assert answer != THEIRS
    assert seen > 3
