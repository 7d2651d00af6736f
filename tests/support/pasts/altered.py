"""Random histories of schema changes, writes, compactions by file and exact cuts, and rollbacks, beside an oracle.

The oracle keeps rows as dictionaries. After each step, the table shows its rows, columns, order and types; at the end, so
does time travel to each write that was not rolled back (`follow`).
"""

import copy
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from eventide import Table
from eventide_core.errors import NoExactCutError, NothingToDoError, SchemaChangeError
from support.run.reach import reached
from support.tables.append import SCHEMA, START_MS, make

KINDS = {"int": pa.int32(), "long": pa.int64(), "float": pa.float32(), "double": pa.float64(), "string": pa.string()}
WIDER = {"int": ["long", "double"], "long": ["double"], "float": ["double"]}
FIXED = ("id", "part", "ms")


@dataclass
class State:
    """What the table holds: the types of its columns in order, and its rows by key.

    A deleted key does not return: a delete without ordering value and a late record have an order of their own.
    """

    kinds: dict[str, str] = field(
        default_factory=lambda: {"id": "string", "part": "string", "ms": "long", "word": "string"}
    )
    rows: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    deleted: set[int] = field(default_factory=set[int])

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([pa.field(name, KINDS[kind]) for name, kind in self.kinds.items()])

    def seen(self) -> list[dict[str, Any]]:
        """The rows as the columns of today show them."""
        return [{name: row.get(name) for name in self.kinds} for _, row in sorted(self.rows.items())]


