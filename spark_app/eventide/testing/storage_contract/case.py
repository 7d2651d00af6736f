"""The storage under test, and what every part of the contract uses."""

import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import ClassVar

import pytest

from eventide_core.ports import FileInfo, Storage

WRITERS = 8

# More than any buffer on the way.
LARGE_BYTES = 3 * 1024 * 1024 + 1


@dataclass(frozen=True, slots=True)
class StorageCase:
    """An empty storage, and where there is one the way to its files behind its back."""

    storage: Storage
    read_behind: Callable[[str], bytes] | None = None
    write_behind: Callable[[str, bytes], None] | None = None


class ContractPart:
    """Tests of some promises; `rounds` is how many names each race is about."""

    rounds: ClassVar[int] = 10

    @pytest.fixture
    def case(self) -> StorageCase:
        raise NotImplementedError("override the fixture `case` with an empty storage")

    @pytest.fixture
    def storage(self, case: StorageCase) -> Storage:
        return case.storage


def entry(storage: Storage, path: str) -> FileInfo:
    """The one entry of that name in the listing of its directory."""
    directory, _, _ = path.rpartition("/")
    (found,) = (info for info in storage.list(directory) if info.path == path)
    return found


def content_of(number: int) -> bytes:
    """What the writer of that number writes in a race."""
    return bytes([number]) * 100_000


def race(storage: Storage, write: Callable[[Storage, int, str], bool], rounds: int) -> None:
    """Lets all writers write each name at once; one of them wins, and its content is there whole."""
    copies = [pickle.loads(pickle.dumps(storage)) for _ in range(WRITERS)]
    with ThreadPoolExecutor(WRITERS) as pool:
        for round_number in range(rounds):
            name = f"race/{round_number}"
            writing = [pool.submit(write, copy, number, name) for number, copy in enumerate(copies)]
            winners = [number for number, done in enumerate(writing) if done.result()]
            assert len(winners) == 1
            assert storage.read(name) == content_of(winners[0])
