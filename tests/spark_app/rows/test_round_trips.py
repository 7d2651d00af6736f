"""What leaves a table comes back as it left, or is refused: each type with null, its least, greatest and empty values."""

import math
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import pandas as pd
import pyarrow as pa
import pytest

from eventide import Table
from eventide_core.errors import InvalidRecordError
from support.command_line import run, run_json

FLOATS: Final = [0.5, -0.0, math.nan, math.inf, -math.inf]
MOMENT: Final = datetime(2026, 11, 28, 12, 30, 0, 1000, UTC)
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
REFUSED: Final = {
    "csv": {"a_list", "doubles", "texts", "moments", "a_struct", "binaries", "a_map"},
    "json": {"binaries", "a_map"},
    "parquet": set[str](),
}


def _by_file(kind: str) -> Callable[[Table, Table, list[str]], None]:
    def move(left: Table, into: Table, columns: list[str]) -> None:
        file = Path(into.uri).parent / f"rows.{kind}"
        run_json("read", left.uri, "--to", file, "--columns", ",".join(columns))
        answer = run("ingest", into.uri, file)
        if answer.exit_code:
            raise InvalidRecordError(answer.stderr)

    return move


MOVES: Final[dict[str, Callable[[Table, Table, list[str]], Any]]] = {
    "arrow": lambda left, into, columns: into.upsert(left.snapshot().to_arrow(columns)),
    "pandas": lambda left, into, columns: into.upsert(left.snapshot().to_pandas(columns, types_mapper=pd.ArrowDtype)),
    "polars": lambda left, into, columns: into.upsert(left.snapshot().to_polars(columns)),
    **{kind: _by_file(kind) for kind in REFUSED},
}


def _tables(path: Path, names: list[str]) -> tuple[Table, Table]:
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


def _content(table: Table, names: list[str]) -> dict[str, list[str]]:
    rows = table.snapshot().to_arrow(["id", *names]).sort_by("id")
    return {name: [repr(value) for value in rows.column(name).to_pylist()] for name in rows.column_names}


@pytest.mark.parametrize("way", MOVES)
def test_every_value_comes_back_as_it_left(tmp_path: Path, way: str) -> None:
    names = [name for name in VALUES if name not in REFUSED.get(way, ())]
    left, into = _tables(tmp_path, names)
    MOVES[way](left, into, ["id", *names])
    assert _content(into, names) == _content(left, names)


@pytest.mark.parametrize(("way", "name"), [(way, name) for way, names in REFUSED.items() for name in sorted(names)])
def test_a_type_that_a_format_cannot_give_back_is_refused(tmp_path: Path, way: str, name: str) -> None:
    left, into = _tables(tmp_path, [name])
    with pytest.raises(InvalidRecordError, match=f"column '{name}' is of type|JSON conversion to map.*use Parquet"):
        MOVES[way](left, into, ["id", name])
    assert not len(into.snapshot().to_arrow())


@pytest.mark.parametrize("kind", ["json", "csv"])
def test_a_text_that_is_no_base64_is_refused_in_a_column_of_bytes(tmp_path: Path, kind: str) -> None:
    _, into = _tables(tmp_path, ["a_binary"])
    file = tmp_path / f"x.{kind}"
    file.write_text("id,a_binary\na,YQ==\nb,a b\n" if kind == "csv" else '{"id": "a", "a_binary": "a b"}\n')
    answer = run("ingest", into.uri, file)
    assert answer.exit_code == 2
    assert "column 'a_binary': 'a b' is no binary in base64" in answer.stderr


def test_an_empty_map_is_an_object_of_json(tmp_path: Path) -> None:
    left, _ = _tables(tmp_path, ["a_map"])
    rows = run_json("read", left.uri, "--all", "--columns", "a_map")["data"]
    assert sorted(map(str, rows)) == ["{'a_map': None}", "{'a_map': {'k': 1.5, 'NaN': 'NaN'}}", "{'a_map': {}}"]
