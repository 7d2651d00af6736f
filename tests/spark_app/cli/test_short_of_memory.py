"""The end of a process that ran out of memory or threads, while a library waits for a thread that it has lost."""

import subprocess
import sys

import pytest

_PROCESS = """
import sys, threading
import click
from eventide.__main__ import main

never = threading.Lock()
never.acquire()
threading.Thread(target=never.acquire).start()

def fails(*_, **__):
    raise {error}

click.Group.main = fails
sys.argv = ["eventide", "show", "table"]
main()
"""


@pytest.mark.parametrize("error", ["MemoryError", 'RuntimeError("can\'t start new thread")'])
def test_it_ends_with_the_error_and_waits_for_no_thread(error: str) -> None:
    words = [sys.executable, "-c", _PROCESS.format(error=error)]
    ended = subprocess.run(words, capture_output=True, text=True, timeout=300, check=False)
    assert (ended.returncode, ended.stdout) == (5, "")
    assert ended.stderr.startswith(f"error: unexpected {error.partition('(')[0]}: ")
