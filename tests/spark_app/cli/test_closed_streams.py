"""Standard output that is closed, full, or that nobody reads any more: the exit code says so, in one line at most."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow


def _run(words: str, stdout: str, directory: Path) -> "subprocess.CompletedProcess[str]":
    script = f'"$0" -m eventide {words} {stdout}'
    return subprocess.run(
        ["bash", "-c", script, sys.executable], cwd=directory, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("words", ["--help", "--version", "show nowhere --output json"])
def test_a_reader_that_stops_is_neither_a_success_nor_a_failed_check(words: str, tmp_path: Path) -> None:
    ended = _run(words, "| true; exit ${PIPESTATUS[0]}", tmp_path)
    is_error = words.startswith("show")
    assert ended.returncode == (2 if is_error else 141)
    assert len(ended.stderr.splitlines()) == is_error


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
@pytest.mark.parametrize("words", ["--version", "show nowhere --output json"])
def test_a_full_disk_is_reported_in_one_line(words: str, tmp_path: Path) -> None:
    ended = _run(words, "> /dev/full", tmp_path)
    (line,) = ended.stderr.splitlines()
    assert ended.returncode == (2 if words.startswith("show") else 5)
    assert ("nothing is there" if words.startswith("show") else "No space left on device") in line


def test_a_closed_output_ends_as_an_open_one(tmp_path: Path) -> None:
    ended = _run("--version", ">&-", tmp_path)
    assert (ended.returncode, ended.stderr) == (0, "")
    ended = _run("show nowhere", ">&-", tmp_path)
    assert ended.returncode == 2
    assert len(ended.stderr.splitlines()) == 1
