"""Random merges leave the rows that DuckDB's MERGE INTO leaves of the same rows.

The table is of version 6 or 9, its rows lie in base files, log files, or in both after a compaction with an exact cut.
"""

import random
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from eventide import Table
from eventide_core.config import BLOOM_ENTRIES, BUCKETS, INDEX_TYPE
from support.run.campaign import tries
from support.values.columns import schema_of

pytestmark = pytest.mark.campaign

_SCHEMA = schema_of(id=pa.string(), part=pa.string(), ms=pa.int64(), n=pa.int32(), word=pa.string())
_START_MS = 1_700_000_000_000
_PER_TABLE = 10
_CONDITIONS = (
    "source.n > target.n",
    "target.n is null",
    "source.word = 'a' or not target.n between 2 and 5",
    "source.word in ('a', 'b') and target.part = 'x'",
    "target.word like 'b%'",
)
_NEW = ("source.n > 4", "source.word is not null", "not source.n in (1, 2)")
_VALUES: tuple[dict[str, str], ...] = (
    {"word": "source.word"},
    {"n": "target.n + source.n * 2", "word": "coalesce(target.word, 'none')"},
    {"word": "target.word || '-' || source.word", "ms": "target.ms + 1"},
    {"n": "case when source.n > target.n then source.n else target.n - 1 end", "word": "null"},
    {"n": "nullif(target.n, source.n)", "word": "upper(source.word)"},
)


def _random_rows(chance: random.Random, count: int, ms: int) -> pa.Table:
    keys = chance.sample(range(24), count)
    return pa.Table.from_pylist(
        [
            {
                "id": f"k{key}",
                "part": "xyz"[key % 3],
                "ms": _START_MS + ms + chance.randrange(50),
                "n": chance.choice([None, *range(10)]),
                "word": chance.choice([None, "a", "b", "bb", "c'"]),
            }
            for key in keys
        ],
        schema=_SCHEMA,
    )


def _merge_into(words: dict[str, Any]) -> str:
    """The same merge in DuckDB's words. `words` are the arguments of Table.merge."""
    clauses: list[str] = []
    for name, head in (
        ("when_matched_delete", "when matched{} then delete"),
        ("when_matched_update", "when matched{} then update set {}"),
        ("when_not_matched_insert", "when not matched{} then insert ({}) values ({})"),
    ):
        clause = words.get(name)
        if clause is None:
            continue
        condition, values = clause if isinstance(clause, tuple) else (clause, None)
        values = values or {column: f"source.{column}" for column in _SCHEMA.names}
        said = "" if condition in (True, "*") else f" and ({condition})"
        if name == "when_matched_update":
            clauses.append(head.format(said, ", ".join(f"{column} = {value}" for column, value in values.items())))
        else:
            clauses.append(head.format(said, ", ".join(values), ", ".join(values.values())))
    on = "target.id = source.id and target.part = source.part"
    return f"merge into t as target using s as source on {on} {' '.join(clauses)}"


def _random_words(chance: random.Random) -> dict[str, Any]:
    update = chance.choice(
        [None, True, "*", chance.choice(_CONDITIONS), (chance.choice(_CONDITIONS), chance.choice(_VALUES))]
    )
    delete = chance.choice([None, None, chance.choice(_CONDITIONS)])
    insert = chance.choice([None, True, chance.choice(_NEW)])
    words = {"when_matched_update": update, "when_matched_delete": delete, "when_not_matched_insert": insert}
    said = {name: clause for name, clause in words.items() if clause is not None}
    return said or {"when_matched_update": "*"}


def _rows(table: pa.Table) -> list[tuple[Any, ...]]:
    found = table.select(_SCHEMA.names).to_pylist()
    return sorted((tuple(row.values()) for row in found), key=lambda row: row[:2])


@pytest.mark.parametrize("number", range(tries(4, 100)))
def test_a_random_merge_leaves_the_rows_of_duckdb(number: int, tmp_path: Path) -> None:
    chance = random.Random(number)
    index = ("BUCKET", "SIMPLE")[number // 2 % 2]
    table = Table.create(
        tmp_path / "t",
        schema=_SCHEMA,
        record_key="id",
        partition="part",
        event_time="ms",
        version=(6, 9)[number % 2],
        options={BLOOM_ENTRIES: 100, INDEX_TYPE: index, **({BUCKETS: 2} if index == "BUCKET" else {})},
    )
    table.upsert(_random_rows(chance, 14, 0))
    database: Any = duckdb.connect()
    start = pa.table(table.snapshot().to_arrow().select(_SCHEMA.names))
    database.register("start", start)
    database.execute("create table t as select * from start")
    expected = _rows(start)
    for step in range(_PER_TABLE):
        # Later than all rows so far, so that no update comes too late: DuckDB's tables have no order of versions.
        source, words = _random_rows(chance, chance.randrange(1, 12), 100 * (step + 1)), _random_words(chance)
        before = set(_rows(table.snapshot().to_arrow()))
        database.register("s", source)
        changed = database.execute(_merge_into(words)).fetchall()[0][0]
        result = table.merge(source, **words)
        expected = _rows(database.sql("from t").to_arrow_table())
        context = f"{number}, {step}: {words}, {source.to_pylist()}"
        assert _rows(table.snapshot().to_arrow()) == expected, context
        counts = (result.rows_inserted or 0, result.rows_updated or 0, result.rows_deleted or 0)
        assert sum(counts) == changed, context
        assert len(expected) == len(before) + counts[0] - counts[2], context
        if chance.random() < 0.3:
            table.compact(before=_START_MS + 100 * (step + 1) + chance.randrange(50), cut="exact")
            assert _rows(table.snapshot().to_arrow()) == expected, context
    table.compact(data_latency_seconds=0)
    assert _rows(table.read_optimized().to_arrow()) == expected
