"""Runs what is measured in processes of their own, and says what each request cost.

The CPU time covers the whole process tree, processes that have ended included; the memory is the most that one process
of the tree held at once. Linux only.
"""

import contextlib
import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

_TICKS: Final = os.sysconf("SC_CLK_TCK")
_LOOK_SECONDS: Final = 0.1
_RESET_PEAK: Final = "5"  # see clear_refs in proc(5)


class PeerError(RuntimeError):
    """What was measured failed; the message is its own."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one request. `cpu_s` of the first one of a process counts from its start where `is_cold`."""

    cpu_s: float
    wall_s: float
    peak_mb: int
    is_cold: bool


class Server:
    """A process that answers requests, one JSON a line, as `stock.py` and `contestant.py` do."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], log: Path) -> None:
        self._log = log
        self._started = time.monotonic()
        with log.open("ab") as stderr:
            self._process = subprocess.Popen(
                command,
                env=dict(environment),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
                start_new_session=True,
            )
        self._is_cold = True
        self._meter = CpuMeter(self._process.pid)
        self._answer()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._meter.close()
        self._process.stdin.close()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._process.stdout.close()

    def ask(self, method: str, **arguments: object) -> Any:
        """The answer, when what it cost is of no interest."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"method": method, **arguments}) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def measure(self, method: str, **arguments: object) -> tuple[Cost, Any]:
        """What the request cost, and its answer. The first one measured has what starting the process cost."""
        for pid in _tree(self._process.pid):
            with contextlib.suppress(OSError):
                Path(f"/proc/{pid}/clear_refs").write_text(_RESET_PEAK)
        cpu, wall = (0.0, self._started) if self._is_cold else (self._meter.seconds(), time.monotonic())
        answer = self.ask(method, **arguments)
        pid, is_cold, self._is_cold = self._process.pid, self._is_cold, False
        return Cost(self._meter.seconds() - cpu, time.monotonic() - wall, _peak_mb(pid), is_cold), answer

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise PeerError(f"the process ended; its log ends with:\n{self._log.read_text(errors='replace')[-3000:]}")
        answer = json.loads(line)
        if "error" in answer:
            raise PeerError(answer["error"])
        return answer["ok"]


def _tree(root: int) -> Iterator[int]:
    yield root
    for task in Path(f"/proc/{root}/task").glob("*"):
        with contextlib.suppress(OSError):
            for child in (task / "children").read_text().split():
                yield from _tree(int(child))


class CpuMeter:
    """The CPU time of a process and all of its descendants, those that have ended included.

    The kernel adds the time of a child that ended to its parent's, if that waits for it. Spark's Python daemon ignores its
    workers' end (SIGCHLD), so their time would be missing. So each process is looked at ten times a second, and counts with
    what it had at the last look. What a process takes after that is missing.
    """

    def __init__(self, root: int) -> None:
        self._root = root
        self._ticks: dict[tuple[int, str], int] = {}
        self._lock = threading.Lock()
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def seconds(self) -> float:
        """The CPU time until now, user and system."""
        with self._lock:
            for pid in _tree(self._root):
                with contextlib.suppress(OSError):
                    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
                    self._ticks[pid, fields[19]] = int(fields[11]) + int(fields[12])  # by its start: numbers return
            return sum(self._ticks.values()) / _TICKS

    def close(self) -> None:
        self._is_over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._is_over.wait(_LOOK_SECONDS):
            self.seconds()


def _peak_mb(root: int) -> int:
    peak = 0
    for pid in _tree(root):
        with contextlib.suppress(OSError):
            lines = Path(f"/proc/{pid}/status").read_text().splitlines()
            peak = max([peak, *(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))])
    return peak // 1024
