"""Dates and timestamps that Spark stored in its legacy calendar: Julian before 1582-10-15, Gregorian since.

Spark states the calendar of a file in the footer, and so does Hudi when Spark's own writer writes its files:

    org.apache.spark.version          before 3.0.0: dates and timestamps are legacy; before 3.1.0: INT96 is
    org.apache.spark.legacyDateTime   present: dates and timestamps are legacy
    org.apache.spark.legacyINT96      present: INT96 timestamps are legacy
    org.apache.spark.timeZone         the zone whose days a legacy timestamp counts

1. A file without a version, as Hudi's Avro writer leaves it, counts in the proleptic Gregorian calendar, as eventide does.
2. A legacy date becomes the Gregorian date of the same name, as Spark reads it. 1500-02-29 has none, and is 1500-03-01.
3. A legacy timestamp of UTC is moved by as many days. For another zone, Java's rules before 1900 would be needed: a file
   that has such a timestamp is refused. Timestamps without a zone are never legacy, except as INT96.
4. A legacy file with an ancient time in a nested column is refused.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide_core.errors import UnsupportedTableError

SPARK_VERSION_FOOTER: Final = "org.apache.spark.version"
_FIRST_GREGORIAN_DAY: Final = -141_427  # 1582-10-15
_FIRST_MODERN_DAY: Final = -25_567  # 1900-01-01; since then, Java's zones are the same in both calendars
_DAY_MICROS: Final = 86_400_000_000
_UTC: Final = frozenset({"UTC", "Etc/UTC", "GMT", "Etc/GMT", "Z", "+00:00", "UTC+00:00", "GMT+00:00"})
# The legacy days at which the difference changes: each 1 March of a century year that only the Julian calendar makes a
# leap year, from the year 100 on, and 1582-10-15. The first difference is for the years before.
_CENTURIES: Final = (
    *(-682_945, -646_420, -609_895, -536_845, -500_320, -463_795),
    *(-390_745, -354_220, -317_695, -244_645, -208_120, -171_595),
)
_SWITCHES: Final = np.array((*_CENTURIES, _FIRST_GREGORIAN_DAY))
_SHIFTS: Final = np.array([2, 1, 0, -1, -2, -3, -4, -5, -6, -7, -8, -9, -10, 0])


@dataclass(frozen=True, slots=True)
class LegacyCalendar:
    """What of a file is in the legacy calendar.

    `has_legacy_times`: its dates, and its timestamps of other physical types than INT96, are. `has_legacy_int96`: its
    timestamps of that type are; `int96` has the dotted paths of those columns, legacy or not. `zone` is the zone whose days
    its legacy timestamps count; None if the footer states none, and then they can't be corrected.
    """

    has_legacy_times: bool
    has_legacy_int96: bool
    zone: str | None
    int96: frozenset[str]

    @classmethod
    def of(cls, metadata: Any) -> "LegacyCalendar | None":
        """The calendar of an open Parquet file's metadata; None if nothing is legacy."""
        pairs: Mapping[bytes, bytes] = metadata.metadata or {}
        version = pairs.get(SPARK_VERSION_FOOTER.encode())
        if version is None:
            return None
        times = version < b"3.0.0" or b"org.apache.spark.legacyDateTime" in pairs
        int96 = version < b"3.1.0" or b"org.apache.spark.legacyINT96" in pairs
        if not (times or int96):
            return None
        zone = pairs.get(b"org.apache.spark.timeZone")
        columns = (metadata.schema.column(number) for number in range(metadata.num_columns))
        named = frozenset(column.path for column in columns if column.physical_type == "INT96")
        return cls(times, int96, None if zone is None else zone.decode(errors="replace"), named)

    def corrected(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows in the proleptic Gregorian calendar. Raises UnsupportedTableError for those that can't be moved."""
        columns = [self._column(name, batch.column(name)) for name in batch.schema.names]
        return pa.RecordBatch.from_arrays(columns, schema=batch.schema)

    def _column(self, name: str, column: Any) -> Any:
        if pa.types.is_nested(column.type):
            for leaf in _leaves(column):
                # Which leaf is INT96 is not asked here: only a file with an ancient time is refused.
                if pa.types.is_temporal(leaf.type) and _least_day(leaf) < self._limit(leaf.type):
                    raise self._refusal(name, "in a nested column")
            return column
        if not self._is_legacy(name, column.type) or _least_day(column) >= self._limit(column.type):
            return column
        if pa.types.is_date32(column.type):
            return _moved(column, pa.int32(), 1)
        if self.zone not in _UTC:
            raise self._refusal(name, f"in the time zone {self.zone or '(not stated)'}")
        return _moved(column, pa.int64(), _DAY_MICROS // (1000 if column.type.unit == "ms" else 1))

    def _is_legacy(self, name: str, kind: Any) -> bool:
        if pa.types.is_date32(kind):
            return self.has_legacy_times
        if not pa.types.is_timestamp(kind):
            return False
        if name in self.int96:
            return self.has_legacy_int96
        return self.has_legacy_times and kind.tz is not None

    def _limit(self, kind: Any) -> int:
        is_exact = pa.types.is_date32(kind) or self.zone in _UTC
        return _FIRST_GREGORIAN_DAY if is_exact else _FIRST_MODERN_DAY

    def _refusal(self, name: str, where: str) -> UnsupportedTableError:
        return UnsupportedTableError(
            f"column {name} has ancient times of Spark's legacy calendar {where}, which eventide can't convert; rewrite "
            "the file with Hudi (its compaction or clustering), with spark.sql.parquet.datetimeRebaseModeInWrite=CORRECTED"
        )


def _least_day(column: Any) -> int:
    """The first day of a column of dates or timestamps; a late one if it has no values."""
    if len(column) == column.null_count:
        return 0
    if pa.types.is_date32(column.type):
        least: int = pc.min(column.cast(pa.int32())).as_py()
        return least
    if not pa.types.is_timestamp(column.type):
        return 0
    per_day = _DAY_MICROS // {"s": 1_000_000, "ms": 1000}.get(column.type.unit, 1)
    if column.type.unit == "ns":
        per_day *= 1000
    earliest: int = pc.min(column.cast(pa.int64())).as_py()
    return earliest // per_day


def _moved(column: Any, plain: Any, per_day: int) -> Any:
    numbers = column.cast(plain)
    values = pc.fill_null(numbers, 0).to_numpy(zero_copy_only=False)
    shifts = _SHIFTS[np.searchsorted(_SWITCHES, values // per_day, side="right")]
    moved = (values + shifts * per_day).astype(plain.to_pandas_dtype())
    return pa.array(moved, plain, mask=np.asarray(numbers.is_null())).cast(column.type)


def _leaves(column: Any) -> Iterator[Any]:
    kind = column.type
    if pa.types.is_struct(kind):
        for child in column.flatten():
            yield from _leaves(child)
    elif pa.types.is_map(kind):
        yield from _leaves(column.keys)
        yield from _leaves(column.items)
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        yield from _leaves(column.flatten())
    else:
        yield column
