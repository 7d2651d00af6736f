"""Table.update: new values for the rows that a condition keeps."""

from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from eventide import (
    ConfigError,
    InvalidFilterError,
    InvalidRecordError,
    Table,
    UnsupportedTableError,
    WriteConflictError,
)
from eventide.rows.reader import Rows
from support.tables.append import ROWS, START_MS, filled, rows, seen
from support.values.columns import schema_of

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("version", [6, 8, 9])
@pytest.mark.parametrize("index", ["BUCKET", "SIMPLE"])
def test_an_update_sets_columns_of_the_rows_that_a_condition_keeps(version: int, index: str, tmp_path: Path) -> None:
    table = filled(tmp_path / "t", version, index=index)
    result = table.update({"word": "upper(word) || '!'"}, "ms >= 1700000000020")
    assert (result.rows_inserted, result.rows_updated, result.rows_deleted, result.rows) == (0, 2, 0, 2)
    assert seen(table) == [("k0", "a", 10, "zero"), ("k1", "a", 20, "ONE!"), ("k2", "b", 30, "TWO!")]
    table.compact(before=START_MS + 25, cut="exact")
    table.update({"word": "'again'"}, where="word <> 'zero'")
    table.compact(data_latency_seconds=0)
    expected = [("k0", "a", 10, "zero"), ("k1", "a", 20, "again"), ("k2", "b", 30, "again")]
    assert seen(table) == expected
    assert [row["word"] for row in table.read_optimized().to_arrow().sort_by("id").to_pylist()] == [
        w for *_, w in expected
    ]


def test_an_update_moves_an_event_time_that_it_names(tmp_path: Path) -> None:
    table = filled(tmp_path / "t")
    table.update({"ms": "ms + 5", "word": "'later'"}, "id = 'k1'")
    assert seen(table)[1] == ("k1", "a", 25, "later")
    with pytest.raises(InvalidRecordError, match=r"id='k1', part='a' less than it is \(ms\).*no effect"):
        table.update({"ms": "ms - 1"}, "id = 'k1'")
    assert seen(table)[1] == ("k1", "a", 25, "later")


def test_an_update_that_keeps_no_row_changes_nothing(tmp_path: Path) -> None:
    table = filled(tmp_path / "t")
    assert table.update({"word": "'x'"}, "id = 'none'").rows_updated == 0
    assert seen(table) == sorted(ROWS)


@pytest.mark.parametrize(
    ("values", "error", "message"),
    [
        ({"id": "'k9'"}, ConfigError, "'id' is of the record key or the partition"),
        ({"part": "'z'", "word": "'x'"}, ConfigError, "'part' is of the record key or the partition"),
        ({"wrd": "'x'"}, ConfigError, "no column 'wrd'; it has id, part, ms, word"),
        ({}, ConfigError, "set is empty"),
        ({"word": "frobnicate(word)"}, InvalidFilterError, "FROBNICATE"),
        ({"word": "nothing"}, InvalidFilterError, "no column 'nothing'"),
        ({"word": "word ||"}, InvalidFilterError, "cannot be read"),
        ({"ms": "'soon'"}, InvalidFilterError, "is not a value of the column 'ms', which is of type int64"),
        ({"ms": object()}, InvalidFilterError, "is not a value of column 'ms'"),
        ({"ms": 2.5}, InvalidFilterError, "2.5 is not a value of column 'ms'.*it would become 2"),
        ({"ms": Decimal("2.5")}, InvalidFilterError, "is not a value of column 'ms'.*it would become 2"),
        ({"ms": "ms / 0"}, InvalidRecordError, "'ms'.*divide by zero"),
        ({"ms": "ms * 1.1111"}, InvalidRecordError, "'ms'.*truncated"),
        ({"ms": "ms * 9223372036854775807"}, InvalidRecordError, "'ms'.*overflow"),
        ({"ms": "null"}, InvalidRecordError, "'ms' is null"),
    ],
)
def test_a_value_that_cannot_be_is_refused_by_name(
    values: dict[str, Any], error: type[Exception], message: str, tmp_path: Path
) -> None:
    table = filled(tmp_path / "t")
    with pytest.raises(error, match=message):
        table.update(values, all=True)
    assert seen(table) == sorted(ROWS)


def test_an_event_time_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    schema = schema_of(id=pa.string(), at=pa.string())
    table = Table.create(tmp_path / "t", schema=schema, record_key="id", event_time="at")
    table.upsert(pa.Table.from_pylist([{"id": "k", "at": "2026-01-01T00:00Z"}], schema=schema))
    with pytest.raises(InvalidRecordError, match="'soon' in column 'at' cannot be read"):
        table.update({"at": "'soon'"}, all=True)


