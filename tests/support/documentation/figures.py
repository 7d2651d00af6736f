"""What a reader of the code meets, counted: the figures of docs/architecture.md.

`python -m support.documentation.figures` counts them and writes them into the page. Each action runs in a process of
its own, on a table of a few files, with threads of that process:

- Modules and lines: of eventide, as imported by then. Functions: with a name, called at least once.
- An arrow leads from a room to another room that one of its modules imports, also inside a function.
- A walk: the functions that get or return a value, itself or in a list, a table or another value that has it as a field;
  not by `self` alone. Their rooms are the directories of their files.

Not counted: what a function takes from a closure or a module, and what a library calls in between.
"""

import _thread
import inspect
import json
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from itertools import islice
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from support.run.child_processes import environment

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "architecture.md"
BEGIN, END = "<!-- figures: begin -->\n", "<!-- figures: end -->\n"
SOURCES = tuple(f"{ROOT / source}/" for source in ("core", "adapters", "spark_app"))
KEY, BEFORE_MS = "the-key-that-walks", 1_700_000_003_777
_ITEMS_MAX = 50

ACTIONS: Mapping[str, tuple[str, ...]] = {
    "local compaction": ("compact", "TABLE", "--before", str(BEFORE_MS), "--engine", "local"),
    "snapshot": ("read", "TABLE", "--all"),
    "upsert": ("ingest", "TABLE", "ROWS"),
}


def _is_key(value: object) -> bool:
    return (isinstance(value, str) and value == KEY) or _has_text(value)


def _has_text(value: object) -> bool:
    """Whether an array or a table of Arrow has the key in a column of texts."""
    kind = type(value).__module__
    if not kind.startswith("pyarrow.lib"):
        return False
    columns = getattr(value, "columns", None)
    if columns is not None:
        return any(map(_has_text, columns))
    try:
        return KEY in value.to_pylist()  # type: ignore[attr-defined]
    except (AttributeError, TypeError, ValueError):
        return False


# What walks, by the row of the page.
WALKERS: Mapping[str, Callable[[object], bool]] = {
    "record key": _is_key,
    "plan": lambda value: type(value).__name__ == "CompactionPlan",
    "T": lambda value: isinstance(value, int) and value == BEFORE_MS,
    "schema": lambda value: type(value).__name__ in ("AvroSchema", "Schema"),
}


class Count:
    """The functions of eventide that a process calls, and those that each value walks through."""

    def __init__(self) -> None:
        self.called: set[CodeType] = set()
        self.stays: dict[str, set[CodeType]] = {name: set() for name in WALKERS}

    def follow(self, frame: FrameType, event: str, result: object) -> None:
        """Takes note of a call or a return, as `sys.setprofile` reports it."""
        code = frame.f_code
        if not code.co_filename.startswith(SOURCES) or not _is_named(code):
            return
        if event == "call":
            self.called.add(code)
            names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
            self._note(code, [frame.f_locals[name] for name in names if name in frame.f_locals and name != "self"])
        elif event == "return":
            self._note(code, [result])

    def _note(self, code: CodeType, values: list[object]) -> None:
        for name, is_walker in WALKERS.items():
            if code not in self.stays[name] and any(is_walker(part) for value in values for part in _parts(value)):
                self.stays[name].add(code)

    def figures(self) -> dict[str, Any]:
        files = {str(module.__file__) for module in list(sys.modules.values()) if getattr(module, "__file__", None)}
        own = [Path(file) for file in files if file.startswith(SOURCES)]
        return {
            "modules": len(own),
            "lines": sum(len(file.read_text(encoding="utf-8").splitlines()) for file in own),
            "functions": len(self.called),
            "walks": {
                name: [len(codes), len({str(Path(code.co_filename).parent) for code in codes})]
                for name, codes in self.stays.items()
            },
        }


def _is_named(code: CodeType) -> bool:
    """Whether the code is a function's with a name of its own, not a class's, a module's or a comprehension's."""
    return bool(code.co_flags & inspect.CO_OPTIMIZED) and not code.co_name.startswith("<")


def _parts(value: object) -> Iterator[object]:
    """The value, and what it has: the items of a collection, or the fields of a dataclass."""
    yield value
    if isinstance(value, Mapping):
        yield from islice(value.values(), _ITEMS_MAX)
    elif isinstance(value, (list, tuple, set, frozenset)):
        yield from islice(value, _ITEMS_MAX)
    elif is_dataclass(value) and not isinstance(value, type):
        yield from (getattr(value, field.name, None) for field in fields(value))


