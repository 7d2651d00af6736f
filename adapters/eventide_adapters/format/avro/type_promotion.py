"""Type promotion: the types that a column may have had before its table's type was widened, and how values convert.

    int -> long, float, double, string      float -> double, string     bytes <-> string
    long -> float, double, string           double -> string            date, decimal -> string
    decimal -> a wider one                  timestamp: millis -> micros null -> anything

As in Hudi, for log files and base files alike, a float becomes the double with the same decimal digits (0.1 stays 0.1),
and numbers become the strings that Java formats. If the file's writer did not know a logical type, its column has plain
integers, which are read as that type. Zoned and local timestamps are the same number.
"""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide_adapters.format.columns.arrow_numpy import ArrowColumn

_LEAST_PLAIN, _GREATEST_PLAIN = 1e-3, 1e7  # Java writes smaller and greater numbers with an exponent
_UNITS = {"ms": 1_000, "us": 1}


def promote(array: ArrowColumn, wanted: Any) -> ArrowColumn | None:
    """The values in the wanted type; None if no Hudi writer would have widened the source type to it.

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
