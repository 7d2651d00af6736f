"""Casts columns exactly: a value that another type cannot hold is refused, never rounded.

Arrow's own cast refuses most of what does not fit. It rounds decimals, texts and doubles to floats, and doubles to decimals,
takes every number for a Boolean, and cuts moments to dates.

A floating-point number holds a text or a decimal if it gives the same digits back, printed with as many of them: 0.1 and
0.10000000000000001 are doubles, and 99999999999999999.99 is none.
"""

from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from eventide_core.errors import InvalidRecordError

_DOUBTFUL: Final = {64: r"(\d\.?){16}|[eE][-+]?\d{3}", 32: r"(\d\.?){7}|[eE]"}
"""Texts that a float of that many bits may not hold. It holds every other one."""
_WIDENED: Final = {
    (pa.int32(), pa.int64()): "long",
    (pa.int32(), pa.float64()): "double",
    (pa.float32(), pa.float64()): "double",
}
_TO_WIDER_DECIMAL: Final = (
    ", or add a wider column by `alter`, update it with this one, and drop this one: without hoodie.schema.on.read.enable, "
    "Hudi before 1.2 refuses a wider decimal"
)
_TO_MOMENT: Final = (
    "cast it before: pyarrow.compute.assume_timezone, dt.tz_localize('Europe/Berlin') of pandas, dt.replace_time_zone of "
    "Polars, or CAST(... AS TIMESTAMP) of Spark, which takes the session's zone"
)
_TO_LOCAL: Final = (
    "cast it before: pyarrow.compute.local_timestamp, dt.tz_localize(None) of pandas, dt.replace_time_zone(None) of Polars, "
    "or CAST(... AS TIMESTAMP_NTZ) of Spark, which takes the session's zone"
)


def cast_whole(column: Any, kind: Any, place: str) -> Any:
    """The column in another type. Raises InvalidRecordError for a value that does not fit, or would lose a part."""
    own = column.type
    refuse_unstated(own, kind, place)
    _refuse_unknown_fields(own, kind, place)
    try:
        return exact_cast(column, kind)
    except pa.ArrowNotImplementedError as error:
        raise InvalidRecordError(
            f"{place} of type {own} does not fit the table's {kind}: {error}; convert it before"
        ) from error
    except (pa.ArrowException, ValueError) as error:
        row = first_misfit(column, kind)
        wider = _WIDENED.get((kind, own))
        cure = "" if wider is None else f", or widen the column to {wider} by `alter`"
        if pa.types.is_timestamp(own) and pa.types.is_timestamp(kind):
            cure = ", as pyarrow.compute.floor_temporal does"
        if pa.types.is_decimal(kind):
            cure = _TO_WIDER_DECIMAL
        raise InvalidRecordError(
            f"row {row}: {place} of type {own} does not fit the table's {kind}: {column[row]}: {error}; convert it "
            f"before{cure}"
        ) from error


def exact_cast(column: Any, kind: Any) -> Any:
    """The column in another type. Raises ValueError, as Arrow does, for a value that the type cannot hold exactly."""
    own = column.type
    if is_uuid(own) and pa.types.is_string(kind):
        return pa.chunked_array([pa.array([value and str(value) for value in column.to_pylist()], kind)])
    if pa.types.is_floating(own) and pa.types.is_decimal(kind):
        return column.cast(pa.string()).cast(kind)  # 0.1, not the binary fraction next to it
    if pa.types.is_integer(own) and pa.types.is_decimal(kind):
        return column.cast(pa.decimal128(20)).cast(kind)  # Arrow refuses the type, whatever the values are
    try:
        cast = column.cast(kind)
    except pa.ArrowInvalid:
        lenient = lenient_type(kind)
        if lenient == kind:
            raise
        # Arrow looks at the fields alone, and refuses a null struct whose fields are never null.
        chunks = [_strict(chunk, kind) for chunk in column.cast(lenient).chunks]
        cast = pa.chunked_array(chunks, kind)
    if not _is_exact(column, cast):
        moment = (
            "its time of day" if pa.types.is_date(kind) else "its date" if pa.types.is_time(kind) else "a part of it"
        )
        raise ValueError(f"{moment} would be lost")
    return cast