@dataclass
class History:
    random: Random
    table: Table
    state: State = field(default_factory=State)
    added: int = 0
    past: list[tuple[str, State]] = field(default_factory=list[tuple[str, State]])
    last: tuple[str, State] | None = None
    alterations: int = 0
    renames: bool = False

    def step(self) -> None:
        steps = [
            self.upsert,
            self.upsert,
            self.delete,
            self.add,
            self.widen,
            self.move,
            self.drop,
            self.compact,
            self.undo,
            *([self.rename, self.rename] if self.renames else []),
        ]
        chosen = self.random.choice(steps)
        chosen()
        reached(f"altered histories: {chosen.__name__}")
        self.check(self.table.snapshot().to_arrow(), self.state)

    def check(self, found: pa.Table, state: State) -> None:
        own = found.select([name for name in found.column_names if not name.startswith("_hoodie")])
        assert own.schema.names == state.schema.names
        assert own.schema.types == state.schema.types
        assert own.sort_by("id").to_pylist() == state.seen()

    def wrote(self, result: Any, before: State) -> None:
        self.last = (result.instant, before)
        self.past.append((result.completion_time or result.instant, copy.deepcopy(self.state)))

    def altered(self, result: Any, before: State) -> None:
        self.alterations += 1
        self.wrote(result, before)

    def value(self, kind: str) -> Any:
        number = self.random.randrange(100)
        values: dict[str, Any] = {"int": number, "long": 2**40 + number, "float": number + 0.5, "double": number + 0.25}
        values["string"] = f"w{number}"
        return None if self.random.random() < 0.2 else values[kind]

    def upsert(self) -> None:
        before = copy.deepcopy(self.state)
        rows = []
        for key in self.random.sample(sorted({*range(12)} - self.state.deleted), self.random.randint(1, 4)):
            row = {name: self.value(kind) for name, kind in self.state.kinds.items()}
            row |= {"id": f"k{key}", "part": "ab"[key % 2], "ms": START_MS + self.random.randrange(100)}
            rows.append(row)
            known = self.state.rows.get(row["id"])
            if known is None or row["ms"] >= known["ms"]:
                self.state.rows[row["id"]] = row
        self.wrote(self.table.upsert(pa.Table.from_pylist(rows, schema=self.state.schema)), before)

    def delete(self) -> None:
        if not self.state.rows or len(self.state.deleted) > 6:
            return
        before = copy.deepcopy(self.state)
        key = self.random.choice(sorted(self.state.rows))
        part = self.state.rows.pop(key)["part"]
        self.state.deleted.add(int(key[1:]))
        self.wrote(self.table.delete(pa.table({"id": [key], "part": [part]})), before)

    def add(self) -> None:
        name, kind = f"c{self.added}", self.random.choice(sorted(KINDS))
        after = self.random.choice(["", "first", f"after {self.random.choice(list(self.state.kinds))}"])
        self.added += 1
        before = copy.deepcopy(self.state)
        self.state.kinds[name] = kind
        for row in self.state.rows.values():
            row[name] = None
        if after:
            self.placed(name, after)
        self.altered(self.table.alter(add={name: f"{kind} {after}".strip()}), before)

    def placed(self, name: str, place: str) -> None:
        names = [other for other in self.state.kinds if other != name]
        names.insert(0 if place == "first" else names.index(place.removeprefix("after ")) + 1, name)
        self.state.kinds = {other: self.state.kinds[other] for other in names}

    def widen(self) -> None:
        names = [name for name, kind in self.state.kinds.items() if kind in WIDER and name not in FIXED]
        if not names:
            return
        before, name = copy.deepcopy(self.state), self.random.choice(names)
        kind = self.state.kinds[name] = self.random.choice(WIDER[self.state.kinds[name]])
        for row in self.state.rows.values():
            if kind == "double" and row[name] is not None:
                row[name] = float(row[name])
        self.altered(self.table.alter(widen={name: kind}), before)

    def move(self) -> None:
        name, other = self.random.sample(list(self.state.kinds), 2)
        before, place = copy.deepcopy(self.state), self.random.choice(["first", f"after {other}"])
        self.placed(name, place)
        result = self.table.alter(move={name: place})
        if result.instant is not None:
            self.altered(result, before)

    def drop(self) -> None:
        names = [name for name in self.state.kinds if name not in FIXED]
        if not names:
            return
        before, name = copy.deepcopy(self.state), self.random.choice(names)
        may_be_in_files = any(name in state.kinds for _, state in self.past)  # not if each write was undone
        del self.state.kinds[name]
        for row in self.state.rows.values():
            del row[name]
        self.altered(self.table.alter(drop=[name]), before)
        if not may_be_in_files:
            return
        with pytest.raises(SchemaChangeError, match="was dropped after"):
            self.table.alter(add={name: "string"})

    def rename(self) -> None:
        names = [name for name in self.state.kinds if name not in FIXED]
        if not names:
            return
        before, name, new = copy.deepcopy(self.state), self.random.choice(names), f"c{self.added}"
        self.added += 1
        self.state.kinds = {new if other == name else other: kind for other, kind in self.state.kinds.items()}
        for row in self.state.rows.values():
            row[new] = row.pop(name)
        self.altered(self.table.alter(rename={name: new}), before)

    def compact(self) -> None:
        with suppress(NothingToDoError, NoExactCutError):
            self.table.compact(before=START_MS + self.random.randrange(120), cut=self.random.choice(["file", "exact"]))
        self.last = None

    def undo(self) -> None:
        if self.last is None:
            return
        instant, self.state = self.last
        self.table.rollback(instant)
        self.past.pop()
        self.last = None


def follow(path: Path, seed: int, *, steps: int = 0, alterations: int = 0, renames: bool = False) -> History:
    """A history of at least so many steps and alterations, on a table of version 6, 8 or 9 and index BUCKET or SIMPLE.

    With `renames`, the table's schema evolves on read, by Hudi's option.
    """
    random = Random(seed)
    table = make(path, (6, 8, 9)[seed % 3], ("BUCKET", "SIMPLE")[seed % 2])
    if renames:
        table = Table.open(str(path), {"hoodie.schema.on.read.enable": "true"})
    history = History(random, table, renames=renames)
    assert history.state.schema.names == SCHEMA.names
    history.upsert()
    taken = 0
    while taken < steps or history.alterations < alterations:
        history.step()
        taken += 1
    assert table.verify(deep=True).ok
    for time, state in history.past:
        history.check(table.as_of(time).to_arrow(), state)
    return history
