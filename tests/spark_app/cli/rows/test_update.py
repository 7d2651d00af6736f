"""`eventide update`: new values for the rows that a condition keeps."""

from pathlib import Path

from support.run.command_line import run, run_json
from support.tables.append import make, rows, seen

_ROWS = (("k0", "a", 10, "zero"), ("k1", "a", 20, "one"), ("k2", "b", 30, "two"))


def test_update_sets_columns_of_some_rows_or_of_all(tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    table.upsert(rows(*_ROWS))
    answer = run_json("update", table.uri, "--set", "word=word || '='", "--set", "ms=ms + 1", "--where", "part = 'a'")
    assert answer["rows"] == 2
    assert answer["instant"] == table.history(1)[0].instant
    assert seen(table) == [("k0", "a", 11, "zero="), ("k1", "a", 21, "one="), ("k2", "b", 30, "two")]
    shown = run("update", table.uri, "--set", "word='all'", "--all")
    assert shown.stdout.rstrip().endswith(": 3 rows"), shown.stderr
    assert {word for *_, word in seen(table)} == {"all"}


def test_update_refuses_wrong_usage_and_values_that_cannot_be(tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    table.upsert(rows(*_ROWS))
    for words, message in (
        (["--set", "word='x'"], "give either --where, or --all"),
        (["--set", "word='x'", "--all", "--where", "part = 'a'"], "give either --where, or --all"),
        (["--all"], "--set"),
        (["--set", "word", "--all"], "--set number 1 does not have the form KEY=VALUE"),
        (["--set", "word='x'", "--set", "word='y'", "--all"], "--set: 'word' comes twice"),
        (["--set", "id='x'", "--all"], "'id' is of the record key"),
        (["--set", "word=wrd", "--all"], "no column 'wrd'"),
    ):
        refused = run("update", table.uri, *words)
        assert refused.exit_code == 2, refused
        assert message in refused.stderr
    assert seen(table) == sorted(_ROWS)
