"""Runs the commands of the documentation's examples in this process, and compares their output with the page.

Of shell syntax, it knows only what the pages use: `eventide`, `pytest`, `export`, `cat > FILE <<'END'`, comments, lines
that continue after a backslash, and `; echo "exit code $?"`. It skips installations, and what a user's own job does
after `&&`. It doesn't start Spark unless a page requests it, and ends `serve` after one round. No command finds a catalog
here: its arguments are accepted, and other tests use a real one.
"""

import doctest
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest

from eventide import ConfigError
from support.run.child_processes import environment
from support.run.command_line import run

_PASSED_OVER = ("python", "pip", ".", "git", "./run")
_HEREDOC = re.compile(r"cat > (\S+) <<'(\w+)'")
_TELLS_CODE = '; echo "exit code $?"'
_ON_SPARK_BY_DEFAULT = ("compact", "serve")
_NOBODY = (
    *("--option", "hoodie.datasource.hive_sync.metastore.uris=thrift://127.0.0.1:9"),
    *("--option", "hoodie.aws.glue.endpoint=http://127.0.0.1:9"),
    *("--option", "hoodie.aws.access.key=nobody", "--option", "hoodie.aws.secret.key=nobody"),
)
_STORAGE_FAILED = 5
_COMPARED = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@dataclass(slots=True)
class Commands:
    """Runs commands in `directory`, which becomes the working directory. Exports change the environment of the process."""

    directory: Path
    environment: pytest.MonkeyPatch

    def script(self, text: str, place: str) -> None:
        """Runs commands, each of which must succeed."""
        lines = iter(text.replace("\\\n", " ").splitlines())
        for line in lines:
            heredoc = _HEREDOC.fullmatch(line)
            if heredoc is None:
                self._line(line, place)
                continue
            content: list[str] = []
            for inside in lines:
                if inside == heredoc[2]:
                    break
                content.append(inside)
            (self.directory / heredoc[1]).write_text("\n".join(content) + "\n", encoding="utf-8")

    def session(self, text: str, place: str) -> None:
        """Runs commands and compares their output. A command without output on the page may print anything."""
        for part in re.split(r"^\$ ", text.replace("\\\n", " "), flags=re.MULTILINE)[1:]:
            command, _, wanted = part.partition("\n")
            printed = self._line(command, place)
            if wanted.strip():
                want, got = (_even(told.replace(str(self.directory), "")) for told in (wanted, printed))
                assert doctest.OutputChecker().check_output(want, got, _COMPARED), (
                    f"{place}: {command}\n{want}\n!=\n{got}"
                )

    def run(self, words: Sequence[str], place: str, *, may_fail: bool = False) -> tuple[str, int]:
        """The output of `eventide` with these arguments, and its exit code.

        Raises AssertionError if it fails unexpectedly.
        """
        verb, *rest = words[1:]
        if verb in _ON_SPARK_BY_DEFAULT and "--engine" not in rest:
            rest += ["--engine", "local"]
        if verb == "serve" and "--rounds" not in rest:
            rest += ["--rounds", "1"]
        is_without_server = verb == "sync" or "--catalog" in rest
        answer = run(verb, *rest, *(_NOBODY if is_without_server else ()))
        expected = _STORAGE_FAILED if is_without_server else 0
        if "datahub" in rest and find_spec("datahub") is None:  # `./run compat datahub` has it
            expected = ConfigError.exit_code
        assert may_fail or answer.exit_code == expected, f"{place}: {shlex.join(words)}\n{answer.stdout}{answer.stderr}"
        return answer.stdout, answer.exit_code

    def _line(self, line: str, place: str) -> str:
        """The output of one command."""
        command = line.removesuffix(_TELLS_CODE)
        words = shlex.split(command.partition(" && ")[0], comments=True)
        if not words or words[0] in _PASSED_OVER:
            return ""
        match words:
            case ["export", *settings]:
                for setting in settings:
                    name, _, value = setting.partition("=")
                    self.environment.setenv(name, value)
                return ""
            case ["pytest", *rest]:
                return self._pytest(rest, place)
            case ["eventide", *_]:
                printed, code = self.run(words, place, may_fail=command != line)
                return printed if command == line else f"{printed}exit code {code}\n"
            case _:
                raise AssertionError(f"{place}: nobody runs {line!r}")

    def _pytest(self, words: Sequence[str], place: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *words],
            cwd=self.directory,
            env=environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{place}: {done.stdout[-3000:]}{done.stderr[-1000:]}"
        return done.stdout


def _even(printed: str) -> str:
    """The text with tables of a uniform width."""
    return re.sub("─+", "─", printed)
