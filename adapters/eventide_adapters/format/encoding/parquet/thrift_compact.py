"""Finds values in Thrift's compact protocol, and replaces integers in it. It knows no schema.

struct := (field header, value)...  0x00
field header := one byte  (delta of the field's number << 4 | type), or type and a zigzag number
integer := zigzag varint      binary := varint length, bytes
list := one byte (count << 4 | type), or 0xF0 | type and a varint count; elements
"""

from collections.abc import Mapping
from typing import Final, TypeAlias

_BOOLEANS: Final = (1, 2)
_BYTE: Final = 3
_INTEGERS: Final = (4, 5, 6)
_DOUBLE: Final = 7
_BINARY: Final = 8
_LISTS: Final = (9, 10)
_STRUCT: Final = 12
_MORE_IN_COUNT: Final = 15
_SHIFT_MAX: Final = 63  # of the last seven bits of 64

Data: TypeAlias = bytes | bytearray | memoryview

Span: TypeAlias = tuple[int, int]
"""Where a value begins and ends."""

WalkedStructs: TypeAlias = dict[int, tuple[dict[int, Span], int]]
"""The structs of some data that were walked through, by their offset. To find the end of a struct is to walk through it."""


def fields(data: Data, at: int, walked: WalkedStructs | None = None) -> tuple[dict[int, Span], int]:
    """The values of the struct at this offset, by number of the field, and the struct's end.

    `walked` are the structs of this data that need no second walk; this call adds to them. Raises IndexError if the data
    ends too early, and ValueError for what Parquet has not.
    """
    if walked is not None and at in walked:
        return walked[at]
    start = at
    spans: dict[int, Span] = {}
    number = 0
    while head := data[at]:
        at += 1
        if head >> 4:
            number += head >> 4
        else:
            number, at = integer(data, at)
        end = _end(data, at, head & 15, walked)
        spans[number] = at, end
        at = end
    if walked is not None:
        walked[start] = spans, at + 1
    return spans, at + 1


def field(data: Data, at: int, wanted: int) -> int:
    """Where the value of that field of the struct at this offset begins; nothing behind it is read.

    Raises KeyError if the struct has no such field, and IndexError if the data ends too early.
    """
    number = 0
    while head := data[at]:
        at += 1
        if head >> 4:
            number += head >> 4
        else:
            number, at = integer(data, at)
        if number == wanted:
            return at
        at = _end(data, at, head & 15)
    raise KeyError(wanted)


def elements(data: Data, at: int, walked: WalkedStructs | None = None) -> list[Span]:
    """The elements of the list at this offset. `walked` as in `fields`. Raises IndexError if the data ends too early."""
    kind, count, at = _list_head(data, at)
    spans: list[Span] = []
    for _ in range(count):
        end = _end(data, at, kind, walked, is_element=True)
        spans.append((at, end))
        at = end
    return spans


def first_element(data: Data, at: int) -> int:
    """Where the first element of the list at this offset begins. Raises IndexError if there is none."""
    _, count, at = _list_head(data, at)
    if count == 0:
        raise IndexError(f"the list before {at} is empty")
    return at


def integer(data: Data, at: int) -> tuple[int, int]:
    """The integer at this offset, and its end."""
    value, at = _varint(data, at)
    return value >> 1 ^ -(value & 1), at


def binary(data: Data, at: int) -> bytes:
    """The bytes or the text at this offset."""
    length, at = _varint(data, at)
    return bytes(data[at : at + length])


def encoded(value: int) -> bytes:
    """An integer."""
    return varint(value << 1 if value >= 0 else (-value << 1) - 1)


def varint(number: int) -> bytes:
    """A number of 0 or more, seven bits in a byte."""
    data = bytearray()
    while number > 0x7F:
        data.append(number & 0x7F | 0x80)
        number >>= 7
    data.append(number)
    return bytes(data)


def with_integers(data: Data, start: int, end: int, new: Mapping[Span, int]) -> bytes:
    """The bytes from `start` to `end` with other integers in these places."""
    pieces: list[Data] = []
    for (begin, after), value in sorted(new.items()):
        pieces += data[start:begin], encoded(value)
        start = after
    return b"".join([*pieces, data[start:end]])


def _varint(data: Data, at: int) -> tuple[int, int]:
    value = data[at]
    at += 1
    if value < 0x80:
        return value, at
    value &= 0x7F
    shift = 7
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > _SHIFT_MAX:
            raise ValueError(f"the number at {at} has no end")


def _list_head(data: Data, at: int) -> tuple[int, int, int]:
    head = data[at]
    count, at = head >> 4, at + 1
    if count == _MORE_IN_COUNT:
        count, at = _varint(data, at)
    if count > len(data) - at:  # each has a byte or more
        raise IndexError(f"{count} elements at {at} of {len(data)} bytes")
    return head & 15, count, at


def _end(data: Data, at: int, kind: int, walked: WalkedStructs | None = None, *, is_element: bool = False) -> int:
    """The end of a value of this type."""
    if kind in _INTEGERS:
        while data[at] > 0x7F:
            at += 1
        return at + 1
    if kind == _BINARY:
        length, at = _varint(data, at)
        return at + length
    if kind == _STRUCT:
        return fields(data, at, walked)[1]
    if kind in _LISTS:
        element, count, at = _list_head(data, at)
        for _ in range(count):
            at = _end(data, at, element, walked, is_element=True)
        return at
    if kind in _BOOLEANS:
        # A field's type is its value.
        return at + is_element
    if kind == _BYTE:
        return at + 1
    if kind == _DOUBLE:
        return at + 8
    raise ValueError(f"Thrift type {kind} at {at}: Parquet has no such type")
