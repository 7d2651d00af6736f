"""Strategies for Avro types, for values of these types, and for schema evolution of a table beyond a writer's schema."""

import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from itertools import count
from typing import Any

from hypothesis import strategies as st

_UTC = dt.UTC
Values = st.SearchStrategy[Any]


def logical(plain: str, logical_type: str, **more: Any) -> dict[str, Any]:
    return {"type": plain, "logicalType": logical_type, **more}


def _timestamps(step: str) -> st.SearchStrategy[dt.datetime]:
    least = dt.timedelta(**{step: 1})
    epoch = dt.datetime(1970, 1, 1, tzinfo=_UTC)
    return st.datetimes(dt.datetime(1, 1, 2), dt.datetime(9999, 12, 30)).map(  # noqa: DTZ001
        lambda moment: epoch + ((moment.replace(tzinfo=_UTC) - epoch) // least) * least
    )


def _local(step: str) -> st.SearchStrategy[dt.datetime]:
    return _timestamps(step).map(lambda moment: moment.replace(tzinfo=None))


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
DECIMALS = st.decimals(min_value=-(10**7), max_value=10**7, places=2)
_WIDE_DECIMALS = st.integers(-(10**38) + 1, 10**38 - 1).map(
    lambda digits: Decimal((int(digits < 0), tuple(map(int, str(abs(digits)))), -18))
)
FLAT: dict[str, tuple[Any, Values]] = {
    "null": ("null", st.none()),
    "boolean": ("boolean", st.booleans()),
    "int": ("int", st.integers(-(1 << 31), (1 << 31) - 1)),
    "long": ("long", st.one_of(st.integers(-(1 << 63), (1 << 63) - 1), st.integers(-100, 100))),
    "float": ("float", st.floats(width=32, allow_nan=False)),
    "double": ("double", st.floats(allow_nan=False)),
    "string": ("string", TEXT),
    "bytes": ("bytes", st.binary(max_size=200)),
    "fixed": ({"type": "fixed", "name": "f", "size": 37}, st.binary(min_size=37, max_size=37)),
    "enum": ({"type": "enum", "name": "e", "symbols": ["RED", "GREEN"]}, st.sampled_from(["RED", "GREEN"])),
    "date": (logical("int", "date"), st.dates()),
    "time_millis": (
        logical("int", "time-millis"),
        st.times().map(lambda time: time.replace(microsecond=time.microsecond // 1000 * 1000)),
    ),
    "time_micros": (logical("long", "time-micros"), st.times()),
    "timestamp_millis": (logical("long", "timestamp-millis"), _timestamps("milliseconds")),
    "timestamp_micros": (logical("long", "timestamp-micros"), _timestamps("microseconds")),
    "local_millis": (logical("long", "local-timestamp-millis"), _local("milliseconds")),
    "local_micros": (logical("long", "local-timestamp-micros"), _local("microseconds")),
    "decimal_bytes": (logical("bytes", "decimal", precision=10, scale=2), DECIMALS),
    "decimal_fixed": (logical("fixed", "decimal", precision=10, scale=2, name="d", size=5), DECIMALS),
    "decimal_wide": (logical("fixed", "decimal", precision=38, scale=18, name="w", size=16), _WIDE_DECIMALS),
    "uuid": (logical("string", "uuid"), st.uuids().map(str)),
}


@dataclass(frozen=True, slots=True)
class TypedValues:
    """A type, and values of it. `later` is the type that a table's schema may have after it evolved."""

    avro: Any
    values: Values
    later: Any


# Promotions of Avro itself. Hudi's additional ones are tested value by value.
_LATER = {"int": ("long", "double"), "string": ("bytes",)}


@st.composite
def avro_types(draw: st.DrawFn, *, depth: int = 3, evolves: bool = False) -> TypedValues:
    """Any type down to `depth`, with null at any position of a union. Every named type has a unique name."""
    return _type(draw, count(), depth, evolves)


def _type(draw: st.DrawFn, names: Iterator[int], depth: int, evolves: bool) -> TypedValues:
    kinds = ["flat", "nullable"] if depth == 0 else ["flat", "nullable", "array", "map", "record", "union"]
    match draw(st.sampled_from(kinds)):
        case "nullable":
            inner = _bare(draw, names, depth, evolves)
            has_null_first = draw(st.booleans())
            avro, later = (["null", t] if has_null_first else [t, "null"] for t in (inner.avro, inner.later))
            if evolves and draw(st.booleans()):
                return TypedValues(inner.avro, inner.values, later)
            return TypedValues(avro, st.none() | inner.values, later)
        case "array":
            items = _type(draw, names, depth - 1, evolves)
            listed = st.lists(items.values, max_size=4)
            return TypedValues({"type": "array", "items": items.avro}, listed, {"type": "array", "items": items.later})
        case "map":
            items = _type(draw, names, depth - 1, evolves)
            mapped = st.dictionaries(TEXT, items.values, max_size=3)
            return TypedValues({"type": "map", "values": items.avro}, mapped, {"type": "map", "values": items.later})
        case "record":
            return _record(draw, names, depth, evolves)
        case "union" if not evolves:
            # Branches whose values fit no other branch.
            types: list[Any] = ["null", "boolean", "long", "string", {"type": "array", "items": "int"}]
            branches = draw(st.permutations(types))
            values = st.none() | st.booleans() | st.integers(-9, 1 << 40) | TEXT | st.lists(FLAT["int"][1], max_size=2)
            return TypedValues(list(branches), values, list(branches))
        case _:
            return _bare(draw, names, 0, evolves)


def _bare(draw: st.DrawFn, names: Iterator[int], depth: int, evolves: bool) -> TypedValues:
    """A type that can be in a union with null."""
    if depth and draw(st.booleans()):
        return _record(draw, names, depth, evolves)
    kind = draw(st.sampled_from([kind for kind in FLAT if kind != "null"]))
    avro, values = FLAT[kind]
    if isinstance(avro, dict) and "name" in avro:
        avro = {**avro, "name": f"n{next(names)}"}
    later = draw(st.sampled_from([avro, *_LATER.get(kind, ())])) if evolves else avro
    return TypedValues(avro, values, later)


def _record(draw: st.DrawFn, names: Iterator[int], depth: int, evolves: bool) -> TypedValues:
    name = f"r{next(names)}"
    fields = [_type(draw, names, depth - 1, evolves) for _ in range(draw(st.integers(1, 3)))]
    # The last branch takes at least a byte, because Avro items without bytes are refused.
    fields.append(TypedValues("int", FLAT["int"][1], "int"))
    later = [{"name": f"f{place}", "type": field.later} for place, field in enumerate(fields)]
    if evolves:
        kept = draw(st.lists(st.sampled_from(later[:-1]), unique_by=lambda field: field["name"]))
        new: list[dict[str, Any]] = [
            {"name": "new", "type": ["null", "string"], "default": None},
            {"name": "filled", "type": "long", "default": 7},
            {"name": "worded", "type": ["string", "null"], "default": "w"},
        ]
        later = list(draw(st.permutations([*kept, later[-1], *draw(st.lists(st.sampled_from(new), unique_by=str))])))
    values = st.fixed_dictionaries({f"f{place}": field.values for place, field in enumerate(fields)})
    written = [{"name": f"f{place}", "type": field.avro} for place, field in enumerate(fields)]
    return TypedValues(
        {"type": "record", "name": name, "fields": written}, values, {"type": "record", "name": name, "fields": later}
    )
