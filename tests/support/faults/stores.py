"""Tables in stores behind a proxy that loses answers: of S3, Google, Azure and a NameNode."""

import asyncio
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from types import MappingProxyType, SimpleNamespace
from typing import Any

import pytest

from eventide.bootstrap import Application, assemble
from eventide.engine_local import LocalEngine
from eventide.testing.crash_enumeration import OPTIONS, Moment, Protocol
from eventide.testing.histories import ManualClock
from eventide.testing.inspection.observation import LOCK_PREFIX
from eventide_adapters.storage.memory import MemoryFile
from eventide_adapters.storage.open import open_storage
from eventide_core.access.requests import Requests
from eventide_core.config import LOCK_EXPIRE_MINUTES, Options
from eventide_core.errors import EventideError
from eventide_core.ports import Capability, Storage
from support.servers.cloud_servers import CloudServer
from support.servers.faulty_proxy import Fault, FaultyProxy, faulty_proxy
from support.servers.hdfs.mini_cluster import HdfsServer
from support.servers.s3_servers import S3Server

StoreServer = S3Server | CloudServer | HdfsServer
WRITES = ("PUT", "POST", "DELETE")
# A clock that is past the heartbeats of the dead is also ahead of the lock of the living.
_OPTIONS: dict[str, str] = {**OPTIONS, LOCK_EXPIRE_MINUTES: "10"}
LOST = (Fault.REPLY_LOST, Fault.UNAVAILABLE, Fault.FAILED_AFTER)
DATA = bytes(range(256)) * 8192  # 2 MiB: more than a small copy


def write_output(storage: Storage, size: int = len(DATA)) -> bool:
    output = storage.open_output("new")
    output.write(DATA * (size // len(DATA)))
    return output.commit()


CREATES: dict[str, Callable[[Storage], bool]] = {
    "put_if_absent": lambda storage: storage.put_if_absent("new", DATA),
    "open_output": write_output,
    "copy_if_absent": lambda storage: storage.copy_if_absent("source", "new"),
}
"""The ways to create `new`; the last one copies `source`."""


@dataclass(frozen=True, slots=True)
class FaultyStore:
    """A store, and a proxy before it."""

    server: StoreServer
    proxy: FaultyProxy

    def with_source(self, more: Mapping[str, str] = MappingProxyType({})) -> Storage:
        """A new place with the file `source`, before anything is struck."""
        self.proxy.choose = lambda *_: None
        found = self.opened(uuid.uuid4().hex, more=more)
        found.put("source", DATA)
        self.proxy.struck.clear()
        return found

    def opened(self, place: str, *, is_faulty: bool = True, more: Mapping[str, str] = MappingProxyType({})) -> Storage:
        """The storage of a place, which has been tried out."""
        server = _through(self.proxy, self.server) if is_faulty else self.server
        uri = f"{server.uri}/lake/{place}" if isinstance(server, HdfsServer) else server.uri(place)
        found = open_storage(uri, Options({**server.options, **more}))
        assert Capability.PUT_IF_ABSENT in found.capabilities
        return found


def _through(proxy: FaultyProxy, server: StoreServer) -> StoreServer:
    if isinstance(server, HdfsServer):
        return replace(server, web_address=proxy.address)
    return replace(server, endpoint=f"http://{proxy.address}")


@contextmanager
def faulty_store(server: StoreServer) -> Iterator[FaultyStore]:
    """Before HDFS, the proxy is before the NameNode: the DataNodes are reached without it."""
    address = server.web_address if isinstance(server, HdfsServer) else server.endpoint.removeprefix("http://")
    with faulty_proxy(address) as proxy:
        yield FaultyStore(server, proxy)


def shorten_pauses(patch: pytest.MonkeyPatch) -> None:
    """Makes the clients repeat a request soon."""
    sleep, sleep_async = time.sleep, asyncio.sleep

    async def briefly(seconds: float, *more: Any) -> None:
        await sleep_async(min(seconds, 0.01), *more)

    brief_time = SimpleNamespace(sleep=lambda seconds: sleep(min(seconds, 0.01)), monotonic=time.monotonic)
    patch.setattr("eventide_adapters.storage.hdfs.webhdfs.time", brief_time)
    patch.setattr("botocore.retries.standard.ExponentialBackoff.delay_amount", lambda *_: 0.01)
    patch.setattr("gcsfs.retry.asyncio", SimpleNamespace(sleep=briefly))
    patch.setattr("azure.storage.blob.aio.ExponentialRetry.get_backoff_time", lambda *_: 0.01)


@dataclass(slots=True)
class WriteFault:
    """Strikes one request that may change the store, by its number. `is_end`: no later request is answered either, so
    that the store is as a process leaves it that dies then.
    """

    number: int
    fault: Fault | None
    is_end: bool = False
    seen: int = field(default=0, init=False)

    def choose(self, method: str, _path: str, _number: int) -> Fault | None:
        if self.is_end and self.seen > self.number:
            return Fault.UNAVAILABLE
        if method not in WRITES:
            return None
        self.seen += 1
        return self.fault if self.seen == self.number + 1 else None


@dataclass(slots=True)
class TableInStore:
    """Runs protocols on copies of a table, each at a new place of a store, where its files have the store's times."""

    store: FaultyStore
    place: str = field(default_factory=lambda: uuid.uuid4().hex)
    loaded: dict[str, MemoryFile] = field(default_factory=dict[str, MemoryFile])

    def load(self, moment: Moment) -> None:
        self.place, self.loaded = uuid.uuid4().hex, dict(moment.files)
        storage = self.store.opened(self.place, is_faulty=False)
        for path, file in moment.files.items():
            storage.put(path, file.data)

    def moment(self, time_ms: int) -> Moment:
        """The table as it is now. A file as loaded keeps its time: Hudi 1.x reads the times of version 6."""
        storage = self.store.opened(self.place, is_faulty=False)
        files: dict[str, MemoryFile] = {}
        waiting = [""]
        while waiting:
            for info in storage.list(waiting.pop()):
                if info.is_directory:
                    waiting.append(info.path)
                else:
                    found, loaded = MemoryFile(storage.read(info.path), info.modified_ms), self.loaded.get(info.path)
                    files[info.path] = loaded if loaded is not None and loaded.data == found.data else found
        return Moment(dict(sorted(files.items())), time_ms)

    def expire(self) -> None:
        """Removes the lock of a process that died: no test can move the store's times."""
        storage = self.store.opened(self.place, is_faulty=False)
        for info in storage.list(".hoodie"):
            if info.path.startswith(LOCK_PREFIX) and not info.is_directory:
                storage.delete(info.path)

    def run(
        self, protocol: Protocol, time_ms: int, fault: WriteFault | None = None
    ) -> tuple[Moment, EventideError | None]:
        """The table after a process at that time or now, whichever is later, and the error that it ended in."""
        clock = ManualClock(max(time_ms, time.time_ns() // 1_000_000))
        failure: EventideError | None = None
        application = self._process(clock, is_faulty=fault is not None)
        self.store.proxy.choose = fault.choose if fault else lambda *_: None
        try:
            protocol(application)
        except EventideError as error:
            failure = error
        finally:
            self.store.proxy.choose = lambda *_: None
        return self.moment(clock.time_ms), failure

    def _process(self, clock: ManualClock, *, is_faulty: bool) -> Application:
        """In one thread, so that requests have the same numbers in each run."""
        storage, engine = self.store.opened(self.place, is_faulty=is_faulty), LocalEngine(1)
        application = assemble(storage.root, _OPTIONS, engine=engine, storage=storage, clock=clock)
        application.files.requests = Requests(engine)
        return application
