"""Converts rows to plain values for JSON and text output.

timestamp, date, time    ISO-8601; a timestamp with a zone in UTC, with Z
decimal                  its digits, as text: JSON numbers would lose some
binary                   base64, as Spark writes it
struct, map              an object; list: an array
variant                  the value that it is; as a struct if its bytes aren't a variant
NaN, infinity            "NaN", "Infinity", "-Infinity", as Spark writes them
"""

import base64
import math
from collections.abc import Iterator
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import pyarrow as pa

from eventide_adapters.format.encoding.avro.schema import is_variant
from eventide_core.errors import InvalidRecordError
from eventide_core.table.schema.variant import variant_value


def plain_rows(batch: pa.RecordBatch) -> Iterator[dict[str, Any]]:
    """The rows of a batch, with values that JSON can represent."""
    variants = {field.name for field in batch.schema if is_variant(field)}
    kinds = {field.name: field.type for field in batch.schema}
    columns = {name: python_values(batch.column(number), name) for number, name in enumerate(batch.schema.names)}
    for values in zip(*columns.values(), strict=True):
        yield {
            name: plain_value(_of_variant(value), None) if name in variants else plain_value(value, kinds[name])
            for name, value in zip(columns, values, strict=True)
        }


def python_values(column: Any, name: str) -> list[Any]:
    """The values of a column. Raises InvalidRecordError for a time that Python has none for."""
    try:
        found: list[Any] = column.to_pylist()
    except (OverflowError, ValueError) as error:
        if "range" not in str(error):
            raise
        raise InvalidRecordError(
            f"column {name!r} has a time outside of the years 1 to 9999, which can't be shown as a text: read it into a "
            "Parquet file, or by to_arrow()"
        ) from error
    return found


def _of_variant(value: Any) -> Any:
    try:
        return value and variant_value(value["metadata"], value["value"])
    except ValueError:
        return value


def plain_value(value: Any, kind: Any) -> Any:
    """A value of that Arrow type; None for a value of a variant, which has none."""
    match value:
        case float() if not math.isfinite(value):
            return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        case datetime():
            precision = "auto" if value.microsecond % 1000 or not value.microsecond else "milliseconds"
            aware = value.tzinfo is not None
            local = value.astimezone(UTC).replace(tzinfo=None) if aware else value
            return local.isoformat(timespec=precision) + ("Z" if aware else "")
        case date() | time():
            return value.isoformat()
        case Decimal():
            return f"{value:f}"
        case bytes():
            return base64.b64encode(value).decode()
        case dict():
            return {
                key: plain_value(inner, None if kind is None else kind.field(key).type) for key, inner in value.items()
            }
        case list() if kind is not None and pa.types.is_map(kind):
            return {plain_key(key): plain_value(inner, kind.item_type) for key, inner in value}
        case list():
            return [plain_value(inner, None if kind is None else kind.value_type) for inner in value]
        case _:
            return value


def plain_key(key: Any) -> str:
    """A map's key as the key of a JSON object."""
    plain = plain_value(key, None)
    return plain if isinstance(plain, str) else str(plain)
