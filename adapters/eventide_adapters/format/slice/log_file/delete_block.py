"""The content of a DELETE block: which keys are deleted, each with the ordering value of its delete.

    content := i32 version  i32 length  HoodieDeleteRecordList (version 3: Avro; 1 and 2: Java objects, delete_block_kryo)

An ordering value of null or of the int 0 means a delete in natural order: if the writer sets none, Hudi writes the int 0,
whatever the column's type. The values of several ordering fields are in an ArrayWrapper, in which the int 0 means null.
"""

import io
import struct
from collections.abc import Callable, Sequence
from decimal import Context, Decimal
from functools import cache
from typing import Any, Final

import fastavro
import pyarrow as pa

from eventide_adapters.format.encoding.columns.arrow_numpy import ArrowArray, ArrowType, of_list
from eventide_adapters.format.slice.log_file.delete_block_kryo import read_kryo_deletes
from eventide_adapters.format.timeline.container import schema_definition
from eventide_core.errors import RecordDecodeError, UnsupportedLogFormatError, UnsupportedTableError
from eventide_core.table.files.log_block import BlockType, HeaderKey, encode_block

_VERSION = 3
_PLACES = 15  # the decimal places of every decimal in a DecimalWrapper
_LAST_PLACE = Decimal(1).scaleb(-_PLACES)
_EXACT = Context(prec=80)  # more digits than a decimal with 38 digits and these places needs
_JAVA_VERSIONS = (1, 2)
_NAMESPACE = "org.apache.hudi.avro.model"
_NATURAL_ORDERS = (None, ("IntWrapper", 0))
_WRAPPED_NULL = (f"{_NAMESPACE}.IntWrapper", {"value": 0})
_WRAPPERS: Final[tuple[tuple[Callable[[ArrowType], bool], tuple[str, ...]], ...]] = (
    (pa.types.is_int32, ("IntWrapper",)),
    (pa.types.is_int64, ("LongWrapper", "IntWrapper")),
    (pa.types.is_timestamp, ("LongWrapper", "TimestampMicrosWrapper")),
    (pa.types.is_float32, ("FloatWrapper",)),
    (pa.types.is_float64, ("DoubleWrapper", "FloatWrapper")),
    (pa.types.is_string, ("StringWrapper",)),
    # Hudi 1.x writes no such delete itself. It compares an int with its own dates, and fails on a DateWrapper.
    (pa.types.is_date32, ("IntWrapper", "DateWrapper", "LocalDateWrapper")),
    (pa.types.is_boolean, ("BooleanWrapper",)),
    (pa.types.is_decimal, ("DecimalWrapper",)),
    (pa.types.is_binary, ("BytesWrapper",)),
    (pa.types.is_fixed_size_binary, ("BytesWrapper",)),
    (pa.types.is_time64, ("LongWrapper", "TimeMicrosWrapper")),
    (pa.types.is_time32, ("IntWrapper",)),
)
_MISFITS = (EOFError, IndexError, KeyError, OverflowError, TypeError, ValueError, MemoryError, ArithmeticError)


def decode_delete_block(content: bytes, ordering: ArrowType, place: str) -> tuple[ArrowArray, ArrowArray]:
    """The keys, and their ordering values in the type of `ordering_values`, null for natural order; in the block's order.

    `place` names the block in errors. Raises RecordDecodeError for invalid content, UnsupportedLogFormatError for another
    version or Java objects of other classes, and UnsupportedTableError if an ordering value does not fit its column.
    """
    deletes = _read_deletes(content, place)
    keys = of_list([key for key, _ in deletes], pa.string())
    if keys.null_count:
        raise RecordDecodeError(f"{place}: a delete without a record key")
    if pa.types.is_null(ordering):
        return keys, pa.nulls(len(keys))
    values = [
        None if wrapped in _NATURAL_ORDERS else _ordering_value(wrapped, ordering, place) for _, wrapped in deletes
    ]
    try:
        return keys, _column(values, ordering)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        raise UnsupportedTableError(
            f"{place}: an ordering value does not fit the column's {ordering}: {error}"
        ) from error


def encode_delete_block(instant: str, partition: str, keys: Sequence[str], orderings: ArrowArray) -> bytes:
    """A whole DELETE block of that instant; `orderings` as in `decode_delete_block`."""
    records = [
        {"recordKey": key, "partitionPath": partition, "orderingVal": value}
        for key, value in zip(keys, _wrapped_column(orderings), strict=True)
    ]
    body = io.BytesIO()
    try:
        fastavro.schemaless_writer(body, _schema(), {"deleteRecordList": records})
    except ValueError as error:
        raise UnsupportedTableError(
            f"a delete cannot store its ordering value of type {orderings.type} ({error}); compact the table with Hudi, "
            "or order it by a field with fewer digits"
        ) from error
    content = struct.pack(">ii", _VERSION, body.tell()) + body.getvalue()
    return encode_block(BlockType.DELETE, {HeaderKey.INSTANT_TIME: instant}, content)


