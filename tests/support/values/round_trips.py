"""Each type with null, its least, greatest and empty values, and the ways on which rows leave a table and come back.

A way gives every value back as it left, or refuses the type. docs/tested_tables.md shows which (`table`).
"""

import math
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import pandas as pd
import pyarrow as pa

from eventide import Table
from eventide_core.errors import InvalidRecordError
from support.run.command_line import run

Move = Callable[[Table, Table, list[str]], Any]
"""Takes the rows of the first table, with these columns, into the second."""

FLOATS: Final = [0.5, -0.0, math.nan, math.inf, -math.inf]
MOMENT: Final = datetime(2026, 11, 28, 12, 30, 0, 1000, UTC)
BEYOND_PYTHON: Final = [-62_135_596_800_000_001, 253_402_300_800_000_000, -(2**63), 2**63 - 1]
"""The moments beside the years 1 to 9999, and the least and greatest."""
VALUES: Final[dict[str, tuple[Any, list[Any]]]] = {
    "an_int": (pa.int32(), [-(2**31), 2**31 - 1, 0]),
    "a_long": (pa.int64(), [-(2**63), 2**63 - 1, 2**53 + 1]),
    "a_float": (pa.float32(), [-3.4028234663852886e38, 1.401298464324817e-45, *FLOATS]),
    "a_double": (pa.float64(), [-1.7976931348623157e308, 5e-324, 0.1, *FLOATS]),
    "a_text": (pa.string(), ["", "NaN", "null", ' a,b\n"c" ', "007", "é😀", "2026-01-01", "\\"]),
    "a_boolean": (pa.bool_(), [True, False]),
    "a_binary": (pa.binary(), [b"", b"\x00\xff", b"abcd"]),
    "a_date": (pa.date32(), [date(1, 1, 1), date(9999, 12, 31)]),
    "micros": (pa.timestamp("us", "UTC"), [datetime(1, 1, 1, tzinfo=UTC), datetime.max.replace(tzinfo=UTC), MOMENT]),
    "millis": (pa.timestamp("ms", "UTC"), [datetime(1, 1, 1, tzinfo=UTC), MOMENT]),
    "local": (pa.timestamp("us"), [MOMENT.replace(tzinfo=None, year=year) for year in (1, 9999)]),
    "far_days": (pa.date32(), [-719_163, 2_932_897, -(2**31), 2**31 - 1]),
    "far_micros": (pa.timestamp("us", "UTC"), BEYOND_PYTHON),
    "far_local": (pa.timestamp("us"), BEYOND_PYTHON),
    "a_decimal": (pa.decimal128(38, 2), [Decimal("-" + "9" * 36 + ".99"), Decimal("9" * 36 + ".99"), Decimal("0.00")]),
    "a_list": (pa.list_(pa.int64()), [[], [1, None]]),
    "doubles": (pa.list_(pa.float64()), [[], FLOATS]),
    "texts": (pa.list_(pa.string()), [[], ["NaN", "", None]]),
    "moments": (pa.list_(pa.timestamp("us", "UTC")), [[], [MOMENT]]),
    "a_struct": (
        pa.struct([("a", pa.int64()), ("b", pa.string()), ("c", pa.float64()), ("d", pa.decimal128(38, 2))]),
        [
            {"a": 1, "b": "", "c": math.inf, "d": Decimal("9" * 36 + ".99")},
            {"a": None, "b": None, "c": None, "d": None},
        ],
    ),
    "binaries": (pa.list_(pa.binary()), [[], [b"\xff"]]),
    "a_map": (pa.map_(pa.string(), pa.float64()), [[], [("k", 1.5), ("NaN", math.nan)]]),
}
FAR: Final = ("far_days", "far_micros", "far_local")
REFUSED: Final[dict[str, set[str]]] = {
    "csv": {"a_list", "doubles", "texts", "moments", "a_struct", "binaries", "a_map", *FAR},
    "json": {"binaries", "a_map", *FAR},
    "parquet": set(),
}


def _by_file(kind: str) -> Move:
    def move(left: Table, into: Table, columns: list[str]) -> None:
        file = Path(into.uri).parent / f"rows.{kind}"
        for words in (("read", left.uri, "--to", file, "--columns", ",".join(columns)), ("ingest", into.uri, file)):
            answer = run(*words)
            if answer.exit_code:
                raise InvalidRecordError(answer.stderr)

    return move


MOVES: Final[dict[str, Move]] = {
    "arrow": lambda left, into, columns: into.upsert(left.snapshot().to_arrow(columns)),
    "pandas": lambda left, into, columns: into.upsert(left.snapshot().to_pandas(columns, types_mapper=pd.ArrowDtype)),
    "polars": lambda left, into, columns: into.upsert(left.snapshot().to_polars(columns)),
    **{kind: _by_file(kind) for kind in REFUSED},
}


BY_SPARK: Final = ("to_spark", "eventide", "stream")
"""`to_spark` into an upsert, and `format("eventide")` read and written, as a batch and as a stream."""


def two_tables(path: Path, names: list[str]) -> tuple[Table, Table]:
    """A table with the values of these columns, and an empty one of the same columns."""
    fields: list[Any] = [pa.field("id", pa.string()), *(pa.field(name, VALUES[name][0]) for name in names)]
    schema, height = pa.schema(fields), 1 + max(len(VALUES[name][1]) for name in names)
    columns = [pa.array([f"k{row:02}" for row in range(height)])]
    for name in names:
        kind, values = VALUES[name]
        columns.append(pa.array([None, *values, *[None] * (height - len(values) - 1)], kind))
    left, into = (Table.create(str(path / name), schema=schema, record_key="id") for name in ("left", "into"))
    left.insert(pa.table(columns, schema=schema))
    return left, into


def content(table: Table, names: list[str]) -> dict[str, list[str]]:
    rows = table.snapshot().to_arrow(["id", *names]).sort_by("id")
    return {name: [repr(value) for value in _readable(rows.column(name))] for name in rows.column_names}


def _readable(column: Any) -> list[Any]:
    """The values; times as numbers, because Python has none beside the years 1 to 9999."""
    number = {pa.date32(): pa.int32()}.get(column.type, pa.int64() if pa.types.is_timestamp(column.type) else None)
    values: list[Any] = (column if number is None else column.cast(number)).to_pylist()
    return values


def table() -> Iterator[str]:
    """What comes back by which way, in Markdown."""
    ways = (*MOVES, *BY_SPARK)
    yield f"| type | values beside null | {' | '.join(ways)} |"
    yield f"|---|---|{'---|' * len(ways)}"
    for name, (kind, values) in VALUES.items():
        cells = ["refused" if name in REFUSED.get(way, ()) else "same" for way in ways]
        yield f"| {str(kind).replace('|', '/')} | {len(values)} | {' | '.join(cells)} |"
