"""Values of VARIANT, a column type of Hudi 1.2: an Avro record with that logical type, of two fields of bytes.

`metadata` has the names of fields, `value` one value of any type, as Parquet's specification of variants has it. Files,
merges and writes take both as they are; this decodes them to show them.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from itertools import pairwise
from struct import error as too_few_bytes
from struct import unpack_from
from typing import Any, Final

LOGICAL_TYPE: Final = "variant"

_VERSION: Final = 1
_DEPTH_MAX: Final = 64
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_NUMBERS: Final = {3: "<b", 4: "<h", 5: "<i", 6: "<q", 7: "<d", 14: "<f"}
_DECIMALS: Final = {8: 4, 9: 8, 10: 16}


def variant_value(metadata: bytes, value: bytes) -> Any:
    """The value, with dictionaries for objects and lists for arrays. Raises ValueError if the bytes aren't a variant."""
    try:
        return _Variant(value, tuple(_names(metadata)), len(value)).at(0, _DEPTH_MAX)
    except (IndexError, ArithmeticError, too_few_bytes) as error:
        raise ValueError(f"no variant: {error}") from error


@dataclass(slots=True)
class _Variant:
    """`left` is how many values there may still be: each takes a byte, so that more of them overlap."""

    data: bytes
    names: tuple[str, ...]
    left: int = field()

    def at(self, place: int, depth: int) -> Any:
        self.left -= 1
        if self.left < 0 or depth == 0:
            raise ValueError("no variant: its values overlap, or are nested too deeply")
        header = self.data[place] >> 2
        match self.data[place] & 3:
            case 0:
                return _primitive(self.data, header, place + 1)
            case 1:
                return _bytes(self.data, place + 1, header).decode()
            case 2:
                sizes = (header >> 2 & 3) + 1, (header & 3) + 1
                count, begin = self._count(place + 1, is_large=bool(header >> 4 & 1))
                ids = [_number(self.data, begin + i * sizes[0], sizes[0]) for i in range(count)]
                places = self._places(begin + count * sizes[0], count, sizes[1])
                return {self.names[i]: self.at(inner, depth - 1) for i, inner in zip(ids, places, strict=True)}
            case _:
                count, begin = self._count(place + 1, is_large=bool(header >> 2 & 1))
                return [self.at(inner, depth - 1) for inner in self._places(begin, count, (header & 3) + 1)]

    def _count(self, place: int, *, is_large: bool) -> tuple[int, int]:
        """The number of elements, and the place behind it."""
        size = 4 if is_large else 1
        count = _number(self.data, place, size)
        if count > len(self.data):
            raise ValueError(f"no variant: {count} elements in {len(self.data)} bytes")
        return count, place + size

    def _places(self, begin: int, count: int, size: int) -> Iterator[int]:
        first = begin + (count + 1) * size
        return (first + _number(self.data, begin + i * size, size) for i in range(count))


def _names(metadata: bytes) -> Iterator[str]:
    header = metadata[0]
    if header & 15 != _VERSION:
        raise ValueError(f"no variant: version {header & 15}")
    size = (header >> 6 & 3) + 1
    count = _number(metadata, 1, size)
    if count > len(metadata):
        raise ValueError(f"no variant: {count} names in {len(metadata)} bytes")
    first = 1 + (count + 2) * size
    offsets = [_number(metadata, 1 + (i + 1) * size, size) for i in range(count + 1)]
    for begin, end in pairwise(offsets):
        yield _bytes(metadata, first + begin, end - begin).decode()


def _primitive(data: bytes, kind: int, place: int) -> Any:
    if kind in _NUMBERS:
        return unpack_from(_NUMBERS[kind], data, place)[0]
    if kind in _DECIMALS:
        digits = int.from_bytes(_bytes(data, place + 1, _DECIMALS[kind]), "little", signed=True)
        return Decimal(digits).scaleb(-data[place])
    match kind:
        case 0:
            return None
        case 1 | 2:
            return kind == 1
        case 11:
            return date(1970, 1, 1) + timedelta(days=unpack_from("<i", data, place)[0])
        case 12 | 13 | 17 | 18 | 19:
            return _moment(kind, unpack_from("<q", data, place)[0])
        case 15:
            return _bytes(data, place + 4, _number(data, place, 4))
        case 16:
            return _bytes(data, place + 4, _number(data, place, 4)).decode()
        case 20:
            text = _bytes(data, place, 16).hex()
            return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))
        case _:
            raise ValueError(f"no variant: a value of the unknown type {kind}")


def _moment(kind: int, number: int) -> datetime | time:
    """Microseconds, or nanoseconds, of which a datetime keeps the microseconds."""
    moment = _EPOCH + timedelta(microseconds=number // 1000 if kind in (18, 19) else number)
    if kind == 17:
        return moment.time()
    return moment if kind in (12, 18) else moment.replace(tzinfo=None)


def _number(data: bytes, place: int, size: int) -> int:
    return int.from_bytes(_bytes(data, place, size), "little")


def _bytes(data: bytes, place: int, size: int) -> bytes:
    if size < 0 or place + size > len(data):
        raise ValueError(f"no variant: {size} bytes from {place} on, of {len(data)}")
    return data[place : place + size]
