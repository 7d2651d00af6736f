"""Records encoded by columns have the same bytes as records encoded by an independent Avro library."""

import io
import json
import struct
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide_adapters.format.encoding.avro.encode import encode_records
from eventide_adapters.format.encoding.avro.schema import arrow_schema, record_fields
from eventide_core.errors import UnsupportedTableError
from eventide_core.table.schema.avro_schema import AvroSchema

DECIMAL = {"type": "fixed", "name": "price", "size": 5, "logicalType": "decimal", "precision": 10, "scale": 2}
WIDE = {"type": "fixed", "name": "wide", "size": 16, "logicalType": "decimal", "precision": 38, "scale": 0}
TYPES: dict[str, tuple[Any, st.SearchStrategy[Any]]] = {
    "text": ("string", st.text(max_size=12)),
    "raw": ("bytes", st.binary(max_size=200)),
    "flag": ("boolean", st.booleans()),
    "small": ("int", st.integers(-(2**31), 2**31 - 1)),
    "large": ("long", st.integers(-(2**63), 2**63 - 1)),
    "short": ("float", st.floats(width=32, allow_nan=False)),
    "double": ("double", st.floats(allow_nan=False)),
    "day": ({"type": "int", "logicalType": "date"}, st.dates(date(1900, 1, 1), date(2100, 1, 1))),
    "at": (
        {"type": "long", "logicalType": "timestamp-micros"},
        st.datetimes(datetime(1900, 1, 1), datetime(2100, 1, 1)).map(lambda t: t.replace(tzinfo=UTC)),  # noqa: DTZ001
    ),
    "price": (DECIMAL, st.integers(-(10**10) + 1, 10**10 - 1).map(lambda n: Decimal(n).scaleb(-2))),
    "wide": (WIDE, st.integers(-(10**20), 10**20).map(Decimal)),
    "mark": ({"type": "fixed", "name": "mark", "size": 3}, st.binary(min_size=3, max_size=3)),
    "state": ({"type": "enum", "name": "state", "symbols": ["NEW", "OLD"]}, st.sampled_from(["NEW", "OLD"])),
}


def schema_of(*, nullable: bool, null_last: bool) -> str:
    def wrapped(kind: Any) -> Any:
        if not nullable:
            return kind
        return [kind, "null"] if null_last else ["null", kind]

    fields = [{"name": name, "type": wrapped(kind)} for name, (kind, _) in TYPES.items()]
    return json.dumps({"type": "record", "name": "r", "fields": fields})


def by_record(schema: str, records: list[dict[str, Any]]) -> bytes:
    parsed, out = fastavro.parse_schema(json.loads(schema)), b""
    for record in records:
        encoded = io.BytesIO()
        fastavro.schemaless_writer(encoded, parsed, record)
        out += struct.pack(">i", encoded.tell()) + encoded.getvalue()
    return out


@settings(max_examples=60)
@given(st.data(), st.booleans(), st.booleans(), st.integers(0, 2))
def test_columns_give_the_bytes_of_the_records(data: st.DataObject, nullable: bool, null_last: bool, skip: int) -> None:
    schema = schema_of(nullable=nullable, null_last=null_last)
    kinds = {name: st.one_of(st.none(), values) if nullable else values for name, (_, values) in TYPES.items()}
    records = data.draw(st.lists(st.fixed_dictionaries(kinds), max_size=8))
    table = pa.Table.from_pylist(records, schema=arrow_schema(AvroSchema.of(schema)))
    fields = record_fields(AvroSchema.of(schema))
    assert encode_records(table.slice(skip), fields) == by_record(schema, records[skip:])


def test_more_rows_than_are_encoded_at_once_come_in_their_order() -> None:
    schema = json.dumps({"type": "record", "name": "r", "fields": [{"name": "n", "type": ["null", "long"]}]})
    records = [{"n": None if n % 7 == 0 else n * 31} for n in range(20_000)]
    table = pa.Table.from_pylist(records, schema=arrow_schema(AvroSchema.of(schema)))
    assert encode_records(table, record_fields(AvroSchema.of(schema))) == by_record(schema, records)


