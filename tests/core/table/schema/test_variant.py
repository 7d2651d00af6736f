"""Variants: the value that their bytes encode, and hostile bytes."""

from contextlib import suppress
from datetime import UTC, date, datetime, time
from decimal import Decimal
from random import Random
from struct import pack
from typing import Any

import pytest

from eventide_core.table.schema.variant import variant_value

NAMES = bytes([0x01, 2, 0, 1, 3]) + b"abc"
MICROS = 1_700_000_000_000_000


def primitive(kind: int, data: bytes = b"") -> bytes:
    return bytes([kind << 2]) + data


@pytest.mark.parametrize(
    ("value", "seen"),
    [
        (primitive(0), None),
        (primitive(1), True),
        (primitive(2), False),
        (primitive(3, pack("<b", -5)), -5),
        (primitive(4, pack("<h", -500)), -500),
        (primitive(5, pack("<i", 1 << 30)), 1 << 30),
        (primitive(6, pack("<q", -(1 << 62))), -(1 << 62)),
        (primitive(7, pack("<d", 1.25)), 1.25),
        (primitive(8, bytes([2]) + pack("<i", -1234)), Decimal("-12.34")),
        (primitive(9, bytes([0]) + pack("<q", 1 << 40)), Decimal(1 << 40)),
        (primitive(10, bytes([3]) + (10**30).to_bytes(16, "little", signed=True)), Decimal(10**30).scaleb(-3)),
        (primitive(11, pack("<i", -1)), date(1969, 12, 31)),
        (primitive(12, pack("<q", MICROS)), datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)),
        (primitive(13, pack("<q", MICROS)), datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC).replace(tzinfo=None)),
        (primitive(14, pack("<f", 0.5)), 0.5),
        (primitive(15, pack("<i", 2) + b"xy"), b"xy"),
        (primitive(16, pack("<i", 3) + "\u20ac".encode()), "\u20ac"),
        (primitive(17, pack("<q", 1_000_000)), time(0, 0, 1)),
        (primitive(18, pack("<q", MICROS * 1000)), datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)),
        (primitive(20, bytes(range(16))), "00010203-0405-0607-0809-0a0b0c0d0e0f"),
        (bytes([5 << 2 | 1]) + b"short", "short"),
        (bytes([2, 2, 0, 1, 0, 2, 3, 12, 7, 0]), {"a": 7, "bc": None}),
        (bytes([3, 2, 0, 2, 4, 12, 7, 12, 8]), [7, 8]),
        (bytes([4 << 2 | 3, 1, 0, 0, 0, 0, 1, 4]), [True]),
    ],
)
def test_each_type_of_value_is_shown(value: bytes, seen: Any) -> None:
    assert variant_value(NAMES, value) == seen


def test_bytes_that_are_no_variant_are_refused_in_time() -> None:
    random = Random(74)
    values = [bytes(random.randrange(256) for _ in range(random.randrange(1, 40))) for _ in range(3000)]
    # Each of two elements is the same array, 30 deep: more values than bytes.
    overlapping = b"".join(bytes([3, 2, 0, 0, 1]) for _ in range(60))
    for value in (*values, overlapping, b""):
        for metadata in (NAMES, value):
            with suppress(ValueError):
                variant_value(metadata, value)