def _read_deletes(content: bytes, place: str) -> list[tuple[str | None, Any]]:
    """Keys, and ordering values as (wrapper, value)."""
    if len(content) < 8:
        raise RecordDecodeError(f"{place}: {len(content)} bytes are not a DELETE block")
    version, length = struct.unpack_from(">ii", content)
    if version != _VERSION and version not in _JAVA_VERSIONS:
        raise UnsupportedLogFormatError(f"{place}: a DELETE block of version {version}; supported are 1 to {_VERSION}")
    if length != len(content) - 8:
        raise RecordDecodeError(f"{place}: a DELETE block states {length} bytes and has {len(content) - 8}")
    if version in _JAVA_VERSIONS:
        return [*read_kryo_deletes(content[8:], version, place)]
    stream = io.BytesIO(content)
    stream.seek(8)
    try:
        deletes: Any = fastavro.schemaless_reader(stream, _schema(), None, return_record_name=True)
    except _MISFITS as error:
        raise RecordDecodeError(f"{place}: its deletes cannot be decoded: {error!r}") from error
    if stream.tell() != len(content):
        raise RecordDecodeError(f"{place}: its deletes end at byte {stream.tell()} of {len(content)}")
    return [(record["recordKey"], _unwrapped(record["orderingVal"])) for record in deletes["deleteRecordList"]]


def _unwrapped(value: Any) -> Any:
    """Avro's form of a wrapped value as (wrapper, value), in an array, too."""
    if value is None:
        return None
    wrapper, record = value[0].rpartition(".")[2], value[1]
    if wrapper == "ArrayWrapper":
        return wrapper, [_unwrapped(element) for element in record["wrappedValues"] or ()]
    return wrapper, record["value"]


@cache
def _schema() -> Any:
    return fastavro.parse_schema(schema_definition("delete_record_list"))


def _ordering_value(wrapped: Any, ordering: ArrowType, place: str) -> Any:
    """The value in the column's storage type; a tuple for several columns."""
    wrapper, value = wrapped
    column: Any = ordering
    if pa.types.is_struct(ordering) and wrapper == "ArrayWrapper" and len(value) == ordering.num_fields:
        return tuple(
            _ordering_value(element, field.type, place) if _is_given(element, field.type) else None
            for element, field in zip(value, ordering, strict=True)
        )
    if wrapper not in _wrappers(ordering):
        raise UnsupportedTableError(
            f"{place}: a delete is ordered by a {wrapper}, which the table's ordering columns, {ordering}, "
            "cannot hold: its writer used other columns; compact it in full with Hudi first"
        )
    if wrapper == "TimestampMicrosWrapper" and column.unit == "ms":
        return value // 1000
    if isinstance(value, Decimal):
        # Hudi writes every decimal with 15 decimal places.
        fitting = value.quantize(Decimal(1).scaleb(-column.scale), context=_EXACT)
        return fitting if fitting == value else value
    return value


def _is_given(element: Any, column: ArrowType) -> bool:
    """Whether one of several values is set: the int 0 stands for null in a column without ints."""
    return element is not None and (element != _NATURAL_ORDERS[1] or element[0] in _wrappers(column))


@cache
def _wrappers(ordering: ArrowType) -> tuple[str, ...]:
    """The wrappers that may have a value of that column; the first one is what Hudi writes."""
    return next((wrappers for is_of_kind, wrappers in _WRAPPERS if is_of_kind(ordering)), ())


def _storage_type(ordering: ArrowType) -> ArrowType:
    """The number type of a time or date; any other type itself."""
    if pa.types.is_timestamp(ordering) or pa.types.is_time64(ordering):
        return pa.int64()
    if pa.types.is_date32(ordering) or pa.types.is_time32(ordering):
        return pa.int32()
    return ordering


def _column(values: list[Any], ordering: ArrowType) -> ArrowArray:
    """The results of `_ordering_value` as a column; None becomes null."""
    if pa.types.is_struct(ordering):
        fields: list[list[Any]] = [[] for _ in ordering]
        for value in values:
            for place, field in enumerate(fields):
                field.append(None if value is None else value[place])
        columns = [_column(column, field.type) for column, field in zip(fields, ordering, strict=True)]
        mask = pa.array([value is None for value in values], pa.bool_())
        return pa.StructArray.from_arrays(columns, [field.name for field in ordering], mask=mask)
    column: ArrowArray = of_list(values, _storage_type(ordering))
    return column if column.type == ordering else column.view(ordering)


def _wrapped_column(orderings: ArrowArray, *, is_in_array: bool = False) -> list[Any]:
    """Each ordering value in Avro's form; the int 0 for null."""
    if isinstance(orderings, pa.StructArray):
        rows = zip(*(_wrapped_column(field, is_in_array=True) for field in orderings.flatten()), strict=True)
        is_given = orderings.is_valid().to_pylist()
        array = f"{_NAMESPACE}.ArrayWrapper"
        return [
            (array, {"wrappedValues": [*row]}) if given else _WRAPPED_NULL
            for row, given in zip(rows, is_given, strict=True)
        ]
    kind, storage = orderings.type, _storage_type(orderings.type)
    values = (orderings.view(storage) if storage != kind else orderings).to_pylist()
    wrappers = _wrappers(kind)
    if not wrappers and orderings.null_count < len(orderings):
        raise UnsupportedTableError(f"a delete cannot have an ordering value of type {kind}")
    if pa.types.is_decimal(kind) and kind.scale > _PLACES:
        # The same value with the wrapper's number of places. A value with more places stays, and is refused.
        fewer = [None if value is None else value.quantize(_LAST_PLACE, context=_EXACT) for value in values]
        values = [short if short == value else value for short, value in zip(fewer, values, strict=True)]
    # In an ArrayWrapper, Hudi has a separate wrapper for a date.
    wrapper = "LocalDateWrapper" if is_in_array and pa.types.is_date32(kind) else "".join(wrappers[:1])
    return [_WRAPPED_NULL if value is None else (f"{_NAMESPACE}.{wrapper}", {"value": value}) for value in values]
