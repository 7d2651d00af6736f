"""Runs the command line in processes that may take only some more megabytes of address space, as under `ulimit -v`.

python -m support.processes.little_memory: reads a line of JSON for each of them from stdin, and answers with its exit
code. All of them are forks of this process, which has all modules, and one thread.
"""

import faulthandler
import importlib
import json
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from eventide.cli import main
from support.run.child_processes import environment

_ONE_THREAD: Final = {"OPENBLAS_NUM_THREADS": "1"}
"""NumPy's library starts its threads again after a fork, and interrupts the process if it can't."""
WATCHDOG_S: Final = 300
"""A process that has not ended by then writes the stacks of its threads, and `SAYS_IT_HANGS`."""
_MODULES: Final = (
    "eventide.cli.compaction.compact",
    "eventide.cli.rows.ingest",
    "eventide.table.table",
    "pyarrow.parquet",
)
"""What the verbs import only when they run."""
_UNEXPECTED: Final = 70
SAYS_IT_HANGS: Final = "Timeout ("


@dataclass(frozen=True, slots=True)
class LittleMemory:
    process: subprocess.Popen[str]

    def run(self, megabytes: int, said: Path, *words: object) -> int:
        """The exit code of `eventide` with these arguments; minus the signal that killed it. `said` gets what it writes."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps([megabytes, str(said), *map(str, words)]) + "\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())


@contextmanager
def little_memory() -> Iterator[LittleMemory]:
    with subprocess.Popen(
        [sys.executable, "-m", __name__],
        env=environment(**_ONE_THREAD),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield LittleMemory(process)


def _run(megabytes: int, said: str, words: list[str]) -> None:
    """Ends this process with the exit code of the verb."""
    out = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(out, 1)
    os.dup2(out, 2)
    faulthandler.dump_traceback_later(WATCHDOG_S, exit=True)
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    limit = pages * resource.getpagesize() + megabytes * 2**20
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sys.argv = ["eventide", *words]
    main()


def _serve() -> None:
    for module in _MODULES:
        importlib.import_module(module)
    for line in sys.stdin:
        megabytes, said, *words = json.loads(line)
        child = os.fork()
        if not child:
            exit_code = _UNEXPECTED
            try:
                _run(megabytes, said, words)
            except SystemExit as ended:
                exit_code = ended.code if isinstance(ended.code, int) else 0
            finally:
                os._exit(exit_code)
        _, status = os.waitpid(child, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    _serve()
