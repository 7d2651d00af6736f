"""What a store guarantees and costs: the checks of the storage contract, run in a directory that is removed afterwards."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from statistics import median
from typing import Final

from eventide_adapters.storage.guarantees import GUARANTEES, LARGE_BYTES, Guarantee
from eventide_adapters.storage.open import open_storage
from eventide_adapters.storage.packaged import untried
from eventide_adapters.storage.paths import TEMPORARY
from eventide_adapters.storage.request_count import requests_sent
from eventide_core.access.files import discard, remove_tree
from eventide_core.config import Options
from eventide_core.errors import ConfigError, EventideError, RefusedError, StorageError
from eventide_core.ports import Capability, KeyedFiles, NoProgress, Progress, Storage

SCRATCH: Final = ".eventide_storage_check"
CLOCK_OFFSET_MAX_MS: Final = 60_000
"""Clocks that differ by more are reported."""

_CLOCKS_FROM_MS: Final = 10**12  # 2001: an earlier time is a counter
_REPEATS: Final = 5
_SMALL: Final = b"x" * 4096


@dataclass(frozen=True, slots=True)
class GuaranteeCheck:
    """One guarantee of the storage contract.

    `text` is what it promises, in a sentence. `is_supported` is false if the store lacks the capability that it is about;
    then it isn't checked. `broken` is what the store does instead; None if it holds, or if it isn't supported.
    """

    name: str
    text: str
    is_supported: bool = True
    broken: str | None = None

    @property
    def status(self) -> str:
        if not self.is_supported:
            return "not supported"
        return "ok" if self.broken is None else "failed"


@dataclass(frozen=True, slots=True)
class OperationCost:
    """The median of several calls of one operation.

    `operation` is a phrase such as `create 4 KiB`. `milliseconds` are of one call, as seen from here. `requests` is how many
    it sends; None where they are not counted.
    """

    operation: str
    milliseconds: float
    requests: int | None


@dataclass(frozen=True, slots=True)
class StorageCheck:
    """What a store guarantees and costs, below `uri`.

    `capabilities` are the names of the port's, in lower case. `checks` has every guarantee in the order of the
    contract. `costs` is empty for a store that can't create a file exclusively. `modified_step_ms` is the granularity of
    modification times, `clock_offset_ms` the store's clock minus this one's; None if the store's times aren't a clock's.
    """

    uri: str
    capabilities: tuple[str, ...]
    checks: tuple[GuaranteeCheck, ...]
    modified_step_ms: int
    clock_offset_ms: int | None
    costs: tuple[OperationCost, ...]

    @property
    def ok(self) -> bool:
        return all(check.broken is None for check in self.checks)


def check_storage(uri: str, options: Mapping[str, str], progress: Progress | None = None) -> StorageCheck:
    """Checks a store below a URI. Touches nothing but a new directory SCRATCH there, which it removes.

    Raises RefusedError if that directory exists, ConfigError if there is no such URI, StorageError if it cannot be reached.
    """
    progress = progress or NoProgress()
    with _scratch(uri, Options(dict(options))) as storage:
        progress.start("checks", len(GUARANTEES) + 1)
        checks: list[GuaranteeCheck] = []
        for number, guarantee in enumerate(GUARANTEES):
            is_supported = guarantee.needs(storage)
            broken = _broken(guarantee, storage, f"check-{number}") if is_supported else None
            checks.append(GuaranteeCheck(guarantee.name, guarantee.text, is_supported, broken))
            progress.advance()
        names = tuple(str(member.name).lower() for member in Capability if member in storage.capabilities)
        can_create = Capability.PUT_IF_ABSENT in storage.capabilities
        costs = _costs(storage) if can_create else ()
        step, offset = _clock(storage)
        progress.advance()
    return StorageCheck(uri, names, tuple(checks), step, offset, costs)


def _broken(guarantee: Guarantee, storage: Storage, directory: str) -> str | None:
    """What the store does instead. An error counts as well: the store could be reached before this check."""
    try:
        return guarantee.broken_by(storage, directory)
    except StorageError as failure:
        if failure.exit_code != StorageError.exit_code:  # missing rights, not a broken guarantee
            raise
        return str(failure)


@contextmanager
def _scratch(uri: str, options: Options) -> Iterator[Storage]:
    """The storage of a new directory, which is removed afterwards."""
    parent = untried(open_storage(uri, options))
    storage = untried(open_storage(f"{uri.rstrip('/')}/{SCRATCH}", options))
    # Without directories, an empty place is there all the time.
    if not isinstance(parent, KeyedFiles) and not storage.root.startswith("memory://") and parent.stat("") is None:
        raise ConfigError(f"there is no directory {uri!r}: create it first, or name another one")
    if storage.list("") or parent.stat(SCRATCH) is not None:
        raise RefusedError(
            f"{storage.root} exists: another check is running there, or was interrupted; remove it if none is running"
        )
    try:
        yield storage
    finally:
        _remove(parent, storage)


def _remove(parent: Storage, storage: Storage) -> None:
    with suppress(StorageError):  # listings omit the directory of files that are being written
        storage.delete(TEMPORARY)
    for entry in storage.list(""):
        if entry.is_directory:
            remove_tree(storage, entry.path)
        else:
            discard(storage, entry.path)
    with suppress(EventideError):  # a directory of a store that keeps something in it; its files are gone
        if not isinstance(parent, KeyedFiles):
            remove_tree(parent, SCRATCH)


def _costs(storage: Storage) -> tuple[OperationCost, ...]:
    storage.put("costs/read", _SMALL)

    def large(number: int) -> None:
        output = storage.open_output(f"costs/large-{number}")
        try:
            output.write(b"x" * LARGE_BYTES)
            output.commit()
        finally:
            output.abort()

    operations: dict[str, Callable[[int], object]] = {
        "create 4 KiB": lambda number: storage.put_if_absent(f"costs/created-{number}", _SMALL),
        "replace 4 KiB": lambda number: storage.put(f"costs/created-{number}", _SMALL),
        "create 8 MiB": large,
        "read 4 KiB": lambda _: storage.read("costs/read"),
        "read a range": lambda _: storage.read_range("costs/read", 1024, 1024),
        "stat": lambda _: storage.stat("costs/read"),
        "list a directory": lambda _: storage.list("costs"),
        "copy 4 KiB": lambda number: storage.copy_if_absent("costs/read", f"costs/copied-{number}"),
        "copy 8 MiB": lambda number: storage.copy_if_absent("costs/large-0", f"costs/copied-large-{number}"),
        "delete": lambda number: storage.delete(f"costs/created-{number}"),
    }
    measured = {
        operation: [_measured(run, number) for number in range(_REPEATS)] for operation, run in operations.items()
    }
    is_counted = any(requests for runs in measured.values() for _, requests in runs)
    return tuple(
        OperationCost(
            operation,
            round(median(elapsed for elapsed, _ in runs), 2),
            round(median(requests for _, requests in runs)) if is_counted else None,
        )
        for operation, runs in measured.items()
    )


def _measured(run: Callable[[int], object], number: int) -> tuple[float, int]:
    """The milliseconds and the requests of one call."""
    before, begin = requests_sent(), time.perf_counter()
    run(number)
    return (time.perf_counter() - begin) * 1000, requests_sent() - before


def _clock(storage: Storage) -> tuple[int, int | None]:
    """The granularity of modification times, and by how much the store's clock is ahead, as the last write shows it."""
    modified: list[int] = []
    offset: int | None = None
    for number in range(_REPEATS):
        begin = time.time_ns() // 1_000_000
        storage.put(f"clock/{number}", b"")
        middle = (begin + time.time_ns() // 1_000_000) // 2
        info = storage.stat(f"clock/{number}")
        if info is not None:
            modified.append(info.modified_ms)
            offset = info.modified_ms - middle if info.modified_ms > _CLOCKS_FROM_MS else None
    return (1 if any(at % 1000 for at in modified) else 1000), offset
