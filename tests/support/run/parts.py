"""The parts that a test run shares: servers and real Hudi, each started once by the first test that needs it.

1. The process that reports the run keeps the parts. With `--numprocesses`, it runs no test itself.
2. A process that runs tests names the context manager that starts a part. The first request starts the part. A later
   one, from any process, gets the same answer.
3. An answer describes how to reach the part. It is pickled, so it contains addresses and paths, not connections.
4. At the end of the run, the parts end in reverse order. Each part also ends with its standard input, which only the
   keeping process holds open, so a killed run leaves nothing behind.

Tests share the parts, so a test uses table, database, and directory names that no other test uses.
"""

import os
import shutil
import tempfile
import threading
from collections import defaultdict
from collections.abc import Callable, Hashable
from contextlib import AbstractContextManager, ExitStack, suppress
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from typing import Any, Protocol, TypeVar

import pytest

Part = TypeVar("Part")
Start = Callable[..., AbstractContextManager[Part]]
"""A function of a module that takes an empty directory and then values."""


class Parts(Protocol):
    def get(self, start: Start[Part], *values: Hashable) -> Part:
        """The part that `start(directory, *values)` starts. If the start failed, every request raises that error."""
        ...

    def close(self) -> None: ...


class KeptParts:
    """The parts of this process and of the processes that connect to `address` with `key`."""

    def __init__(self) -> None:
        self._directory = Path(tempfile.mkdtemp(prefix="eventide-run-"))
        self._stack = ExitStack()
        self._answers: dict[Hashable, tuple[bool, Any]] = {}
        self._starting: defaultdict[Hashable, threading.Lock] = defaultdict(threading.Lock)
        self._lock = threading.Lock()
        self._listener: Listener | None = None
        self.key = os.urandom(32)

    @property
    def address(self) -> str:
        """The address for requests of other processes. Listens from now on."""
        with self._lock:
            if self._listener is None:
                self._listener = Listener(str(self._directory / "parts"), "AF_UNIX", authkey=self.key)
                threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()
        return str(self._listener.address)

    def get(self, start: Start[Part], *values: Hashable) -> Part:
        is_started, answer = self._answer(start, *values)
        if not is_started:
            raise answer
        found: Part = answer
        return found

    def close(self) -> None:
        if self._listener is not None:
            self._listener.close()
        self._stack.close()
        shutil.rmtree(self._directory, ignore_errors=True)

    def _answer(self, start: Start[Any], *values: Hashable) -> tuple[bool, Any]:
        asked = (start, *values)
        with self._lock:
            starting = self._starting[asked]
        with starting:
            if asked not in self._answers:
                directory = Path(tempfile.mkdtemp(prefix=f"{start.__name__}-", dir=self._directory))
                try:
                    self._answers[asked] = (True, self._stack.enter_context(start(directory, *values)))
                except Exception as failure:
                    self._answers[asked] = (False, failure)
            return self._answers[asked]

    def _accept(self, listener: Listener) -> None:
        while True:
            try:
                connection = listener.accept()
            except AuthenticationError:
                continue
            except OSError:  # closed
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: Connection) -> None:
        with suppress(EOFError, OSError), connection:
            while True:
                connection.send(self._answer(*connection.recv()))


class AskedParts:
    """The parts that another process keeps."""

    def __init__(self, address: str, key: bytes) -> None:
        self._connection = Client(address, "AF_UNIX", authkey=key)

    def get(self, start: Start[Part], *values: Hashable) -> Part:
        self._connection.send((start, *values))
        is_started, answer = self._connection.recv()
        if not is_started:
            raise answer
        found: Part = answer
        return found

    def close(self) -> None:
        self._connection.close()


_PARTS = pytest.StashKey[Parts]()


def pytest_configure(config: pytest.Config) -> None:
    kept: tuple[str, bytes] | None = getattr(config, "workerinput", {}).get("parts")
    config.stash[_PARTS] = KeptParts() if kept is None else AskedParts(*kept)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Passes the address to a process that runs tests."""
    kept = node.config.stash[_PARTS]
    node.workerinput["parts"] = (kept.address, kept.key)


def pytest_unconfigure(config: pytest.Config) -> None:
    config.stash[_PARTS].close()


@pytest.fixture(scope="session")
def parts(pytestconfig: pytest.Config) -> Parts:
    """The parts that the whole run shares. A quick run has none, so a test that asks for one isn't quick."""
    if pytestconfig.getoption("markexpr") == "quick":
        pytest.fail(
            "this test starts a server or real Hudi, and is in the quick run: tests/conftest.py must find it real"
        )
    return pytestconfig.stash[_PARTS]
