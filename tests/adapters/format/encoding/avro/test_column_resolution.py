"""Records of an older schema, as the table's schema has them: Avro's own resolution at any depth, and what Hudi adds."""

import io
import json
import uuid
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide_adapters.format.encoding.avro.column_resolution import check_columns, resolve_columns
from eventide_adapters.format.encoding.avro.decode import avro_record_bounds, iter_avro_block
from eventide_adapters.format.encoding.avro.schema import record_fields
from eventide_core.errors import RecordDecodeError, UnsupportedTableError
from eventide_core.table.schema.avro_schema import AvroSchema
from support.files.logs import avro_content, table_schema
from support.values.avro_types import TypedValues, avro_types, logical


def _decode(content: bytes, written: str, table: str) -> list[Any]:
    batches = iter_avro_block(
        lambda offset, length: content[offset : offset + length],
        len(content),
        AvroSchema.of(written),
        record_fields(AvroSchema.of(table)),
        "block 7",
    )
    rows = pa.Table.from_batches(batches)
    rows.validate(full=True)
    return rows.to_pylist(maps_as_pydicts="strict")


def _plain(value: Any) -> Any:
    match value:
        case dict():
            return {key: _plain(inner) for key, inner in value.items()}
        case list():
            return [_plain(inner) for inner in value]
        case uuid.UUID():
            return str(value)
        case _:
            return value


@settings(max_examples=200)
@given(typed=avro_types(evolves=True), data=st.data())
def test_records_of_an_older_schema_read_as_avro_resolves_them(typed: TypedValues, data: st.DataObject) -> None:
    neighbour = {"name": "z", "type": "string"}
    written = table_schema({"name": "x", "type": typed.avro}, {"name": "gone", "type": "long"}, neighbour)
    table = table_schema(neighbour, {"name": "x", "type": typed.later}, {"name": "n", "type": "int", "default": 3})
    rows = [{"x": x, "gone": 1, "z": "z"} for x in data.draw(st.lists(typed.values, max_size=8))]
    content = avro_content(written, rows)
    writer, reader = (fastavro.parse_schema(json.loads(schema)) for schema in (written, table))
    expected = [
        _plain(fastavro.schemaless_reader(io.BytesIO(content[start:end]), writer, reader))
        for start, end in zip(*(bounds.tolist() for bounds in avro_record_bounds(content, "block")), strict=True)
    ]
    assert _decode(content, written, table) == expected


def _promoted(avro: Any, value: Any, later: Any) -> Any:
    written, table = (table_schema({"name": "x", "type": kind}) for kind in (avro, later))
    ((row),) = _decode(avro_content(written, [{"x": value}]), written, table)
    return row["x"]


@pytest.mark.parametrize(
    ("avro", "value", "later", "promoted"),
    [
        pytest.param("int", -7, "float", -7.0, id="int to float"),
        pytest.param("long", (1 << 53) + 1, "double", float(1 << 53), id="long to double, rounded"),
        pytest.param("long", (1 << 24) + 1, "float", float(1 << 24), id="long to float, rounded"),
        pytest.param("float", 0.1, "double", 0.1, id="float to the double of the same digits"),
        pytest.param("int", -7, "string", "-7", id="int to string"),
        pytest.param("long", 1 << 62, "string", "4611686018427387904", id="long to string"),
        pytest.param("float", 3.0, "string", "3.0", id="a whole float to string"),
        pytest.param("double", 1.5e7, "string", "1.5E7", id="a great double to string"),
        pytest.param("double", -9_999_999.0, "string", "-9999999.0", id="a double below the exponents to string"),
        pytest.param("double", 0.001, "string", "0.001", id="a double above the exponents to string"),
        pytest.param("double", 1e-5, "string", "1.0E-5", id="a small double to string"),
        pytest.param("double", 0.0, "string", "0.0", id="zero to string"),
        pytest.param("double", float("nan"), "string", "NaN", id="no number to string"),
        pytest.param("double", float("-inf"), "string", "-Infinity", id="infinity to string"),
        pytest.param("bytes", "é".encode(), "string", "é", id="bytes to string"),
        pytest.param("string", "é", "bytes", "é".encode(), id="string to bytes"),
        pytest.param(logical("int", "date"), date(1969, 12, 31), "string", "1969-12-31", id="date to string"),
        pytest.param({"type": "enum", "name": "e", "symbols": ["A"]}, "A", "string", "A", id="enum to string"),
        pytest.param(
            logical("bytes", "decimal", precision=5, scale=2),
            Decimal("-1.50"),
            logical("fixed", "decimal", precision=20, scale=4, name="d", size=9),
            Decimal("-1.5000"),
            id="decimal to a wider one of another form",
        ),
        pytest.param(
            logical("bytes", "decimal", precision=5, scale=2), Decimal("1.50"), "string", "1.50", id="decimal to string"
        ),
        pytest.param(
            logical("long", "timestamp-millis"),
            datetime(2026, 1, 1, tzinfo=UTC),
            logical("long", "timestamp-micros"),
            datetime(2026, 1, 1, tzinfo=UTC),
            id="milliseconds to microseconds",
        ),
        pytest.param(
            "long",
            1_000_000,
            logical("long", "local-timestamp-micros"),
            datetime(1970, 1, 1, 0, 0, 1),  # noqa: DTZ001  a local timestamp has no zone
            id="a number that a newer writer calls a time",
        ),
    ],
)
def test_a_type_is_promoted_as_hudi_promotes_it(avro: Any, value: Any, later: Any, promoted: Any) -> None:
    assert _promoted(avro, value, later) == promoted


