"""Tables that a release left in each state: today's eventide continues them, and the release continues today's.

`python -m support.pasts.releases VERSION` makes them.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from eventide import Table
from eventide_adapters.storage.memory import MemoryFile
from eventide_core.table.files.table_path import METADATA_DIRECTORY
from eventide_core.table.timeline.instant import Action, State
from support.pasts.releases import RELEASES, STATES, made, mark_hours, opened, packed, shown, unpacked
from support.run.child_processes import environment
from support.tables.hourly import SOON, at, rows
from support.tables.hourly import made as hourly

CONTINUE = """
import json, sys
from eventide import EventideError, Table
def continued(path):
    try:
        table = Table.open(path, json.loads(sys.argv[1]))
        if not table.verify(deep=True).ok:
            table.repair(apply=True)
        table.resume()
        table.compact(before=int(sys.argv[2]))
        found = table.snapshot().to_arrow().select(["id", "ms"]).to_pylist()
        return {"ok": table.verify(deep=True).ok, "rows": sorted([row["id"], row["ms"]] for row in found)}
    except EventideError as refused:
        return {"refused": str(refused)}
print(json.dumps([sys.modules["eventide"].__file__, [continued(path) for path in sys.argv[3:]]]))
"""
WRITE = """
import json, sys
import pyarrow as pa
from eventide import Table
table = Table.open(sys.argv[1], json.loads(sys.argv[2]))
for ms in json.loads(sys.argv[3]):
    table.upsert(pa.table({"id": [f"k{ms}"], "ms": [ms]}))
"""


@dataclass(frozen=True, slots=True)
class ReleasedTable:
    """A table as a release left it, with the rows that it showed."""

    files: Mapping[str, MemoryFile]
    rows: list[tuple[str, int]]


def left() -> Iterator[Any]:
    """Each release with each state of which it has a table, and today's build with all of them."""
    for release in RELEASES:
        for state in json.loads((release / "expected.json").read_text())["rows"]:
            yield pytest.param(release, state, id=f"{release.name}-{state}")
    for state in STATES:
        yield pytest.param(None, state, id=f"today-{state}")


def table_of(directory: Path | None, state: str) -> ReleasedTable:
    """The table that a release left in that state; without one, today's build."""
    if directory is None:
        return ReleasedTable(*made(state))
    expected = json.loads((directory / "expected.json").read_text())["rows"][state]
    return ReleasedTable(unpacked(directory / f"{state}.tar.gz"), [(key, ms) for key, ms in expected])


def _end_pending(table: Table) -> None:
    assert table.has_pending_runs()
    assert table.resume().resumed
    assert not table.has_pending_runs()


def _go_on_with_windows(table: Table) -> None:
    window = table.windows(every="1h", consumer="bills").take("alive")
    assert window is not None
    assert (window.begin_ms, window.is_correction) == (at(1), False)
    assert window.to_arrow()["ms"].to_pylist() == [at(1), at(1.5)]
    window.done()


def _delete_the_tag(table: Table) -> None:
    assert [tag.name for tag in table.tags()] == ["day/1"]
    assert table.snapshot(tag="day/1").to_arrow().num_rows == 5
    table.delete_tag("day/1")


def _state_the_sources(table: Table) -> None:
    assert [(source.name, source.progress_ms) for source in table.sources if source.kind == "stated"] == [
        ("orders", at(3)),
        ("returns", None),
    ]
    assert [source.progress_ms for source in table.sources if source.kind == "table"] == [at(2)]
    table.sources.forget("returns")
    table.upsert(rows(5), sources={"orders": at(4)})
    assert next(source.progress_ms for source in table.sources if source.name == "orders") == at(4)


def _repair_again(table: Table) -> None:
    assert not table.verify(deep=True).ok
    assert table.repair(apply=True).repairs


def _compact_again(table: Table) -> None:
    before = {write.requested_time for write in table.state().timeline.writes}
    assert table.compact(before=at(1)).instant not in before


def _mark_again(table: Table) -> None:
    assert mark_hours(table) == []
    table.compact(before=at(2))
    assert mark_hours(table) == [("done", at(0))]
    table.upsert(rows(0.75))
    table.compact(before=at(2))
    assert mark_hours(table) == [("reopened", at(0)), ("done", at(0))]


def _end_the_clean(table: Table) -> None:
    (pending,) = table.state().timeline.pending
    assert pending.action is Action.CLEAN
    table.clean()
    ended = table.state().timeline.find(pending.requested_time)
    assert ended is not None
    assert ended.state is State.COMPLETED


def _write_without_metadata_table(table: Table) -> None:
    storage = table._application.storage
    assert storage.list(METADATA_DIRECTORY)
    table.upsert(rows(0.75))
    assert not storage.list(METADATA_DIRECTORY)
    table.rebuild_metadata_table()
    assert storage.list(METADATA_DIRECTORY)


def _keep_again(table: Table) -> None:
    kept = table.state().timeline.writes[-1].requested_time
    assert not table.state().timeline.has_savepoint(kept)
    table.savepoint(kept)
    assert table.state().timeline.has_savepoint(kept)
    table.delete_savepoint(kept)


GO_ON: Mapping[str, Callable[[Table], None]] = {
    "pending_plan_v6": _end_pending,
    "pending_plan_v9": _end_pending,
    "dead_compaction_v6": _end_pending,
    "dead_compaction_v9": _end_pending,
    "windows_half_done": _go_on_with_windows,
    "tags": _delete_the_tag,
    "sources": _state_the_sources,
    "repair_undone": _repair_again,
    "undone": _compact_again,
    "foreign_attempt": _end_pending,
    "done_markers": _mark_again,
    "pending_clean": _end_the_clean,
    "rebuild_unfinished": _write_without_metadata_table,
    "savepoint_deleted": _keep_again,
}


