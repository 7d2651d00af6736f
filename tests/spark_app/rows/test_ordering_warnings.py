"""An ordering field whose values merge otherwise than they read: a write says so."""

import warnings
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from eventide import Table
from eventide.rows.ordering_warnings import OrderingWarning, by_letters, epochs
from support.run.command_line import run

SCHEMA = pa.schema({"id": pa.string(), "seq": pa.string()})


@pytest.mark.parametrize(
    ("values", "holds"),
    [
        (["9", "10"], "numbers"),
        (["1.5", "10.25"], "numbers"),
        (["2026-11-20T00:00:00Z", "2026-11-20T01:00:00+02:00"], "times"),
        (["2026-11-20 00:00:00", "2026-11-19T00:00:00"], "times"),
        (["11/20/2026 03:00", "01/02/2027 04:00"], "times"),
        (["09", "10"], None),
        (["2026-11-20", "2026-11-21"], None),
        (["2026-11-20T00:00:00Z", None, "2026-11-21T00:00:00Z"], None),
        (["a9", "a10"], None),
        (["9", "x"], None),
        ([None], None),
    ],
)
def test_only_texts_whose_letters_order_otherwise_are_named(values: list[str | None], holds: str | None) -> None:
    sentence = by_letters(pa.table({"seq": pa.array(values, pa.string())}), ["seq"])
    assert (sentence is None) == (holds is None), sentence
    if sentence is not None and holds is not None:
        assert f"'seq' is a text that holds {holds}" in sentence


def test_the_first_write_warns_and_later_ones_do_not(tmp_path: Path) -> None:
    table = Table.create(str(tmp_path / "t"), schema=SCHEMA, record_key="id", ordering="seq")
    rows = pa.table({"id": ["a", "b"], "seq": ["9", "10"]}, schema=SCHEMA)
    with pytest.warns(OrderingWarning, match="of '9' and '10', '9' wins; make the table with a column") as told:
        table.upsert(rows)
    assert told[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table.upsert(rows)


def test_ingest_warns_when_it_makes_such_a_table(tmp_path: Path) -> None:
    source = tmp_path / "rows.jsonl"
    source.write_text('{"id": "a", "seq": "9"}\n{"id": "b", "seq": "10"}\n')
    words = ("ingest", tmp_path / "t", source, "--create", "--record-key", "id", "--ordering", "seq")
    made = run(*words)
    assert made.exit_code == 0, made.stderr
    assert "warning: the ordering field 'seq' is a text that holds numbers" in made.stderr
    assert "warning" not in run(*words).stderr


SECONDS, MILLIS, MICROS, NANOS = (1_764_327_600 * 1000**power for power in range(4))
NUMBERS = pa.table({"id": ["a"], "at": [MILLIS]}).schema


@pytest.mark.parametrize(
    ("values", "units"),
    [
        ([SECONDS, None, MILLIS], [10, 13]),
        ([MILLIS, MICROS, NANOS], [13, 16, 19]),
        ([MILLIS, 7, 0, -1], [13]),
        ([1, 10**11], []),
        ([10**17], []),
        ([None], []),
    ],
)
def test_epochs_are_known_by_their_digits(values: list[int | None], units: list[int]) -> None:
    assert sorted(epochs(pa.chunked_array([pa.array(values, pa.int64())]))) == units
    floats = [None if value is None else float(value) for value in values]
    assert sorted(epochs(pa.chunked_array([pa.array(floats, pa.float64())]))) == units


@pytest.mark.parametrize("is_known", [False, True], ids=["another process", "the same process"])
def test_a_later_write_in_another_unit_warns(tmp_path: Path, is_known: bool) -> None:
    table = Table.create(str(tmp_path / "t"), schema=NUMBERS, record_key="id", ordering="at")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table.upsert(pa.table({"id": ["a"], "at": [MILLIS]}))
        table.upsert(pa.table({"id": ["a"], "at": [MILLIS + 1]}))
    later = table if is_known else Table.open(table.uri)
    with pytest.warns(
        OrderingWarning, match=r"'at' has epochs of several units: .*\(seconds\).*\(milliseconds\).*wins"
    ):
        later.upsert(pa.table({"id": ["a"], "at": [SECONDS + 86_400]}))


def test_a_table_whose_rows_are_of_one_unit_again_warns_no_more(tmp_path: Path) -> None:
    """Its base file still has the row in seconds, which no reader sees any more."""
    table = Table.create(
        str(tmp_path / "t"), schema=NUMBERS, record_key="id", ordering="at", options={"hoodie.index.type": "SIMPLE"}
    )
    table.upsert(pa.table({"id": ["a"], "at": [SECONDS]}))
    with pytest.warns(OrderingWarning):
        Table.open(table.uri).upsert(pa.table({"id": ["a"], "at": [MILLIS]}))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Table.open(table.uri).upsert(pa.table({"id": ["a"], "at": [MILLIS + 1]}))


def test_one_write_in_several_units_warns(tmp_path: Path) -> None:
    table = Table.create(str(tmp_path / "t"), schema=NUMBERS, record_key="id", ordering="at")
    with pytest.warns(OrderingWarning, match="write all of them in one unit") as told:
        table.upsert(pa.table({"id": ["a", "b"], "at": [MILLIS, MICROS]}))
    assert told[0].filename == __file__


@pytest.mark.parametrize("is_known", [False, True], ids=["another process", "the same process"])
@pytest.mark.parametrize("way", ["merge", "insert by merge", "partial", "update", "delete"])
def test_changes_of_rows_in_another_unit_warn(way: str, is_known: bool, tmp_path: Path) -> None:
    """Also of a row in seconds that the merge leaves out, because it counts as older."""
    made = Table.create(str(tmp_path / "t"), schema=NUMBERS, record_key="id", ordering="at")
    made.upsert(pa.table({"id": ["a"], "at": [MILLIS]}))
    table = made if is_known else Table.open(made.uri)
    rows = pa.table({"id": ["b" if way == "insert by merge" else "a"], "at": [SECONDS + 86_400]})
    changes: dict[str, Callable[[], object]] = {
        "partial": lambda: table.upsert(rows, columns="partial"),
        "update": lambda: table.update({"at": MICROS}, all=True),
        "delete": lambda: table.delete(rows),
    }
    merge = lambda: table.merge(rows, when_matched_update=True, when_not_matched_insert=True)  # noqa: E731
    with pytest.warns(OrderingWarning, match=r"'at' has epochs of several units") as told:
        changes.get(way, merge)()
    assert told[0].filename == __file__


def test_ingest_warns_of_another_unit_than_the_tables(tmp_path: Path) -> None:
    source = tmp_path / "rows.jsonl"
    source.write_text(f'{{"id": "a", "at": {MILLIS}}}\n')
    words = ("ingest", tmp_path / "t", source)
    run(*words, "--create", "--record-key", "id", "--ordering", "at")
    source.write_text(f'{{"id": "a", "at": {SECONDS + 9}}}\n')
    answer = run(*words)
    assert answer.exit_code == 0
    assert "warning: the ordering field 'at' has epochs of several units" in answer.stderr
