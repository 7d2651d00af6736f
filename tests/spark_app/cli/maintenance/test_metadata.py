"""`eventide metadata`: the state of Hudi's metadata table."""

from pathlib import Path

from support.append_tables import make, rows
from support.command_line import run_json


def test_the_state_of_the_metadata_table_has_its_log_files(tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    table.upsert(rows(("1", "a", 1, "x")))
    assert run_json("metadata", table.uri)["logs"] is None
    rebuilt = run_json("metadata", table.uri, "--rebuild")
    assert {key: rebuilt[key] for key in ("partitions", "last_compaction")} == {
        "partitions": ["files"],
        "last_compaction": None,
    }
    table.upsert(rows(("2", "a", 2, "y")))
    state = run_json("metadata", table.uri)
    assert state["logs"] == state["delta_commits"] == rebuilt["logs"] + 1
