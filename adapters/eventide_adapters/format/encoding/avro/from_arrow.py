"""The Avro schema that Hudi's Spark writer gives a table that is created from Arrow data."""

from typing import Any, Final

import pyarrow as pa

from eventide_adapters.format.encoding.avro.vector_type import VectorType
from eventide_adapters.format.encoding.columns.arrow_numpy import ArrowField, ArrowType
from eventide_adapters.format.encoding.columns.exact_cast import is_uuid, unit_cure
from eventide_adapters.format.encoding.columns.plain_types import plain_type
from eventide_core.errors import UnsupportedTableError
from eventide_core.table.schema.avro_names import sanitized
from eventide_core.table.schema.avro_schema import AvroSchema
from eventide_core.table.schema.avro_types import define_vectors_once, vector_definitions

_PRIMITIVES: Final = {
    pa.string(): "string",
    pa.bool_(): "boolean",
    pa.int8(): "int",
    pa.int16(): "int",
    pa.int32(): "int",
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.binary(): "bytes",
}


def avro_schema_of(table_name: str, columns: pa.Schema) -> AvroSchema:
    """The schema, without meta fields. A nullable column becomes a union of null and its type.

    In the record's name, each character that Avro does not allow becomes two underscores, as in Hudi. Column names stay
    unchanged. Raises UnsupportedTableError, which names the column, for a type that a Hudi table cannot have.
    """
    name = sanitized(table_name)
    namespace = f"hoodie.{name}"
    fields = [avro_field_of(column, f"{namespace}.{name}_record") for column in columns]
    define_vectors_once(fields, vector_definitions(field["type"] for field in fields))
    return AvroSchema.of_json({"type": "record", "name": f"{name}_record", "namespace": namespace, "fields": fields})


def avro_field_of(column: ArrowField, record: str) -> dict[str, Any]:
    """The field of a column in the record of that full name."""
    vector = VectorType.of_arrow(column.type)
    avro = _avro_type(plain_type(column.type), record, column.name) if vector is None else vector.avro
    return _nullable_field(column, avro)


def _nullable_field(column: ArrowField, avro: Any) -> dict[str, Any]:
    if not column.nullable:
        return {"name": column.name, "type": avro}
    return {"name": column.name, "type": ["null", avro], "default": None}


def _avro_type(kind: ArrowType, record: str, column: str) -> Any:
    """A named type has the name of its column, also within a list or a map, as Spark names it: Hudi compares names.

    `column` is its path from the record of that full name.
    """
    if kind in _PRIMITIVES:
        return _PRIMITIVES[kind]
    if is_uuid(kind) and "." not in column:
        return "string"
    types = pa.types
    if types.is_date32(kind):
        return {"type": "int", "logicalType": "date"}
    if types.is_timestamp(kind):
        # As in Spark. Only whole microseconds of nanosecond values fit; a write refuses others.
        unit = "millis" if kind.unit == "ms" else "micros"
        prefix = "timestamp" if kind.tz else "local-timestamp"
        return {"type": "long", "logicalType": f"{prefix}-{unit}"}
    if types.is_decimal128(kind):
        # The fewest bytes that can hold every number with that many digits.
        size = ((10**kind.precision).bit_length() + 8) // 8
        decimal = {"logicalType": "decimal", "precision": kind.precision, "scale": kind.scale}
        return {"type": "fixed", "name": "fixed", "namespace": f"{record}.{column}", "size": size, **decimal}
    if types.is_list(kind):
        item = _avro_type(kind.value_type, record, column)
        return {"type": "array", "items": ["null", item] if kind.value_field.nullable else item}
    if types.is_struct(kind) and kind.num_fields:
        namespace, _, name = f"{record}.{column}".rpartition(".")
        return {
            "type": "record",
            "name": name,
            "namespace": namespace,
            "fields": [_nullable_field(f, _avro_type(f.type, record, f"{column}.{f.name}")) for f in kind],
        }
    if types.is_map(kind) and kind.key_type == pa.string():
        value = _avro_type(kind.item_type, record, column)
        return {"type": "map", "values": ["null", value] if kind.item_field.nullable else value}
    if types.is_null(kind) or types.is_struct(kind):
        lacks = "type" if types.is_null(kind) else "fields, which no Parquet column supports"
        raise UnsupportedTableError(
            f"column {column!r} has no {lacks}: state its type in a schema, or leave the column out"
        )
    raise UnsupportedTableError(f"column {column!r} is {kind}, which no column of a table holds: {_cure(kind)}")


def _cure(kind: Any) -> str:
    """How to write the values of a type that no column has."""
    types = pa.types
    if types.is_time(kind) or types.is_duration(kind):
        return unit_cure(kind) + (", or to its text: .cast('string')" if types.is_time(kind) else "")
    if types.is_map(kind):
        pairs = f"list<struct<key: {kind.key_type}, value: {kind.item_type}>>"
        return f"cast its keys to strings, as map<string, {kind.item_type}>, or cast it to {pairs}"
    if types.is_decimal(kind):
        return "cast it to its text, .cast('string'), or to a decimal128 of at most 38 digits"
    if isinstance(kind, pa.BaseExtensionType):
        return f"cast it to its storage type, {kind.storage_type}"
    if types.is_interval(kind):
        parts = "struct<months: int32, days: int32, nanoseconds: int64>"
        return (
            f"make a {parts} of it by pyarrow.array(column.to_pylist(), ...), or its text, CAST(... AS VARCHAR) in SQL"
        )
    return "write a struct with a field for each of its types, or the text of each value, str()"
