"""An incremental query counts from the completion of a write, which its result states."""

from pathlib import Path

import pytest

import eventide
from eventide import Table
from eventide_core.errors import ConfigError
from support.run.command_line import run
from support.tables.small import LATER_MS, make, rows


@pytest.mark.parametrize("version", [6, 9])
def test_the_results_of_two_writes_bound_what_was_written_between(version: int, tmp_path: Path) -> None:
    table = make(tmp_path / "t", version)
    table.upsert(rows(("k0", -9, "sunday")))
    monday = table.upsert(rows(("k1", -8, "monday")))
    tuesday = table.upsert(rows(("k2", -7, "tuesday")))
    assert isinstance(tuesday, eventide.WriteResult)
    assert [row["word"] for row in table.incremental(monday, tuesday).to_arrow().to_pylist()] == ["tuesday"]
    assert [row["word"] for row in table.incremental(since=monday).to_arrow().to_pylist()] == ["tuesday"]
    assert monday.completion_time is not None
    rows_between = table.incremental(monday.completion_time, tuesday.completion_time).to_arrow().to_pylist()
    assert [row["word"] for row in rows_between] == ["tuesday"]
    assert (monday.completion_time == monday.instant) == (version == 6)
    compacted = table.compact(before=LATER_MS)
    table.upsert(rows(("k3", -6, "wednesday")))
    assert [row["word"] for row in table.incremental(since=compacted).to_arrow().to_pylist()] == ["wednesday"]


def test_an_incremental_query_needs_one_begin(tmp_path: Path) -> None:
    table = make(tmp_path / "t", 9)
    first = table.upsert(rows(("k0", -9, "sunday")))
    with pytest.raises(ConfigError, match="either a begin"):
        table.incremental(first, since=first)
    with pytest.raises(ConfigError, match="either a begin"):
        table.incremental()


@pytest.mark.parametrize("version", [6, 9])
def test_an_increment_beside_a_pending_write_says_that_the_next_one_skips_it(version: int, tmp_path: Path) -> None:
    path = tmp_path / "t"
    table = make(path, version)
    first = table.upsert(rows(("k0", -9, "sunday")))
    second = table.upsert(rows(("k1", -8, "monday")))
    pending = str(int(second.instant) - 1)
    directory = path / ".hoodie" if version == 6 else path / ".hoodie" / "timeline"
    for state in ("requested", "inflight"):
        (directory / f"{pending}.deltacommit.{state}").write_bytes(b"")
    increment = Table.open(str(path)).incremental(since=first)
    told = run("read", path, "--query", "incremental", "--begin", first.completion_time).stderr
    if version == 9:  # it will complete later than all others, and increments go by completion
        assert increment.note is None
        assert pending not in told
        return
    assert increment.note is not None
    assert pending in increment.note
    assert f"begin the next one at {first.instant}" in increment.note
    assert increment.note in told
    assert Table.open(str(path)).incremental(first, first).note is None


def test_an_end_before_the_begin_is_an_empty_span(tmp_path: Path) -> None:
    """As in Hudi. A loop that ends at `settled_until()` has such spans: a slow write or a restore moves it back."""
    table = make(tmp_path / "t", 9)
    first, second = table.upsert(rows(("k0", -9, "sunday"))), table.upsert(rows(("k1", -8, "monday")))
    assert table.incremental(second, second).to_arrow().num_rows == 0
    assert table.incremental(second, first).to_arrow().num_rows == 0
