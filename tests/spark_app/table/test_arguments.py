"""A wrong argument is named by a typed error, before anything is read or written."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from eventide import ConfigError, InvalidFilterError, Table
from support.pasts import golden
from support.tables.small import SCHEMA

T_MS = 1_700_900_000_000


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    return Table.open(str(golden.unpack("v9_no_deletes", tmp_path_factory.mktemp("golden"))))


Call = Callable[[Any], object]


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (lambda table: table.as_of(None), "None isn't a time"),
        (lambda table: table.incremental(3), "3 isn't a time"),
        (lambda table: table.changes(None), "None isn't a time"),
        (
            lambda table: table.compact("2026-01-01T00:00Z"),
            "isn't a plan: pass one of `plan_compaction`, or T as `before`",
        ),
        (lambda table: table.compact(before=T_MS, progress=True), "progress=True can't show progress"),
        (lambda table: table.verify(progress=1), "progress=1 can't show progress"),
        (lambda table: table.compact(before=T_MS, engine="spark"), "'spark' isn't an engine: pass a SparkSession"),
        (lambda table: table.tag(None), "a tag's name must be a string, not None"),
        (lambda table: table.update(["rank"]), r"set=\['rank'\]: pass a dictionary by names of columns"),
        (lambda table: table.update(3), "set=3: pass a dictionary by names of columns"),
        (lambda table: table.snapshot().limit("a"), "limit must be 0 or more, not 'a'"),
        (lambda table: table.clean(0), "retain_commits=0 would leave nothing .* pass 1 or more"),
        (lambda _: Table.open(None), "a table's URI or path must be a string or a path, not None"),  # type: ignore[arg-type]
        (lambda table: Table.open(table.uri, "x"), "options are a str: pass a dictionary"),  # type: ignore[arg-type]
    ],
)
def test_a_wrong_argument_is_named(table: Table, call: Call, why: str) -> None:
    before = sorted(str(path) for path in Path(table.uri).rglob("*"))
    with pytest.raises(ConfigError, match=why):
        call(table)
    assert sorted(str(path) for path in Path(table.uri).rglob("*")) == before


def test_one_text_is_no_list_of_columns(table: Table) -> None:
    with pytest.raises(InvalidFilterError, match=r"columns 'id' is one text: pass a list of names"):
        table.snapshot().to_arrow("id")


@pytest.mark.parametrize(
    ("schema", "key", "why"),
    [
        (pd.DataFrame({"id": ["a"]}), "id", "a DataFrame isn't a schema: .*from_pandas"),
        ({"id": "string"}, "id", "a dict isn't a schema"),
        (None, "id", "a NoneType isn't a schema"),
        (SCHEMA, 3, "a field's name must be a string, or a list of them, not 3"),
    ],
)
def test_a_table_is_not_created_from_what_is_no_schema(schema: Any, key: Any, why: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=why):
        Table.create(tmp_path / "t", schema=schema, record_key=key)
    assert not (tmp_path / "t").exists()
