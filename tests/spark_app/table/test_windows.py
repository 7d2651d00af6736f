"""`Table.windows`: rows, changes and days of tables of every kind."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from eventide import RefusedError, Table, UnsupportedTableError
from eventide_core.config import BUCKETS, CLOCK_SKEW_MS, EVENT_TIME_FIELD
from support.pasts import golden
from support.values.columns import schema_of

pytestmark = pytest.mark.slow

OPTIONS = {BUCKETS: "1", CLOCK_SKEW_MS: "1"}
MICROS = pa.timestamp("us", "UTC")


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def make(path: Path, kind: Any, **words: Any) -> Table:
    options = {**OPTIONS, **words.pop("options", {})}
    given = {"record_key": "id", "partition": "part", "event_time": "at", **words}
    return Table.create(
        str(path / "t"), schema=schema_of(id=pa.string(), part=pa.string(), at=kind), options=options, **given
    )


def put(table: Table, *rows: tuple[Any, ...]) -> None:
    schema = pa.schema([field for field in table.schema if not field.name.startswith("_hoodie_")])
    table.upsert(pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema=schema))


def taken(table: Table, every: str = "1h", **words: Any) -> list[tuple[str, list[str]]]:
    windows = []
    for window in table.windows(every, "c", **words):
        ids: list[Any] = window.rows().to_arrow(["id"])["id"].to_pylist()
        windows.append((f"{window.begin:%d %H}", sorted(ids)))
        window.done()
    return windows


FORMS: dict[str, tuple[Any, Any]] = {
    "timestamp": (MICROS, lambda at: at),
    "seconds": (pa.int64(), lambda at: int(at.timestamp())),
    "milliseconds": (pa.int64(), lambda at: int(at.timestamp()) * 1000),
    "double": (pa.float64(), lambda at: at.timestamp()),
    "text": (pa.string(), lambda at: at.isoformat()),
    "nested": (pa.struct([pa.field("x", MICROS)]), lambda at: {"x": at}),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("version", [6, 9])
def test_windows_of_every_form_of_event_time(form: str, version: int, tmp_path: Path) -> None:
    kind, as_value = FORMS[form]
    nested: dict[str, Any] = {"event_time": None, "ordering": "id", "options": {EVENT_TIME_FIELD: "at.x"}}
    table = make(tmp_path, kind, version=version, **(nested if form == "nested" else {}))
    put(table, ("a", "p", as_value(moment("2026-03-02T08:00"))), ("b", "q", as_value(moment("2026-03-02T08:59:59"))))
    put(table, ("c", "p", as_value(moment("2026-03-02T09:00"))), ("d", "q", as_value(moment("2026-03-02T10:30"))))
    table.compact(before="2026-03-02T10:00Z", cut="exact")
    assert taken(table) == [("02 08", ["a", "b"]), ("02 09", ["c"])]


def test_the_nights_of_the_clock_changes_make_days_of_23_and_25_hours(tmp_path: Path) -> None:
    table = make(tmp_path, MICROS)
    put(table, *((f"m{hour}", "p", moment("2026-03-28T23:00") + timedelta(hours=hour)) for hour in range(48)))
    put(table, *((f"o{hour}", "p", moment("2026-10-24T22:00") + timedelta(hours=hour)) for hour in range(48)))
    table.compact(before="2026-11-01T00:00Z", cut="exact")
    hours = {}
    for window in table.windows("1d", "days", time_zone="Europe/Berlin"):
        count = len(window.rows())
        if count:
            hours[f"{window.begin:%m-%d}"] = (count, (window.end_ms - window.begin_ms) // 3_600_000)
            assert window.begin.hour == window.end.hour == 0
        window.done()
    assert hours == {"03-29": (23, 23), "03-30": (24, 24), "03-31": (1, 24), "10-25": (25, 25), "10-26": (23, 24)}


def test_a_row_without_a_time_is_in_no_window(tmp_path: Path) -> None:
    table = make(tmp_path, MICROS, ordering="id")
    put(table, ("a", "p", moment("2026-03-02T08:00")), ("b", "p", None))
    put(table, ("c", "p", None))
    table.compact(before="2026-03-02T10:00Z", cut="exact")
    assert taken(table) == [("02 08", ["a"]), ("02 09", [])]


def test_the_changes_of_a_window_tell_apart_one_key_in_two_partitions(tmp_path: Path) -> None:
    table = make(tmp_path, MICROS)
    put(table, ("a", "p", moment("2026-03-02T08:00")), ("a", "q", moment("2026-03-02T08:01")))
    put(table, ("b", "p", moment("2026-03-02T08:02")))
    table.compact(before="2026-03-02T09:00Z")
    assert taken(table) == [("02 08", ["a", "a", "b"])]
    put(table, ("a", "q", moment("2026-03-02T08:30")))
    table.compact(before="2026-03-02T09:30Z")
    window = next(iter(table.windows("1h", "c")))
    changes = window.changes()
    assert window.is_correction
    assert changes.updated.select(["id", "part"]).to_pylist() == [{"id": "a", "part": "q"}]
    assert (changes.inserted.num_rows, changes.deleted.num_rows) == (0, 0)


def test_a_new_column_is_null_in_the_rows_that_were_there_before(tmp_path: Path) -> None:
    table = make(tmp_path, MICROS)
    put(table, ("a", "p", moment("2026-03-02T08:00")), ("b", "p", moment("2026-03-02T08:10")))
    table.compact(before="2026-03-02T09:00Z")
    assert len(taken(table)) == 1
    wider = pa.table({"id": ["a"], "part": ["p"], "at": pa.array([moment("2026-03-02T08:20")], MICROS), "fare": [2.5]})
    table.upsert(wider, schema_mode="merge")
    table.compact(before="2026-03-02T09:30Z")
    window = next(iter(table.windows("1h", "c")))
    changes = window.changes()
    assert [part.num_rows for part in changes.parts] == [0, 1, 1, 0]
    assert changes.updated["fare"].to_pylist() == [2.5]
    assert changes.outdated["fare"].to_pylist() == [None]


def test_a_window_that_is_not_done_is_not_followed_by_another(tmp_path: Path) -> None:
    table = make(tmp_path, MICROS)
    put(table, ("a", "p", moment("2026-03-02T08:00")))
    table.compact(before="2026-03-02T10:00Z")
    windows = iter(table.windows("1h", "c"))
    next(windows)
    with pytest.raises(RefusedError, match=r"call `window\.done\(\)` before the next one"):
        next(windows)


def test_since_leaves_out_what_is_earlier(tmp_path: Path) -> None:
    table = make(tmp_path, MICROS)
    put(table, ("a", "p", moment("1970-01-01T00:00")), ("b", "p", moment("2026-03-02T08:30")))
    table.compact(before="2026-03-02T09:00Z")
    assert taken(table, since="2026-03-02T08:15Z") == [("02 08", ["b"])]
    put(table, ("z", "p", moment("1999-01-01T00:00")))
    table.compact(before="2026-03-02T09:30Z")
    assert taken(table, since="2026-03-02T08:15Z") == []


def test_a_copy_on_write_table_has_no_windows(tmp_path: Path) -> None:
    table = Table.open(golden.unpack("v6_copy_on_write", tmp_path))
    with pytest.raises(UnsupportedTableError, match="a copy-on-write table has no watermark"):
        next(iter(table.windows("1h", "c")))
