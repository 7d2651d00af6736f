"""Tables whose schema Hudi evolves on read: eventide's writes carry the internal schema on, so that Hudi goes on with it."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from eventide import Table
from eventide_core.errors import SchemaChangeError, format_timestamp
from support.judge import HudiJudge, hudi_rs
from support.judge.options import BUCKET_INDEX, EVENT_TIME_ORDERING, MERGE_ON_READ, NO_METADATA_TABLE, table_name
from support.tables.append import START_MS
from support.values.columns import schema_of

EVOLVES = {
    "hoodie.metadata.enable": "false",
    "hoodie.schema.on.read.enable": "true",
    "hoodie.datasource.write.schema.allow.auto.evolution.column.drop": "true",
}
OPTIONS = MERGE_ON_READ | NO_METADATA_TABLE | BUCKET_INDEX | table_name("evolved")
SCHEMA = schema_of(id=pa.string(), part=pa.string(), event_ts=pa.int64(), word=pa.string())


def _options(version: int) -> dict[str, str]:
    """Hudi 0.15 has no merge mode: it makes a table in which the latest commit wins."""
    ordering = EVENT_TIME_ORDERING if version > 6 else {}
    return OPTIONS | ordering | {"hoodie.write.table.version": str(version)}


def rows(ms: int, **words: str) -> list[dict[str, Any]]:
    return [{"id": key, "part": "a", "event_ts": ms, "word": word} for key, word in words.items()]


def altered(judge: HudiJudge, path: Path, *changes: str) -> None:
    """Alters the table by Hudi's SQL with schema evolution on read."""
    name = f"altered_{path.name}_{judge.version.replace('.', '')}"
    before = [f"set {key}={value}" for key, value in EVOLVES.items()]
    create = f"create table if not exists {name} using hudi location '{path}'"
    after = [f"reset {key}" for key in EVOLVES]  # other tests have the same session
    for statement in (*before, create, *(f"alter table {name} {change}" for change in changes), *after):
        judge.sql(statement)


def words(found: pa.Table, *columns: str) -> dict[str, tuple[Any, ...]]:
    return {row["id"]: tuple(row[column] for column in columns) for row in found.to_pylist()}


@pytest.mark.broad
@pytest.mark.parametrize(("name", "version"), [pytest.param("judge_111", 9, marks=pytest.mark.broad), ("judge_015", 6)])
def test_hudi_goes_on_with_the_schema_that_eventide_evolved(
    request: pytest.FixtureRequest, tmp_path: Path, name: str, version: int
) -> None:
    judge: HudiJudge = request.getfixturevalue(name)
    path = tmp_path / f"evolved{version}"
    options = _options(version)
    judge.write(path, rows(1000, k1="a", k2="b"), SCHEMA, options=options)
    altered(judge, path, "add columns (tip double)")

    table = Table.open(str(path), options)
    wide = [{**row, "tip": 0.5, "fare": 1.5} for row in rows(2000, k2="wide")]
    schema = pa.schema([*SCHEMA, pa.field("tip", pa.float64()), pa.field("fare", pa.float64())])
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
    schema = pa.schema([schema.field("fare"), *SCHEMA, pa.field("note", pa.string())])
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


@pytest.mark.parametrize(("name", "version"), [("judge_111", 9), pytest.param("judge_015", 6, marks=pytest.mark.broad)])
def test_a_column_that_hudi_renamed_is_read_by_its_number(
    request: pytest.FixtureRequest, tmp_path: Path, name: str, version: int
) -> None:
    judge: HudiJudge = request.getfixturevalue(name)
    path = tmp_path / f"renamed{version}"
    options = _options(version) | {"hoodie.bucket.index.num.buckets": "1"}
    judge.write(path, rows(1000, k1="a", k2="b"), SCHEMA, options=options)
    judge.write(path, rows(2000, k1="late"), SCHEMA, options=options)
    judge.write(path, rows(9000, k4="left"), SCHEMA, options=options)
    before = judge.timeline(path)[-1].requested_time
    altered(judge, path, "rename column word to title")

    table = Table.open(str(path), options)
    expected: dict[str, tuple[Any, ...]] = {"k1": ("late",), "k2": ("b",), "k4": ("left",)}
    assert words(table.snapshot().to_arrow(), "title") == expected
    assert words(judge.read(path, options=EVOLVES), "title") == expected
    assert words(hudi_rs.read(path), "title") == dict.fromkeys(expected, (None,))
    assert words(table.as_of(before).to_arrow(), "word") == expected

    new = pa.schema([*list(SCHEMA)[:3], pa.field("title", pa.string())])
    titled = [{"id": "k3", "part": "a", "event_ts": 3000, "title": "c"}]
    table.upsert(pa.Table.from_pylist(titled, schema=new))
    assert words(table.snapshot().to_arrow(filter="title = 'late'"), "title") == {"k1": ("late",)}
    table.compact(before=format_timestamp(5_000))
    assert table.verify(deep=True).ok
    judge.write(path, [titled[0] | {"id": "k5"}], new, options=options | EVOLVES)
    expected |= {"k3": ("c",), "k5": ("c",)}
    assert words(table.snapshot().to_arrow(), "title") == expected
    assert words(judge.read(path, options=EVOLVES), "title") == expected
    optimized = words(table.read_optimized().to_arrow(), "title")
    assert optimized.items() <= expected.items()
    assert words(judge.read(path, "read_optimized", options=EVOLVES), "title") == optimized
    table.compact(before=format_timestamp(20_000))
    assert words(judge.read(path), "title") == expected  # no file of the old name is left
    assert words(hudi_rs.read(path), "title") == expected


