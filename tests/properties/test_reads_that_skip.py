"""A query with a filter skips files, row groups and log records, and gives the rows that the filter keeps of a whole read.

Random tables of every version and index, with deletes, moved ordering values, nulls, NaN, left-overs of compactions by whole
log files and by exact cuts, and base files of several row groups; random filters in every form.
"""

import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from eventide import Table
from eventide.rows.reader import Rows
from eventide_adapters.format.encoding.parquet import output, row_pages
from eventide_core.config import BLOOM_ENTRIES, BUCKETS, CLOCK_SKEW_MS, INDEX_TYPE
from eventide_core.errors import NothingToDoError, RefusedError
from eventide_core.table.timeline.contents.plans import CutMode
from support.values.columns import schema_of

EPOCH_MS = 1_700_000_000_000
NAN = float("nan")
NULL: Any = pa.scalar(None, pa.bool_())
SCHEMA = schema_of(
    id=pa.string(),
    number=pa.int64(),
    part=pa.string(),
    ms=pa.int64(),
    at=pa.timestamp("us", "UTC"),
    x=pa.float64(),
    word=pa.string(),
)
KEYS = [f"k{number}" for number in range(9)]
TIMES = [EPOCH_MS + step * 1000 for step in range(12)]

texts = st.sampled_from([*KEYS, "", "k", "z", "k3'", "\U0001f600"])
moments = st.sampled_from([*TIMES, 0, EPOCH_MS + 500])
rows = st.fixed_dictionaries(
    {
        "number": st.integers(0, 8),
        "part": st.sampled_from(["a", "b"]),
        "ms": st.sampled_from(TIMES),
        "x": st.sampled_from([None, NAN, -1.0, 0.0, 2.5]),
        "word": st.sampled_from([None, "", "apple", "pear", "\U0001f600"]),
    }
)
writes = st.tuples(st.just("upsert"), st.lists(rows, min_size=1, max_size=12, unique_by=lambda row: row["number"]))
deletes = st.tuples(st.just("delete"), st.lists(rows, min_size=1, max_size=2, unique_by=lambda row: row["number"]))
compactions = st.tuples(st.sampled_from(["file", "exact"]), st.sampled_from(TIMES))
histories = st.lists(st.one_of(writes, writes, deletes, compactions), min_size=2, max_size=6)

compare: list[Callable[[Any, Any], Any]] = [
    lambda one, other: one == other,
    lambda one, other: one != other,
    lambda one, other: one < other,
    lambda one, other: one >= other,
]


def at(ms: int) -> Any:
    return pa.scalar(ms * 1000, pa.timestamp("us", "UTC"))


predicates = st.one_of(
    st.builds(lambda op, value: op(pc.field("id"), value), st.sampled_from(compare), texts),
    st.builds(lambda op, value: op(pc.field("_hoodie_record_key"), value), st.sampled_from(compare), texts),
    st.builds(lambda values: pc.field("id").isin(values), st.lists(texts, min_size=1, max_size=3)),
    st.builds(lambda values: pc.field("id").isin([*values, None]), st.lists(texts, min_size=1, max_size=2)),
    st.builds(lambda op, value: op(pc.field("number"), value), st.sampled_from(compare), st.integers(-1, 9)),
    st.builds(lambda op, value: op(pc.field("ms"), value), st.sampled_from(compare), moments),
    st.builds(lambda op, value: op(pc.field("at"), at(value)), st.sampled_from(compare), moments),
    st.builds(lambda op, value: op(pc.field("x"), value), st.sampled_from(compare), st.sampled_from([0.0, 3.0, NAN])),
    st.builds(
        lambda op, value: op(pc.field("word"), value), st.sampled_from(compare), st.sampled_from(["", "b", "pear"])
    ),
    st.builds(lambda name: pc.field(name).is_null(), st.sampled_from(["id", "word", "x", "ms"])),
    st.builds(lambda value: pc.field("part") == value, st.sampled_from(["a", "c"])),
    st.just(pc.field("id").is_valid()),
    st.just(pc.scalar(NULL) & (pc.field("id") == "k1")),
)
filters: Any = st.recursive(
    predicates,
    lambda inner: st.one_of(
        st.builds(lambda one, other: one & other, inner, inner),
        st.builds(lambda one, other: one | other, inner, inner),
        st.builds(lambda one: ~one, inner),
    ),
    max_leaves=4,
)
SQL = (
    "id = 'k3'",
    "id in ('k1', 'k4', 'nobody')",
    "id in ('k1') and ms >= 1700000003000",
    "not (id = 'k3')",
    "id <> 'k3' and id <= 'k4'",
    "'k2' = id or number = 5",
    "ms between 1700000002000 and 1700000004000",
    "at < timestamp '2023-11-14T22:13:23Z'",
    "word is null and id = 'k2'",
    "x > 0 or id like 'k1%'",
)


