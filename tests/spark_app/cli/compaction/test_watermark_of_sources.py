"""`plan`, `compact` and `freshness` of several tables say what the sources leave of the watermark of the files."""

from pathlib import Path

import pytest

from eventide import Table
from support.run.command_line import run, run_json
from support.tables.hourly import at, made, rows

pytestmark = pytest.mark.slow


@pytest.fixture
def table(tmp_path: Path) -> Table:
    found = made(tmp_path)
    found.upsert(rows(0.5, 1.5), sources={"orders": at(1)})
    return found


HELD = {"watermark_ms": at(1), "files_watermark_ms": at(2), "held_back_by": "orders"}
LINE = "that is of the table's files; with its sources 2023-11-14T23:00:00Z, held back by orders"


def test_a_plan_says_what_its_sources_leave_of_its_watermark(table: Table) -> None:
    found = run_json("plan", table.uri, "--before", at(2))
    assert {key: found[f"predicted_{key}"] for key in HELD} == HELD
    assert LINE in run("plan", table.uri, "--before", at(2)).stdout


def test_a_compaction_says_it_and_the_next_one_that_has_nothing_to_do(table: Table) -> None:
    for state in ("completed", "idle"):
        found = run_json("compact", table.uri, "--before", at(2), "--engine", "local")
        assert found["state"] == state
        assert {key: found[key] for key in HELD} == HELD
    said = run("compact", table.uri, "--before", at(2), "--engine", "local").stdout
    assert LINE in said
    assert "watermark 2023-11-15T00:00:00Z" in said


def test_a_compaction_without_sources_says_nothing_of_them(tmp_path: Path) -> None:
    table = made(tmp_path)
    table.upsert(rows(0.5))
    assert "held_back_by" not in run_json("compact", table.uri, "--before", at(2), "--engine", "local")


def test_a_source_that_cannot_be_asked_here_fails_no_compaction(table: Table) -> None:
    options = ("--option", "eventide.source.audit.kind=unknown_here")
    found = run("compact", table.uri, "--before", at(2), "--engine", "local", "--output", "json", *options)
    assert found.exit_code == 0
    assert "the kind 'unknown_here' is unknown here" in found.stderr


def test_the_answer_of_several_tables_says_on_what_each_rests(table: Table, tmp_path: Path) -> None:
    other = made(tmp_path, "other")
    other.upsert(rows(0.5))
    for one in (table, other):
        one.compact(before=at(2), cut="exact")
    said = run("freshness", table.uri, other.uri).stdout
    assert f"of {other.uri}: basis: files" in said
    assert f"of {table.uri}: held back by orders" in said
