"""`eventide repair` on tables that real Hudi wrote."""

from pathlib import Path
from typing import Any

import pytest

from eventide import Table
from support.pasts import golden
from support.run.command_line import content_of, run, run_json

TABLES = ["v6_mdt", "v6_encoded", "v9_no_deletes"]


def _rows(path: Path) -> list[dict[str, Any]]:
    return sorted(Table.open(str(path)).snapshot().to_arrow().to_pylist(), key=repr)


def _last_delta_commit(path: Path) -> Path:
    directory = path / ".hoodie" / "timeline" if path.name.startswith("v9") else path / ".hoodie"
    return max(directory.glob("*.deltacommit"))


@pytest.fixture(params=TABLES)
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return golden.unpack(request.param, tmp_path)


def test_a_torn_delta_commit_of_hudi_is_written_again_and_torn_again_by_an_undo(path: Path) -> None:
    before = _rows(path)
    commit = _last_delta_commit(path)
    commit.write_bytes(commit.read_bytes()[:50])
    damaged = content_of(path)

    listed = run("repair", path, "--output", "json")
    assert listed.exit_code == 1
    assert [(r["check"], r["path"]) for r in listed.document["repairs"]] == [
        ("timeline", str(commit.relative_to(path)))
    ]
    assert content_of(path) == damaged

    applied = run("repair", path, "--apply")
    assert applied.exit_code == 0, applied.stderr
    assert "writes the commit again, from the" in applied.stdout
    assert "loses: the commit's extra metadata" in applied.stdout
    assert _rows(path) == before
    assert run("verify", path, "--deep").exit_code == 0
    assert run("repair", path, "--apply").stdout.strip() == "nothing to repair"

    assert run("repair", path, "--undo").exit_code == 0
    undone = {name: data for name, data in content_of(path).items() if not name.startswith(".hoodie/.backup/")}
    # A checksum of Hadoop's goes with the content that it was of.
    assert undone == {name: data for name, data in damaged.items() if name in undone or not name.endswith(".crc")}
    again = run("repair", path, "--undo")
    assert (again.exit_code, again.stderr) == (0, "")
    assert again.stdout.startswith("nothing to undo: ")
    assert "has no repair to undo" in again.stdout
    assert run_json("repair", path, "--undo") == {"undone": None, "restored": []}


def test_what_no_repair_mends_is_named_and_nothing_is_written(path: Path) -> None:
    log = max(p for p in path.rglob(".*.log.*") if ".hoodie" not in p.parts)
    log.unlink()
    damaged = content_of(path)
    applied = run("repair", path, "--apply", "--output", "json")
    assert applied.exit_code == 1
    assert applied.document["repairs"] == []
    assert str(log.relative_to(path)) in {one["path"] for one in applied.document["unrepaired"]}
    assert str(log.relative_to(path)) in {one["path"] for one in applied.document["lost"]}
    assert content_of(path) == damaged


def test_undo_stands_alone_and_checks_are_known(path: Path) -> None:
    assert run("repair", path, "--undo", "--apply").exit_code == 2
    answer = run("repair", path, "links", "no-such-check")
    assert answer.exit_code == 2
    assert "there is no check 'no-such-check'" in answer.stderr
