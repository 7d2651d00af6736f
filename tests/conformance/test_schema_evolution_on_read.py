"""Tables whose schema Hudi evolves on read: eventide's writes carry the internal schema on, so that Hudi goes on with it."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from eventide import Table
from eventide_core.errors import UnsupportedTableError, format_timestamp
from support.judge import HudiJudge, hudi_rs
from support.judge.options import BUCKET_INDEX, EVENT_TIME_ORDERING, MERGE_ON_READ, NO_METADATA_TABLE, table_name

EVOLVES = {
    "hoodie.metadata.enable": "false",
    "hoodie.schema.on.read.enable": "true",
    "hoodie.datasource.write.schema.allow.auto.evolution.column.drop": "true",
}
OPTIONS = MERGE_ON_READ | NO_METADATA_TABLE | EVENT_TIME_ORDERING | BUCKET_INDEX | table_name("evolved")
COLUMNS: "list[pa.Field[Any]]" = [
    pa.field("id", pa.string()),
    pa.field("part", pa.string()),
    pa.field("event_ts", pa.int64()),
    pa.field("word", pa.string()),
]
SCHEMA = pa.schema(COLUMNS)


def rows(ms: int, **words: str) -> list[dict[str, Any]]:
    return [{"id": key, "part": "a", "event_ts": ms, "word": word} for key, word in words.items()]


def altered(judge: HudiJudge, path: Path, *changes: str) -> None:
    """Alters the table by Hudi's SQL with schema evolution on read."""
    name = f"altered_{path.name}_{judge.version.replace('.', '')}"
    settings = [f"set {key}={value}" for key, value in EVOLVES.items()]
    create = f"create table if not exists {name} using hudi location '{path}'"
    for statement in (*settings, create, *(f"alter table {name} {change}" for change in changes)):
        judge.sql(statement)


def words(found: pa.Table, *columns: str) -> dict[str, tuple[Any, ...]]:
    return {row["id"]: tuple(row[column] for column in columns) for row in found.to_pylist()}


@pytest.mark.parametrize(("name", "version"), [pytest.param("judge_111", 9, marks=pytest.mark.broad), ("judge_015", 6)])
def test_hudi_goes_on_with_the_schema_that_eventide_evolved(
    request: pytest.FixtureRequest, tmp_path: Path, name: str, version: int
) -> None:
    judge: HudiJudge = request.getfixturevalue(name)
    path = tmp_path / f"evolved{version}"
    options = OPTIONS | {"hoodie.write.table.version": str(version)}
    judge.write(path, rows(1000, k1="a", k2="b"), SCHEMA, options=options)
    altered(judge, path, "add columns (tip double)")

    table = Table.open(str(path), options)
    wide = [{**row, "tip": 0.5, "fare": 1.5} for row in rows(2000, k2="wide")]
    schema = pa.schema([*COLUMNS, pa.field("tip", pa.float64()), pa.field("fare", pa.float64())])
    table.upsert(pa.Table.from_pylist(wide, schema=schema), schema_mode="merge")
    judge.write(
        path, [{**row, "tip": 0.25, "fare": 2.5} for row in rows(3000, k3="c")], schema, options=options | EVOLVES
    )

    expected: dict[str, tuple[Any, ...]] = {"k1": ("a", None, None), "k2": ("wide", 0.5, 1.5), "k3": ("c", 0.25, 2.5)}
    columns = ("word", "tip", "fare")
    assert words(judge.read(path, options=EVOLVES), *columns) == expected
    assert words(judge.read(path), *columns) == expected
    assert words(hudi_rs.read(path), *columns) == expected

    table.alter(add={"note": "string"}, move={"fare": "first"}, drop=["tip"])
    schema = pa.schema([schema.field("fare"), *COLUMNS, pa.field("note", pa.string())])
    noted = [{**row, "fare": 3.5, "note": "n"} for row in rows(4000, k4="d")]
    judge.write(path, noted, schema, options=options | EVOLVES)
    expected = {"k1": ("a", None, None), "k2": ("wide", 1.5, None), "k3": ("c", 2.5, None), "k4": ("d", 3.5, "n")}
    columns = ("word", "fare", "note")
    assert words(judge.read(path, options=EVOLVES), *columns) == expected
    assert words(judge.read(path), *columns) == expected

    table.compact(before=format_timestamp(10_000))
    assert table.verify(deep=True).ok
    assert words(judge.read(path, options=EVOLVES), *columns) == expected
    assert words(judge.read(path, "read_optimized", options=EVOLVES), *columns) == expected
    assert words(table.snapshot().to_arrow(), *columns) == expected


def test_a_column_that_hudi_renamed_is_refused_until_hudi_rewrote_every_file(
    judge_111: HudiJudge, tmp_path: Path
) -> None:
    path, options = tmp_path / "renamed", OPTIONS | {"hoodie.bucket.index.num.buckets": "1"}
    judge_111.write(path, rows(1000, k1="a", k2="b"), SCHEMA, options=options)
    judge_111.write(path, rows(2000, k1="late"), SCHEMA, options=options)
    altered(judge_111, path, "rename column word to title")

    table = Table.open(str(path), options)
    new = pa.schema([*COLUMNS[:3], pa.field("title", pa.string())])
    titled = pa.Table.from_pylist([{"id": "k3", "part": "a", "event_ts": 3000, "title": "c"}], schema=new)
    for refused in (
        lambda: table.snapshot().to_arrow(),
        lambda: table.upsert(titled),
        lambda: table.plan_compaction(format_timestamp(10_000)),
    ):
        with pytest.raises(UnsupportedTableError, match="the column title had the name word"):
            refused()

    judge_111.schedule_compaction(path, EVOLVES)
    judge_111.run_compaction(path, EVOLVES)
    policy = {"clean_policy": "KEEP_LATEST_FILE_VERSIONS", "file_versions_retained": 1}
    judge_111.call("run_clean", table=f"altered_{path.name}_111", **policy)
    table.upsert(titled)
    judge_111.write(path, titled.set_column(0, "id", pa.array(["k4"])), options=options | EVOLVES)
    expected = {"k1": ("late",), "k2": ("b",), "k3": ("c",), "k4": ("c",)}
    for found in (judge_111.read(path, options=EVOLVES), judge_111.read(path), hudi_rs.read(path)):
        assert words(found, "title") == expected
    assert words(table.snapshot().to_arrow(), "title") == expected
