"""Converts columns from the writer's schema to the table's schema: by name, at every depth.

A field that the writer did not have gets the schema's default, otherwise null. A field that the schema does not have is
dropped. The order of fields does not matter. Types are promoted as `promote` describes. Any other difference is
an error.

docs/on_disk_format.md describes how Hudi's readers read files that are older than the table's schema, and where they
differ. Both were measured.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide_adapters.format.encoding.avro.records import array_of_default
from eventide_adapters.format.encoding.avro.schema import AvroField, AvroType
from eventide_adapters.format.encoding.columns.arrow_numpy import ArrowColumn, empty_array, to_arrow
from eventide_core.errors import RecordDecodeError, UnsupportedTableError

_LEAST_PLAIN, _GREATEST_PLAIN = 1e-3, 1e7  # Java writes smaller and greater numbers with an exponent
_UNITS = {"ms": 1_000, "us": 1}


def resolve_columns(
    columns: Mapping[str, ArrowColumn], count: int, target: Sequence[AvroField], place: str
) -> pa.RecordBatch:
    """The rows in the target's columns and types. `place` names the file in errors.

    Raises UnsupportedTableError if a column's type does not fit, RecordDecodeError if a value doesn't.
    """
    arrays = [_field(columns.get(field.name), count, field, f"{place}: field {field.name}") for field in target]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema([field.arrow for field in target]))


def check_columns(written: Mapping[str, pa.DataType], target: Sequence[AvroField], place: str) -> None:
    """Raises UnsupportedTableError naming the first column whose type cannot become the target's type."""
    for field in target:
        kind = written.get(field.name)
        if kind != field.type.arrow:
            _field(None if kind is None else empty_array(kind), 0, field, f"{place}: field {field.name}")


def _field(
    written: ArrowColumn | None, count: int, field: AvroField, place: str, present: ArrowColumn | None = None
) -> ArrowColumn:
    """The field's column. `present`: the rows whose enclosing record is not null; None for all rows."""
    if written is None:
        return _absent(count, field, place)
    resolved = _resolve(written, field.type, place)
    if not field.is_nullable and resolved.null_count:
        nulls = resolved.is_null() if present is None else pc.and_(resolved.is_null(), present)
        if pc.any(nulls).as_py():
            raise RecordDecodeError(f"{place} is null in a record, but never in the table's schema")
    return resolved


def _absent(count: int, field: AvroField, place: str) -> ArrowColumn:
    if field.default is not None:
        return array_of_default(field).take(to_arrow(np.zeros(count, np.int32)))
    if not field.is_nullable:
        raise UnsupportedTableError(f"{place} is missing, and the table's schema does not allow null")
    return pa.nulls(count, field.type.arrow)


def _resolve(array: ArrowColumn, target: AvroType, place: str) -> ArrowColumn:
    source, wanted = array.type, target.arrow
    if source == wanted:
        return array
    if pa.types.is_struct(source) and target.kind == "record":
        return _struct(array, target, place)
    if pa.types.is_map(source) and target.kind == "map" and source.key_type == wanted.key_type:
        values = _field(array.items, len(array.items), target.fields[0], f"{place}.value")
        entries = pa.StructArray.from_arrays([array.keys, values], fields=[wanted.key_field, wanted.item_field])
        return _with_items(array, wanted, entries)
    if pa.types.is_list(source) and target.kind == "array":
        items = _field(array.values, len(array.values), target.fields[0], f"{place}.element")
        return _with_items(array, wanted, items)
    try:
        promoted = None if target.is_tagged_union else promote(array, wanted)
    except pa.ArrowInvalid as error:
        raise RecordDecodeError(f"{place}: a value of type {source} that {wanted} cannot hold: {error}") from error
    if promoted is None:
        raise UnsupportedTableError(f"{place} was written as {source}, but the table's schema has {wanted}")
    return promoted


def _struct(array: ArrowColumn, target: AvroType, place: str) -> ArrowColumn:
    has_nulls = array.null_count > 0
    present = array.is_valid() if has_nulls else None
    children = []
    for field in target.fields:
        number = array.type.get_field_index(field.name)
        written = None if number < 0 else array.field(number)
        children.append(_field(written, len(array), field, f"{place}.{field.name}", present))
    fields = [field.arrow for field in target.fields]
    return pa.StructArray.from_arrays(children, fields=fields, mask=array.is_null() if has_nulls else None)


