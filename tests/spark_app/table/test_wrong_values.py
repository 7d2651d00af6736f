"""Each method of the API, called with values of no type that it takes, raises an error of eventide and no other."""

import inspect
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import eventide
from eventide import EventideError, Rows, Table
from support.pasts import golden

pytestmark = pytest.mark.slow

VALUES: tuple[Any, ...] = (None, 3, "x", [], object())
T_MS = 1_700_900_000_000
NO_INSTANT = "20200101000000000"
# One value that fits, for the arguments that a call needs beside the wrong one.
FITTING: dict[str, Callable[[Table], Any]] = {
    "uri": lambda table: table.uri,
    "schema": lambda table: table.schema,
    "record_key": lambda _: "id",
    "plan": lambda table: table.plan_compaction(before=T_MS),
    "instant": lambda _: NO_INSTANT,
    "savepoint": lambda _: NO_INSTANT,
    "name": lambda _: "day",
    "begin": lambda _: "earliest",
    "every": lambda _: "1h",
    "consumer": lambda _: "billing",
    "set": lambda _: {"no column": 1},
    "records": lambda _: pa.table({"no column": [1]}),
    "source": lambda _: pa.table({"no column": [1]}),
}


_MANY = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def _methods(kind: type) -> list[str]:
    attributes = {name: inspect.getattr_static(kind, name) for name in dir(kind) if not name.startswith("_")}
    return [
        name
        for name, member in attributes.items()
        if not isinstance(member, property) and callable(getattr(kind, name))
    ]


def _calls(method: Callable[..., Any], table: Table) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """The arguments of each call with one wrong value: whether a flag is true, each value says."""
    given = inspect.signature(method).parameters
    needed = {name for name, one in given.items() if one.default is one.empty and one.kind not in _MANY}
    for name, one in given.items():
        if one.kind is one.VAR_KEYWORD or isinstance(one.default, bool):
            continue
        for value in VALUES:
            if value is None and one.default is None:
                continue
            if one.kind is one.VAR_POSITIONAL:
                yield (value,), {}
            else:
                yield (), {other: FITTING[other](table) for other in needed - {name}} | {name: value}


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    return Table.open(golden.unpack("v9_no_deletes", tmp_path_factory.mktemp("golden")))


def _try(call: Callable[[], Any]) -> None:
    with suppress(EventideError):
        answer = call()
        if isinstance(answer, Iterator):
            list(answer)


@pytest.mark.parametrize("name", _methods(Table))
def test_a_table_names_what_it_cannot_use(
    name: str, table: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # "x" is a name of a table, and of a page
    for words, named in _calls(getattr(table, name), table):
        _try(lambda words=words, named=named: getattr(table, name)(*words, **named))  # type: ignore[misc]


@pytest.mark.parametrize("name", _methods(Rows))
def test_rows_name_what_they_cannot_use(name: str, table: Table) -> None:
    rows = table.snapshot()
    if name == "to_spark":
        for value in VALUES:
            _try(lambda value=value: rows.to_spark(value))  # type: ignore[misc]
        return
    for words, named in _calls(getattr(rows, name), table):
        _try(lambda words=words, named=named: getattr(rows, name)(*words, **named))  # type: ignore[misc]


@pytest.mark.parametrize("value", VALUES)
def test_what_stands_beside_tables_names_what_it_cannot_use(value: Any, table: Table) -> None:
    _try(lambda: eventide.register(value))
    _try(lambda: eventide.stream_sink(value))
    _try(lambda: eventide.stream_sink(table.uri, value))
    _try(lambda: table.freshness().has_reached(value))
    _try(lambda: table.windows("1h", "billing").open_window(value))


def test_a_delete_marker_in_a_column_that_the_table_lacks_marks_nothing(tmp_path: Path) -> None:
    """As readers have it. A write failed with a KeyError."""
    rows = pa.table({"id": ["a"], "at": [1_700_000_000_000]})
    Table.create(tmp_path / "t", schema=rows.schema, record_key="id", event_time="at")
    properties = tmp_path / "t" / ".hoodie" / "hoodie.properties"
    merging = "hoodie.record.merge.property.hoodie.payload.delete"
    properties.write_text(f"{properties.read_text()}{merging}.field=op\n{merging}.marker=d\n")
    table = Table.open(tmp_path / "t")
    table.upsert(rows)
    assert table.snapshot().to_arrow().column("id").to_pylist() == ["a"]
