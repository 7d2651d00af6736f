"""The storage under test, and functions that all parts of the contract share."""

import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import ClassVar

import pytest

from eventide_core.ports import FileInfo, Storage

WRITERS = 8

# Larger than any buffer between the test and the storage.
LARGE_BYTES = 3 * 1024 * 1024 + 1


@dataclass(frozen=True, slots=True)
class StorageCase:
    """An empty storage, and, if possible, direct access to its files that bypasses the adapter."""

    storage: Storage
    read_behind: Callable[[str], bytes] | None = None
    write_behind: Callable[[str, bytes], None] | None = None


class ContractPart:
    """Tests of one part of the contract. `rounds` is the number of names in each race."""

    rounds: ClassVar[int] = 10

    @pytest.fixture
    def case(self) -> StorageCase:
        raise NotImplementedError("override the fixture `case` with an empty storage")

    @pytest.fixture
    def storage(self, case: StorageCase) -> Storage:
        return case.storage


def entry(storage: Storage, path: str) -> FileInfo:
    """The single entry of that name in the listing of its directory."""
    directory, _, _ = path.rpartition("/")
    (single,) = (info for info in storage.list(directory) if info.path == path)
    return single


def content_of(number: int) -> bytes:
    """The content that the writer of that number writes in a race."""
    return bytes([number]) * 100_000


def race(storage: Storage, write: Callable[[Storage, int, str], bool], rounds: int) -> None:
    """Lets all writers write each name at once. Checks that one of them wins and that its content is complete."""
    copies = [pickle.loads(pickle.dumps(storage)) for _ in range(WRITERS)]
    with ThreadPoolExecutor(WRITERS) as pool:
        for round_number in range(rounds):
            name = f"race/{round_number}"
            writing = [pool.submit(write, copy, number, name) for number, copy in enumerate(copies)]
            winners = [number for number, done in enumerate(writing) if done.result()]
            assert len(winners) == 1
            assert storage.read(name) == content_of(winners[0])