@pytest.mark.parametrize("index", ["BUCKET", "SIMPLE"])
@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize("change", ["upsert", "delete", "delete and compact", "overwrite", "rollback"])
def test_another_writer_in_between_is_a_conflict_and_loses_nothing(
    change: str, version: int, index: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = filled(tmp_path / "t", version, index=index)
    last = table.upsert(rows(("k1", "a", 20, "uno")))
    read = Rows.to_arrow

    def beside_a_writer(self: Rows, *words: Any) -> pa.Table:
        chosen = read(self, *words)
        monkeypatch.undo()
        match change:
            case "upsert":
                table.upsert(rows(("k1", "a", 40, "theirs")))
            case "overwrite":
                table.insert_overwrite(rows(("k9", "a", 40, "theirs")))
            case "rollback":
                table.rollback(last.instant)
            case _:
                table.delete(rows(ROWS[1]).select(["id", "part"]))
                if change == "delete and compact":
                    table.compact(data_latency_seconds=0)
        return chosen

    monkeypatch.setattr(Rows, "to_arrow", beside_a_writer)
    with pytest.raises(WriteConflictError, match=r"in the meantime.*write again"):
        table.update({"word": "'mine'"}, "id = 'k1'")
    theirs = {
        "upsert": [ROWS[0], ("k1", "a", 40, "theirs"), ROWS[2]],
        "overwrite": [ROWS[2], ("k9", "a", 40, "theirs")],
        "rollback": list(ROWS),
    }
    assert seen(table) == sorted(theirs.get(change, [ROWS[0], ROWS[2]]))
    table.update({"word": "'mine'"}, "id = 'k2'")
    assert ("k2", "b", 30, "mine") in seen(table)


def test_a_table_that_merges_versions_itself_is_refused(tmp_path: Path) -> None:
    table = filled(tmp_path / "t")
    properties = tmp_path / "t" / ".hoodie" / "hoodie.properties"
    properties.write_text(properties.read_text() + "hoodie.table.partial.update.mode=IGNORE_DEFAULTS\n")
    with pytest.raises(UnsupportedTableError, match="upsert the rows instead"):
        table.update({"word": "'x'"}, all=True)


MOMENT = datetime.fromisoformat("2026-03-02T08:30:00.123456")
CUT: dict[str, tuple[str, Any]] = {
    "a scalar of time for a date": ("day", pa.scalar(MOMENT)),
    "a datetime for a date": ("day", MOMENT),
    "a column of times for a date": ("day", "at"),
    "a scalar of microseconds": ("ms_at", pa.scalar(MOMENT)),
    "a datetime of microseconds": ("ms_at", MOMENT),
    "a scalar of time for a number": ("n", pa.scalar(MOMENT)),
    "a number for a time": ("at", pa.scalar(1_700_000_000_000)),
    "a fraction in a list": ("numbers", [1, 2.5]),
}


@pytest.mark.parametrize("case", CUT)
def test_a_value_of_which_a_part_would_be_lost_is_refused(case: str, tmp_path: Path) -> None:
    columns: list[pa.Field[Any]] = [
        pa.field("id", pa.string()),
        pa.field("n", pa.int64()),
        pa.field("day", pa.date32()),
        pa.field("at", pa.timestamp("us")),
        pa.field("ms_at", pa.timestamp("ms")),
        pa.field("numbers", pa.list_(pa.int64())),
    ]
    table = Table.create(str(tmp_path / "t"), schema=pa.schema(columns), record_key="id", ordering="n")
    row = {"id": "a", "n": 1, "day": MOMENT.date(), "at": MOMENT, "ms_at": None, "numbers": [1]}
    table.upsert(pa.Table.from_pylist([row], schema=pa.schema(columns)))
    name, value = CUT[case]
    with pytest.raises((InvalidFilterError, InvalidRecordError), match=name):
        table.update({name: value}, all=True)
    if name == "day":
        with pytest.raises(InvalidRecordError, match=r"'day'.*time of day would be lost"):
            table.upsert(pa.table({**{key: [row[key]] for key in row}, "day": [MOMENT]}))
        midnight = datetime.fromisoformat("2026-03-03")
        table.update({"day": pa.scalar(midnight)}, all=True)
        table.upsert(pa.table({**{key: [row[key]] for key in row}, "n": [2], "day": [midnight]}))
        assert table.snapshot().to_arrow(["day"])["day"].to_pylist() == [midnight.date()]


@pytest.mark.parametrize(("where", "is_all"), [(None, False), ("id = 'k1'", True)])
def test_an_update_names_its_rows_or_asks_for_all_of_them(where: str | None, is_all: bool, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="`all=True` for every row"):
        filled(tmp_path / "t").update({"word": "'x'"}, where, all=is_all)
