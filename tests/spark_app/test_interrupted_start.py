"""Ctrl-C while Python still imports the command line."""

import signal
import subprocess
import sys

import pytest

# Sends itself SIGINT when the import of a module begins, as a person would with Ctrl-C.
_INTERRUPTED_AT = """
import os, signal, sys

class Interrupts:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.SIGINT)
        return None

sys.meta_path.insert(0, Interrupts())
sys.argv = ["eventide", *{words!r}]
from eventide.__main__ import main
main()
"""


def _run(module: str, *words: str, ignores_interrupts: bool = False) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-c", _INTERRUPTED_AT.format(module=module, words=words)],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=(lambda: signal.signal(signal.SIGINT, signal.SIG_IGN)) if ignores_interrupts else None,
    )


@pytest.mark.parametrize(
    "module",
    ["eventide.cli", "click", "json", "eventide.cli.errors", "eventide.cli.compaction.plan", "eventide.bootstrap"],
)
def test_an_interrupted_import_ends_with_one_line(module: str) -> None:
    ended = _run(module, "plan", "/no/table", "--before", "2026-03-03T00:00Z")
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "\nerror: interrupted\n")


def test_a_job_in_the_background_of_a_shell_is_not_interrupted() -> None:
    ended = _run("eventide.cli", "--version", ignores_interrupts=True)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.startswith("eventide ")
