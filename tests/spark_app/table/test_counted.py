"""Sources of the kind `counts`: a window has come when the table has its share of the records that are expected."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from eventide import ConfigError, Table
from eventide.table import counted
from eventide_adapters.entry_points import Adapters
from eventide_adapters.storage.open import open_storage
from eventide_core.config import Options
from support.tables.hourly import SOON, at, made, rows
from support.values.columns import schema_of

pytestmark = pytest.mark.slow

Expected = list[tuple[float, float, int]]


def as_csv(path: Path, expected: Expected) -> str:
    lines = [f"{at(begin)},{at(end)},{records}" for begin, end, records in expected]
    (path / "expected.csv").write_text("\n".join(("begin,end,records", *lines, "")))
    return str(path / "expected.csv")


def as_json(path: Path, expected: Expected) -> str:
    rows = [{"begin": at(begin), "end": at(end), "records": records} for begin, end, records in expected]
    (path / "expected.json").write_text(json.dumps(rows))
    return str(path / "expected.json")


def as_lines(path: Path, expected: Expected) -> str:
    as_json(path, expected)
    lines = [json.dumps(row) for row in json.loads((path / "expected.json").read_text())]
    (path / "expected.jsonl").write_text("\n".join((*lines, "")))
    return str(path / "expected.jsonl")


def as_table(path: Path, expected: Expected) -> str:
    schema = schema_of(
        window=pa.string(), begin=pa.timestamp("ms", "UTC"), end=pa.timestamp("ms", "UTC"), records=pa.int64()
    )
    table = Table.create(
        str(path / "expected"), schema=schema, record_key="window", event_time="end", version=9, options=SOON
    )
    names = [str(row) for row in expected]
    begins, ends, records = zip(*((at(begin), at(end), count) for begin, end, count in expected), strict=True)
    columns: list[Any] = [names, begins, ends, records]
    table.upsert(pa.table(columns, schema=schema))
    return str(path / "expected")


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """Hours 0 and 1 are in a base file, and hour 2 waits in a log file."""
    found = made(tmp_path)
    found.upsert(rows(0.1, 0.2, 0.3, 1.1, 1.2))
    found.compact(before=at(2), cut="exact")
    found.upsert(rows(2.1, 2.2, 2.3, 2.4))
    return found


@pytest.mark.parametrize("given", [as_csv, as_json, as_lines, as_table])
def test_a_source_has_come_up_to_the_first_window_that_lacks_records(
    table: Table, tmp_path: Path, given: Callable[[Path, Expected], str]
) -> None:
    address = given(tmp_path, [(2, 3, 5), (0, 1, 3), (1, 2, 2)])
    table.sources.declare("orders", "counts", at=address)
    (source,) = table.sources
    assert (source.kind, source.progress_ms) == ("counts", at(2))
    assert "4 of 5 records (80%), which is less than 100%" in source.evidence
    table.upsert(rows(2.5))
    (source,) = table.sources
    assert source.progress_ms == at(3)
    assert "5 of 5 records (100%)" in source.evidence


def test_a_share_of_the_records_is_enough(table: Table, tmp_path: Path) -> None:
    address = as_csv(tmp_path, [(0, 1, 3), (1, 2, 2), (2, 3, 5)])
    table.sources.declare("orders", "counts", at=address, share="0.8")
    assert [one.progress_ms for one in table.sources] == [at(3)]
    assert table.freshness().held_back_by == "files"


def test_the_gate_is_held_by_counts_and_opened_by_records(table: Table, tmp_path: Path) -> None:
    table.sources.declare("orders", "counts", at=as_csv(tmp_path, [(0, 1, 4), (1, 2, 2)]))
    assert not table.freshness().has_reached(at(1))
    assert table.freshness().held_back_by == "orders"
    table.upsert(rows(0.4))
    assert not table.freshness().has_reached(at(1)), "the record waits in a log file"
    table.compact(before=at(2), cut="exact")
    assert table.freshness().has_reached(at(2))


def test_windows_close_by_the_records_that_their_view_had(table: Table, tmp_path: Path) -> None:
    """The record of hour 0 that was missing comes after the view, so no window of it is closed."""
    table.sources.declare("orders", "counts", at=as_csv(tmp_path, [(0, 1, 4), (1, 2, 2)]))
    table.upsert(rows(0.4))
    assert [one.progress_ms for one in table.sources] == [at(2)]
    assert list(table.windows("1h", "c")) == []
    table.compact(before=at(2), cut="exact")
    assert next(iter(table.windows("1h", "c"))).begin_ms == at(0)


def test_nothing_is_said_of_a_gap_and_a_window_without_records_has_come(table: Table, tmp_path: Path) -> None:
    table.sources.declare("orders", "counts", at=as_csv(tmp_path, [(-1, 0, 0), (0, 1, 3), (2, 3, 1)]))
    (source,) = table.sources
    assert source.progress_ms == at(1)
    assert "has no window from" in source.evidence


def test_a_relative_path_is_of_where_the_source_was_declared(
    table: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    as_csv(tmp_path, [(0, 1, 3), (1, 2, 2)])
    monkeypatch.chdir(tmp_path)
    table.sources.declare("orders", "counts", at="expected.csv")
    monkeypatch.chdir("/")
    assert [one.progress_ms for one in table.sources] == [at(2)]


def test_a_file_of_windows_begins_with_a_byte_order_mark(table: Table, tmp_path: Path) -> None:
    for write in (as_csv, as_json):
        file = Path(write(tmp_path, [(0, 1, 3), (1, 2, 2)]))
        file.write_text(file.read_text(), encoding="utf-8-sig")
        table.sources.declare("orders", "counts", at=str(file))
        assert [one.progress_ms for one in table.sources] == [at(2)]


def expected() -> list[dict[str, Any]]:
    return [{"begin": at(0), "end": at(1), "records": 3}, {"begin": at(1), "end": at(2), "records": 3}]


def test_a_function_that_a_package_declares_counts_and_no_other_code_is_loaded(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counted, "FUNCTIONS", Adapters("eventide.counts", {"shop": f"{__name__}:expected"}))
    table.sources.declare("orders", "counts", of="shop")
    (source,) = table.sources
    assert source.progress_ms == at(1)
    assert "2 of 3 records" in source.evidence
    for name in (f"{__name__}:expected", "os:getcwd"):
        with pytest.raises(ConfigError, match=r"no installed package declares '.*' .*; known are: shop"):
            table.sources.declare("orders", "counts", of=name)


def test_only_an_address_that_an_option_names_is_opened_with_the_options(
    table: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = list[Options]()

    def opens(uri: str, options: Options, *, what: str) -> Any:
        opened.append(options)
        return open_storage(uri, options, what=what)

    monkeypatch.setattr(counted, "open_storage", opens)
    address = as_csv(tmp_path, [(0, 1, 3)])
    table.sources.declare("orders", "counts", at=address)
    secret = {"fs.s3a.secret.key": "hunter2"}
    for more in ({}, {"eventide.source.orders.at": address}):
        assert len(list(Table.open(table.uri, {**secret, **more}).sources)) == 1
    assert ["fs.s3a.secret.key" in options.values for options in opened] == [False, True]


def test_a_row_that_moves_counts_where_it_is(table: Table, tmp_path: Path) -> None:
    moved = rows(0.1).set_column(1, rows(0.1).schema.field("ms"), pa.array([at(1.7)]))
    table.upsert(moved)
    table.sources.declare("orders", "counts", at=as_csv(tmp_path, [(0, 1, 2), (1, 2, 3)]))
    assert [one.progress_ms for one in table.sources] == [at(2)]


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("none.csv", None, "cannot be compared"),
        ("empty.csv", "begin,end,records\n", "has no window"),
        ("no_zone.csv", "begin,end,records\n2026-03-03,2026-03-04T00:00Z,3\n", "with a zone"),
        ("words.csv", "begin,end,records\n2026-03-03T00:00Z,2026-03-04T00:00Z,many\n", "is not a window"),
        ("columns.csv", "start,stop\n1,2\n", "is not a window"),
        ("back.csv", "begin,end,records\n2026-03-04T00:00Z,2026-03-03T00:00Z,3\n", "is not a window"),
        ("torn.json", '[{"begin": ', "is not JSON"),
        ("number.json", "7", "is not a window"),
    ],
)
def test_counts_that_cannot_be_read_hold_the_gate_and_say_why(
    table: Table, tmp_path: Path, name: str, text: str | None, problem: str
) -> None:
    if text is not None:
        (tmp_path / name).write_text(text)
    table.sources.declare("orders", "counts", at=str(tmp_path / name))
    (source,) = table.sources
    assert source.progress_ms is None
    assert problem in source.evidence
    assert not table.freshness().has_reached(at(1))


@pytest.mark.parametrize(
    "settings", [{}, {"at": "x.csv", "of": "shop"}, {"at": "x.csv", "share": "0"}, {"at": "x.csv", "share": "99%"}]
)
def test_settings_that_cannot_be_right_are_refused(table: Table, settings: dict[str, str]) -> None:
    with pytest.raises(ConfigError):
        table.sources.declare("orders", "counts", **settings)
    assert list(table.sources) == []
