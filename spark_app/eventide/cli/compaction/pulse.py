"""Signs of life of the table service: a file for Kubernetes' probes, and messages for systemd's watchdog.

The file is empty until the first round has ended, and then has the last round as JSON. It was modified at the last sign of
life: a round, a step of it, a finished task of a compaction, or the service waiting for the next round.
"""

import json
import os
import socket
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from eventide.report.whole_file import appearing_whole
from eventide_core.errors import ConfigError, StorageError
from eventide_core.ports import Progress

WAIT_SECONDS: Final = 10.0
"""The longest time without a sign of life while the service waits."""
_SELDOM_SECONDS: Final = 1.0


@dataclass(slots=True)
class Pulse:
    """`health` is the file, `notify` the address of systemd's socket (`NOTIFY_SOCKET`); None: nobody asks there."""

    health: Path | None
    notify: str | None
    _last: float = 0.0

    @classmethod
    def started(cls, health: str | None) -> "Pulse":
        """Raises StorageError if the file can't be written."""
        pulse = cls(None if health is None else Path(health), os.environ.get("NOTIFY_SOCKET"))
        pulse._put("")
        return pulse

    def beat(self) -> None:
        """A sign of life; at most one a second is passed on."""
        if time.monotonic() < self._last + _SELDOM_SECONDS:
            return
        self._last = time.monotonic()
        if self.health is not None:
            with suppress(OSError):  # a probe sees that the file gets old; no compaction ends for it
                self.health.touch()
        self._say("WATCHDOG=1")

    def round_ended(self, event: Mapping[str, Any]) -> None:
        """The service is ready from the first round on."""
        self._put(f"{json.dumps(event)}\n")
        self._say(f"READY=1\nWATCHDOG=1\nSTATUS={event.get('state', '')}")

    def ending(self) -> None:
        self._say("STOPPING=1")

    def _put(self, text: str) -> None:
        if self.health is None:
            return
        try:
            with appearing_whole(self.health) as file:
                file.write(text.encode())
        except (ConfigError, OSError) as error:
            raise StorageError(f"--health {self.health} cannot be written: {error}") from error

    def _say(self, message: str) -> None:
        if self.notify is None:
            return
        address = f"\0{self.notify[1:]}" if self.notify.startswith("@") else self.notify
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            try:
                sender.connect(address)
                sender.send(message.encode())
            except OSError:  # systemd is gone, and the service goes on
                self.notify = None


@dataclass(frozen=True, slots=True)
class BeatingProgress:
    """`ports.Progress` that is a sign of life beside what it shows."""

    shown: Progress
    pulse: Pulse

    def start(self, what: str, total: int) -> None:
        self.pulse.beat()
        self.shown.start(what, total)

    def advance(self) -> None:
        self.pulse.beat()
        self.shown.advance()
