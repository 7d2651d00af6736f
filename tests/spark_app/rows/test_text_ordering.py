"""A new table whose ordering field is a text of times or numbers: the first write says how it merges."""

import warnings
from pathlib import Path

import pyarrow as pa
import pytest

from eventide import Table
from eventide.rows.text_ordering import TextOrderingWarning, by_letters
from support.command_line import run

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
    with pytest.warns(TextOrderingWarning, match="of '9' and '10', '9' wins; make the table with a column") as told:
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