def _with_items(array: ArrowColumn, wanted: pa.DataType, items: ArrowColumn) -> ArrowColumn:
    """The collections with other items, as many in each."""
    bounds = array.buffers()[:2]
    return pa.Array.from_buffers(wanted, len(array), bounds, array.null_count, array.offset, [items])


def promote(array: ArrowColumn, wanted: Any) -> ArrowColumn | None:
    """The values in the wanted type; None if no Hudi writer would have widened the source type to it.

    These types a column may have had before its table's type was widened:

        int -> long, float, double, string      float -> double, string     bytes <-> string
        long -> float, double, string           double -> string            date, decimal -> string
        decimal -> a wider one                  timestamp: millis -> micros null -> anything

    As in Hudi, for log files and base files alike, a float becomes the double with the same decimal digits (0.1 stays 0.1),
    and numbers become the strings that Java formats. If the file's writer did not know a logical type, its column has plain
    integers, which are read as that type. Zoned and local timestamps are the same number.

    Raises ArrowInvalid for a value that the wanted type cannot hold.
    """
    source, types = array.type, pa.types
    if types.is_null(source):
        return pa.nulls(len(array), wanted)
    if types.is_string(wanted):
        return _text(array)
    if types.is_binary(wanted) and types.is_string(source):
        return array.cast(wanted)
    if types.is_integer(source) and (types.is_int64(wanted) or types.is_floating(wanted)):
        return array.cast(wanted, safe=False)  # safe=True would refuse integers that a float rounds
    if types.is_float32(source) and types.is_float64(wanted):
        return _same_digits(array)
    if types.is_decimal128(source) and types.is_decimal128(wanted):
        is_wider = wanted.scale >= source.scale and wanted.precision - wanted.scale >= source.precision - source.scale
        return array.cast(wanted) if is_wider else None
    if types.is_timestamp(wanted) and types.is_timestamp(source):
        return _timestamps(array, wanted)
    if types.is_integer(source) and types.is_temporal(wanted) and source.bit_width == wanted.bit_width:
        return array.view(wanted)
    return None


def _text(array: ArrowColumn) -> ArrowColumn | None:
    kind, types = array.type, pa.types
    if types.is_floating(kind):
        encoded = array.dictionary_encode()
        numbers = encoded.dictionary.to_numpy(zero_copy_only=False)
        texts: Any = pa.array([_java_text(number) for number in numbers], pa.string())
        return texts.take(encoded.indices)
    if types.is_integer(kind) or types.is_date32(kind) or types.is_decimal128(kind):
        return array.cast(pa.string())
    if types.is_binary(kind) or types.is_large_string(kind):
        return array.cast(pa.string())
    return None


def _java_text(number: Any) -> str:
    """A float or double in the form of Java's toString."""
    if np.isnan(number):
        return "NaN"
    if np.isinf(number):
        return "Infinity" if number > 0 else "-Infinity"
    if number == 0 or _LEAST_PLAIN <= abs(number) < _GREATEST_PLAIN:
        return np.format_float_positional(number, trim="0")
    return np.format_float_scientific(number, trim="0", exp_digits=1).replace("e+", "E").replace("e", "E")


def _same_digits(floats: ArrowColumn) -> ArrowColumn:
    numbers = floats.fill_null(0.0).to_numpy(zero_copy_only=False)
    doubles = numbers.astype(np.str_).astype(np.float64)
    return pa.array(doubles, pa.float64(), mask=floats.is_null().to_numpy(zero_copy_only=False))


def _timestamps(array: ArrowColumn, wanted: Any) -> ArrowColumn | None:
    factor = _UNITS.get(array.type.unit, 0) // _UNITS[wanted.unit]
    if factor == 0:
        return None
    numbers = pc.multiply_checked(array.view(pa.int64()), pa.scalar(factor, pa.int64()))
    return numbers.view(wanted)
