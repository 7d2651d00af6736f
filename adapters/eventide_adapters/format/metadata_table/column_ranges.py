"""The least and greatest value of the columns of a file, as Hudi's column statistics store them.

A field in a struct is a separate column, `place.name`. Types without an order (structs, lists, maps) have only counts. NaN
is the greatest float, as in Spark, which filters by these ranges. But no range that is stored ends with NaN: Spark loses the
records of all files beside one that does, when it keeps them in memory. So a range with NaN is stored as the range of all
numbers. Hudi stores a value in a wrapper that names its type. The wrapper depends on Hudi's version, so it is taken from a
record that Hudi wrote for the same column.
"""

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from eventide_adapters.format.encoding.avro.schema import table_fields
from eventide_adapters.format.encoding.columns.arrow_numpy import ArrowType
from eventide_adapters.format.encoding.columns.field_path import column_at, top_level
from eventide_adapters.format.encoding.parquet.footer_columns import require_sound_columns, stated_chunks
from eventide_adapters.format.encoding.parquet.legacy_calendar import LegacyCalendar
from eventide_adapters.format.encoding.parquet.open_file import OpenBaseFile, open_base
from eventide_adapters.format.slice.base_file.parquet import read_base
from eventide_adapters.format.slice.log_file.cursor import LogCursor
from eventide_adapters.format.slice.log_file.records import DataBlock
from eventide_core.errors import UnsupportedTableError
from eventide_core.ports import Storage
from eventide_core.table.files.slice_read import BlockFilter, columns_in_base
from eventide_core.table.records.record_shape import RecordShape

_NAMESPACE = "org.apache.hudi.avro.model"
_BATCH_ROWS = 1 << 17
_DECIMAL_WRAPPER_SCALE = 15  # Hudi's DecimalWrapper is a decimal(30, 15)
_MICROS_PER_UNIT = {"s": 1_000_000, "ms": 1000, "us": 1}


@dataclass(frozen=True, slots=True)
class ColumnRange:
    """The range of one column of a file, and how many values it has.

    `least` and `greatest` are None if all values are null or have no order; times are numbers in `arrow`'s unit. `arrow` is
    the column's type in the file, or in the table if the range is to be in the table's types. `value_count` includes the
    nulls, which `null_count` counts.
    """

    arrow: ArrowType
    least: Any = None
    greatest: Any = None
    value_count: int = 0
    null_count: int = 0

    def wrapped(self, wrapper: str, column: str) -> tuple[Any, Any]:
        """`least` and `greatest` in `wrapper`, a name without namespace. Raises UnsupportedTableError."""
        least, greatest = (-math.inf, math.inf) if self.has_nan else (self.least, self.greatest)
        return _wrapped(least, self.arrow, wrapper, column), _wrapped(greatest, self.arrow, wrapper, column)

    @classmethod
    def over(cls, arrow: ArrowType, values: Iterable[Any], value_count: int, null_count: int) -> "ColumnRange":
        """The range of values that include the least and the greatest of the column; None among them is ignored."""
        known = [value for value in values if value is not None]
        least, greatest = (min(known, key=_order), max(known, key=_order)) if known else (None, None)
        return cls(arrow, least, greatest, value_count, null_count)

    @property
    def has_nan(self) -> bool:
        return isinstance(self.greatest, float) and math.isnan(self.greatest)


def base_columns(storage: Storage, path: str) -> tuple[str, ...]:
    """The columns of a base file, and the dotted names of the fields in its structs."""
    with open_base(storage, path) as file:
        return tuple(column_types(file.schema_arrow))


def column_ranges(storage: Storage, path: str, columns: Collection[str]) -> dict[str, ColumnRange]:
    """The ranges of the `columns` that the file has: from its footer; from the values if the footer states none.

    Raises MissingFileError, CorruptBaseFileError.
    """
    with open_base(storage, path) as file:
        require_sound_columns(file.metadata, file.footer, f"base file {path}")
        ranges = _without_values(file.schema_arrow, columns)
        stated = {name: range_of_footer(file.metadata, name, known.arrow) for name, known in ranges.items()}
        missing = {name: known for name, known in ranges.items() if stated[name] is None}
        read = _over_all(missing, _batches(file, list(missing)))
    return {name: stated[name] or read[name] for name in ranges}