ITEM = {
    "type": "record",
    "name": "item",
    "fields": [
        {"name": "count", "type": ["null", "long"]},
        {"name": "texts", "type": ["null", {"type": "array", "items": ["string", "null"]}]},
    ],
}
LONG_DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 2}
NESTED: list[dict[str, Any]] = [
    {"name": "item", "type": ["null", ITEM]},
    {"name": "items", "type": ["null", {"type": "array", "items": "item"}]},
    {"name": "lists", "type": {"type": "array", "items": {"type": "array", "items": "long"}}},
    {"name": "by_name", "type": [{"type": "map", "values": ["null", "item"]}, "null"]},
    {"name": "sum", "type": ["null", LONG_DECIMAL]},
    {"name": "only", "type": ["long"]},
]
LONGS = st.integers(-(2**63), 2**63 - 1)
ITEMS = st.fixed_dictionaries(
    {"count": st.none() | LONGS, "texts": st.none() | st.lists(st.none() | st.text(max_size=90), max_size=70)}
)
# Of -128 and its like, fastavro writes a byte more than Java and eventide.
SUMS = st.integers(-(10**37), 10**37).filter(lambda n: n.bit_length() % 8 or n.bit_length() == (n + 1).bit_length())
NESTED_RECORDS = st.fixed_dictionaries(
    {
        "item": st.none() | ITEMS,
        "items": st.none() | st.lists(ITEMS, max_size=3),
        "lists": st.lists(st.lists(LONGS, max_size=3), max_size=3),
        "by_name": st.none() | st.dictionaries(st.text(max_size=3), st.none() | ITEMS, max_size=3),
        "sum": st.none() | SUMS.map(lambda n: Decimal(n).scaleb(-2)),
        "only": LONGS,
    }
)


@settings(max_examples=60)
@given(st.lists(NESTED_RECORDS, max_size=6), st.integers(0, 2))
def test_nested_columns_give_the_bytes_of_the_records(records: list[dict[str, Any]], skip: int) -> None:
    schema = json.dumps({"type": "record", "name": "r", "fields": NESTED})
    as_pairs = [r | {"by_name": None if r["by_name"] is None else [*r["by_name"].items()]} for r in records]
    table = pa.Table.from_pylist(as_pairs, schema=arrow_schema(AvroSchema.of(schema)))
    assert encode_records(table.slice(skip), record_fields(AvroSchema.of(schema))) == by_record(schema, records[skip:])


@pytest.mark.parametrize("number", [0, 1, -1, 127, 128, -128, -129, 255, 32767, 32768, -32768, 10**37, -(10**37)])
def test_a_decimal_takes_as_few_bytes_as_java_writes(number: int) -> None:
    schema = AvroSchema.of_json({"type": "record", "name": "r", "fields": [{"name": "n", "type": LONG_DECIMAL}]})
    table = pa.table({"n": [Decimal(number).scaleb(-2)]}, schema=arrow_schema(schema))
    least = next(n for n in range(1, 17) if -(1 << (8 * n - 1)) <= number < 1 << (8 * n - 1))
    content = bytes([2 * least]) + number.to_bytes(least, "big", signed=True)
    assert encode_records(table, record_fields(schema)) == struct.pack(">i", len(content)) + content


def test_a_value_of_a_union_of_numbers_is_written_as_the_type_that_holds_all() -> None:
    fields = [{"name": "n", "type": ["null", "int", "long"]}, {"name": "x", "type": ["double", "float"]}]
    schema = AvroSchema.of_json({"type": "record", "name": "r", "fields": fields})
    table = pa.table({"n": [7, None], "x": [0.1, 0.5]}, schema=arrow_schema(schema))
    data = io.BytesIO(encode_records(table, record_fields(schema)))
    parsed = fastavro.parse_schema(json.loads(schema.text))
    read = [fastavro.schemaless_reader(data, parsed, None) for _ in range(2) if data.read(4)]
    assert read == [{"n": 7, "x": 0.1}, {"n": None, "x": 0.5}]


@pytest.mark.parametrize(
    ("kind", "value", "why"),
    [
        (["string", "int"], {"member0": "a", "member1": None}, "field n is a union of several types"),
        ({"type": "map", "values": "int"}, [("a", 1), ("a", 2)], "field n has a map with two equal keys"),
        ({"type": "array", "items": "int"}, [1, None], "field element is null in a record, and never in the schema"),
    ],
)
def test_a_value_that_its_field_cannot_hold_is_refused(kind: Any, value: Any, why: str) -> None:
    schema = AvroSchema.of_json({"type": "record", "name": "r", "fields": [{"name": "n", "type": kind}]})
    table = pa.table({"n": [value]}, schema=arrow_schema(schema))
    with pytest.raises(UnsupportedTableError, match=f"does not fit the table's schema: {why}"):
        encode_records(table, record_fields(schema))


def test_a_text_that_is_no_symbol_is_refused() -> None:
    state = {"type": "enum", "name": "s", "symbols": ["NEW"]}
    schema = json.dumps({"type": "record", "name": "r", "fields": [{"name": "state", "type": state}]})
    table = pa.table({"state": ["NEW", "GONE"]}, schema=arrow_schema(AvroSchema.of(schema)))
    with pytest.raises(UnsupportedTableError, match="'GONE' is not one of NEW"):
        encode_records(table, record_fields(AvroSchema.of(schema)))
