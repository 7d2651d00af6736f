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

from eventide_adapters.format.avro.encode import can_encode, encode_records
from eventide_adapters.format.avro.schema import arrow_schema, record_fields
from eventide_core.errors import UnsupportedTableError
from eventide_core.table.records.schema import AvroSchema

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
    assert can_encode(fields)
    assert encode_records(table.slice(skip), fields) == by_record(schema, records[skip:])


def test_more_rows_than_are_encoded_at_once_come_in_their_order() -> None:
    schema = json.dumps({"type": "record", "name": "r", "fields": [{"name": "n", "type": ["null", "long"]}]})
    records = [{"n": None if n % 7 == 0 else n * 31} for n in range(20_000)]
    table = pa.Table.from_pylist(records, schema=arrow_schema(AvroSchema.of(schema)))
    assert encode_records(table, record_fields(AvroSchema.of(schema))) == by_record(schema, records)


def test_nested_records_are_left_to_the_library() -> None:
    for kind in ({"type": "array", "items": "string"}, {"type": "bytes", "logicalType": "decimal", "precision": 4}):
        schema = json.dumps({"type": "record", "name": "r", "fields": [{"name": "n", "type": kind}]})
        assert not can_encode(record_fields(AvroSchema.of(schema)))


def test_a_text_that_is_no_symbol_is_refused() -> None:
    state = {"type": "enum", "name": "s", "symbols": ["NEW"]}
    schema = json.dumps({"type": "record", "name": "r", "fields": [{"name": "state", "type": state}]})
    table = pa.table({"state": ["NEW", "GONE"]}, schema=arrow_schema(AvroSchema.of(schema)))
    with pytest.raises(UnsupportedTableError, match="'GONE' is not one of NEW"):
        encode_records(table, record_fields(AvroSchema.of(schema)))
