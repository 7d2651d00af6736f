"""`eventide metadata`: the state of Hudi's metadata table."""

from pathlib import Path

import pytest

from support.run.command_line import run, run_json
from support.tables.append import make, rows


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


@pytest.mark.parametrize("version", [6, 9])
def test_a_record_index_over_a_key_of_two_partitions_is_refused(version: int, tmp_path: Path) -> None:
    table = make(tmp_path / "t", version)
    table.upsert(rows(("k", "a", 1, "x"), ("k", "b", 2, "y")))
    refused = run("metadata", table.uri, "--rebuild", "--index", "record_index")
    assert refused.exit_code == 3
    assert "several rows have the record key 'k', and a record index has one place for each key" in refused.stderr
    assert "`eventide metadata TABLE --rebuild --index files`" in refused.stderr
    assert run_json("metadata", table.uri, "--rebuild", "--index", "files")["partitions"] == ["files"]
    assert run("verify", table.uri, "--deep").exit_code == 0
