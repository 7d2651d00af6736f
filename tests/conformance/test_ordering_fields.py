"""Ordering and event-time fields of every type that Hudi orders by, in columns and in records: all read them alike.

Hudi writes a table of each kind, of which eventide compacts a part; Hudi reads it as before, and continues it. And
eventide compacts a twin in full, as Hudi does another. Both write to twins of the table.
"""

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from eventide import Table
from eventide_core.config import BUCKETS
from eventide_core.errors import format_timestamp
from support.judge import HudiJudge
from support.judge.deeds import Statements, Write, call_of, pairs
from support.judge.hudi_judge import Query, Question
from support.judge.options import (
    BUCKET_INDEX,
    DEFAULT_PAYLOAD,
    EVENT_TIME_ORDERING,
    MERGE_ON_READ,
    NO_METADATA_TABLE,
    table_name,
    table_version,
)

NOON_MS = 1_700_000_000_000
SHOWN = ("id", "seq")
T, LATER = 3, 4
"""Steps of time: the compaction is before the first, and the last log lies at and after it."""
Columns = Mapping[str, pa.DataType]


@dataclass(frozen=True, slots=True)
class Kind:
    """`values` are the columns' values at a step of time, in the order of the ordering fields; `ms` the event time."""

    columns: Columns
    values: Callable[[int], Mapping[str, Any]]
    ms: Callable[[int], int]
    fields: str = "at"


def seconds(step: int) -> int:
    return NOON_MS + 1000 * step


LAST = datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)
BEFORE_1970 = datetime(1901, 12, 13, 20, 45, 52, tzinfo=UTC)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

