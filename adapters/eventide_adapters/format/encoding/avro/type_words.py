"""The types of columns as words that people type, such as `long` or `decimal(10,2)`."""

import re
from typing import Any, Final

import pyarrow as pa

from eventide_adapters.format.encoding.avro.vector_type import VectorType

_TYPES: Final[dict[str, Any]] = {
    "string": pa.string(),
    "text": pa.string(),
    "varchar": pa.string(),
    "int": pa.int32(),
    "integer": pa.int32(),
    "int32": pa.int32(),
    "long": pa.int64(),
    "bigint": pa.int64(),
    "int64": pa.int64(),
    "float": pa.float32(),
    "float32": pa.float32(),
    "double": pa.float64(),
    "float64": pa.float64(),
    "boolean": pa.bool_(),
    "bool": pa.bool_(),
    "binary": pa.binary(),
    "bytes": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}
_DECIMAL: Final = re.compile(r"decimal\((\d+),(\d+)\)")
TYPE_WORDS: Final = (
    "string, int, long, float, double, boolean, binary, date, timestamp, timestamp_ntz, decimal(P,S), vector(N), "
    "vector(N,double), vector(N,int8)"
)


def type_of(text: str) -> Any:
    """The Arrow type that a word such as `long` or `decimal(10,2)` names; None if it names none."""
    word = re.sub(r"\s", "", text.lower())
    vector = VectorType.of_name(word)
    if vector is not None:
        return vector.list_type
    decimal = _DECIMAL.fullmatch(word)
    if decimal is None:
        return _TYPES.get(word)
    precision, scale = int(decimal[1]), int(decimal[2])
    return pa.decimal128(precision, scale) if 0 < precision <= 38 and scale <= precision else None
