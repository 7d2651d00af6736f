"""Compactions that were requested, and whose engine died before it wrote the plan: Hudi 0.15 makes the file first.

Nobody can have run such a plan, nor seen the slices that it begins. So it is rolled back, and nothing is lost.
"""

import os
import time
from pathlib import Path

import pytest

from eventide import Table
from eventide_core.service.common.state import table_files
from support.run.command_line import content_of, run
from support.tables.small import HOUR_MS, LATER_MS, OPTIONS, SOON, make, rows, seen

LOCAL = ("--engine", "local", *OPTIONS)


@pytest.fixture(autouse=True)
def _no_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_files, "_PUTTING_MS", 60)


@pytest.fixture(params=[6, 9])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / "t"
    table = make(path, request.param)
    table.upsert(rows(("k0", 0, "one")))
    table.upsert(rows(("k0", 1, "two")))
    table.schedule(table.plan_compaction(LATER_MS))
    requested(path).write_bytes(b"")
    return path


def requested(path: Path) -> Path:
    (found,) = (path / ".hoodie").rglob("*.compaction.requested")
    return found


def age(path: Path, hours: float) -> None:
    then = time.time() - hours * HOUR_MS / 1000
    os.utime(requested(path), (then, then))


def check_sound(path: Path) -> None:
    assert run("verify", path, "--deep", *OPTIONS).exit_code == 0
    found = seen(Table.open(str(path), SOON).snapshot().to_arrow())
    assert {key: word for key, (_, word) in found.items()} == {"k0": "two"}


def test_every_verb_names_the_rollback_and_writes_nothing(path: Path) -> None:
    instant, before = requested(path).name[:17], content_of(path)
    cure = f"eventide rollback TABLE {instant} --force"
    for words, exit_code in (
        (("show", path), 2),
        (("clean", path, *OPTIONS), 2),
        (("compact", path, "--execute", instant, *LOCAL), 2),
        (("verify", path, *OPTIONS), 1),
        (("verify", path, "--deep", *OPTIONS), 1),
    ):
        answer = run(*words)
        assert (answer.exit_code, cure in answer.stdout + answer.stderr) == (exit_code, True), (words, answer)
    for words in (("rollback", path, instant, *OPTIONS), ("compact", path, "--before", LATER_MS, *LOCAL)):
        answer = run(*words)
        assert (answer.exit_code, "may be running" in answer.stderr) == (4, True), (words, answer)
    for query in ("snapshot", "read_optimized"):
        assert run("read", path, "--query", query).exit_code == 0
    assert content_of(path) == before


def test_a_person_rolls_it_back_at_once(path: Path) -> None:
    assert run("rollback", path, requested(path).name[:17], "--force", *OPTIONS).exit_code == 0
    check_sound(path)
    assert run("compact", path, "--before", LATER_MS, *LOCAL).exit_code == 0
    check_sound(path)


def test_a_compaction_first_rolls_back_one_that_has_stood_for_hours(path: Path) -> None:
    instant = requested(path).name[:17]
    age(path, hours=1.5)
    answer = run("compact", path, "--before", LATER_MS, *LOCAL)
    assert answer.exit_code == 0, answer
    assert not [file for file in (path / ".hoodie").rglob(f"{instant}*") if "compaction" in file.name]
    check_sound(path)


def test_a_plan_that_was_lost_after_the_compaction_was_begun_is_not_rolled_back(path: Path) -> None:
    instant = requested(path).name[:17]
    begun = requested(path).with_name(f"{instant}.compaction.inflight")
    begun.touch()
    before = content_of(path)
    answer = run("rollback", path, instant, "--force", *OPTIONS)
    assert (answer.exit_code, begun.name in answer.stderr) == (3, True), answer
    assert content_of(path) == before


def test_a_plan_that_is_being_written_is_waited_for(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file is empty when it is read first, and full the next time."""
    file = requested(path)
    table = Table.open(str(path), SOON)
    file.unlink()
    table.schedule(table.plan_compaction(LATER_MS))
    (file,) = (path / ".hoodie").rglob("*.compaction.requested")
    plan = file.read_bytes()
    file.write_bytes(b"")
    clock = type(table._application.files.clock)
    sleep = clock.sleep

    def fill(self: object, ms: int) -> None:
        file.write_bytes(plan)
        sleep(self, ms)  # type: ignore[arg-type]

    monkeypatch.setattr(clock, "sleep", fill)
    assert table.resume().resumed == (file.name[:17],)