@pytest.mark.parametrize(
    ("avro", "value", "later"),
    [
        pytest.param("string", "3", "long", id="string to long"),
        pytest.param("long", 3, "int", id="long to int"),
        pytest.param("double", 3.0, "float", id="double to float"),
        pytest.param("boolean", True, "string", id="boolean to string"),
        pytest.param(logical("long", "timestamp-micros"), 3, "string", id="timestamp to string"),
        pytest.param(
            logical("bytes", "decimal", precision=9, scale=2),
            Decimal("1.50"),
            logical("bytes", "decimal", precision=9, scale=4),
            id="decimal to one of fewer whole digits",
        ),
        pytest.param({"type": "array", "items": "string"}, ["3"], {"type": "array", "items": "long"}, id="in an array"),
        pytest.param(["int", "string"], 3, ["string", "int"], id="a union in another order"),
        pytest.param({"type": "array", "items": "int"}, [3], {"type": "map", "values": "int"}, id="array to map"),
    ],
)
def test_what_hudi_does_not_promote_is_refused(avro: Any, value: Any, later: Any) -> None:
    with pytest.raises(
        UnsupportedTableError, match=r"block 7: field x.* was written as .*, but the table's schema has"
    ):
        _promoted(avro, value, later)


def test_bytes_that_are_no_text_are_reported() -> None:
    with pytest.raises(RecordDecodeError, match="field x: a value of type binary"):
        _promoted("bytes", b"\xff", "string")


def _record(*fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "record", "name": "r", "fields": list(fields)}


X, Y = {"name": "x", "type": "int"}, {"name": "y", "type": "int"}


def test_a_nested_field_that_may_not_be_null_has_to_be_there() -> None:
    with pytest.raises(UnsupportedTableError, match=r"field x.element.y is missing"):
        _promoted({"type": "array", "items": _record(X)}, [{"x": 1}], {"type": "array", "items": _record(X, Y)})


def test_a_field_without_value_in_an_old_record_has_the_default_of_its_type() -> None:
    point = _record(X, {**Y, "default": 5})
    written = table_schema({"name": "id", "type": "string"})
    table = table_schema(
        {"name": "id", "type": "string"},
        {"name": "point", "type": point, "default": {"x": 1}},
        {"name": "raw", "type": "bytes", "default": "\u00ff"},
        {"name": "tags", "type": {"type": "array", "items": "string"}, "default": []},
        {"name": "more", "type": {"type": "map", "values": "int"}, "default": {"k": 1}},
        {"name": "price", "type": logical("bytes", "decimal", precision=4, scale=2), "default": "\u0001"},
        {"name": "day", "type": logical("int", "date"), "default": 1},
    )
    content = avro_content(written, [{"id": "a"}, {"id": "b"}])
    filled = {
        "point": {"x": 1, "y": 5},
        "raw": b"\xff",
        "tags": [],
        "more": {"k": 1},
        "price": Decimal("0.01"),
        "day": date(1970, 1, 2),
    }
    assert _decode(content, written, table) == [{"id": "a", **filled}, {"id": "b", **filled}]


def test_a_default_that_is_no_value_of_its_field_is_refused() -> None:
    table = table_schema({"name": "new", "type": "int", "default": "seven"})
    with pytest.raises(UnsupportedTableError, match="field new has the default 'seven'"):
        check_columns({}, record_fields(AvroSchema.of(table)), "block 7")


def test_a_null_field_of_a_record_is_reported_but_a_null_record_is_not() -> None:
    inner = pa.field("x", pa.int64())
    schema = table_schema({"name": "s", "type": ["null", _record({"name": "x", "type": "long"})]})
    column = pa.array([None, {"x": 1}], pa.struct([inner]))
    batch = resolve_columns({"s": column}, 2, record_fields(AvroSchema.of(schema)), "file")
    assert batch.to_pylist() == [{"s": None}, {"s": {"x": 1}}]
    with pytest.raises(RecordDecodeError, match=r"file: field s.x is null in a record"):
        resolve_columns(
            {"s": pa.array([{"x": None}], pa.struct([inner]))}, 1, record_fields(AvroSchema.of(schema)), "file"
        )


def test_slices_of_collections_keep_their_items() -> None:
    """Readers of Parquet hand out parts of larger columns."""
    items = pa.list_(pa.struct([("x", pa.int32())]))
    entries = pa.map_(pa.string(), pa.int32())
    lists = pa.array([[{"x": 1}], None, [], [{"x": 2}, {"x": 3}], [{"x": 4}]], items).slice(1, 3)
    maps = pa.array([[("a", 1)], None, [], [("b", 2), ("c", 3)], [("d", 4)]], entries).slice(1, 3)
    schema = table_schema(
        {"name": "lists", "type": ["null", {"type": "array", "items": _record({"name": "x", "type": "long"})}]},
        {"name": "maps", "type": ["null", {"type": "map", "values": ["null", "double"]}]},
    )
    batch = resolve_columns({"lists": lists, "maps": maps}, 3, record_fields(AvroSchema.of(schema)), "file")
    batch.validate(full=True)
    assert batch.to_pydict() == {
        "lists": [None, [], [{"x": 2}, {"x": 3}]],
        "maps": [None, [], [("b", 2.0), ("c", 3.0)]],
    }


@given(st.lists(st.floats(width=32, allow_nan=False), max_size=20))
def test_a_float_becomes_the_double_with_the_same_digits(numbers: list[float]) -> None:
    schema = table_schema({"name": "x", "type": ["null", "double"]})
    batch = resolve_columns(
        {"x": pa.array(numbers, pa.float32())}, len(numbers), record_fields(AvroSchema.of(schema)), "file"
    )
    assert batch.column("x").to_pylist() == [float(str(np.float32(number))) for number in numbers]
