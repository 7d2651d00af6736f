"""Runs the command line inside this process, and compares the content of a directory before and after."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from eventide.cli import eventide


@dataclass(frozen=True, slots=True)
class Answer:
    """What a run printed, and how it ended."""

    exit_code: int
    stdout: str
    stderr: str

    @property
    def document(self) -> Any:
        """The one JSON document of stdout; ValueError if there is more or less."""
        return json.loads(self.stdout)


def run(*words: object) -> Answer:
    """Runs `eventide` with these words."""
    result = CliRunner().invoke(eventide, [str(word) for word in words])
    return Answer(result.exit_code, result.stdout, result.stderr)


def run_json(*words: object) -> Any:
    """The document of a run that must go well."""
    answer = run(*words, "--output", "json")
    assert answer.exit_code == 0, answer.stderr
    return answer.document


def content_of(directory: Path) -> dict[str, str]:
    """Every file and link below, with its content. Empty directories don't count: a storage's working directory may stay."""
    found = (path for path in sorted(directory.rglob("*")) if path.is_symlink() or path.is_file())
    return {str(path.relative_to(directory)): _content(path) for path in found}


def _content(path: Path) -> str:
    return f"link to {path.readlink()}" if path.is_symlink() else hashlib.sha256(path.read_bytes()).hexdigest()
