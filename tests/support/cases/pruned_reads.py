"""Compares Hudi's filtered reads that prune files by the metadata table with reads that prune nothing."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

from support.judge import HudiJudge

BY_LISTING = {"hoodie.metadata.enable": "false", "hoodie.enable.data.skipping": "false"}
_SHOWN = ("id", "part", "event_ts", "val", "amount")
_FILTERS_AT_ONCE = 12


def check_pruned_reads(
    judge: HudiJudge, path: Path, schema: pa.Schema, pruning: Mapping[str, str], *, not_by_point: Sequence[str] = ()
) -> int:
    """Checks that every filter returns the same rows whether Hudi prunes or reads all. Returns the number of filters.

    Tries ranges and points of every column that Hudi can filter by; only ranges of `not_by_point`.
    """
    _view(judge, "pruned", path, {**pruning, "hoodie.enable.data.skipping": "true"})
    _view(judge, "all_of_it", path, BY_LISTING)
    conditions = _conditions(judge.sql("select * from all_of_it"), schema, not_by_point)
    truths = ", ".join(f"({condition}) as c{number}" for number, condition in enumerate(conditions))
    shown = ", ".join(_SHOWN)
    expected = judge.sql(f"select {shown}, {truths} from all_of_it").to_pylist()
    for start in range(0, len(conditions), _FILTERS_AT_ONCE):
        several = range(start, min(start + _FILTERS_AT_ONCE, len(conditions)))
        queries = (f"select {number} as c, {shown} from pruned where {conditions[number]}" for number in several)
        found = judge.sql(" union all ".join(queries)).to_pylist()
        for number in several:
            rows = Counter(_row(row) for row in found if row["c"] == number)
            assert rows == Counter(_row(row) for row in expected if row[f"c{number}"]), conditions[number]
    return len(conditions)


def _conditions(everything: pa.Table, schema: pa.Schema, not_by_point: Sequence[str]) -> list[str]:
    found: list[str] = []
    for column in schema:
        # Hudi 1.x fails to prune by a binary column.
        if pa.types.is_nested(column.type) or pa.types.is_binary(column.type):
            continue
        name = column.name
        values = sorted({value for value in everything.column(name).to_pylist() if value is not None})
        found += [f"{name} <= {_literal(values[0])}", f"{name} >= {_literal(values[-1])}"]
        low, high = (_literal(values[len(values) * share // 10]) for share in (2, 9))
        found.append(f"{name} > {low} and {name} <= {high}" if name in not_by_point else f"{name} = {high}")
    return found


def _view(judge: HudiJudge, name: str, path: Path, options: Mapping[str, str]) -> None:
    pairs = ", ".join(f"'{key}' '{value}'" for key, value in {"path": str(path), **options}.items())
    judge.sql(f"create or replace temporary view {name} using hudi options ({pairs})")


def _row(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in _SHOWN)


def _literal(value: Any) -> str:
    match value:
        case bool():
            return str(value).lower()
        case str():
            return f"'{value}'"
        case Decimal():
            return f"cast({value} as decimal(10,2))"
        case datetime():
            return f"timestamp'{value:%Y-%m-%d %H:%M:%S.%f} UTC'"
        case date():
            return f"date'{value}'"
        case _:
            return repr(value)
