"""Which process wrote a file, and whether it is dead. Known only on this machine, and never wrong.

A process is identified by the machine's boot, the namespace of process numbers, its number, and its start time, because
a host name may be another container's, and a number is reused. On a machine without this data, no process counts as
dead.
"""

import json
import os
from functools import cache
from pathlib import Path
from typing import Any, Final

_KEY: Final = "process"
_STARTED: Final = 19  # among the fields of /proc/<pid>/stat that follow the name


def this_process() -> dict[str, Any]:
    """The identity of this process; empty if the machine does not provide it."""
    return _identity(os.getpid())


@cache  # by process number, because a fork is another process
def _identity(pid: int) -> dict[str, Any]:
    place, started = _place(), _started(pid)
    if place is None or started is None:
        return {}
    return {_KEY: {"place": place, "pid": pid, "started": started}}


def is_dead(content: bytes) -> bool:
    """Whether the JSON document has `this_process` of one that ran on this machine and has ended."""
    try:
        known = json.loads(content)[_KEY]
        place, pid, started = known["place"], known["pid"], known["started"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return False
    if not isinstance(pid, int) or not isinstance(started, str) or place is None or place != _place():
        return False
    return _started(pid) != started


def _place() -> str | None:
    """This boot of this machine, and the namespace of process numbers."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return None


def _started(pid: int) -> str | None:
    """When the process with that number started, in the kernel's ticks; None if it does not exist or is a zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in ("Z", "X") else fields[_STARTED]
