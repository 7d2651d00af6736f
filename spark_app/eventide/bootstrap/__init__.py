"""The composition root: builds storage, lock, codec, engine, and the use cases over them from a URI and options.

The only room that knows both a service and an adapter. Its files have the use cases by subject, each file those that build
on the ones of the file before: foundation, reading, maintaining, writing, repairing.
"""

import socket
import time
from collections.abc import Callable, Mapping
from os import getpid
from uuid import uuid4

from eventide.bootstrap.repairing import RepairCases
from eventide.engine_local import LocalEngine
from eventide.options.sections import check_options
from eventide_adapters.lock.heartbeats import FileHeartbeats
from eventide_adapters.lock.open import TracedLock, open_lock
from eventide_adapters.metrics.open import open_tracer
from eventide_adapters.storage.open import open_storage
from eventide_core.config import LOCK_PROVIDER, Options
from eventide_core.ports import Clock, Engine, Storage, TableLock, Tracer


class SystemClock:
    """The machine's clock."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def sleep(self, milliseconds: int) -> None:
        time.sleep(milliseconds / 1000)

    def local_offset_ms(self, epoch_ms: int, /) -> int:
        return time.localtime(epoch_ms // 1000).tm_gmtoff * 1000


class Application(RepairCases):
    """The use cases over one table. `engine` runs their tasks. Raises ConfigError for an invalid option.

    A use case is built when it is first used, and its modules are imported then: a verb needs few of them. `new_uuid` names
    what no other process has, such as a runner of windows.
    """


def assemble(
    uri: str,
    options: Mapping[str, str],
    *,
    engine: Engine | None = None,
    storage: Storage | None = None,
    lock: TableLock | None = None,
    clock: Clock | None = None,
    new_uuid: Callable[[], str] = lambda: str(uuid4()),
    tracer: Tracer | None = None,
) -> Application:
    """The use cases over the table at `uri`. Ports that are not passed are built from the URI and the options.

    `new_uuid` names new file groups and this process. Raises ConfigError for an invalid option, and warns about an
    unknown one.
    """
    check_options(options)
    typed = Options(dict(options))
    clock = clock or SystemClock()
    engine = engine or LocalEngine()
    storage = storage or open_storage(uri, typed)
    owner = f"eventide {socket.gethostname()} {getpid()} {uuid4()}"
    lock = lock or open_lock(typed.get(LOCK_PROVIDER), storage, typed, clock, owner)
    heartbeats = FileHeartbeats(storage, typed, owner=new_uuid(), host=socket.gethostname(), pid=getpid())
    tracer = tracer or open_tracer()
    return Application(storage, TracedLock(lock, tracer), heartbeats, engine, clock, typed, new_uuid, tracer)
