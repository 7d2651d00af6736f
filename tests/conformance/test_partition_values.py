"""Partition values of every kind, beside Hudi: each query shows the same value, and both engines write to the same place."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from eventide import Table, UnsupportedTableError
from support.judge import HudiJudge
from support.judge.deeds import Statements
from support.judge.hudi_judge import Question
from support.judge.options import (
    MERGE_ON_READ,
    NO_METADATA_TABLE,
    SIMPLE_INDEX,
    table_name,
    table_version,
)
from support.values.columns import schema_of

NULL = "__HIVE_DEFAULT_PARTITION__"
VALUES = [
    None,
    "",
    NULL,
    "a\\b",
    "a b",
    " lead",
    "trail ",
    "a%b",
    "x=y",
    "é",
    ".dot",
    "dot.",
    "a'b",
    'a"b',
    "a#b?*",
    "01",
]
ENCODED_ALONE = ["a%2Fb", "a:b", "s3:x", "a/", "a//b"]
"""In directories that are not encoded, Hudi can't write these, or decodes what nobody encoded."""
COLUMNS = ["id", "part", "event_ts", "_hoodie_partition_path"]
SCHEMA = schema_of(id=pa.string(), part=pa.string(), event_ts=pa.int64())
LEVELS: "list[pa.Field[Any]]" = [pa.field("level", pa.string()), pa.field("x", pa.int32())]
NESTED = schema_of(id=pa.string(), n=pa.struct(LEVELS), event_ts=pa.int64())
BASE = MERGE_ON_READ | SIMPLE_INDEX | NO_METADATA_TABLE | table_name("values")


def rows(values: list[str | None], event_ts: int, first: int = 0) -> pa.Table:
    texts: list[dict[str, Any]] = [
        {"id": f"k{first + number}", "part": value, "event_ts": event_ts} for number, value in enumerate(values)
    ]
    return pa.Table.from_pylist(texts, schema=SCHEMA)


def found_in(answer: pa.Table, columns: list[str] = COLUMNS) -> list[list[Any]]:
    return sorted(([row[name] for name in columns] for row in answer.to_pylist()), key=str)


@pytest.mark.parametrize(
    ("version", "is_encoded"),
    [pytest.param(9, False, marks=pytest.mark.broad), pytest.param(6, True, marks=pytest.mark.proof)],
)
def test_each_query_shows_the_values_that_hudi_shows(
    judge_111: HudiJudge, tmp_path: Path, version: int, is_encoded: bool
) -> None:
    """Also null for an empty text and for the directory's own name, which Hudi reads back as null."""
    path = tmp_path / "values"
    options = {
        **BASE,
        **table_version(version),
        "hoodie.datasource.write.hive_style_partitioning": str(not is_encoded).lower(),
        "hoodie.datasource.write.partitionpath.urlencode": str(is_encoded).lower(),
    }
    values = [*VALUES, *(ENCODED_ALONE if is_encoded else [])]
    judge_111.write(path, rows(values, 1000), options=options)
    first = judge_111.timeline(path)[0]
    table = Table.open(str(path))
    table.upsert(rows(values, 2000))
    second = judge_111.timeline(path)[-1].requested_time
    judge_111.write(path, rows(values, 3000), options=options)
    table.upsert(rows(values, 3000, first=100))

    begin = first.completion_time if version == 9 else first.requested_time
    assert begin is not None
    assert found_in(table.snapshot().to_arrow()) == found_in(judge_111.read(path))
    assert found_in(table.read_optimized().to_arrow()) == found_in(judge_111.read(path, "read_optimized"))
    assert found_in(table.as_of(second).to_arrow()) == found_in(judge_111.read(path, as_of=second))
    # Of encoded values, Hudi's incremental queries show some as they are in the path.
    compared = ["id", "event_ts", "_hoodie_partition_path"] if is_encoded else COLUMNS
    changes = judge_111.read(path, "incremental", begin=begin)
    assert found_in(table.incremental(begin).to_arrow(), compared) == found_in(changes, compared)
    assert table.snapshot().to_arrow().num_rows == 2 * len(values)
    wheres = ["part is null", "part is not null", "part <> 'x'", *(["part = 'a b'"] if is_encoded else [])]
    questions = [Question(path, where=where) for where in wheres]
    for where, answer in zip(wheres, judge_111.ask(questions, COLUMNS), strict=True):
        assert found_in(table.snapshot().to_arrow(filter=where)) == found_in(answer), where

    table.compact(before="2026-01-01T00:00Z")
    assert table.verify(deep=True).ok
    assert found_in(table.read_optimized().to_arrow()) == found_in(judge_111.read(path))


