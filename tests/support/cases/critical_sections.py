"""Contenders for one table lock. Each increments a counter in a file, which loses increments if two hold the lock."""

import multiprocessing
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

from eventide.bootstrap import SystemClock
from eventide_adapters.lock.open import open_lock
from eventide_adapters.storage.memory import MemoryStorage
from eventide_adapters.storage.open import open_storage
from eventide_core.config import Options
from eventide_core.errors import LockError
from eventide_core.ports import TableLock
from support.judge.lock_providers import HudiLock

PROCESSES = 2


def lock_of(provider: str, options: Mapping[str, str], owner: str = "us", uri: str | None = None) -> TableLock:
    """The lock of a table; without a URI, one that is not in the table."""
    known = Options(dict(options))
    storage = MemoryStorage("locked elsewhere") if uri is None else open_storage(uri, known)
    return open_lock(provider, storage, known, SystemClock(), owner)


def increments(
    provider: str,
    options: Mapping[str, str],
    hudi: Sequence[HudiLock],
    counter: Path,
    sections: int,
    uri: str | None = None,
) -> int:
    """The final value of the counter after the given number of sections of eventide's processes and of Hudi's."""
    counter.write_text("0")
    with (
        ProcessPoolExecutor(PROCESSES, multiprocessing.get_context("spawn")) as processes,
        ThreadPoolExecutor(max(1, len(hudi))) as threads,
    ):
        ours = [
            processes.submit(_count_ours, provider, dict(options), counter, sections, uri) for _ in range(PROCESSES)
        ]
        theirs = [threads.submit(_count_hudis, lock, counter, sections) for lock in hudi]
        for end in (*ours, *theirs):
            end.result()
    return int(counter.read_text())


def held_until_killed(provider: str, options: Mapping[str, str], uri: str | None = None) -> Callable[[], None]:
    """A lock that a separate eventide process holds. Returns a function that kills the process."""
    processes = multiprocessing.get_context("spawn")
    is_held = processes.Event()
    process = processes.Process(target=_hold, args=(provider, dict(options), uri, is_held), daemon=True)
    process.start()
    assert is_held.wait(60), "the lock was not acquired"

    def kill() -> None:
        process.kill()
        process.join()

    return kill


def _count_ours(provider: str, options: dict[str, str], counter: Path, sections: int, uri: str | None) -> None:
    lock = lock_of(provider, options, uri=uri)
    for _ in range(sections):
        while True:
            try:
                lease = lock.acquire()
                break
            except LockError:
                continue  # the others were faster during the whole wait
        with lease:
            _increment(counter)
            lease.check()


def _count_hudis(lock: HudiLock, counter: Path, sections: int) -> None:
    for _ in range(sections):
        lock.acquire()
        try:
            _increment(counter)
        finally:
            lock.release()


def _increment(counter: Path) -> None:
    counter.write_text(str(int(counter.read_text()) + 1))


def _hold(provider: str, options: dict[str, str], uri: str | None, is_held: threading.Event) -> None:
    with lock_of(provider, options, uri=uri).acquire():
        is_held.set()
        threading.Event().wait()
