"""Runs the command line in this process, and compares the content of a directory before and after."""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from eventide.cli import eventide


@dataclass(frozen=True, slots=True)
class Answer:
    """The output and the exit code of a run."""

    exit_code: int
    stdout: str
    stderr: str

    @property
    def document(self) -> Any:
        """The single JSON document of stdout. Raises ValueError if there is more or less than one."""
        return json.loads(self.stdout)


WIDE = 10_000


def run(*words: object, columns: int = WIDE) -> Answer:
    """Runs `eventide` with these arguments in a pipe of so many columns: by default, nothing is shortened or wrapped."""
    result = CliRunner(env={"COLUMNS": str(columns)}).invoke(eventide, [str(word) for word in words])
    return Answer(result.exit_code, result.stdout, result.stderr)


def run_json(*words: object) -> Any:
    """The document of a run that must succeed."""
    answer = run(*words, "--output", "json")
    assert answer.exit_code == 0, answer.stderr
    return answer.document


def content_of(directory: Path) -> dict[str, str]:
    """Every file and link below, with its content.

    Ignores empty directories, because a storage's working directory may stay.
    """
    found = (path for path in sorted(directory.rglob("*")) if path.is_symlink() or path.is_file())
    return {str(path.relative_to(directory)): _content(path) for path in found}


def _content(path: Path) -> str:
    return f"link to {path.readlink()}" if path.is_symlink() else hashlib.sha256(path.read_bytes()).hexdigest()
