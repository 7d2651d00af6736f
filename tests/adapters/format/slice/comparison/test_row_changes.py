"""What differs between two sets of rows: keys, values of every kind, and rows with the same key."""

from typing import Any

import pyarrow as pa
import pytest

from eventide_adapters.format.slice.comparison.row_changes import RowChanges, row_changes

NAN = float("nan")


def rows(kind: Any, *pairs: tuple[str, Any]) -> pa.Table:
    fields: list[Any] = [pa.field("_hoodie_file_name", pa.string()), pa.field("k", pa.string()), pa.field("v", kind)]
    data = [{"_hoodie_file_name": str(at), "k": key, "v": value} for at, (key, value) in enumerate(pairs)]
    return pa.Table.from_pylist(data, schema=pa.schema(fields))


def seen(changes: RowChanges) -> list[list[str | None]]:
    return [sorted(part["k"].to_pylist(), key=str) for part in changes.parts]


def test_rows_are_inserted_updated_and_deleted_by_key() -> None:
    before = rows(pa.int64(), ("same", 1), ("other", 1), ("gone", 1))
    changes = row_changes(before, rows(pa.int64(), ("new", 1), ("other", 2), ("same", 1)), ("k",))
    assert seen(changes) == [["new"], ["other"], ["other"], ["gone"]]
    assert (changes.outdated["v"].to_pylist(), changes.updated["v"].to_pylist()) == ([1], [2])


@pytest.mark.parametrize(
    ("kind", "value", "other"),
    [
        (pa.float64(), NAN, 1.0),
        (pa.float64(), None, NAN),
        (pa.string(), None, ""),
        (pa.bool_(), False, None),
        (pa.binary(), b"\xff", b""),
        (pa.timestamp("us", "UTC"), 1, 2),
        (pa.list_(pa.int64()), [1, None], [1]),
        (pa.struct([pa.field("x", pa.int64())]), {"x": None}, None),
        (pa.map_(pa.string(), pa.int64()), [("a", 1)], [("a", 2)]),
        (pa.decimal128(10, 2), None, 1),
    ],
)
def test_values_of_every_kind_are_compared(kind: Any, value: Any, other: Any) -> None:
    assert seen(row_changes(rows(kind, ("a", value)), rows(kind, ("a", value)), ("k",))) == [[], [], [], []]
    assert seen(row_changes(rows(kind, ("a", value)), rows(kind, ("a", other)), ("k",))) == [[], ["a"], ["a"], []]


def test_of_rows_with_one_key_each_belongs_to_one() -> None:
    before, after = rows(pa.int64(), ("a", 1), ("b", 1), ("a", 2)), rows(pa.int64(), ("a", 1), ("a", 2), ("a", 3))
    assert seen(row_changes(before, after, ("k",))) == [["a"], [], [], ["b"]]


def test_no_rows_on_one_side_or_on_both() -> None:
    some, none = rows(pa.int64(), ("a", 1)), rows(pa.int64())
    assert seen(row_changes(none, some, ("k",))) == [["a"], [], [], []]
    assert seen(row_changes(some, none, ("k",))) == [[], [], [], ["a"]]
    assert seen(row_changes(none, none, ("k",))) == [[], [], [], []]


def test_several_keys_with_nulls_identify_a_row() -> None:
    before = rows(pa.int64(), ("a", None), ("a", 1), ("b", 1))
    assert seen(row_changes(before, rows(pa.int64(), ("a", 1), ("a", None), ("c", 1)), ("k", "v", "absent"))) == [
        ["c"],
        [],
        [],
        ["b"],
    ]