def lenient_type(kind: Any) -> Any:
    """The type, of which any field of a struct may be null."""
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(own.name, lenient_type(own.type)) for own in kind])
    if pa.types.is_list(kind):
        return pa.list_(pa.field(kind.value_field.name, lenient_type(kind.value_type), kind.value_field.nullable))
    return kind


def _strict(values: Any, kind: Any) -> Any:
    """The values of a lenient type in the type itself. Raises ValueError for a field that is null and must not be."""
    if pa.types.is_struct(kind):
        fields = [_strict(pc.struct_field(values, [place]), own.type) for place, own in enumerate(kind)]
        for own, field in zip(kind, fields, strict=True):
            if not own.nullable and field.null_count > values.null_count:
                raise ValueError(f"field {own.name!r} is null")
        return pa.StructArray.from_arrays(fields, fields=list(kind), mask=values.is_null())
    if pa.types.is_list(kind):
        lengths: Any = pc.list_value_length(values).fill_null(0)
        offsets = pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(lengths)])
        elements = _strict(pc.list_flatten(values), kind.value_type)
        return pa.ListArray.from_arrays(offsets, elements, type=kind, mask=values.is_null())
    return values


def first_misfit(column: Any, kind: Any, cast: Callable[[Any, Any], Any] = exact_cast) -> int:
    """The first row that `cast` refuses. At least one is refused."""
    begin, end = 0, len(column)
    while end - begin > 1:
        middle = (begin + end) // 2
        begin, end = (middle, end) if fits(column.slice(begin, middle - begin), kind, cast) else (begin, middle)
    return begin


def fits(column: Any, kind: Any, cast: Callable[[Any, Any], Any] = exact_cast) -> bool:
    """Whether `cast` takes every value."""
    try:
        cast(column, kind)
    except (pa.ArrowException, ValueError):
        return False
    return True


def keeps_digits(text: str, number: float) -> bool:
    """Whether the number, rounded to the digits of the text, equals the text."""
    stated = Decimal(text)
    if not stated.is_finite():
        return True
    last_digit = Decimal(1).scaleb(int(stated.as_tuple().exponent))
    return abs(stated - Decimal(number)) * 2 <= last_digit


def _is_exact(column: Any, cast: Any) -> bool:
    """Whether a column that Arrow cast has all of its values."""
    own, kind = column.type, cast.type
    if own == kind:
        return True
    if pa.types.is_struct(own) and pa.types.is_struct(kind):
        names = [field.name for field in kind if own.get_field_index(field.name) >= 0]
        return all(_is_exact(pc.struct_field(column, name), pc.struct_field(cast, name)) for name in names)
    if is_list(own) and is_list(kind):
        return _is_exact(pc.list_flatten(column), pc.list_flatten(cast))
    if pa.types.is_map(own) and pa.types.is_map(kind):
        return _is_exact(*(maps.cast(_entries(maps.type)) for maps in (column, cast)))
    if pa.types.is_floating(kind) and not _is_narrower(own, kind):
        return _has_digits(column.cast(pa.string()), cast)
    if pa.types.is_boolean(kind) and pa.types.is_primitive(own):
        return _all_equal(cast.cast(own), column)
    if pa.types.is_floating(own) and pa.types.is_decimal(kind):
        return _all_equal(cast.cast(own), column)
    if pa.types.is_timestamp(own) and pa.types.is_date(kind):  # a date is in the moment's own zone
        local = column if own.tz is None else pc.local_timestamp(column)
        return _all_equal(cast.cast(local.type), local)
    return not (pa.types.is_timestamp(own) and pa.types.is_time(kind))


def _entries(maps: Any) -> Any:
    """The type of lists of structs that a map is."""
    key: Any = pa.field("key", maps.key_type, nullable=False)
    return pa.list_(pa.field("entries", pa.struct([key, pa.field("value", maps.item_type)]), nullable=False))


def _is_narrower(own: Any, kind: Any) -> bool:
    """Whether Arrow's cast to a float is exact, or refused."""
    is_whole = pa.types.is_integer(own) or pa.types.is_boolean(own)
    return is_whole or (pa.types.is_floating(own) and bool(own.bit_width < kind.bit_width))


