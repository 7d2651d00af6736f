"""Decodes Avro records of any shape, one by one, into Arrow columns.

fastavro reads the records by a schema that is made from the resolved types. It describes the same bytes, with two
differences. It has no logical types, because Arrow's types hold all their values and Python's don't. It puts each
branch of a tagged union into a separate record, which takes no bytes and whose field name identifies the branch.
"""

import io
import struct
from collections.abc import Callable, Collection, Sequence
from decimal import Decimal
from functools import partial
from itertools import count
from typing import Any

import fastavro
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eventide_adapters.format.encoding.avro.schema import AvroField, AvroType
from eventide_adapters.format.encoding.columns.arrow_numpy import ArrowArray
from eventide_core.errors import RecordDecodeError, UnsupportedTableError

# fastavro raises these errors for bytes that do not fit the schema.
_MISFITS = (EOFError, IndexError, KeyError, OverflowError, TypeError, ValueError, MemoryError, struct.error)


def decode_records(
    content: bytes | memoryview,
    starts: npt.NDArray[np.int64],
    ends: npt.NDArray[np.int64],
    fields: Sequence[AvroField],
    wanted: Collection[str],
) -> dict[str, ArrowArray]:
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
    """The values that fastavro returns, as an array. Raises ArrowInvalid or OverflowError for one that doesn't fit."""
    convert = _converter(avro_type)
    if convert is not None:
        values = [None if value is None else convert(value) for value in values]
    return pa.array(values, avro_type.arrow)


def _converter(avro_type: AvroType) -> Callable[[Any], Any] | None:
    """Makes of a value what Arrow takes in its place: pairs of a map, numbers of decimals. None if Arrow takes the value."""
    parts = {field.name: convert for field in avro_type.fields if (convert := _converter(field.type)) is not None}

    def converted(name: str, value: Any) -> Any:
        return value if value is None or name not in parts else parts[name](value)

    match avro_type.kind:
        case "bytes" | "fixed" if pa.types.is_decimal(avro_type.arrow):
            return partial(_decimal, avro_type.arrow.scale)
        case "map":
            return lambda value: [(key, converted(avro_type.fields[0].name, item)) for key, item in value.items()]
        case "array" if parts:
            return lambda value: [converted(avro_type.fields[0].name, item) for item in value]
        case "record" | "union" if parts and pa.types.is_struct(avro_type.arrow):
            return lambda value: {name: converted(name, part) for name, part in value.items()}
        case _:
            return None


def _decimal(scale: int, value: bytes) -> Decimal:
    if not 0 < len(value) <= 16:
        raise pa.ArrowInvalid("a decimal of 0 or more than 16 bytes")
    return Decimal(f"{int.from_bytes(value, 'big', signed=True)}E-{scale}")
