"""Heartbeats as Hudi's writers leave them: an empty file `.hoodie/.heartbeat/<instant>`, written anew at each beat.

Hudi takes a write for dead when the file has not been modified for `hoodie.client.heartbeat.interval_in_ms` times
`hoodie.client.heartbeat.tolerable.misses`; so does eventide.
"""

import threading
from contextlib import suppress

from eventide_core.config import HEARTBEAT_INTERVAL_MS, HEARTBEAT_INTERVAL_MS_DEFAULT, Options
from eventide_core.errors import StorageError
from eventide_core.ports import Storage
from eventide_core.table.file_group_write import heartbeat_path


class FileHeartbeats:
    """ports.Heartbeats: a thread for each write that is under way."""

    def __init__(self, storage: Storage, options: Options) -> None:
        self._storage = storage
        self._interval_seconds = options.integer(HEARTBEAT_INTERVAL_MS, HEARTBEAT_INTERVAL_MS_DEFAULT) / 1000
        self._ends: dict[str, tuple[threading.Event, threading.Thread]] = {}

    def start(self, instant: str) -> None:
        self._beat(instant)
        end = threading.Event()
        thread = threading.Thread(target=self._go_on, args=(instant, end), name=f"heartbeat {instant}", daemon=True)
        self._ends[instant] = end, thread
        thread.start()

    def stop(self, instant: str) -> None:
        found = self._ends.pop(instant, None)
        if found is not None:
            end, thread = found
            end.set()
            thread.join()

    def _go_on(self, instant: str, end: threading.Event) -> None:
        while not end.wait(self._interval_seconds):
            # A beat that fails may be followed by one that does not; without any the write is taken for dead, rightly.
            with suppress(StorageError):
                self._beat(instant)

    def _beat(self, instant: str) -> None:
        self._storage.put(heartbeat_path(instant), b"")
