"""A write takes every type whose values a table can hold, and refuses another one by name, with what to do."""

import re
from datetime import date, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from eventide import Table
from eventide_core.errors import InvalidColumnNameError, InvalidFilterError, InvalidRecordError, UnsupportedTableError
from support.values.columns import schema_of

TAKEN: dict[str, tuple[Any, list[Any], Any]] = {
    "dictionary": (pa.dictionary(pa.int8(), pa.string()), ["a", None, "b"], pa.string()),
    "dictionary of views": (pa.dictionary(pa.uint32(), pa.string()), ["a", None], pa.string()),
    "large text": (pa.large_string(), ["a", None], pa.string()),
    "text view": (pa.string_view(), ["a", None], pa.string()),
    "large binary": (pa.large_binary(), [b"\xff"], pa.binary()),
    "binary view": (pa.binary_view(), [b"\xff"], pa.binary()),
    "large list": (pa.large_list(pa.large_string()), [["a"], [], None], pa.list_(pa.string())),
    "list view": (pa.list_view(pa.int64()), [[1], None, [2, 3]], pa.list_(pa.int64())),
    "list of dictionaries": (pa.list_(pa.dictionary(pa.int8(), pa.string())), [["a"], None, []], pa.list_(pa.string())),
    "struct of views": (pa.struct([("a", pa.string_view())]), [{"a": "x"}], pa.struct([("a", pa.string())])),
    "map of views": (pa.map_(pa.large_string(), pa.uint8()), [[("k", 255)]], pa.map_(pa.string(), pa.int32())),
    "uint8": (pa.uint8(), [255, None], pa.int32()),
    "uint16": (pa.uint16(), [2**16 - 1], pa.int32()),
    "uint32": (pa.uint32(), [2**32 - 1], pa.int64()),
    "uint64": (pa.uint64(), [2**63 - 1], pa.int64()),
    "float16": (pa.float16(), [1.5, None], pa.float32()),
    "date64": (pa.date64(), [date(2026, 11, 28)], pa.date32()),
    "decimal32": (pa.decimal32(9, 2), [Decimal("1234567.89")], pa.decimal128(9, 2)),
    "decimal64": (pa.decimal64(18, 2), [Decimal("1.25")], pa.decimal128(18, 2)),
    "decimal256": (pa.decimal256(50, 2), [Decimal("9" * 36 + ".99")], pa.decimal128(38, 2)),
    "decimal of thousands": (pa.decimal128(5, -3), [Decimal(99999000)], pa.decimal128(8, 0)),
    "fixed-size binary": (pa.binary(4), [b"\0\1\2\xff", None], pa.binary()),
    "dictionary of fixed-size binary": (pa.dictionary(pa.int8(), pa.binary(2)), [b"ab", None, b"ab"], pa.binary()),
    "list of fixed-size binary": (pa.list_(pa.binary(2)), [[b"ab", None], None], pa.list_(pa.binary())),
    "fixed-size list": (pa.list_(pa.int32(), 2), [[1, None], None, [3, 4]], pa.list_(pa.int32())),
    "fixed-size list of halves": (pa.list_(pa.float16(), 2), [[1.5, 2], None], pa.list_(pa.float32())),
    "list of fixed-size lists": (
        pa.list_(pa.list_(pa.float32(), 1)),
        [[[1.5]], None],
        pa.list_(pa.list_(pa.float32())),
    ),
    "JSON": (pa.json_(), ['{"a": 1}', None], pa.string()),
    "bytes of Booleans": (pa.bool8(), [1, None, 0], pa.bool_()),
}
CAST: dict[str, tuple[Any, Any, str, Any]] = {
    "duration": (pa.duration("s"), timedelta(hours=1), ".cast('duration[us]').cast('int64')", 3_600_000_000),
    "time": (pa.time32("s"), time(1), ".cast('time64[us]').cast('int64')", 3_600_000_000),
    "time as text": (pa.time64("us"), time(1, 0, 0, 7), ".cast('string')", "01:00:00.000007"),
    "map of numbers": (
        pa.map_(pa.int32(), pa.int64()),
        [(1, 2)],
        "cast it to list<struct<key: int32, value: int64>>",
        [{"key": 1, "value": 2}],
    ),
    "map of dates": (
        pa.map_(pa.date32(), pa.int64()),
        [(date(2026, 1, 2), 2)],
        "map<string, int64>",
        [("2026-01-02", 2)],
    ),
    "interval": (
        pa.month_day_nano_interval(),
        (1, 2, 3),
        "struct<months: int32, days: int32, nanoseconds: int64>",
        {"months": 1, "days": 2, "nanoseconds": 3},
    ),
    "decimal of 40 decimals": (pa.decimal256(60, 40), Decimal("1.5"), ".cast('string')", "1.5" + "0" * 39),
    "tensor": (pa.fixed_shape_tensor(pa.float32(), [2]), [1, 2], "fixed_size_list<item: float>[2]", [1.0, 2.0]),
}
CASTS: dict[str, Any] = {
    "interval": pa.struct([("months", pa.int32()), ("days", pa.int32()), ("nanoseconds", pa.int64())]),
    "list<struct<key: int32, value: int64>>": pa.list_(pa.struct([("key", pa.int32()), ("value", pa.int64())])),
    "map<string, int64>": pa.map_(pa.string(), pa.int64()),
    "fixed_size_list<item: float>[2]": pa.list_(pa.float32(), 2),
}
REFUSED: dict[str, tuple[Any, Any, str]] = {
    "uint64 beyond a long": (
        pa.uint64(),
        2**63,
        "row 1: column 'x' of type uint64 .*int64: 9223372036854775808: .*convert",
    ),
    "decimal256 beyond 38 digits": (pa.decimal256(50, 2), Decimal("9" * 40), "row 1: column 'x' of type decimal256"),
}


