"""Heartbeats as Hudi's writers leave them: a file `.hoodie/.heartbeat/<instant>`, written again at each beat.

Hudi takes a write for dead when the file has not been modified for `hoodie.client.heartbeat.interval_in_ms` times
`hoodie.client.heartbeat.tolerable.misses`; so does eventide. Hudi leaves the file empty. Ours names the process, as JSON:
the user reads host and process number, and another process of the same machine sees at once that this one has ended.
"""

import json
import threading
from contextlib import suppress

from eventide_adapters.lock.processes import is_dead, this_process
from eventide_core.config import HEARTBEAT_INTERVAL_MS, Options
from eventide_core.errors import MissingFileError, StorageError
from eventide_core.ports import Storage
from eventide_core.table.file_group_write import heartbeat_path


class FileHeartbeats:
    """ports.Heartbeats: a thread for each instant. `owner` is unique to this object; `host` and `pid` are for people."""

    def __init__(self, storage: Storage, options: Options, *, owner: str, host: str, pid: int) -> None:
        self._storage = storage
        self._interval_seconds = options.get(HEARTBEAT_INTERVAL_MS) / 1000
        self._content = json.dumps({"host": host, "pid": pid, "owner": owner, **this_process()}).encode()
        self._ends: dict[str, tuple[threading.Event, threading.Thread]] = {}

    def start(self, instant: str) -> None:
        if instant in self._ends:
            return
        self._storage.put(heartbeat_path(instant), self._content)
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

    def end(self, instant: str) -> None:
        self.stop(instant)
        if self._is_ours(instant):
            self._storage.delete(heartbeat_path(instant))

    def has_ended(self, instant: str, content: bytes) -> bool:
        return is_dead(content) or (content == self._content and instant not in self._ends)

    def _go_on(self, instant: str, end: threading.Event) -> None:
        while not end.wait(self._interval_seconds):
            # A failed beat may be followed by a successful one. Without any, this process rightly counts as dead.
            with suppress(StorageError):
                if not self._is_ours(instant):
                    return  # rolled back or taken over while this process slept
                self._storage.put(heartbeat_path(instant), self._content)

    def _is_ours(self, instant: str) -> bool:
        try:
            return self._storage.read(heartbeat_path(instant)) == self._content
        except MissingFileError:
            return False