def table_ranges(storage: Storage, path: str, shape: RecordShape, columns: Collection[str]) -> dict[str, ColumnRange]:
    """The ranges of the table's `columns` that a base file has, in the types of the table, of no nested column.

    From the footer; from the values if the footer states none, or columns have changed type or name since. Raises
    MissingFileError, CorruptBaseFileError.
    """
    named = columns_in_base(shape, path)
    with open_base(storage, path) as file:
        require_sound_columns(file.metadata, file.footer, f"base file {path}")
        written = file.schema_arrow
        known = set(written.names) if named is None else named.by_name_read(dict.fromkeys(written.names), path).keys()
        fields = [f.arrow for f in table_fields(shape.schema, columns) if f.arrow.name in known]
        ranges = {
            field.name: range_of_footer(file.metadata, field.name, field.type)
            if named is None and written.field(field.name).type == field.type
            else None
            for field in fields
        }
    missing = {field.name: ColumnRange(field.type) for field in fields if ranges[field.name] is None}
    batches = read_base(storage, path, table_fields(shape.schema, list(missing)), named=named) if missing else ()
    read = _over_all(missing, batches)
    return {name: span or read[name] for name, span in ranges.items()}


def range_of_footer(footer: pq.FileMetaData, column: str, arrow: ArrowType) -> ColumnRange | None:
    """The range of a column as the statistics of its row groups state it; None if one of them does not."""
    if pa.types.is_floating(arrow) and not _knows_nan(footer):
        return None
    if pa.types.is_temporal(arrow) and LegacyCalendar.of(footer) is not None:
        return None
    chunks = stated_chunks(footer, column)
    if chunks is None:
        return None
    of_chunks = [chunk.statistics for chunk in chunks]
    raw = [end for stats in of_chunks if stats.has_min_max for end in (stats.min_raw, stats.max_raw)]
    ends = [_stated(end, arrow) for end in raw]
    if None in ends:
        return None
    values, nulls = sum(chunk.num_values for chunk in chunks), sum(stats.null_count for stats in of_chunks)
    return ColumnRange.over(arrow, ends, values, nulls)


def log_ranges(
    storage: Storage,
    logs: Sequence[tuple[str, int]],
    shape: RecordShape,
    blocks: BlockFilter,
    columns: Collection[str],
) -> dict[str, dict[str, ColumnRange]]:
    """The ranges of `columns` over the records of each log file, by its path. Deletes have no values.

    `logs` are (path, size) in reader order. All log files of a slice go together, because a block in one may roll back
    blocks of another.
    """
    empty = _without_values(pa.schema([field.arrow for field in table_fields(shape.schema)]), columns)
    ranges = {path: empty for path, _ in logs}
    for placed, part in LogCursor(storage, logs, blocks, is_strict=True).placed_parts(shape, top_level(empty)):
        if isinstance(part, DataBlock):
            ranges[placed.path] = _over_all(ranges[placed.path], [part.records])
    return ranges


def column_types(fields: pa.Schema | pa.StructType, prefix: str = "") -> dict[str, ArrowType]:
    """The columns by name, and the fields in structs by dotted name."""
    types: dict[str, ArrowType] = {}
    for field in fields:
        types[f"{prefix}{field.name}"] = field.type
        if isinstance(field.type, pa.StructType):
            types |= column_types(field.type, f"{prefix}{field.name}.")
    return types


def widened(one: ColumnRange, other: ColumnRange) -> ColumnRange:
    """The range over the values of both ranges, which are of one column."""
    ends = (one.least, one.greatest, other.least, other.greatest)
    return ColumnRange.over(one.arrow, ends, one.value_count + other.value_count, one.null_count + other.null_count)


def _without_values(schema: pa.Schema, columns: Collection[str]) -> dict[str, ColumnRange]:
    return {name: ColumnRange(kind) for name, kind in column_types(schema).items() if name in columns}


def _batches(file: OpenBaseFile, columns: list[str]) -> Iterator[pa.RecordBatch]:
    return file.batches(_BATCH_ROWS, list(top_level(columns))) if columns else iter(())