SANITIZING = {"hoodie.streamer.source.sanitize.invalid.schema.field.names": "true"}


def _array(values: list[Any], kind: Any) -> Any:
    if not isinstance(kind, pa.BaseExtensionType):
        return pa.array(values, kind)
    return pa.ExtensionArray.from_storage(kind, pa.array(values, kind.storage_type))


def _by_upsert(path: Path, rows: pa.Table) -> Table:
    table = Table.create(str(path), schema=rows.schema, record_key="id")
    table.upsert(rows)
    return table


@pytest.mark.parametrize("case", TAKEN)
def test_a_type_whose_values_fit_is_taken(tmp_path: Path, case: str) -> None:
    given, values, kind = TAKEN[case]
    rows = pa.table({"id": [f"k{row}" for row in range(len(values))], "x": _array(values, given)})
    found = _by_upsert(tmp_path / "t", rows).snapshot().to_arrow(["id", "x"]).sort_by("id").column("x")
    assert found.to_pylist() == values
    assert str(found.type).replace(" ('x')", "") == str(kind).replace("item:", "element:")


def _encoded(values: list[Any]) -> Any:
    """Run-end encoded: each value is a run."""
    given = pa.array(values)
    return pa.RunEndEncodedArray.from_arrays(pa.array(range(1, len(given) + 1), pa.int32()), given)


def test_run_end_encoded_values_are_taken(tmp_path: Path) -> None:
    texts, numbers = _encoded(["a", None, "b", "b"]), _encoded([1, 2, None, 4])
    nested = pa.StructArray.from_arrays([texts.slice(1), numbers.slice(1)], ["t", "n"])
    rows = pa.table({"id": ["x", "y", "z"], "t": texts.slice(1), "s": nested})
    found = _by_upsert(tmp_path / "t", rows).snapshot().to_arrow(["id", "t", "s"]).sort_by("id")
    assert found.to_pylist() == rows.to_pylist()


def test_uuids_are_texts_also_as_keys_and_bytes_in_a_column_of_bytes(tmp_path: Path) -> None:
    ids = [UUID(int=1), UUID(int=2**127)]
    table = _by_upsert(tmp_path / "t", pa.table({"id": ids, "x": pa.array([ids[0], None], pa.uuid())}))
    table.merge(pa.table({"id": ids[:1], "x": ids[1:]}), when_matched_update="*")
    table.delete(pa.table({"id": ids[1:]}))
    assert table.snapshot().to_arrow(["id", "x"]).to_pylist() == [{"id": str(ids[0]), "x": str(ids[1])}]
    stored = Table.create(
        str(tmp_path / "b"),
        schema=schema_of(id=pa.string(), x=pa.binary()),
        record_key="id",
    )
    stored.upsert(pa.table({"id": ["a"], "x": ids[1:]}))
    assert stored.snapshot().to_arrow(["x"]).to_pylist() == [{"x": ids[1].bytes}]