@pytest.mark.parametrize("version", [6, 9])
def test_a_field_of_a_record_column_may_be_the_partition(judge_111: HudiJudge, tmp_path: Path, version: int) -> None:
    path = tmp_path / "nested"
    options = {**BASE, **table_version(version), "hoodie.datasource.write.partitionpath.field": "n.level"}

    def nested(event_ts: int, **levels: str | None) -> pa.Table:
        rows: list[dict[str, Any]] = [
            {"id": key, "n": None if level is None else {"level": level, "x": 1}, "event_ts": event_ts}
            for key, level in levels.items()
        ]
        return pa.Table.from_pylist(rows, schema=NESTED)

    def both() -> list[list[Any]]:
        columns = ["id", "n", "event_ts", "_hoodie_partition_path"]
        found = found_in(table.snapshot().to_arrow(), columns)
        assert found == found_in(judge_111.read(path), columns)
        return [[key, event_ts, partition] for key, _, event_ts, partition in found]

    judge_111.write(path, nested(1000, a="hi", b="lo", c=None), options=options)
    table = Table.open(str(path))
    table.upsert(nested(2000, a="hi", c=None, d="new"))
    judge_111.write(path, nested(3000, d="new"), options=options)
    expected = [["a", 2000, "n.level=hi"], ["b", 1000, "n.level=lo"], ["c", 2000, f"n.level={NULL}"]]
    assert both() == [*expected, ["d", 3000, "n.level=new"]]
    table.delete(where="n.level = 'lo'")
    table.delete(nested(4000, d="new").select(["id", "n"]))
    table.compact(before="2026-01-01T00:00Z")
    assert both() == [expected[0], expected[2]]
    assert table.verify(deep=True).ok


def written_in_sql(judge: HudiJudge, path: Path, version: int, *statements: str) -> None:
    """Days in directories of slashes: only Hudi's SQL writes them."""
    create = (
        "create table days (id string, event_ts bigint, part string) using hudi tblproperties (primaryKey = 'id', "
        "type = 'mor', preCombineField = 'event_ts', 'hoodie.metadata.enable' = 'false', "
        f"'hoodie.write.table.version' = '{version}', 'hoodie.datasource.write.slash.separated.date.partitioning' = "
        f"'true') partitioned by (part) location '{path}'"
    )
    (error,) = judge.together([[Statements((create, *statements, "drop table days"))]])
    assert error is None, error


def test_days_with_slashes_are_where_hudi_has_them(judge_120: HudiJudge, tmp_path: Path) -> None:
    path = tmp_path / "days"
    written_in_sql(judge_120, path, 9, "insert into days values ('k0', 1000, '2026-01-05')")
    table = Table.open(str(path))
    days: list[str | None] = ["2026-01-05", "2026-01-06"]
    table.upsert(rows(days, 2000))
    wanted = [[f"k{n}", day, 2000, str(day).replace("-", "/")] for n, day in enumerate(days)]
    assert found_in(table.snapshot().to_arrow()) == wanted
    assert found_in(table.snapshot().to_arrow(filter="part = '2026-01-05'")) == wanted[:1]
    assert found_in(judge_120.read(path)) == wanted

    properties = path / ".hoodie" / "hoodie.properties"
    lines = [one for one in properties.read_text().splitlines() if "slash" not in one and "extractor" not in one]
    lines.append("hoodie.datasource.hive_sync.partition_extractor_class=com.example.OwnExtractor")
    properties.write_text("\n".join(lines) + "\n")
    (path / ".hoodie" / ".hoodie.properties.crc").unlink(missing_ok=True)
    with pytest.raises(UnsupportedTableError, match="OwnExtractor"):
        Table.open(str(path)).upsert(rows(days, 4000))


def test_days_with_slashes_that_no_setting_tells_are_refused(judge_120: HudiJudge, tmp_path: Path) -> None:
    path = tmp_path / "days"
    written_in_sql(judge_120, path, 9, "insert into days values ('k0', 1000, '2026-01-05')")
    properties = path / ".hoodie" / "hoodie.properties"
    lines = [one for one in properties.read_text().splitlines() if "extractor" not in one and "slash" not in one]
    properties.write_text("\n".join(lines) + "\n")
    (path / ".hoodie" / ".hoodie.properties.crc").unlink(missing_ok=True)
    table = Table.open(str(path))
    with pytest.raises(UnsupportedTableError, match="'2026-01-05' in a table with partitions such as '2026/01/05'"):
        table.upsert(rows(["2026-01-05"], 2000))
    assert found_in(table.snapshot().to_arrow()) == [["k0", "2026-01-05", 1000, "2026/01/05"]]
