"""Runs a verb of eventide in its own process, which kills itself before a chosen change of the file system."""

import functools
import itertools
import multiprocessing
import os
import signal
import sys
from collections.abc import Callable
from multiprocessing import forkserver
from multiprocessing.connection import Connection
from typing import Any

from support.run.command_line import run

_CHANGES = {"os.rename", "os.remove", "os.link", "os.symlink", "os.mkdir", "os.rmdir", "os.truncate", "os.utime"}
_WRITING = os.O_WRONLY | os.O_RDWR
_PROCESSES = multiprocessing.get_context("forkserver")


def run_until_killed(at: int, *words: object) -> int | None:
    """Runs `eventide` with these arguments, and kills it by SIGKILL before its change number `at`.

    Returns None, or the number of changes if the process completed before. Raises AssertionError if it failed.
    """
    return call_until_killed(at, _eventide, *map(str, words))


def _eventide(*words: str) -> tuple[int, str]:
    answer = run(*words)
    return answer.exit_code, answer.stderr


def call_until_killed(at: int, function: Callable[..., tuple[int, str]], *arguments: object) -> int | None:
    """The same of a function of a module, which returns an exit code, and what it says of a failure."""
    _start_server()
    answers, say = _PROCESSES.Pipe(duplex=False)
    process = _PROCESSES.Process(target=_run, args=(at, function, arguments, say))
    process.start()
    say.close()
    process.join()
    if process.exitcode == -signal.SIGKILL:
        return None
    exit_code, said, changes = answers.recv()
    assert exit_code == 0, said
    return int(changes)


@functools.cache
def _start_server() -> None:
    """Starts the process from which the others are forked.

    It has imported everything, which saves the start of an interpreter.

    Imports follow the environment, not the path of this process.
    """
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    try:
        _PROCESSES.set_forkserver_preload(["support.faults.killed"])
        forkserver.ensure_running()
    finally:
        if before is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = before


def _run(at: int, function: Callable[..., tuple[int, str]], arguments: tuple[object, ...], say: Connection) -> None:
    changes = itertools.count(1)
    last = 0

    def count(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal last
        if event in _CHANGES or (event == "open" and isinstance(arguments[2], int) and arguments[2] & _WRITING):
            last = next(changes)
            if last == at:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.dont_write_bytecode = True
    sys.addaudithook(count)
    exit_code, said = function(*arguments)
    say.send((exit_code, said, last))
