"""Records merge, in whole columns, as a user-defined merger says, one pair after another."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventide_adapters.format.slice.log_file.records import DataBlock, DeleteBlock
from eventide_adapters.format.slice.merge.base_merge import SliceMerge
from eventide_adapters.format.slice.merge.log_fold import HELD_BYTES, FoldedLogFiles
from eventide_adapters.format.slice.merge.record_mergers import RECORD_MERGERS, described, merge_rows, mergers_of
from eventide_core.config import Options
from eventide_core.errors import ConfigError, RecordMergerError
from eventide_core.table.records.custom_merger import CustomMerger
from eventide_core.table.records.record_order import MergeRule
from eventide_core.table.records.record_shape import RecordShape
from eventide_core.table.schema.avro_schema import AvroSchema

pytestmark = pytest.mark.slow

KEY, ORDERING, WORD = "_hoodie_record_key", "ts", "word"
COLUMNS: "list[pa.Field[Any]]" = [
    pa.field(KEY, pa.string()),
    pa.field(ORDERING, pa.int64()),
    pa.field(WORD, pa.string()),
]
SCHEMA = pa.schema(COLUMNS)
MERGERS = {name: described(f"support.values.mergers:{name}") for name in ("Longest", "Joined", "Bracketed")}


@dataclass(frozen=True)
class Record:
    """`word` None: a delete. `ordering` None: a delete in natural order."""

    key: str
    ordering: int | None
    word: str | None


def _joined(pattern: str, older: Record, newer: Record) -> Record:
    return replace(newer, word=pattern.format(older.word, newer.word))


def _longest(older: Record, newer: Record) -> Record:
    return newer if len(newer.word or "") >= len(older.word or "") else older


IN_PYTHON: dict[str, Callable[[Record, Record], Record]] = {
    "Longest": _longest,
    "Joined": partial(_joined, "{}{}"),
    "Bracketed": partial(_joined, "({}{})"),
}


def merged(name: str, older: Record | None, newer: Record) -> Record:
    """What Hudi makes of two versions, if the Java merger treats deletes as the class declares."""
    if older is None:
        return newer
    if older.word is not None and newer.word is not None:
        return IN_PYTHON[name](older, newer)
    if MERGERS[name].delete_rule is MergeRule.COMMIT_TIME_ORDERING:
        return newer
    if older.ordering is None or newer.ordering is None:
        return newer
    return newer if newer.ordering >= older.ordering else older


def shown(name: str, base: Sequence[Record], blocks: Sequence[Sequence[Record]]) -> dict[str, Record]:
    records: dict[str, Record] = {}
    for record in (record for block in blocks for record in block):
        records[record.key] = merged(name, records.get(record.key), record)
    old = {record.key: record for record in base}
    records = {key: merged(name, old.get(key), record) for key, record in records.items()}
    return {key: record for key, record in {**old, **records}.items() if record.word is not None}


def batch(records: Sequence[Record]) -> pa.RecordBatch:
    rows = [{KEY: record.key, ORDERING: record.ordering, WORD: record.word} for record in records]
    return pa.RecordBatch.from_pylist(rows, schema=SCHEMA)


def block(instant: str, records: Sequence[Record]) -> DataBlock | DeleteBlock:
    if records[0].word is not None:
        return DataBlock(instant, batch(records))
    keys = pa.array([record.key for record in records], pa.string())
    return DeleteBlock(instant, keys, pa.array([record.ordering for record in records], pa.int64()))


def records(word: st.SearchStrategy[str | None], ordering: st.SearchStrategy[int | None]) -> Any:
    return st.builds(Record, st.sampled_from("abc"), ordering, word)


LIVE = records(st.text("xyz", min_size=1, max_size=2), st.integers(0, 3))
DELETED = records(st.none(), st.none() | st.integers(0, 3))
BLOCKS = st.lists(st.lists(LIVE, min_size=1, max_size=4) | st.lists(DELETED, min_size=1, max_size=2), max_size=6)
BASE = st.lists(LIVE, max_size=3, unique_by=lambda record: record.key)


@pytest.mark.parametrize("name", MERGERS)
@pytest.mark.parametrize("held_bytes", [0, HELD_BYTES])
@given(base=BASE, blocks=BLOCKS)
def test_columns_merge_as_records_do_one_by_one(
    name: str, held_bytes: int, base: list[Record], blocks: list[list[Record]]
) -> None:
    shape = RecordShape(AvroSchema.of(""), MergeRule.CUSTOM, (ORDERING,), ORDERING, merger=MERGERS[name])
    logs = [block(f"{number:03}", of_block) for number, of_block in enumerate(blocks)]
    merge = SliceMerge(FoldedLogFiles.of(logs, SCHEMA, shape, held_bytes=held_bytes), shape)
    rows = pa.concat_tables(merge.batches([batch(base)])).to_pylist()
    records = {row[KEY]: Record(row[KEY], row[ORDERING], row[WORD]) for row in rows}
    assert len(records) == len(rows)
    assert records == shown(name, base, blocks)


@given(base=BASE, blocks=st.lists(st.lists(LIVE, min_size=1, max_size=4), max_size=6), cut=st.integers(0, 6))
def test_an_associative_merger_makes_the_same_of_a_slice_that_is_merged_in_part(
    base: list[Record], blocks: list[list[Record]], cut: int
) -> None:
    for name in ("Longest", "Joined"):
        new_base = shown(name, base, blocks[:cut])
        assert shown(name, list(new_base.values()), blocks[cut:]) == shown(name, base, blocks)


def test_a_merger_that_is_not_associative_is_noticed_where_a_slice_is_merged_in_part() -> None:
    base, first, second = (Record("a", 1, word) for word in "xyz")
    whole = shown("Bracketed", [base], [[first], [second]])
    in_part = shown("Bracketed", list(shown("Bracketed", [base], [[first]]).values()), [[second]])
    assert (whole["a"].word, in_part["a"].word) == ("(x(yz))", "((xy)z)")


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("Short", "returned 1 rows for 2 pairs"),
        ("OtherType", "returned int32 in column word, which is string"),
        ("OtherColumns", f"returned the columns {KEY}, {ORDERING}, not {KEY}, {ORDERING}, {WORD}"),
        ("OtherKey", "returned the record key 'x' for 'a'"),
        ("NoTable", "returned list, not a pyarrow.Table"),
        ("Failing", "raised KeyError"),
    ],
)
def test_a_result_that_does_not_fit_is_refused(name: str, why: str) -> None:
    rows = pa.Table.from_batches([batch([Record("a", 1, "x"), Record("b", 1, "x")])])
    merger = CustomMerger(
        f"support.values.mergers:{name}", is_associative=True, delete_rule=MergeRule.COMMIT_TIME_ORDERING
    )
    with pytest.raises(RecordMergerError, match=f"support.values.mergers:{name} {why}"):
        merge_rows(merger, rows, rows)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("support.values.mergers:Longest", "is not STRATEGY_ID=module:Class"),
        ("id=support.values.mergers", "is not STRATEGY_ID=module:Class"),
        ("id=no_such_module:Longest", "can't be loaded: ModuleNotFoundError"),
        ("id=support.values.mergers:NoSuchClass", "can't be loaded: AttributeError"),
        ("id=support.values.mergers:NoMethod", "isn't a merger: it has no method `merge`"),
        ("id=support.values.mergers:NoDeletes", "isn't a merger: its attribute `deletes` is None"),
        ("id=support.values.mergers:Longest,id=support.values.mergers:Joined", "maps id twice"),
    ],
)
def test_an_option_that_names_no_merger_is_refused(text: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        mergers_of(Options({RECORD_MERGERS: text}))


def test_mergers_are_found_by_strategy_id() -> None:
    mergers = dict(
        mergers_of(
            Options({RECORD_MERGERS: "one = support.values.mergers:Longest, two=support.values.mergers:Bracketed"})
        )
    )
    assert mergers == {"one": MERGERS["Longest"], "two": MERGERS["Bracketed"]}
    assert not mergers_of(Options({}))
