"""One server process: starts it on free ports, waits for it, and stops it."""

import random
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

LEASH = Path(__file__).parent / "leash.py"
START_SECONDS = 120
_POLL_SECONDS = 0.05


class ServerUnavailableError(RuntimeError):
    """The server is not available on this machine, or does not start."""


def free_ports(count: int, *offsets: int) -> list[int]:
    """Ports on which nobody listened a moment ago, nor at these offsets above them.

    All of them are below the ports that a kernel assigns, which begin at 32,768 on Linux: no process that asks for any port,
    or connects to another one, takes one of them before the server does.
    """
    found: list[int] = []
    while len(found) < count:
        port = random.randrange(10_000, 32_000 - max(offsets, default=0))
        if port not in found and all(_is_free(port + offset) for offset in (0, *offsets)):
            found.append(port)
    return found


def _is_free(port: int) -> bool:
    with socket.socket() as tried:
        try:
            tried.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


@contextmanager
def server(
    command: Sequence[str], log: Path, is_ready: Callable[[], bool], environment: Mapping[str, str] | None = None
) -> Iterator[None]:
    """Runs the command for the length of the block, once it is ready to serve.

    Raises ServerUnavailableError with its last words.
    """
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, str(LEASH), *command],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=None if environment is None else dict(environment),
        )
    try:
        deadline = time.monotonic() + START_SECONDS
        while not is_ready():
            if process.poll() is not None or time.monotonic() > deadline:
                raise ServerUnavailableError(f"{Path(command[0]).name} did not start: {last_line(log)}")
            time.sleep(_POLL_SECONDS)
        yield
    finally:
        assert process.stdin is not None
        process.stdin.close()
        process.wait()


def last_line(log: Path) -> str:
    """The last line that a server has logged."""
    return (log.read_text(errors="replace").strip().splitlines() or ["it logged nothing"])[-1]


def answers(port: int) -> bool:
    """Whether anyone listens on that port of this machine."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True
