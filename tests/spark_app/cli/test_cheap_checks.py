"""What a command checks before it starts Spark."""

from pathlib import Path
from typing import Any, NoReturn

import pytest

from eventide.cli.settings import Settings
from eventide_adapters.extras import install_command
from support.run.command_line import content_of, run
from support.tables.small import OPTIONS, make, rows

pytestmark = pytest.mark.slow


def _start(*_: Any, **__: Any) -> NoReturn:
    raise AssertionError("it started an engine")


@pytest.mark.parametrize(
    ("words", "exit_code", "says"),
    [
        (("--execute", "20200101000000000"), 2, "no compaction is pending at 20200101000000000"),
        (("--execute", "yesterday"), 2, "no compaction is pending at yesterday"),
        (("--before", "yesterday"), 2, "cannot be read"),
        (("--before", "1772496000"), 2, "epoch seconds? write 2026-03-03T00:00:00Z or milliseconds"),
        (("--before=-5",), 2, "ISO-8601 with a zone"),
        (("--option", "hoodie.compaction.event.time.threshold=1772496000"), 2, "epoch seconds?"),
        (("--before", "2020-01-01T00:00Z"), 0, "already reached"),
    ],
)
def test_a_wrong_command_or_one_without_work_starts_no_engine(
    words: tuple[str, ...], exit_code: int, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make(tmp_path / "t", 9)
    table.upsert(rows(("k0", -9, "base")))
    table.compact(before="2020-01-01T00:00Z")

    monkeypatch.setattr(Settings, "session", _start)
    answer = run("compact", tmp_path / "t", *words, *OPTIONS)
    assert (answer.exit_code, says in answer.stdout + answer.stderr) == (exit_code, True), answer


@pytest.mark.parametrize(
    ("words", "exit_code", "says"),
    [
        ((), 2, "no threshold"),
        (("--option", "hoodie.compaction.event.time.threshold=1970-01-01T00:00:01Z"), 0, "nothing to compact"),
    ],
)
def test_a_service_without_work_starts_no_engine(
    words: tuple[str, ...], exit_code: int, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make(tmp_path / "t", 9)
    table.upsert(rows(("k0", -9, "base")))
    table.compact(before="1970-01-01T00:00:01Z")
    monkeypatch.setattr(Settings, "session", _start)
    answer = run("serve", tmp_path / "t", "--rounds", 1, *words, *OPTIONS)
    assert (answer.exit_code, says in answer.stdout + answer.stderr) == (exit_code, True), answer


@pytest.mark.parametrize(
    "verb", [("serve", "--rounds", 1, "--data-latency", "30m"), ("compact", "--before", "1970-01-01T00:00:01Z")]
)
def test_an_engine_that_is_not_installed_is_reported_before_anything_is_written(
    verb: tuple[Any, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(tmp_path / "t", 9).upsert(rows(("k0", -9, "base")))
    before = content_of(tmp_path / "t")
    monkeypatch.setattr("eventide.cli.settings.find_spec", lambda _: None)
    answer = run(verb[0], tmp_path / "t", *verb[1:], "--engine", "spark", *OPTIONS)
    assert (answer.exit_code, install_command("spark") in answer.stderr) == (2, True), answer
    assert content_of(tmp_path / "t") == before


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("clean",), "nothing to delete\n"),
        (("clean", "--dry-run"), "nothing to delete\n"),
        (("archive",), "nothing to archive\n"),
        (("tag",), "no tags\n"),
    ],
)
def test_a_verb_that_finds_nothing_says_so(words: tuple[str, ...], says: str, tmp_path: Path) -> None:
    make(tmp_path / "t", 9)
    assert run(words[0], tmp_path / "t", *words[1:]).stdout == says


@pytest.mark.parametrize(("word", "says"), [("compct", "; the nearest is 'compact'; see"), ("zzz", "; see")])
def test_a_mistyped_verb_names_the_nearest(word: str, says: str) -> None:
    answer = run(word, "table")
    assert (answer.exit_code, answer.stderr.partition(repr(word))[2]) == (2, f"{says} eventide -h\n")
