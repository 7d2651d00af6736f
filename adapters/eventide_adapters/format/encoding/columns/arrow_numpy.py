"""Passes values between Arrow, NumPy and Python without pandas.

`pa.array`, `pa.scalar` and `to_numpy`, and every function of Arrow that gets an array of NumPy's or a Python value, first
import pandas if it is installed, to recognize its types. That takes 45 MB and 0.15 s, as much as all else that a merge
imports. These functions pass buffers instead, so a merge needs no pandas.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

ArrowType: TypeAlias = Any
"""Any pa.DataType: the stubs type each kind apart."""
ArrowColumn: TypeAlias = Any
"""A pa.Array or pa.ChunkedArray, whose types the stubs tell apart."""
if TYPE_CHECKING:  # the stubs have a parameter for the type of the values, which Arrow's classes lack
    ArrowArray: TypeAlias = pa.Array[Any]
    ArrowChunks: TypeAlias = pa.ChunkedArray[Any]
    ArrowScalar: TypeAlias = pa.Scalar[Any]
    ArrowField: TypeAlias = pa.Field[Any]
else:
    ArrowArray, ArrowChunks, ArrowScalar, ArrowField = pa.Array, pa.ChunkedArray, pa.Scalar, pa.Field
Bytes: TypeAlias = npt.NDArray[np.uint8]
Flags: TypeAlias = npt.NDArray[np.bool_]
Numbers: TypeAlias = npt.NDArray[np.int64]
Positions: TypeAlias = npt.NDArray[np.int64]
"""Numbers that are places: of bytes in a buffer, or of rows in a table."""


def to_arrow(values: npt.NDArray[Any], is_null: Flags | None = None) -> Any:
    """The numbers or flags as an Arrow array. Numbers share their memory, which must not change any more."""
    validity = None if is_null is None else _bits(~is_null)
    if values.dtype == np.bool_:
        return pa.Array.from_buffers(pa.bool_(), len(values), [validity, _bits(values)])
    data = pa.py_buffer(np.ascontiguousarray(values).data)
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [validity, data])


def to_texts(values: Sequence[str | None]) -> pa.StringArray:
    """The strings as an Arrow array; None is null."""
    encoded = [b"" if value is None else value.encode() for value in values]
    bounds = np.cumsum([0, *map(len, encoded)], dtype=np.int32)
    is_null = np.array([value is None for value in values], np.bool_)
    return pa.StringArray.from_buffers(
        len(values),
        pa.py_buffer(bounds.data),
        pa.py_buffer(b"".join(encoded)),
        _bits(~is_null) if is_null.any() else None,
    )


def of_list(values: Sequence[Any], kind: ArrowType) -> Any:
    """The values in this type; None is null. Does import pandas unless they are strings or whole numbers.

    Raises OverflowError for a whole number out of range, otherwise Arrow's errors.
    """
    kinds = {type(value) for value in values if value is not None}
    if pa.types.is_string(kind) and kinds <= {str}:
        return to_texts(values)
    if pa.types.is_integer(kind) and kinds <= {int}:
        is_null = np.array([value is None for value in values], np.bool_)
        given = [0 if value is None else value for value in values]
        dtype: Any = kind.to_pandas_dtype()
        bounds = np.iinfo(dtype)
        if given and not bounds.min <= min(given) <= max(given) <= bounds.max:  # NumPy below 2 wraps around
            raise OverflowError(f"a whole number out of the range of {kind}")
        return to_arrow(np.array(given, dtype), is_null if is_null.any() else None)
    return pa.array(values, kind)


def empty_array(kind: ArrowType) -> Any:
    """An empty array of this type."""
    return pa.nulls(0, kind)


def to_numbers(values: ArrowArray, null: int | None = None) -> npt.NDArray[Any]:
    """The integers or floats of an Arrow array, with `null` for each null; read-only if it has none, which None requires."""
    kind: ArrowType = values.type
    dtype, data = kind.to_pandas_dtype(), values.buffers()[1]
    numbers: npt.NDArray[Any] = np.zeros(len(values), dtype)
    if data is not None and len(values):
        numbers = np.frombuffer(memoryview(data), dtype, len(values), values.offset * numbers.itemsize)
    if not values.null_count:
        return numbers
    assert null is not None, "a null"
    return np.where(null_flags(values), np.array(null, dtype), numbers)


def to_flags(values: ArrowArray) -> Flags:
    """The booleans of an Arrow array; False for null."""
    data = values.buffers()[1]
    if data is None or not len(values):
        return np.zeros(len(values), np.bool_)
    first, end = values.offset // 8, values.offset + len(values)
    bits = np.unpackbits(np.frombuffer(memoryview(data), np.uint8)[first : -(-end // 8)], bitorder="little")
    flags = bits[values.offset - 8 * first : end - 8 * first].view(np.bool_)
    return flags & ~null_flags(values) if values.null_count else flags


def null_flags(values: ArrowArray) -> Flags:
    """Which values of an Arrow array are null."""
    return to_flags(values.is_null()) if values.null_count else np.zeros(len(values), np.bool_)


def _bits(values: Flags) -> pa.Buffer:
    return pa.py_buffer(np.packbits(values, bitorder="little").data)
