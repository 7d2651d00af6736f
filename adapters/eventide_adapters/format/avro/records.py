"""Decodes Avro records of any shape, one by one, into Arrow columns.

fastavro reads the records by a schema that is made from the resolved types. It describes the same bytes, with two
differences. It has no logical types, because Arrow's types hold all their values and Python's don't. It puts each
branch of a tagged union into a separate record, which takes no bytes and whose field name identifies the branch.
"""

import io
import struct
from collections.abc import Collection, Sequence
from itertools import accumulate, count
from typing import Any

import fastavro
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eventide_adapters.format.avro.schema import AvroField, AvroType
from eventide_core.errors import RecordDecodeError, UnsupportedTableError

# fastavro raises these errors for bytes that do not fit the schema.
_MISFITS = (EOFError, IndexError, KeyError, OverflowError, TypeError, ValueError, MemoryError, struct.error)


def decode_records(
    content: bytes | memoryview,
    starts: npt.NDArray[np.int64],
    ends: npt.NDArray[np.int64],
    fields: Sequence[AvroField],
    wanted: Collection[str],
) -> "dict[str, pa.Array[Any]]":
    """The wanted columns of the records at `starts` to `ends`, in the schema's own types.

    Raises RecordDecodeError if the bytes do not fit the schema.
    """
    schema = fastavro.parse_schema(_record_schema(fields, count()))
    stream = io.BytesIO(content)
    records: list[dict[str, Any]] = []
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        stream.seek(start)
        try:
            record = fastavro.schemaless_reader(stream, schema, None)
        except _MISFITS as error:
            raise RecordDecodeError(f"record {len(records)}: {error!r}") from error
        if stream.tell() != end:
            raise RecordDecodeError(f"record {len(records)} does not end where its last field does")
        assert isinstance(record, dict)
        records.append(record)
    columns = {}
    for field in fields:
        if field.name in wanted:
            try:
                columns[field.name] = _array(field.type, [record[field.name] for record in records])
            except (pa.ArrowInvalid, OverflowError) as error:
                raise RecordDecodeError(f"field {field.name}: {error}") from error
    return columns


def array_of_default(field: AvroField) -> Any:
    """The value of a field for records that lack it, as an array of one element. Raises UnsupportedTableError."""
    try:
        return _array(field.type, [_default(field.type, field.default)])
    except (pa.ArrowException, AttributeError, KeyError, TypeError, ValueError) as error:
        raise UnsupportedTableError(
            f"field {field.name} has the default {field.default!r}, which is not {field.type.arrow}: {error}"
        ) from error


def _default(avro_type: AvroType, value: Any) -> Any:
    """Converts a default in JSON to the value that fastavro returns. Bytes are strings of characters up to 255."""
    if value is None:
        return None
    match avro_type.kind:
        case "bytes" | "fixed":
            return value.encode("latin-1")
        case "array":
            return [_default(avro_type.fields[0].type, item) for item in value]
        case "map":
            return {key: _default(avro_type.fields[0].type, item) for key, item in value.items()}
        case "record":
            return {f.name: _default(f.type, value.get(f.name, f.default)) for f in avro_type.fields}
        case "union" if avro_type.is_tagged_union:
            raise TypeError("a default of a union of several types")
        case _:
            return value


def _record_schema(fields: Sequence[AvroField], numbers: "count[int]") -> dict[str, Any]:
    return {
        "type": "record",
        "name": f"r{next(numbers)}",
        "fields": [{"name": field.name, "type": _field_schema(field, numbers)} for field in fields],
    }


def _field_schema(field: AvroField, numbers: "count[int]") -> Any:
    schema = _type_schema(field.type, numbers)
    if field.null_branch is None:
        return schema
    branches = schema if field.type.kind == "union" and isinstance(schema, list) else [schema]
    return [*branches[: field.null_branch], "null", *branches[field.null_branch :]]


def _type_schema(avro_type: AvroType, numbers: "count[int]") -> Any:
    match avro_type.kind:
        case "record":
            return _record_schema(avro_type.fields, numbers)
        case "array":
            return {"type": "array", "items": _field_schema(avro_type.fields[0], numbers)}
        case "map":
            return {"type": "map", "values": _field_schema(avro_type.fields[0], numbers)}
        case "union" if avro_type.is_tagged_union:
            return [_record_schema([member], numbers) for member in avro_type.fields]
        case "union":
            return [_field_schema(member, numbers) for member in avro_type.fields]
        case "fixed":
            return {"type": "fixed", "name": f"f{next(numbers)}", "size": avro_type.size}
        case "enum":
            return {"type": "enum", "name": f"e{next(numbers)}", "symbols": list(avro_type.symbols)}
        case primitive:
            return primitive


def _array(avro_type: AvroType, values: Sequence[Any]) -> Any:
    arrow = avro_type.arrow
    match avro_type.kind:
        case "record":
            return _struct(avro_type, values)
        case "union" if avro_type.is_tagged_union:
            return _struct(avro_type, values)
        case "array":
            items = _array(avro_type.fields[0].type, [item for value in values for item in value or ()])
            return pa.ListArray.from_arrays(_offsets(values), items, type=arrow)
        case "map":
            keys = pa.array([key for value in values for key in value or ()], pa.string())
            items = _array(avro_type.fields[0].type, [item for value in values for item in (value or {}).values()])
            return pa.MapArray.from_arrays(_offsets(values), keys, items, type=arrow)
        case "bytes" | "fixed" if pa.types.is_decimal(arrow):
            return _decimals(arrow, values)
        case "int" | "long":
            storage = pa.int32() if avro_type.kind == "int" else pa.int64()
            return pa.array(values, storage).view(arrow)
        case _:
            return pa.array(values, arrow)


def _struct(avro_type: AvroType, values: Sequence[Any]) -> Any:
    children = [
        _array(field.type, [None if value is None else value.get(field.name) for value in values])
        for field in avro_type.fields
    ]
    fields = [avro_type.arrow.field(i) for i in range(len(children))]
    mask = pa.array([value is None for value in values], pa.bool_())
    return pa.StructArray.from_arrays(children, fields=fields, mask=mask)


def _offsets(values: Sequence[Any]) -> Any:
    """The start of each collection and the end of the last one. The start of a null collection is null."""
    bounds = list(accumulate((len(value or ()) for value in values), initial=0))
    mask = np.array([value is None for value in values] + [False], np.bool_)
    return pa.array(np.array(bounds, np.int64), pa.int32(), mask=mask)


def _decimals(arrow: pa.DataType, values: Sequence[bytes | None]) -> "pa.Array[Any]":
    if any(value is not None and not 0 < len(value) <= 16 for value in values):
        raise pa.ArrowInvalid("a decimal of 0 or more than 16 bytes")
    numbers = b"".join(
        int.from_bytes(value or b"", "big", signed=True).to_bytes(16, "little", signed=True) for value in values
    )
    valid = np.packbits(np.array([value is not None for value in values], np.bool_), bitorder="little")
    decimals = pa.Array.from_buffers(arrow, len(values), [pa.py_buffer(valid.data), pa.py_buffer(numbers)])
    decimals.validate(full=True)
    return decimals
