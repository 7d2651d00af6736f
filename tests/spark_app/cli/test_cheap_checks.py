"""What a command checks before it starts Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NoReturn

import pytest

from eventide.cli.settings import Settings
from support.command_line import run
from support.small_table import OPTIONS, make, rows

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("words", "exit_code", "says"),
    [
        (("--execute", "20200101000000000"), 2, "no compaction is pending at 20200101000000000"),
        (("--execute", "yesterday"), 2, "no compaction is pending at yesterday"),
        (("--before", "yesterday"), 2, "cannot be read"),
        (("--before", "2020-01-01T00:00Z"), 0, "already reached"),
    ],
)
def test_a_wrong_command_or_one_without_work_starts_no_engine(
    words: tuple[str, ...], exit_code: int, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make(tmp_path / "t", 9)
    table.upsert(rows(("k0", -9, "base")))
    table.compact(before="2020-01-01T00:00Z")

    def start(*_: Any, **__: Any) -> NoReturn:
        raise AssertionError("it started an engine")

    monkeypatch.setattr(Settings, "session", start)
    answer = run("compact", tmp_path / "t", *words, *OPTIONS)
    assert (answer.exit_code, says in answer.stdout + answer.stderr) == (exit_code, True), answer