def test_each_release_has_a_table_in_each_state() -> None:
    assert [release.name for release in RELEASES][:1] == ["0.1.0"]
    for release in RELEASES:
        names = {path.name.removesuffix(".tar.gz") for path in release.glob("*.tar.gz")}
        assert names == set(json.loads((release / "expected.json").read_text())["rows"])
        assert names <= GO_ON.keys()


@pytest.mark.parametrize("state", STATES)
def test_a_state_is_made_with_the_same_bytes_twice(state: str) -> None:
    assert packed(made(state)[0]) == packed(made.__wrapped__(state)[0])


@pytest.mark.parametrize(("release", "state"), tuple(left()))
def test_a_table_of_a_release_is_opened_continued_and_verified(release: Path | None, state: str) -> None:
    found = table_of(release, state)
    table = opened(found.files)
    assert shown(table) == found.rows
    GO_ON[state](table)
    before = shown(table)
    assert set(found.rows) <= set(before)
    table.upsert(rows(7))
    table.compact(before=at(6))
    table.upsert(rows(8))
    table.compact(before=at(8))
    table.clean()
    table.archive()
    assert shown(table) == sorted({*before, *((f"k{at(hour)}", at(hour)) for hour in (7, 8))})
    assert table.verify(deep=True).ok


@pytest.mark.broad
def test_a_release_continues_what_today_leaves_or_refuses_in_a_line(packages: Path, tmp_path: Path) -> None:
    paths = []
    for state in STATES:
        for path, file in made(state)[0].items():
            (tmp_path / state / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / state / path).write_bytes(file.data)
            os.utime(tmp_path / state / path, (file.modified_ms / 1000, file.modified_ms / 1000))
        paths.append(str(tmp_path / state))
    for state, answer in zip(STATES, _continued(packages, at(6), *paths), strict=True):
        _check_answer(state, answer)


@pytest.mark.broad
def test_a_release_compacts_what_today_writes_in_turns(packages: Path, tmp_path: Path) -> None:
    table = hourly(tmp_path)
    for hour in range(1, 4):
        table.upsert(rows(hour, hour + 0.5))
        (answer,) = _continued(packages, at(hour + 0.25), str(table.uri))
        assert answer == {"ok": True, "rows": [list(row) for row in shown(table)]}
        table.upsert(rows(hour + 0.25))
        assert table.compact(before=at(hour + 0.5)).freshness.watermark_ms == at(hour + 0.5)
    assert table.verify(deep=True).ok
    assert len(shown(table)) == 9


@pytest.mark.broad
@pytest.mark.parametrize("is_release_serving", [True, False], ids=["release serves", "release writes"])
def test_one_version_serves_a_table_while_another_writes(
    is_release_serving: bool, packages: Path, tmp_path: Path
) -> None:
    table = hourly(tmp_path)
    table.upsert(rows(0))
    today = environment()
    of_release = {**today, "PYTHONPATH": str(packages)}
    serving, writing = (of_release, today) if is_release_serving else (today, of_release)
    options = {**SOON, "hoodie.payload.event.time.field": "ms"}
    settings = [part for key, value in options.items() for part in ("--option", f"{key}={value}")]
    serve = ["-m", "eventide", "serve", str(table.uri), "--rounds", "8", "--every", "1s", "--data-latency", "1h"]
    server = _started(serving, *serve, "--engine", "local", "--output", "json", *settings)
    assert server.stdout is not None
    with server:
        rounds = [server.stdout.readline()]  # it serves before the first write
        hours = [hour / 4 for hour in range(1, 9)]
        words = [str(table.uri), json.dumps(options), json.dumps([at(hour) for hour in hours])]
        with _started(writing, "-c", WRITE, *words) as writer:
            assert writer.wait() == 0
        rounds += server.stdout.readlines()
    assert server.returncode == 0
    assert sum(json.loads(line)["instant"] is not None for line in rounds) >= 2
    assert shown(table) == sorted((f"k{at(hour)}", at(hour)) for hour in (0, *hours))
    assert table.verify(deep=True).ok
    (answer,) = _continued(packages, at(6), str(table.uri))
    assert answer == {"ok": True, "rows": [list(row) for row in shown(table)]}


def _started(within: Mapping[str, str], *words: str) -> "subprocess.Popen[str]":
    return subprocess.Popen([sys.executable, *words], cwd="/", env=within, stdout=subprocess.PIPE, text=True)


def _continued(packages: Path, before_ms: int, *paths: str) -> list[dict[str, Any]]:
    """What the release says of the tables after it repaired, continued and compacted them."""
    options = json.dumps({**SOON, "hoodie.payload.event.time.field": "ms"})
    words = [sys.executable, "-c", CONTINUE, options, str(before_ms), *paths]
    environment = {**os.environ, "PYTHONPATH": str(packages)}
    done = subprocess.run(words, cwd="/", env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    where, answers = json.loads(done.stdout)
    assert Path(where).is_relative_to(packages)
    found: list[dict[str, Any]] = answers
    return found


def _check_answer(state: str, answer: Mapping[str, Any]) -> None:
    if "refused" in answer:
        assert answer["refused"].endswith("use a newer eventide"), state
        assert "\n" not in answer["refused"], state
        return
    assert answer == {"ok": True, "rows": [list(row) for row in sorted(set(made(state)[1]))]}, state
