"""What an Avro schema means in Arrow: the types of base files, and what no column can hold."""

from typing import Any

import pyarrow as pa
import pytest

from eventide_adapters.format.encoding.avro.schema import arrow_schema, record_fields
from eventide_core.errors import UnsupportedTableError
from eventide_core.table.schema.avro_schema import META_FIELDS as OURS
from eventide_core.table.schema.avro_schema import AvroSchema
from support.files.logs import META_FIELDS, table_schema


def _logical(plain: str, logical: str, **more: Any) -> dict[str, Any]:
    return {"type": plain, "logicalType": logical, **more}


@pytest.mark.parametrize(
    ("avro", "arrow"),
    [
        ("boolean", pa.bool_()),
        ("int", pa.int32()),
        ("long", pa.int64()),
        ("float", pa.float32()),
        ("double", pa.float64()),
        ("string", pa.string()),
        ("bytes", pa.binary()),
        ({"type": "string", "avro.java.string": "String"}, pa.string()),
        ({"type": "fixed", "name": "f", "size": 5}, pa.binary(5)),
        ({"type": "enum", "name": "e", "symbols": ["A", "B"]}, pa.string()),
        (_logical("string", "uuid"), pa.string()),
        (_logical("int", "date"), pa.date32()),
        (_logical("int", "time-millis"), pa.time32("ms")),
        (_logical("long", "time-micros"), pa.time64("us")),
        (_logical("long", "timestamp-millis"), pa.timestamp("ms", "UTC")),
        (_logical("long", "timestamp-micros"), pa.timestamp("us", "UTC")),
        (_logical("long", "local-timestamp-millis"), pa.timestamp("ms")),
        (_logical("long", "local-timestamp-micros"), pa.timestamp("us")),
        (_logical("bytes", "decimal", precision=10, scale=2), pa.decimal128(10, 2)),
        (_logical("bytes", "decimal", precision=10), pa.decimal128(10, 0)),
        (_logical("fixed", "decimal", precision=38, scale=18, name="d", size=16), pa.decimal128(38, 18)),
        (_logical("long", "a-logical-type-of-tomorrow"), pa.int64()),
        ({"type": "array", "items": "long"}, pa.list_(pa.field("element", pa.int64(), nullable=False))),
        ({"type": "map", "values": ["null", "long"]}, pa.map_(pa.string(), pa.int64())),
        (["int", "long"], pa.int64()),
        (["double", "float"], pa.float64()),
        (["int", "string"], pa.struct([("member0", pa.int32()), ("member1", pa.string())])),
    ],
)
def test_an_avro_type_becomes_the_column_type_of_a_base_file(avro: Any, arrow: pa.DataType) -> None:
    assert arrow_schema(AvroSchema.of(table_schema({"name": "x", "type": avro}))).field("x") == pa.field(
        "x", arrow, nullable=False
    )


@pytest.mark.parametrize("union", [["null", "long"], ["long", "null"]])
def test_null_in_a_union_makes_a_column_nullable_wherever_it_stands(union: list[str]) -> None:
    assert arrow_schema(AvroSchema.of(table_schema({"name": "x", "type": union}))).field("x") == pa.field(
        "x", pa.int64()
    )


def test_a_union_of_three_with_null_in_the_middle_is_a_nullable_struct() -> None:
    field = arrow_schema(AvroSchema.of(table_schema({"name": "x", "type": ["string", "null", "int"]}))).field("x")
    assert field == pa.field("x", pa.struct([("member0", pa.string()), ("member1", pa.int32())]))


def test_a_named_type_is_known_after_its_definition_by_its_short_and_its_full_name() -> None:
    point = {"type": "record", "name": "Point", "fields": [{"name": "lat", "type": "double"}]}
    schema = table_schema(
        {"name": "here", "type": point},
        {"name": "there", "type": ["null", "Point"]},
        {"name": "home", "type": ["null", "hoodie.trips.Point"]},
    )
    here, there, home = record_fields(AvroSchema.of(schema))
    assert here.type == there.type == home.type


def test_meta_fields_stand_in_front_once() -> None:
    schema = table_schema({"name": "id", "type": "string"})
    once = AvroSchema.of(schema).with_meta_fields()
    assert [f["name"] for f in once.parsed["fields"]] == [f["name"] for f in META_FIELDS] + ["id"]
    assert once.with_meta_fields() == once
    assert arrow_schema(once).names[:5] == list(OURS)


@pytest.mark.parametrize(
    "avro",
    [
        "unknown",
        _logical("bytes", "decimal", precision=39, scale=2),
        _logical("bytes", "decimal", precision=3, scale=5),
        {"type": "fixed", "name": "f", "size": 0},
        {"type": "array", "items": "null"},
        {"type": "record", "name": "Empty", "fields": []},
        {"type": "record", "name": "Tree", "fields": [{"name": "child", "type": ["null", "Tree"]}]},
        {"type": "record", "name": "Twice", "fields": [{"name": "a", "type": "int"}, {"name": "a", "type": "int"}]},
        {"items": "long"},
    ],
)
def test_what_no_column_can_hold_is_refused(avro: Any) -> None:
    with pytest.raises(UnsupportedTableError):
        arrow_schema(AvroSchema.of(table_schema({"name": "x", "type": avro})))


@pytest.mark.parametrize("schema", ["", "[", '"long"', '{"type":"record"}', "[" * 100_000])
def test_a_schema_that_is_no_record_is_refused(schema: str) -> None:
    with pytest.raises(UnsupportedTableError):
        AvroSchema.of(schema).with_meta_fields()