def test_a_uuid_within_a_column_is_not_taken_for_text(tmp_path: Path) -> None:
    """Arrow's cast takes its bytes for letters."""
    rows = pa.table({"id": ["a"], "s": pa.array([{"u": b"sixteen letters."}], pa.struct([("u", pa.string())]))})
    table = _by_upsert(tmp_path / "t", rows)
    given = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"sixteen letters."], pa.binary(16)))
    with pytest.raises(InvalidRecordError, match=r"field 'u' of column 's' of type .*uuid.*str\(\) of each UUID"):
        table.upsert(pa.table({"id": ["a"], "s": pa.StructArray.from_arrays([given], ["u"])}))


@pytest.mark.parametrize("case", CAST)
def test_the_cast_that_a_refusal_names_works(tmp_path: Path, case: str) -> None:
    kind, value, said, stored = CAST[case]
    rows = pa.table({"id": ["a", "b"], "x": _array([None, value], kind)})
    with pytest.raises(UnsupportedTableError, match=re.escape(said)):
        _by_upsert(tmp_path / "t", rows)
    column: Any = rows["x"]
    if case == "interval":
        column = pa.array(column.to_pylist(), CASTS["interval"])
    for step in re.findall(r"\.cast\('(.*?)'\)", said) or [CASTS.get(said.removeprefix("cast it to "))]:
        column = column if step is None else column.cast(step)
    found = _by_upsert(tmp_path / "u", rows.set_column(1, "x", column)).snapshot().to_arrow(["id", "x"]).sort_by("id")
    assert found["x"].to_pylist() == [None, stored]


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        (pa.array([5], pa.int64()), pa.timestamp("us", "UTC")),
        (pa.array([5], pa.int32()), pa.timestamp("us")),
        (pa.array([5], pa.int32()), pa.date32()),
        (pa.array([5], pa.int64()), pa.date32()),
        (pa.array([5], pa.timestamp("ms", "UTC")), pa.int64()),
        (pa.array([5], pa.date32()), pa.int64()),
        (pa.array([5], pa.duration("s")), pa.int64()),
    ],
    ids=str,
)
def test_a_time_beside_a_number_names_the_casts_that_state_the_unit(tmp_path: Path, given: Any, kind: Any) -> None:
    table = Table.create(str(tmp_path / "t"), schema=pa.schema({"id": pa.string(), "x": kind}), record_key="id")
    with pytest.raises(InvalidRecordError, match="nothing says in which unit") as refused:
        table.upsert(pa.table({"id": ["a"], "x": given}))
    cast = eval("given" + str(refused.value).partition("such as ")[2], {"given": given, "pyarrow": pa})
    table.upsert(pa.table({"id": ["a"], "x": cast}))
    assert table.snapshot().to_arrow(["x"]).num_rows == 1


def test_a_duration_is_not_a_text_without_its_unit(tmp_path: Path) -> None:
    table = Table.create(str(tmp_path / "t"), schema=pa.schema({"id": pa.string(), "x": pa.string()}), record_key="id")
    with pytest.raises(InvalidRecordError, match="nothing says in which unit"):
        table.upsert(pa.table({"id": ["a"], "x": pa.array([5], pa.duration("s"))}))


def test_nanoseconds_in_a_view_are_refused_with_their_row(tmp_path: Path) -> None:
    rows = pa.table({"id": ["a"], "x": pa.array([[1_001]], pa.list_view(pa.timestamp("ns", "UTC")))})
    with pytest.raises(InvalidRecordError, match=r"row 0: column 'x' .*would lose data: 1001"):
        _by_upsert(tmp_path / "t", rows)


@pytest.mark.parametrize("case", REFUSED)
def test_a_type_or_value_that_does_not_fit_names_the_cast(tmp_path: Path, case: str) -> None:
    kind, value, said = REFUSED[case]
    rows = pa.table({"id": ["a", "b"], "x": pa.array([None, value], kind)})
    with pytest.raises((InvalidRecordError, UnsupportedTableError), match=said):
        _by_upsert(tmp_path / "t", rows)


def test_digits_below_a_microsecond_are_refused_with_their_row(tmp_path: Path) -> None:
    rows = pa.table({"id": ["a", "b"], "x": pa.array([1_000, 1_001], pa.timestamp("ns", "UTC"))})
    with pytest.raises(InvalidRecordError, match=r"row 1: column 'x' of type .*floor_temporal"):
        _by_upsert(tmp_path / "t", rows)


