"""Event times in columns of doubles, in plain Python: what the columnar reader is held to."""

import math

from eventide_core.table.records.event_time import spells_a_date

_INT64_MAX = (1 << 63) - 1


def double_to_epoch_ms(value: float) -> int | None:
    """A double in an event-time column as epoch milliseconds; None for NaN, for numbers beyond 64 bits, and for a date.

    Rounds: 1700000000.1 is 100 ms later than 1700000000, although the nearest double is less than that.
    """
    if not abs(value) < _INT64_MAX or spells_a_date(abs(int(value))):  # the first is also true for NaN
        return None
    match len(str(abs(int(value)))):
        case 10:
            return math.floor(value * 1e3)
        case 16:
            return math.floor(value / 1e3)
        case 19:
            return math.floor(value / 1e6)
        case _:
            return math.floor(value)