KINDS = {
    "seconds": Kind({"at": pa.int64()}, lambda step: {"at": seconds(step) // 1000}, seconds),
    "nanoseconds": Kind({"at": pa.int64()}, lambda step: {"at": seconds(step) * 10**6 + step}, seconds),
    "double": Kind(
        {"at": pa.float64()}, lambda step: {"at": seconds(0) / 1000 + step / 8}, lambda s: NOON_MS + 125 * s
    ),
    "decimal": Kind({"at": pa.decimal128(20, 3)}, lambda step: {"at": Decimal(seconds(step)) / 1000}, seconds),
    "text": Kind(
        {"at": pa.string()}, lambda step: {"at": f"2023-11-14T22:1{step}:20Z"}, lambda s: NOON_MS + 60_000 * (s - 3)
    ),
    "day": Kind(
        {"at": pa.date32()}, lambda step: {"at": date(1969, 12, 29) + timedelta(step)}, lambda s: (s - 3) * 86_400_000
    ),
    "before 1970": Kind(
        {"at": pa.timestamp("us", "UTC")},
        lambda step: {"at": BEFORE_1970 + timedelta(seconds=step)},
        lambda step: (BEFORE_1970 - EPOCH) // timedelta(milliseconds=1) + 1000 * step,
    ),
    "year 9999": Kind(
        {"at": pa.timestamp("us", "UTC")},
        lambda step: {"at": LAST - timedelta(seconds=LATER + 1 - step)},
        lambda step: (LAST - EPOCH) // timedelta(milliseconds=1) - 1000 * (LATER + 1 - step),
    ),
    "field of a record": Kind(
        {"a": pa.struct([pa.field("b", pa.timestamp("us", "UTC"))])},
        lambda step: {"a": {"b": EPOCH + timedelta(milliseconds=seconds(step))}},
        seconds,
        "a.b",
    ),
    "several": Kind(
        {"a": pa.struct([pa.field("b", pa.float64()), pa.field("name", pa.string())]), "at": pa.decimal128(20, 3)},
        lambda step: {"a": {"b": seconds(step - step % 2) / 1000, "name": "x"}, "at": Decimal(step)},
        lambda step: seconds(step - step % 2),
        "a.b,at",
    ),
}
BY_SEVERAL = {name for name, kind in KINDS.items() if "," in kind.fields}
OF_RECORDS = {name for name, kind in KINDS.items() if "." in kind.fields}

HISTORY: Sequence[tuple[str, Mapping[str, int]]] = (
    ("bulk_insert", {"equal": 1, "late": 2, "newer": 1, "gone": 1, "old": 0}),
    ("upsert", {"equal": 1, "late": 1, "newer": 2, "log": 2, "log_late": 2}),
    ("delete", {"gone": 2}),
    ("upsert", {"log": 2, "log_late": 1, "again": 1}),
    ("upsert", {"newer": LATER, "new": LATER, "again": T + 1}),
)
WRITTEN = {"newer": T, "late": 2, "equal": 1, "written": 2, "again": LATER}
DELETED = {"log": 0, "again": 0}
AFTERWARDS = {"newer": 2, "late": LATER, "log": 1, "last": 0, "gone": 0}


def rows(kind: Kind, steps: Mapping[str, int], commit: int) -> pa.Table:
    schema = pa.schema({"id": pa.string(), "part": pa.string(), **kind.columns, "seq": pa.int64()})
    found = [{"id": key, "part": "p", **kind.values(step), "seq": commit} for key, step in steps.items()]
    return pa.Table.from_pylist(found, schema=schema)


def options_of(kind: Kind, name: str, more: Mapping[str, str]) -> dict[str, str]:
    fields = ("hoodie.datasource.write.precombine.field", "hoodie.payload.ordering.field")
    event_time = {"hoodie.payload.event.time.field": kind.fields.partition(",")[0]}
    one_bucket = BUCKET_INDEX | {"hoodie.bucket.index.num.buckets": "1"}
    made = MERGE_ON_READ | one_bucket | NO_METADATA_TABLE | table_name(name.replace(" ", "_"))
    return {**made, **dict.fromkeys(fields, kind.fields), **event_time, **more}


def ask(judge: HudiJudge, paths: Sequence[Path], query: Query = "snapshot") -> list[list[tuple[Any, ...]]]:
    return [in_order(found) for found in judge.ask([Question(path, query) for path in paths], SHOWN)]


def in_order(found: pa.Table) -> list[tuple[Any, ...]]:
    return sorted(tuple(row[name] for name in SHOWN) for row in found.to_pylist())


def shown(table: Table) -> list[tuple[Any, ...]]:
    return in_order(table.snapshot().to_arrow())


def hold_alike(judge: HudiJudge, directory: Path, names: Sequence[str], more: Mapping[str, str]) -> None:
    paths = [directory / name.replace(" ", "_") for name in names]
    kinds = [KINDS[name] for name in names]
    options = [options_of(kind, name, more) for kind, name in zip(kinds, names, strict=True)]

    def write(number: int, operation: str, steps: Mapping[str, int]) -> None:
        deeds = [
            [Write(path, rows(kind, steps, number), own, operation)]
            for path, kind, own in zip(paths, kinds, options, strict=True)
        ]
        assert judge.together(deeds) == [None] * len(paths)

    for number, (operation, steps) in enumerate(HISTORY):
        write(number, operation, steps)
    expected = ask(judge, paths)
    full, stock = ([path.with_name(f"{path.name}_{who}") for path in paths] for who in ("full", "stock"))
    for path, *copies in zip(paths, full, stock, strict=True):
        for copy in copies:
            shutil.copytree(path, copy)
    for name, kind, path, whole, rows_of_hudi in zip(names, kinds, paths, full, expected, strict=True):
        table = Table.open(str(path))
        assert shown(table) == rows_of_hudi, name
        result = table.compact(before=format_timestamp(kind.ms(T)), link_mode="copy")
        assert result.metrics["log_files_linked"] == 1, name
        assert result.freshness.watermark_ms == kind.ms(T), name
        assert shown(table) == rows_of_hudi, name
        assert table.verify(deep=True).ok, name
        Table.open(str(whole)).compact(before=format_timestamp(kind.ms(LATER) + 1))
    assert ask(judge, paths) == expected
    calls = [_compaction(path, own) for path, own in zip(stock, options, strict=True)]
    assert judge.together([[call] for call in calls]) == [None] * len(calls)
    assert ask(judge, full, "read_optimized") == ask(judge, stock, "read_optimized") == expected
    write(len(HISTORY), "upsert", AFTERWARDS)
    assert [shown(Table.open(str(path))) for path in paths] == ask(judge, paths)
    write_as_hudi_does(judge, dict(zip(paths, kinds, strict=True)), dict(zip(paths, options, strict=True)))


def write_as_hudi_does(judge: HudiJudge, kinds: Mapping[Path, Kind], options: Mapping[Path, Mapping[str, str]]) -> None:
    """eventide writes to the tables, Hudi writes the same to their twins, and Hudi reads the same rows of both."""
    twins = {path: path.with_name(f"{path.name}_twin") for path in kinds}
    number = len(HISTORY) + 1
    for path, twin in twins.items():
        shutil.copytree(path, twin)
        table = Table.open(str(path), {BUCKETS: "1"})
        table.upsert(rows(kinds[path], WRITTEN, number))
        # The operation of Hudi deletes whatever the ordering value is, as eventide deletes by keys alone.
        table.delete(rows(kinds[path], DELETED, number).select(["id", "part"]))
    for operation, steps in (("upsert", WRITTEN), ("delete", DELETED)):
        deeds = [[Write(twin, rows(kinds[p], steps, number), options[p], operation)] for p, twin in twins.items()]
        assert judge.together(deeds) == [None] * len(deeds)
    expected = ask(judge, list(twins.values()))
    assert ask(judge, list(twins)) == expected
    assert [shown(Table.open(str(path))) for path in twins] == expected
    assert all(Table.open(str(path)).verify(deep=True).ok for path in twins)


def _compaction(path: Path, options: Mapping[str, str]) -> Statements:
    names = ("hoodie.payload.ordering.field", "hoodie.payload.event.time.field")
    given = {key: options[key] for key in names if "," not in options[key]}  # a comma ends an option of a procedure
    own = pairs({**given, "hoodie.compact.inline.max.delta.commits": "1"})
    return Statements((call_of("run_compaction", op="scheduleAndExecute", path=path, options=own),))


@pytest.mark.broad
def test_a_double_in_a_record_and_a_decimal(tmp_path: Path, judge_111: HudiJudge) -> None:
    hold_alike(judge_111, tmp_path, ["several"], EVENT_TIME_ORDERING | table_version(9))


@pytest.mark.proof
@pytest.mark.parametrize("version", [6, 9])
def test_fields_of_all_types(version: int, tmp_path: Path, judge_111: HudiJudge) -> None:
    hold_alike(judge_111, tmp_path, list(KINDS), EVENT_TIME_ORDERING | table_version(version))


@pytest.mark.proof
def test_fields_of_all_types_in_version_8(tmp_path: Path, judge_102: HudiJudge) -> None:
    names = [name for name in KINDS if name not in BY_SEVERAL]
    hold_alike(judge_102, tmp_path, names, EVENT_TIME_ORDERING | table_version(8))


@pytest.mark.proof
def test_fields_of_all_types_in_hudi_0_15(tmp_path: Path, judge_015: HudiJudge) -> None:
    names = [name for name in KINDS if name not in BY_SEVERAL | OF_RECORDS]
    hold_alike(judge_015, tmp_path, names, DEFAULT_PAYLOAD)


@pytest.mark.proof
def test_fields_of_all_types_in_hudi_1_2(tmp_path: Path, judge_120: HudiJudge) -> None:
    hold_alike(judge_120, tmp_path, list(KINDS), EVENT_TIME_ORDERING | table_version(9))
