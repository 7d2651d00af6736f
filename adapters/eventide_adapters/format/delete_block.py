"""The content of a DELETE block: which keys are deleted, each with the ordering value of its delete.

    content := i32 version=3  i32 length  HoodieDeleteRecordList (Avro)

Versions 1 and 2 hold Java objects and are not read. An ordering value of null or of the int 0 means a delete in natural
order: Hudi writes the int 0 where a writer gave none, whatever the column's type.
"""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Sequence
from decimal import Decimal
from functools import cache
from importlib import resources
from typing import Any

import fastavro
import pyarrow as pa

from eventide_adapters.format.avro_schema import ArrowType
from eventide_core.errors import RecordDecodeError, UnsupportedLogFormatError, UnsupportedTableError
from eventide_core.table.log_block import BlockType, HeaderKey, encode_block

_VERSION = 3
_NAMESPACE = "org.apache.hudi.avro.model"
_NATURAL_ORDER = (f"{_NAMESPACE}.IntWrapper", {"value": 0})
_MISFITS = (EOFError, IndexError, KeyError, OverflowError, TypeError, ValueError, MemoryError, ArithmeticError)


def decode_delete_block(content: bytes, ordering: ArrowType, place: str) -> tuple[pa.Array[Any], pa.Array[Any]]:
    """The keys, and their ordering values in the ordering column's type, null for natural order; in the block's order.

    `place` names the block in errors. Raises RecordDecodeError for a content that is none, UnsupportedLogFormatError for
    versions 1 and 2, UnsupportedTableError where an ordering value does not fit the column.
    """
    records = _read_records(content, place)
    keys = pa.array([record["recordKey"] for record in records], pa.string())
    if keys.null_count:
        raise RecordDecodeError(f"{place}: a delete without a record key")
    values = [_ordering_value(record["orderingVal"], ordering, place) for record in records]
    if pa.types.is_null(ordering):
        return keys, pa.nulls(len(keys))
    storage = _storage_type(ordering)
    try:
        return keys, pa.array(values, storage).view(ordering) if storage != ordering else pa.array(values, ordering)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        raise UnsupportedTableError(
            f"{place}: an ordering value does not fit the column's {ordering}: {error}"
        ) from error


def encode_delete_block(instant: str, partition: str, keys: Sequence[str], orderings: pa.Array[Any]) -> bytes:
    """A whole DELETE block of that instant; `orderings` as in `decode_delete_block`."""
    storage = _storage_type(orderings.type)
    values = (orderings.view(storage) if storage != orderings.type else orderings).to_pylist()
    records = [
        {"recordKey": key, "partitionPath": partition, "orderingVal": _wrapped(value, orderings.type)}
        for key, value in zip(keys, values, strict=True)
    ]
    body = io.BytesIO()
    fastavro.schemaless_writer(body, _schema(), {"deleteRecordList": records})
    content = struct.pack(">ii", _VERSION, body.tell()) + body.getvalue()
    return encode_block(BlockType.DELETE, {HeaderKey.INSTANT_TIME: instant}, content)


def _read_records(content: bytes, place: str) -> list[dict[str, Any]]:
    if len(content) < 8:
        raise RecordDecodeError(f"{place}: {len(content)} bytes are no DELETE block")
    version, length = struct.unpack_from(">ii", content)
    if version in (1, 2):
        raise UnsupportedLogFormatError(
            f"{place}: a DELETE block of version {version}, whose keys are Java objects; run a full compaction with the "
            "Hudi version that wrote it first"
        )
    if version != _VERSION:
        raise UnsupportedLogFormatError(f"{place}: a DELETE block of version {version}; known is {_VERSION}")
    if length != len(content) - 8:
        raise RecordDecodeError(f"{place}: a DELETE block says {length} bytes and has {len(content) - 8}")
    stream = io.BytesIO(content)
    stream.seek(8)
    try:
        deletes: Any = fastavro.schemaless_reader(stream, _schema(), None, return_record_name=True)
    except _MISFITS as error:
        raise RecordDecodeError(f"{place}: its deletes cannot be decoded: {error!r}") from error
    if stream.tell() != len(content):
        raise RecordDecodeError(f"{place}: its deletes end at byte {stream.tell()} of {len(content)}")
    records: list[dict[str, Any]] = deletes["deleteRecordList"]
    return records


@cache
def _schema() -> Any:
    text = resources.files("eventide_adapters.format").joinpath("schemas", "delete_record_list.avsc").read_text()
    return fastavro.parse_schema(json.loads(text))


def _ordering_value(wrapped: Any, ordering: ArrowType, place: str) -> Any:
    """The value as the column's storage has it; None for natural order."""
    if wrapped is None or wrapped == _NATURAL_ORDER or pa.types.is_null(ordering):
        return None
    wrapper, record = wrapped[0].rpartition(".")[2], wrapped[1]
    if wrapper not in _wrappers(ordering):
        raise UnsupportedTableError(
            f"{place}: a delete is ordered by a {wrapper}, the table's ordering column is {ordering}; only one ordering "
            "column of the type that its deletes have is supported"
        )
    value = record["value"]
    if wrapper == "TimestampMicrosWrapper" and ordering.unit == "ms":
        return value // 1000
    if isinstance(value, Decimal):
        # Hudi writes every decimal with 15 places.
        return value.quantize(Decimal(1).scaleb(-ordering.scale)) if value == round(value, ordering.scale) else value
    return value


def _wrappers(ordering: ArrowType) -> tuple[str, ...]:
    """The wrappers that may bear a value of that column; the first one is what Hudi writes."""
    types = pa.types
    if types.is_int32(ordering):
        return ("IntWrapper",)
    if types.is_int64(ordering):
        return ("LongWrapper", "IntWrapper")
    if types.is_timestamp(ordering):
        return ("LongWrapper", "TimestampMicrosWrapper")
    if types.is_float32(ordering):
        return ("FloatWrapper",)
    if types.is_float64(ordering):
        return ("DoubleWrapper", "FloatWrapper")
    if types.is_string(ordering):
        return ("StringWrapper",)
    if types.is_date32(ordering):
        return ("DateWrapper", "IntWrapper")
    if types.is_boolean(ordering):
        return ("BooleanWrapper",)
    if types.is_decimal(ordering):
        return ("DecimalWrapper",)
    if types.is_binary(ordering) or types.is_fixed_size_binary(ordering):
        return ("BytesWrapper",)
    if types.is_time64(ordering):
        return ("LongWrapper", "TimeMicrosWrapper")
    return ("IntWrapper",) if types.is_time32(ordering) else ()


def _storage_type(ordering: ArrowType) -> ArrowType:
    """The plain number below a time or date; any other type itself."""
    if pa.types.is_timestamp(ordering) or pa.types.is_time64(ordering):
        return pa.int64()
    if pa.types.is_date32(ordering) or pa.types.is_time32(ordering):
        return pa.int32()
    return ordering


def _wrapped(value: Any, ordering: ArrowType) -> Any:
    if value is None:
        return _NATURAL_ORDER
    wrappers = _wrappers(ordering)
    if not wrappers:
        raise UnsupportedTableError(f"a delete cannot bear an ordering value of type {ordering}")
    return (f"{_NAMESPACE}.{wrappers[0]}", {"value": value})