def test_categories_of_polars_are_texts(tmp_path: Path) -> None:
    frame = pl.DataFrame(
        {
            "id": ["a", "b"],
            "city": pl.Series(["Oslo", None], dtype=pl.Categorical),
            "kind": pl.Series(["x", "y"], dtype=pl.Enum(["x", "y"])),
            "tags": pl.Series([["a"], []], dtype=pl.List(pl.Categorical)),
        }
    )
    columns = {"id": pa.string(), "city": pa.string(), "kind": pa.string(), "tags": pa.list_(pa.string())}
    table = Table.create(str(tmp_path / "t"), schema=pa.schema(list(columns.items())), record_key="id")
    table.upsert(frame)
    assert table.snapshot().to_arrow(list(columns)).sort_by("id").to_pylist() == frame.to_dicts()


@pytest.mark.parametrize(
    ("frame", "said"),
    [
        (
            pd.DataFrame([["a", 1, 2]], columns=pd.Index(["id", "n", "n"])),
            r"Duplicate column names found: \['id', 'n', 'n'\]",
        ),
        (pd.DataFrame({"id": ["a", "b"], "n": [1, "x"]}), "for column n with type object"),
        (pl.DataFrame({"id": ["a"], "n": pl.Series([1], dtype=pl.Int128)}), "cannot write the DataFrame"),
    ],
)
def test_a_frame_that_arrow_cannot_take_is_refused_with_a_typed_error(tmp_path: Path, frame: Any, said: str) -> None:
    table = Table.create(str(tmp_path / "t"), schema=pa.table({"id": ["a"], "n": [1]}).schema, record_key="id")
    with pytest.raises(InvalidRecordError, match=said):
        table.upsert(frame)
    with pytest.raises(InvalidRecordError, match=said):
        table.merge(frame, when_matched_update="*")


def test_long_numbers_beside_null_stay_exact_in_pandas(tmp_path: Path) -> None:
    rows = pa.table({"id": ["a", "b"], "n": [2**53 + 1, None]})
    table = _by_upsert(tmp_path / "t", rows)
    table.upsert(table.snapshot().to_pandas(["id", "n"]))
    assert table.snapshot().to_arrow(["id", "n"]).sort_by("id").to_pylist() == rows.to_pylist()


def test_an_update_of_a_text_by_a_number_names_the_column(tmp_path: Path) -> None:
    table = _by_upsert(tmp_path / "t", pa.table({"id": ["a"], "city": ["Oslo"]}))
    for expression in ("city * 2", "city + 1", "upper(id) - 1", "5", "city || 5"):
        with pytest.raises((InvalidRecordError, InvalidFilterError), match="city"):
            table.update({"city": expression}, all=True)


def test_sanitizing_reaches_the_names_of_nested_fields(tmp_path: Path) -> None:
    inner = pa.struct([("unit price", pa.float64()), ("n", pa.int64())])
    columns: dict[str, Any] = {
        "id": pa.array(["a", "b"]),
        "a line": pa.array([{"unit price": 1.5, "n": 2}, None], inner),
        "lines": pa.array([[{"unit price": 0.5, "n": None}], []], pa.list_(inner)),
        "by-name": pa.array([[("k k", {"unit price": 2.5, "n": 1})], None], pa.map_(pa.string(), inner)),
    }
    rows = pa.table(columns)
    table = Table.create(str(tmp_path / "t"), schema=rows.schema, record_key="id", options=SANITIZING)
    table.upsert(rows.slice(0, 1))
    table.upsert(rows.slice(1, 1))
    found = table.snapshot().to_arrow(["id", "a__line", "lines", "by__name"]).sort_by("id").to_pylist()
    assert found == [
        {
            "id": "a",
            "a__line": {"unit__price": 1.5, "n": 2},
            "lines": [{"unit__price": 0.5, "n": None}],
            "by__name": [("k k", {"unit__price": 2.5, "n": 1})],
        },
        {"id": "b", "a__line": None, "lines": [], "by__name": None},
    ]


def test_a_nested_name_that_avro_does_not_allow_is_refused(tmp_path: Path) -> None:
    rows = pa.table({"id": ["a"], "x": pa.array([{"unit price": 1.5}])})
    with pytest.raises(InvalidColumnNameError, match=r"'unit price' \(unit__price\)"):
        _by_upsert(tmp_path / "t", rows)
