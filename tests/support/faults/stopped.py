"""Runs the command line in a process that stops itself by SIGSTOP before it makes a file of a certain kind.

python -m support.faults.stopped SUFFIX ARGUMENT...
python -m support.faults.stopped SUFFIX merge TABLE SOURCE.parquet KEY=VALUE...

`merge` is none of the command line's verbs: it calls `Table.merge`, and ends with the exit code of its error.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from eventide import Table
from eventide.cli import main
from eventide_core.errors import EventideError
from support.run.child_processes import environment

_WRITING = os.O_WRONLY | os.O_RDWR
_ASLEEP_SECONDS = 600


def stop_before(suffix: str) -> None:
    """Makes this process stop once, before the change that gives a file a name with this suffix."""
    is_left = True

    def stop(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal is_left
        if event in ("os.link", "os.rename"):
            name = arguments[1]
        elif event == "open" and isinstance(arguments[2], int) and arguments[2] & _WRITING:
            name = arguments[0]
        else:
            return
        if is_left and str(name).endswith(suffix):
            is_left = False
            os.kill(os.getpid(), signal.SIGSTOP)

    sys.addaudithook(stop)


@contextmanager
def stopped(suffix: str, *words: object) -> Iterator[subprocess.Popen[str]]:
    """A process that runs `eventide` with these arguments, and stands still before it makes such a file."""
    process = subprocess.Popen(
        [sys.executable, "-m", "support.faults.stopped", suffix, *map(str, words)],
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        _, status = os.waitpid(process.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status), f"the process ended before it made a file {suffix}: {status}"
        yield process
    finally:
        process.kill()
        process.wait()
        if process.stderr is not None:
            process.stderr.close()


def wake(process: subprocess.Popen[str]) -> tuple[int, str]:
    """Lets the process go on. Returns its exit code, and what it wrote to stderr."""
    process.send_signal(signal.SIGCONT)
    _, said = process.communicate()
    return process.returncode, said


def let_expire(table: Path) -> None:
    """Makes the lock and the heartbeats of a table as old as if their process had slept for long."""
    then = time.time() - _ASLEEP_SECONDS
    for path in (table / ".hoodie/lock", *(table / ".hoodie/.heartbeat").glob("*")):
        if path.exists():
            os.utime(path, (then, then))


def merge(path: str, source: str, options: Sequence[str]) -> int:
    """Updates the rows that the source has, and inserts the others."""
    table = Table.open(path, dict(option.split("=", 1) for option in options))
    try:
        table.merge(pq.read_table(source), when_matched_update=True, when_not_matched_insert=True)
    except EventideError as error:
        print(error, file=sys.stderr)  # noqa: T201
        return error.exit_code
    return 0


if __name__ == "__main__":
    stop_before(sys.argv.pop(1))
    if sys.argv[1] == "merge":
        sys.exit(merge(sys.argv[2], sys.argv[3], sys.argv[4:]))
    main()
