"""`python -m support.processes.services_loop TABLE`: writes, compacts, cleans, and archives in rounds until its input ends.

Prints one line per round. Each round replaces the slices, removes the previous ones, and archives instants.
"""

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from eventide import Table
from support.run.child_processes import environment
from support.tables.small import LATER_MS, SOON, rows

# A service that is only slow isn't dead.
OPTIONS = {key: value for key, value in SOON.items() if "heartbeat" not in key}
TIMEOUT_SECONDS = 300
FIRST = [(f"k{number}", 0, "first") for number in range(8)]


def one_round(table: Table, number: int) -> None:
    """Writes new versions of some rows, and runs the services."""
    table.upsert(rows(*((f"k{key}", 1, f"round {number}") for key in range(number % 3, 8, 2))))
    table.compact(before=LATER_MS)
    table.clean()
    table.archive()


@contextmanager
def services(path: Path) -> Iterator[Callable[[], int]]:
    """A process that runs rounds during the block. Yields a function that returns the number of rounds so far."""
    process = subprocess.Popen(
        [sys.executable, "-m", "support.processes.services_loop", str(path)],
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    rounds: list[str] = []
    listener = threading.Thread(target=rounds.extend, args=(iter(process.stdout.readline, ""),), daemon=True)
    listener.start()

    def made() -> int:
        assert process.poll() is None, f"the services ended with {process.returncode}"
        return len(rounds)

    try:
        yield made
        process.stdin.close()
        assert process.wait(TIMEOUT_SECONDS) == 0, "the services failed"
    finally:
        process.kill()
        process.wait()
        listener.join()
        process.stdout.close()


def main() -> None:
    is_over = threading.Event()

    def listen() -> None:
        sys.stdin.read()
        is_over.set()

    threading.Thread(target=listen, daemon=True).start()
    table = Table.open(sys.argv[1], OPTIONS)
    for number in count(1):
        one_round(table, number)
        sys.stdout.write(f"{number}\n")
        sys.stdout.flush()
        if is_over.is_set():
            return


if __name__ == "__main__":
    main()