NESTED = pa.schema(
    [
        *SCHEMA,
        pa.field("cost", pa.decimal128(10, 2)),
        pa.field("place", pa.struct([("lat", pa.float64()), ("name", pa.string())])),
        pa.field("tags", pa.list_(pa.string())),
        pa.field("fees", pa.map_(pa.string(), pa.float64())),
    ]
)


def nested(ms: int, **names: str) -> list[dict[str, Any]]:
    others = {"cost": Decimal("1.25"), "place": {"lat": 1.0, "name": "x"}, "tags": ["q"], "fees": [("a", 1.0)]}
    return [row | others for row in rows(ms, **names)]


@pytest.mark.parametrize(
    ("name", "version"),
    [
        ("judge_111", 9),
        pytest.param("judge_120", 9, marks=pytest.mark.proof),
        pytest.param("judge_015", 6, marks=pytest.mark.broad),
    ],
)
def test_hudi_follows_a_column_that_eventide_renames(
    request: pytest.FixtureRequest, tmp_path: Path, name: str, version: int
) -> None:
    judge: HudiJudge = request.getfixturevalue(name)
    path = tmp_path / f"renames{version}"
    options = _options(version) | {"hoodie.bucket.index.num.buckets": "1"}
    judge.write(path, nested(START_MS + 1000, k1="a", k2="b"), NESTED, options=options)
    table = Table.open(str(path), options | {"hoodie.schema.on.read.enable": "true"})
    table.upsert(pa.Table.from_pylist(nested(START_MS + 2000, k1="late"), schema=NESTED))
    table.upsert(pa.Table.from_pylist(nested(START_MS + 9000, k2="left"), schema=NESTED))
    before = judge.timeline(path)[-1].requested_time
    for named in ("place", "cost"):
        with pytest.raises(SchemaChangeError, match="its type has a name of its own in Avro"):
            table.alter(rename={named: "spot"})
    result = table.alter(rename={"word": "title"}, add={"extra": "int"})
    assert result.note is not None
    expected: dict[str, tuple[Any, ...]] = {key: (word, 1.0) for key, word in (("k1", "late"), ("k2", "left"))}

    def shown(found: pa.Table, title: str = "title") -> dict[str, tuple[Any, ...]]:
        return {row["id"]: (row[title], row["place"]["lat"]) for row in found.to_pylist()}

    assert shown(table.snapshot().to_arrow()) == expected
    assert shown(judge.read(path, options=EVOLVES)) == expected
    past = judge.read(path, as_of=before, options=EVOLVES)
    assert shown(past, "word") == shown(table.as_of(before).to_arrow(), "word") == expected

    names = [{"word": "title"}.get(field.name, field.name) for field in NESTED]
    new = pa.schema([field.with_name(name) for field, name in zip(NESTED, names, strict=True)])
    fresh = pa.Table.from_pylist(nested(START_MS + 3000, k3="c"), schema=NESTED).rename_columns(names)
    judge.write(path, fresh, new, options=options | EVOLVES)
    expected["k3"] = ("c", 1.0)
    assert shown(table.snapshot().to_arrow()) == shown(judge.read(path, options=EVOLVES)) == expected
    incremental = judge.read(path, "incremental", begin="000", options=EVOLVES)
    assert shown(incremental) == shown(table.incremental("000").to_arrow()) == expected

    table.compact(before=format_timestamp(START_MS + 5_000))
    assert table.verify(deep=True).ok
    assert shown(table.snapshot().to_arrow()) == shown(judge.read(path, options=EVOLVES)) == expected
    optimized = shown(table.read_optimized().to_arrow())
    assert shown(judge.read(path, "read_optimized", options=EVOLVES)) == optimized
    judge.schedule_compaction(path, EVOLVES)
    judge.run_compaction(path, EVOLVES)
    assert shown(table.snapshot().to_arrow()) == shown(judge.read(path, options=EVOLVES)) == expected
