"""What can stand in an event-time column, in every type that can hold event times, with what each value means.

The meanings are stated by hand: epoch milliseconds, none, or unreadable.
"""

import datetime as dt
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa

UNREADABLE: Final = "unreadable"
Value = tuple[Any, int | str | None]
LAST_MS: Final = 253_402_300_799_000  # of year 9999, to the second
_NOVEMBER_20_MS: Final = 1_795_143_600_000

_TEXTS: list[Value] = [
    (None, None),
    ("", UNREADABLE),
    ("soon", UNREADABLE),
    ("2026-11-20 03:00:00", UNREADABLE),
    ("11/20/2026 03:00", UNREADABLE),
    ("9" * 25, UNREADABLE),
    ("20261120030000", UNREADABLE),
    ("20261120030000123", UNREADABLE),
    ("2026-11-20T03:00Z", _NOVEMBER_20_MS),
    ("1795143600", _NOVEMBER_20_MS),
    ("1969-12-31T23:59:59Z", -1000),
    ("9999-12-31T23:59:59Z", LAST_MS),
]
VALUES: dict[str, tuple[Any, list[Value]]] = {
    "text": (pa.string(), _TEXTS),
    "nested": (
        pa.struct([pa.field("at", pa.string())]),
        [*(({"at": text}, means) for text, means in _TEXTS), (None, None)],
    ),
    "double": (
        pa.float64(),
        [
            (None, None),
            (float("nan"), UNREADABLE),
            (float("inf"), UNREADABLE),
            (float("-inf"), UNREADABLE),
            (1e300, UNREADABLE),
            (20_261_120_030_000.0, UNREADABLE),
            (1_795_143_600.0, _NOVEMBER_20_MS),
            (-0.5, -1),
            (float(LAST_MS), LAST_MS),
        ],
    ),
    "float": (
        pa.float32(),
        [
            (None, None),
            (float("nan"), UNREADABLE),
            (float("inf"), UNREADABLE),
            (float("-inf"), UNREADABLE),
            (3e38, UNREADABLE),
            (0.0, 0),
            (-0.5, -1),
            (float(2**30), 2**30 * 1000),
        ],
    ),
    "long": (
        pa.int64(),
        [
            (None, None),
            (_NOVEMBER_20_MS, _NOVEMBER_20_MS),
            (0, 0),
            (-1000, -1000),
            (20_261_120_030_000, UNREADABLE),
            (20_261_120_030_000_123, UNREADABLE),
            (32_503_593_600_000, 32_503_593_600_000),  # in 2999
            ((1 << 63) - 1, 9_223_372_036_854),
            (-(1 << 63), -9_223_372_036_855),
        ],
    ),
    "int": (pa.int32(), [(None, None), (0, 0), (-1, -1), ((1 << 31) - 1, 2_147_483_647_000)]),
    "decimal": (
        pa.decimal128(38, 2),
        [
            (None, None),
            (Decimal("9" * 30), UNREADABLE),
            (Decimal(20_261_120_030_000), UNREADABLE),
            (Decimal("1795143600.00"), _NOVEMBER_20_MS),
            (Decimal(-1), -1),
        ],
    ),
    "timestamp": (
        pa.timestamp("us", "UTC"),
        [
            (None, None),
            (pa.scalar((1 << 63) - 1, pa.int64()).cast(pa.timestamp("us", "UTC")), 9_223_372_036_854_775),
            (pa.scalar(-(1 << 63) + 1, pa.int64()).cast(pa.timestamp("us", "UTC")), -9_223_372_036_854_776),
            (dt.datetime.fromisoformat("2026-11-20T03:00+00:00"), _NOVEMBER_20_MS),
            (dt.datetime.fromisoformat("9999-12-31T23:59:59+00:00"), LAST_MS),
        ],
    ),
    "date": (
        pa.date32(),
        [(None, None), (dt.date(1969, 12, 31), -86_400_000), (dt.date(2026, 11, 20), 1_795_132_800_000)],
    ),
}
