"""A process that dies before it makes a file."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from eventide_adapters.storage.faulty import FaultyStorage, SimulatedCrash
from eventide_adapters.storage.local import LocalStorage

T = TypeVar("T")


class DyingStorage(FaultyStorage):
    """The storage of a process that dies before it makes a file whose path has that pattern."""

    def __init__(self, path: Path, pattern: str) -> None:
        super().__init__(LocalStorage(path))
        self._pattern = re.compile(pattern)

    def _write(self, kind: str, path: str, write: Callable[[], T]) -> T:
        if self._pattern.search(path):
            raise SimulatedCrash(path)
        return super()._write(kind, path, write)
