"""Queries of a table with Hudi's metadata table list no directory, as long as the metadata table is complete."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from eventide import Table
from eventide.bootstrap import assemble
from eventide.rows.reader import Rows
from eventide_adapters.storage.faulty import FaultyStorage
from eventide_adapters.storage.local import LocalStorage
from eventide_core.table.files.slice_read import QueryPlan
from golden.histories import PLAIN
from support.pasts import golden
from support.tables.thresholds import dividing_plan

pytestmark = pytest.mark.slow

TABLES = ["v6_mdt", "v9_mdt"]
Answers = list[list[str]]


@pytest.fixture(params=TABLES)
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Compacted in part, so that left-overs and bases of eventide are among what is listed; its metadata table has logs."""
    path = golden.unpack(str(request.param), tmp_path)
    opened = Table.open(str(path), {"hoodie.metadata.compact.max.delta.commits": "1000"})
    opened.compact(dividing_plan(opened, "event_ts", "copy"))
    return path


def ask(path: Path) -> tuple[Answers, set[str]]:
    """What the queries answer, and the directories of the table that they list for it."""
    storage = FaultyStorage(LocalStorage(path))
    application = assemble(str(path), {}, storage=storage)
    queries = application.queries
    instants = [i.requested_time for i in application.state().timeline.writes]
    seen = len(storage.operations)
    plans: list[QueryPlan] = [
        queries.snapshot(),
        queries.read_optimized(),
        queries.as_of(instants[3]),
        queries.incremental(instants[2], None),
    ]
    directories = {
        operation.path
        for operation in storage.operations[seen:]
        if operation.kind == "list" and not operation.path.startswith(".hoodie")
    }
    return [rows(Rows(plan, application.reader, application.engine)) for plan in plans], directories


def rows(query: Any) -> list[str]:
    return sorted(map(repr, query.to_arrow(PLAIN.names).to_pylist()))


def without_metadata_table(path: Path) -> Path:
    copy = path.parent / "listed" / path.name
    shutil.copytree(path, copy)
    shutil.rmtree(copy / ".hoodie" / "metadata")
    properties = copy / ".hoodie" / "hoodie.properties"
    kept = [line for line in properties.read_text().splitlines(keepends=True) if "metadata.partitions" not in line]
    properties.write_text("".join(kept))
    return copy


def test_no_query_lists_a_directory_if_the_metadata_table_lists_all_files(table: Path) -> None:
    answers, directories = ask(table)
    by_listing, listed = ask(without_metadata_table(table))
    assert answers == by_listing
    assert answers[0] != answers[1]
    assert directories == set()
    assert listed == {"", "part=a", "part=b", "part=c"}


def timeline(table: Path) -> Path:
    directory = table / ".hoodie" / "metadata" / ".hoodie"
    return directory / "timeline" if (directory / "timeline").exists() else directory


def forget_a_commit(table: Path) -> None:
    """A writer that went on without the metadata table."""
    sorted(timeline(table).glob("2*.deltacommit"))[2].unlink()


def tear_a_log(table: Path) -> None:
    log = max((table / ".hoodie" / "metadata" / "files").glob(".files-*.log.*[0-9]"))
    log.write_bytes(log.read_bytes()[:-20])


def lose_a_log(table: Path) -> None:
    """The files of a live slice are not listed, though the commit that wrote them was followed."""
    log = max(
        (table / ".hoodie" / "metadata" / "files").glob(".files-*.log.*[0-9]"), key=lambda log: log.stat().st_mtime
    )
    log.unlink()


def begin_building(table: Path) -> None:
    with (table / ".hoodie" / "hoodie.properties").open("a") as properties:
        properties.write("hoodie.table.metadata.partitions.inflight=files\n")


@pytest.mark.parametrize("damage", [forget_a_commit, tear_a_log, lose_a_log, begin_building])
def test_the_directories_tell_where_the_metadata_table_does_not(table: Path, damage: Callable[[Path], None]) -> None:
    expected, _ = ask(table)
    damage(table)
    answers, directories = ask(table)
    assert answers == expected
    assert directories == {"", "part=a", "part=b", "part=c"}


def test_a_savepoint_needs_no_commit_of_the_metadata_table(table: Path) -> None:
    commits = table / ".hoodie" / "timeline" if (table / ".hoodie" / "timeline").exists() else table / ".hoodie"
    kept = sorted(commits.glob("2*.deltacommit"))[1]
    kept.with_name(f"{kept.stem}.savepoint").write_bytes(b"")
    assert ask(table)[1] == set()
