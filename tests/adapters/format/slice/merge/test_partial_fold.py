"""Records that lack columns merge, in whole columns, as core's table/records/partial_update says."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventide_adapters.format.slice.log_file.records import DataBlock, DeleteBlock
from eventide_adapters.format.slice.merge.base_merge import SliceMerge
from eventide_adapters.format.slice.merge.log_fold import HELD_BYTES, FoldedLogFiles
from eventide_core.errors import UnsupportedTableError
from eventide_core.table.records.record_order import MergeRule, Version
from eventide_core.table.records.record_shape import PartialUpdate, RecordShape
from eventide_core.table.schema.avro_schema import AvroSchema
from support.values.partial_versions import PartialVersion, latest_partial

pytestmark = pytest.mark.slow

COLUMNS = ("x", "y")
KEY, ORDERING = "_hoodie_record_key", "ts"
MARKER = "unavailable"
NULLS, UNAVAILABLE = PartialUpdate(None), PartialUpdate(MARKER)


@dataclass(frozen=True)
class Change:
    """`columns` are those that the record has; `ordering` None: a delete in natural order."""

    key: str
    ordering: int | None
    is_delete: bool
    columns: frozenset[str]


def changes(min_ordering: int = 0) -> st.SearchStrategy[Change]:
    keys, orderings = st.sampled_from("abc"), st.integers(min_ordering, 4)
    upsert = st.builds(Change, keys, orderings, st.just(False), st.frozensets(st.sampled_from(COLUMNS)))
    delete = st.builds(Change, keys, st.none() | orderings, st.just(True), st.just(frozenset[str]()))
    return upsert | delete


def batch(rows: Sequence[tuple[Change, str]], lacking: str | None) -> pa.RecordBatch:
    """A row's columns all have the same text, which says which row it is; `lacking` is what a column has that it lacks."""
    columns: dict[str, Any] = {
        KEY: pa.array([change.key for change, _ in rows], pa.string()),
        ORDERING: pa.array([change.ordering for change, _ in rows], pa.int64()),
    }
    for name in COLUMNS:
        texts = [text if name in change.columns else lacking for change, text in rows]
        columns[name] = pa.array(texts, pa.string())
    return pa.RecordBatch.from_pydict(columns)


def version(change: Change, number: int, text: str) -> PartialVersion:
    return PartialVersion(Version(change.ordering, change.is_delete, number), dict.fromkeys(change.columns, text))


@pytest.mark.parametrize("how", [None, NULLS, UNAVAILABLE])
@pytest.mark.parametrize("rule", [MergeRule.EVENT_TIME_ORDERING, MergeRule.COMMIT_TIME_ORDERING])
@given(
    base=st.lists(changes().filter(lambda change: not change.is_delete), unique_by=lambda change: change.key),
    log=st.lists(changes(), max_size=12),
    batch_size=st.integers(1, 3),
    held_bytes=st.sampled_from([0, 60, HELD_BYTES]),
)
def test_every_key_shows_the_columns_that_its_versions_have_given(
    how: PartialUpdate | None,
    rule: MergeRule,
    base: list[Change],
    log: list[Change],
    batch_size: int,
    held_bytes: int,
) -> None:
    """`how` None: blocks of partial updates over a base of whole rows; otherwise, lacking are nulls, or the marker."""
    lacking = None if how is None else how.unavailable
    if how is None:
        base = [Change(change.key, change.ordering, False, frozenset(COLUMNS)) for change in base]
    shape = RecordShape(AvroSchema.of(""), rule, (ORDERING,), None, partial_update=how)
    base_rows = [(change, f"base {change.key}") for change in base]
    log_rows = [(change, f"log {number}") for number, change in enumerate(log)]
    blocks: list[DataBlock | DeleteBlock] = []
    for number, (change, text) in enumerate(log_rows):
        if change.is_delete:
            orderings = pa.array([change.ordering], pa.int64())
            blocks.append(DeleteBlock(str(number), pa.array([change.key]), orderings))
        else:
            absent = frozenset(COLUMNS) - change.columns if how is None else None
            blocks.append(DataBlock(str(number), batch([(change, text)], lacking), absent=absent))
    batches = [batch(base_rows[i : i + batch_size], lacking) for i in range(0, len(base_rows), batch_size)]
    schema = batch([], lacking).schema
    merge = SliceMerge(FoldedLogFiles.of(blocks, schema, shape, held_bytes=held_bytes), shape)
    expected: dict[str, tuple[object, ...]] = {}
    for key in dict.fromkeys(change.key for change in [*base, *log]):
        old = next((version(change, -1, text) for change, text in base_rows if change.key == key), None)
        versions = [version(change, n, text) for n, (change, text) in enumerate(log_rows) if change.key == key]
        latest = latest_partial(rule, old, versions)
        if latest is not None:
            expected[key] = (latest.version.ordering, *(latest.values.get(name, lacking) for name in COLUMNS))
    in_base = {change.key for change in base}
    if how is None and any(None in row for key, row in expected.items() if key not in in_base):
        with pytest.raises(UnsupportedTableError, match="the record that it updates is not here"):
            list(merge.batches(batches))
        return
    rows = pa.concat_tables(merge.batches(batches)).to_pylist()
    assert {row[KEY]: (row[ORDERING], *(row[name] for name in COLUMNS)) for row in rows} == expected
    assert len(rows) == len(expected)
