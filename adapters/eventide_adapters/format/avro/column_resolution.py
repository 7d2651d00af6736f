"""Converts columns from the writer's schema to the table's schema: by name, at every depth.

A field that the writer did not have gets the schema's default, otherwise null. A field that the schema does not have is
dropped. The order of fields does not matter. Types are promoted as `type_promotion` describes. Any other difference is
an error.

docs/on_disk_format.md describes how Hudi's readers read files that are older than the table's schema, and where they
differ. Both were measured.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide_adapters.format.avro.records import array_of_default
from eventide_adapters.format.avro.schema import AvroField, AvroType
from eventide_adapters.format.avro.type_promotion import promote
from eventide_adapters.format.columns.arrow_numpy import ArrowColumn, empty_array, to_arrow
from eventide_core.errors import RecordDecodeError, UnsupportedTableError


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