def count(words: Iterable[str]) -> dict[str, Any]:
    """The figures of a run of the command line in this process, which must not have imported eventide yet."""
    found, start = Count(), _thread.start_new_thread

    def followed(function: Callable[..., object], arguments: tuple[object, ...]) -> None:
        sys.setprofile(found.follow)
        function(*arguments)

    # The threads of eventide, which aren't of `threading`.
    _thread.start_new_thread = lambda function, arguments: start(followed, (function, arguments))  # type: ignore[assignment]
    threading.setprofile(found.follow)
    sys.setprofile(found.follow)
    try:
        from eventide.cli.app import eventide

        eventide.main([*words, "--quiet"])
    except SystemExit as ended:
        if ended.code:
            raise
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return found.figures()


def arrows(package: str) -> tuple[int, int]:
    """The arrows between the rooms of a package and of each of these rooms, and how many there can be without a circle.

    A room that has rooms and modules beside them counts its modules as one more room.
    """
    import grimp

    graph = grimp.build_graph("eventide_core", "eventide_adapters", "eventide", cache_dir=None)
    found: set[tuple[str, str]] = set()
    possible, houses = 0, [package]
    while houses:
        house = houses.pop()
        rooms = [room for room in graph.find_children(house) if graph.find_children(room)]
        of_room = {module: room for room in rooms for module in {room, *graph.find_descendants(room)}}
        beside = graph.find_children(house) - of_room.keys() if rooms else set()
        of_room.update(dict.fromkeys(beside, house))
        found |= {
            (room, of_room[imported])
            for module, room in of_room.items()
            for imported in graph.find_modules_directly_imported_by(module)
            if of_room.get(imported, room) != room
        }
        count = len(rooms) + bool(beside)
        possible += count * (count - 1) // 2
        houses += rooms
    return len(found), possible


def page(figures: Mapping[str, Mapping[str, Any]], of_rooms: Mapping[str, tuple[int, int]]) -> str:
    """What the page shows. A walk is `functions/rooms`."""
    lines = [
        f"| action | modules | lines | functions | {' | '.join(WALKERS)} |",
        "|---" * (4 + len(WALKERS)) + "|",
    ]
    for action, found in figures.items():
        walks = (f"{functions}/{rooms}" if functions else "-" for functions, rooms in found["walks"].values())
        counts = (f"{found[name]:,}" for name in ("modules", "lines", "functions"))
        lines.append(f"| {' | '.join((action, *counts, *walks))} |")
    used = (f"`{package}` {found} of {possible}" for package, (found, possible) in of_rooms.items())
    return "\n".join([*lines, "", f"Arrows between rooms, of those possible: {', '.join(used)}."]) + "\n"


def measured(action: str, directory: Path) -> dict[str, Any]:
    table, rows = _made(directory)
    words = [{"TABLE": str(table), "ROWS": str(rows)}.get(word, word) for word in ACTIONS[action]]
    run = [sys.executable, "-m", "support.documentation.figures", *words]
    answer = subprocess.run(run, env=environment(), capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(answer.stderr.splitlines()[-1])
    return found


def _made(directory: Path) -> tuple[Path, Path]:
    """A table whose first log file is before T and whose second one isn't, and rows to write to it."""
    import pyarrow as pa

    from eventide import Table

    def rows(of: int, *, first_ms: int) -> pa.Table:
        return pa.table({"id": [KEY, f"k{of}"], "at": [first_ms, first_ms + 1], "fare": [of, of]})

    directory.mkdir()
    table = directory / "trips"
    opened = Table.create(str(table), schema=rows(0, first_ms=0).schema, record_key="id", event_time="at")
    for of, first_ms in enumerate((BEFORE_MS - 2000, BEFORE_MS - 1000, BEFORE_MS + 1000)):
        opened.upsert(rows(of, first_ms=first_ms))
    source = directory / "rows.csv"
    source.write_text(f"id,at,fare\n{KEY},{BEFORE_MS + 2000},3\nnew,{BEFORE_MS + 3000},4\n", encoding="utf-8")
    return table, source


def main() -> None:
    """Writes the page."""
    with tempfile.TemporaryDirectory() as scratch:
        figures = {action: measured(action, Path(scratch) / str(nth)) for nth, action in enumerate(ACTIONS)}
    packages = ("eventide_adapters.format", "eventide_core.service")
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    found = page(figures, {package: arrows(package) for package in packages})
    PAGE.write_text(f"{before}{BEGIN}\n{found}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1:]:
        sys.stderr.write(json.dumps(count(sys.argv[1:])) + "\n")
    else:
        main()
