"""Heartbeats like the ones of Hudi's writers: a file `.hoodie/.heartbeat/<instant>`, written again at each beat.

Like Hudi, eventide considers a write dead if the file has not been modified for
`hoodie.client.heartbeat.interval_in_ms` times `hoodie.client.heartbeat.tolerable.misses`. Hudi leaves the file empty.
eventide writes JSON that names the process: a person can read the host and process number, and another process of the
same machine detects immediately that this one has ended.
"""

import json
from functools import partial

from eventide_adapters.lock.processes import is_dead, this_process
from eventide_adapters.lock.renewal import Renewal
from eventide_core.access.files import discard
from eventide_core.config import HEARTBEAT_INTERVAL_MS, Options
from eventide_core.errors import MissingFileError
from eventide_core.ports import Storage
from eventide_core.table.files.file_group_write import heartbeat_path


class FileHeartbeats:
    """ports.Heartbeats, with a thread for each instant.

    `owner` is unique to this object; `host` and `pid` are for people.
    """

    def __init__(self, storage: Storage, options: Options, *, owner: str, host: str, pid: int) -> None:
        self._storage = storage
        self._interval_seconds = options.get(HEARTBEAT_INTERVAL_MS) / 1000
        self._content = json.dumps({"host": host, "pid": pid, "owner": owner, **this_process()}).encode()
        self._running: dict[str, Renewal] = {}

    def start(self, instant: str) -> None:
        if instant in self._running:
            return
        self._storage.put(heartbeat_path(instant), self._content)
        self._running[instant] = Renewal(partial(self._beat, instant), self._interval_seconds)

    def stop(self, instant: str) -> None:
        running = self._running.pop(instant, None)
        if running is not None:
            running.stop()

    def end(self, instant: str) -> None:
        self.stop(instant)
        if self._is_ours(instant):
            discard(self._storage, heartbeat_path(instant))

    def has_ended(self, instant: str, content: bytes) -> bool:
        return is_dead(content) or (content == self._content and instant not in self._running)

    def _beat(self, instant: str) -> bool:
        """Returns False if the write was rolled back or taken over while this process was paused.

        Without a beat that succeeds, this process rightly counts as dead.
        """
        if not self._is_ours(instant):
            return False
        self._storage.put(heartbeat_path(instant), self._content)
        return True

    def _is_ours(self, instant: str) -> bool:
        try:
            return self._storage.read(heartbeat_path(instant)) == self._content
        except MissingFileError:
            return False