def _over_all(empty: Mapping[str, ColumnRange], batches: Iterable[pa.RecordBatch]) -> dict[str, ColumnRange]:
    """The ranges of these columns over all batches."""
    ranges = dict(empty)
    for batch in batches:
        ranges = {name: _with_values(known, column_at(batch, name)) for name, known in ranges.items()}
    return ranges


def _with_values(known: ColumnRange, column: Any) -> ColumnRange:
    has_ends = not pa.types.is_nested(known.arrow) and column.null_count < len(column)
    ends = _ends(column, known.arrow) if has_ends else ()
    return widened(known, ColumnRange.over(known.arrow, ends, len(column), column.null_count))


def _ends(column: Any, arrow: ArrowType) -> list[Any]:
    """Values that include the least and the greatest."""
    if pa.types.is_temporal(arrow):
        column = column.cast(pa.int32() if arrow.bit_width == 32 else pa.int64())
    ends: Any = pc.min_max(column).as_py()
    values = [ends["min"], ends["max"]]
    if pa.types.is_floating(arrow) and pc.any(pc.is_nan(column)).as_py():
        values.append(math.nan)  # Arrow's min_max skips it
    return values


def _knows_nan(footer: pq.FileMetaData) -> bool:
    """Whether the writer states no range of floats that include NaN. Arrow states the range of the others."""
    return (footer.created_by or "").startswith("parquet-mr")


def _stated(end: Any, arrow: ArrowType) -> Any:
    """A value of a footer's statistics as its column has it; None if it has another form, as an INT96."""
    match end:
        case bytes() if pa.types.is_string(arrow):
            try:
                return end.decode()
            except UnicodeDecodeError:
                return None
        case bytes() | int() if isinstance(arrow, pa.Decimal128Type):
            unscaled = end if isinstance(end, int) else int.from_bytes(end, "big", signed=True)
            return Decimal((int(unscaled < 0), tuple(map(int, str(abs(unscaled)))), -arrow.scale))
        case bytes() if pa.types.is_binary(arrow):
            return end
        case bool() if pa.types.is_boolean(arrow):
            return end
        case int() if pa.types.is_signed_integer(arrow) or pa.types.is_date32(arrow) or pa.types.is_timestamp(arrow):
            return end
        case float() if pa.types.is_floating(arrow):
            return end
        case _:
            return None


def _order(value: Any) -> tuple[bool, Any]:
    is_nan = isinstance(value, float) and math.isnan(value)
    return (is_nan, 0.0 if is_nan else value)


def _wrapped(value: Any, arrow: ArrowType, wrapper: str, column: str) -> Any:
    if value is None:
        return None
    match wrapper:
        case "DecimalWrapper" if isinstance(value, Decimal):
            raw: Any = _unscaled(value, _DECIMAL_WRAPPER_SCALE, column)
        case "BytesWrapper" if isinstance(value, Decimal):
            raw = _unscaled(value, arrow.scale, column)
        case "BytesWrapper" if isinstance(value, bytes):
            raw = value
        case "TimestampMicrosWrapper" | "TimeMicrosWrapper" if isinstance(
            arrow, (pa.TimestampType, pa.Time32Type, pa.Time64Type)
        ):
            raw = value * _MICROS_PER_UNIT[arrow.unit]
        case "BooleanWrapper" if isinstance(value, bool):
            raw = value
        case "IntWrapper" | "LongWrapper" | "DateWrapper" | "LocalDateWrapper" if type(value) is int:
            raw = value
        case "FloatWrapper" | "DoubleWrapper" if isinstance(value, float):
            raw = value
        case "StringWrapper" if isinstance(value, str):
            raw = value
        case _:
            raise UnsupportedTableError(
                f"column {column} of type {arrow} has statistics of kind {wrapper}, which eventide cannot continue"
            )
    return (f"{_NAMESPACE}.{wrapper}", {"value": raw})


def _unscaled(value: Decimal, scale: int, column: str) -> bytes:
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)  # an Arrow decimal is always a number
    shift = scale + exponent
    if shift < 0:
        raise UnsupportedTableError(f"column {column} has more than the {scale} places of its statistics")
    unscaled: int = int("".join(map(str, digits))) * 10**shift * (-1 if sign else 1)
    magnitude = unscaled if unscaled >= 0 else ~unscaled
    return unscaled.to_bytes(magnitude.bit_length() // 8 + 1, "big", signed=True)  # as few bytes as Java writes