def _has_digits(texts: Any, numbers: Any) -> bool:
    doubtful = pc.match_substring_regex(texts, _DOUBTFUL[numbers.type.bit_width])
    pairs = zip(texts.filter(doubtful).to_pylist(), numbers.filter(doubtful).to_pylist(), strict=True)
    return all(keeps_digits(text, number) for text, number in pairs)


def _all_equal(one: Any, other: Any) -> bool:
    return bool(pc.all(pc.equal(one, other), min_count=0).as_py())


def refuse_unstated(own: Any, kind: Any, place: str) -> None:
    """Raises InvalidRecordError where Arrow would guess the unit or the zone of a time, also in nested types.

    That is a time in a column of numbers, one without a zone in a column of times with one, and the reverse of both.
    """
    for given, wanted, at in _nested(own, kind, place):
        if pa.types.is_duration(given) or any(
            pa.types.is_temporal(time) and pa.types.is_integer(number)
            for time, number in ((given, wanted), (wanted, given))
        ):
            raise InvalidRecordError(
                f"{at} of type {given} does not fit the table's {wanted}: nothing says in which unit; "
                f"{unit_cure(given, wanted)}"
            )
        if is_uuid(given) and at != place and pa.types.is_string(wanted):
            raise InvalidRecordError(
                f"{at} of type {given} does not fit the table's {wanted}: write str() of each UUID"
            )
        _refuse_unstated_zone(given, wanted, at)


def unit_cure(given: Any, wanted: Any = None) -> str:
    """Names the casts from a time to a number, or back, which state the unit."""
    is_number = pa.types.is_integer(given)
    time = wanted if is_number else given
    steps = ["'int64'", "'duration[us]'" if pa.types.is_duration(time) else "'time64[us]'"]
    if pa.types.is_date(time):
        steps = ["'int32'", "'date32'"]
    elif pa.types.is_timestamp(time):
        steps[1] = f"pyarrow.timestamp('us', {time.tz!r})"
    return "cast it before, such as .cast({}).cast({})".format(*(steps if is_number else reversed(steps)))


def is_uuid(kind: Any) -> bool:
    return getattr(kind, "extension_name", None) == "arrow.uuid"


def _refuse_unstated_zone(own: Any, kind: Any, place: str) -> None:
    is_local = pa.types.is_date(own) or (pa.types.is_timestamp(own) and own.tz is None)
    if pa.types.is_timestamp(kind) and (is_local if kind.tz else pa.types.is_timestamp(own) and own.tz):
        raise InvalidRecordError(
            f"{place} of type {own} does not fit the table's {kind}: nothing says in which zone; "
            f"{_TO_MOMENT if is_local else _TO_LOCAL}"
        )


def _refuse_unknown_fields(own: Any, kind: Any, place: str) -> None:
    """Raises InvalidRecordError for a nested field that the table's type lacks: Arrow would leave its values out."""
    for given, wanted, at in _nested(own, kind, place):
        if pa.types.is_struct(given) and pa.types.is_struct(wanted):
            names = [field.name for field in wanted]
            for field in given:
                if field.name not in names:
                    raise InvalidRecordError(
                        f"{at} has no field {field.name!r} in the table; it has {', '.join(names)}"
                    )


def _nested(own: Any, kind: Any, place: str) -> Iterator[tuple[Any, Any, str]]:
    """Both types, and the types of what both contain, with the place of each; the outer ones first."""
    yield own, kind, place
    if is_list(own) and is_list(kind):
        yield from _nested(own.value_type, kind.value_type, f"an element of {place}")
    elif pa.types.is_map(own) and pa.types.is_map(kind):
        yield from _nested(own.item_type, kind.item_type, f"a value of {place}")
    elif pa.types.is_struct(own) and pa.types.is_struct(kind):
        for field in kind:
            if own.get_field_index(field.name) >= 0:
                yield from _nested(own.field(field.name).type, field.type, f"field {field.name!r} of {place}")


def is_list(kind: Any) -> bool:
    return pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