@pytest.fixture(autouse=True)
def small_row_groups() -> Iterator[None]:
    """Row groups of a few rows, so that there is something to skip within a file."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(output, "ROW_GROUP_ROWS_MAX", 3)
        yield


def made(directory: str, version: int, index: str, *, key: str, has_order: bool) -> Table:
    options: dict[str, str] = {BUCKETS: "3", INDEX_TYPE: index, BLOOM_ENTRIES: "100", CLOCK_SKEW_MS: "1"}
    return Table.create(
        str(Path(directory) / "table"),
        schema=SCHEMA,
        record_key=key,
        partition="part",
        event_time="at" if has_order else "ms",
        ordering="ms" if has_order else None,
        version=version,
        options=options,
    )


def records(found: list[dict[str, Any]]) -> pa.Table:
    whole = [{**row, "id": f"k{row['number']}", "at": row["ms"] * 1000} for row in found]
    columns: list[Any] = [pa.array([row[field.name] for row in whole], field.type) for field in SCHEMA]
    return pa.table(columns, schema=SCHEMA)


def live(table: Table, history: list[tuple[str, Any]]) -> list[str]:
    """The history, as far as the table takes it. Returns the instants of its writes."""
    instants: list[str] = []
    for deed, what in history:
        match deed:
            case "upsert":
                instants.append(table.upsert(records(what)).instant)
            case "delete":
                instants.append(table.delete(records(what)).instant)
            case _:
                try:
                    table.compact(table.plan_compaction(what, cut=CutMode(deed)))
                except (NothingToDoError, RefusedError):
                    continue
    return instants


def sorted_rows(found: pa.Table) -> list[str]:
    return sorted(map(repr, found.to_pylist()))  # NaN never equals another NaN, but their texts are equal


def hold(query: Rows, row_filter: Any) -> None:
    from eventide.rows.row_filter import filter_expression

    everything = query.to_arrow()
    expression = filter_expression(row_filter, query.schema)
    assert expression is not None
    expected = sorted_rows(everything.filter(expression))
    assert sorted_rows(query.to_arrow(None, row_filter)) == expected, str(row_filter)
    assert query.count(row_filter) == len(expected)
    reading = query.reading(None, row_filter)
    kept = reading.unskipped(query.engine)
    assert sorted_rows(pa.Table.from_batches([b for one in kept for b in reading(one)], query.schema)) == expected


def check(
    version: int, index: str, key: str, has_order: bool, history: list[tuple[str, Any]], asked: list[Any]
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        table = made(directory, version, index, key=key, has_order=has_order)
        instants = live(table, history)
        if not instants:
            return
        queries = [table.snapshot(), table.read_optimized(), *(table.as_of(instant) for instant in instants[::2])]
        for query in queries:
            for row_filter in asked:
                hold(query, row_filter)


given_tables = given(
    version=st.sampled_from([6, 8, 9]),
    index=st.sampled_from(["BUCKET", "SIMPLE", "BLOOM", "GLOBAL_SIMPLE"]),
    key=st.sampled_from(["id", "number", "id,number"]),
    has_order=st.booleans(),
    history=histories,
    asked=st.lists(st.one_of(filters, st.sampled_from(SQL)), min_size=3, max_size=6),
)


@pytest.mark.slow
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given_tables
def test_a_filter_gives_the_rows_that_it_keeps_of_a_whole_read(**words: Any) -> None:
    check(**words)


@pytest.mark.proof
@settings(max_examples=1000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given_tables
def test_a_filter_gives_the_rows_that_it_keeps_of_a_whole_read_in_many_tables(**words: Any) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_pages, "_ROWS_MIN", 0)
        patch.setattr(pq, "ParquetWriter", partial(pq.ParquetWriter, max_rows_per_page=2))
        check(**words)
