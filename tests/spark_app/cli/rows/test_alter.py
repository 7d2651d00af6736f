"""`eventide alter`: changes of a table's schema."""

import json
from pathlib import Path

from support.run.command_line import run, run_json
from support.tables.append import make, rows


def test_alter_adds_widens_moves_and_drops_columns(tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    table.upsert(rows(("k0", "a", 10, "zero")))
    planned = run_json("alter", table.uri, "add", "n int", "fare decimal(10, 2) after ms", "--dry-run")
    assert planned["instant"] is None
    added = run_json("alter", table.uri, "add", "n int", "fare decimal(10, 2) after ms")
    assert added["columns"] == planned["columns"] == ["id", "part", "ms", "fare", "word", "n"]
    assert added["added_columns"] == ["fare", "n"]
    assert added["instant"] == table.history(1)[0].instant
    assert [field["name"] for field in json.loads(added["schema"])["fields"]] == added["columns"]
    assert run_json("alter", table.uri, "widen", "n long")["widened_columns"] == ["n"]
    assert run_json("alter", table.uri, "drop", "fare")["dropped_columns"] == ["fare"]
    shown = run("alter", table.uri, "move", "n first", "word after n")
    assert shown.stdout.rstrip().endswith("; columns: n, word, id, part, ms"), shown.stderr


def test_alter_refuses_wrong_usage_and_what_a_reader_would_not_follow(tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    for words, code, message in (
        (["add", "fare"], 2, "write 'COLUMN TYPE'"),
        (["add", "fare int", "fare long"], 2, "the column 'fare' comes twice"),
        (["rename", "word title"], 2, "write OLD=NEW"),
        (["rename", "word=title"], 3, "cannot be renamed to 'title'"),
        (["drop", "id"], 3, "it is a record key field"),
        (["turn", "id"], 2, "turn"),
        (["add", "a-b int"], 2, "Choose another name, such as the one in parentheses"),
        (["add", "v vector(0)"], 2, "vector(N,double)"),
    ):
        refused = run("alter", table.uri, *words)
        assert refused.exit_code == code, refused
        assert message in refused.stderr


def test_alter_adds_vectors_and_drops_a_column_that_is_named_twice(tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    table.upsert(rows(("k0", "a", 10, "zero")))
    run_json(
        "alter", table.uri, "add", "n int", "v vector(3)", "w vector(2, double) after ms", "b VECTOR(4,INT8) first"
    )
    kinds = {field.name: str(field.type) for field in table.snapshot().schema}
    assert kinds["v"].startswith("fixed_size_list<element: float")
    assert kinds["w"].startswith("fixed_size_list<element: double")
    assert kinds["b"].startswith("fixed_size_list<element: int8")
    assert run_json("alter", table.uri, "drop", "n", "n")["dropped_columns"] == ["n"]
