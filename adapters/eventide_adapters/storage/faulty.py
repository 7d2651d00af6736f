"""A storage that fails on demand, for tests of crashes.

Operations are numbered from 0, writes separately from reads, and a fault is planned for a number. A write is an
operation that may change a name. An open_output counts when it is committed.

The storage keeps the port's guarantees: no fault leaves half a file under a name. A crash while a file is being written
leaves nothing, as the port's `open_output` requires.
"""

import io
import posixpath
import threading
import uuid
import weakref
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import BinaryIO, NamedTuple, TypeVar

from eventide_core.errors import StorageError
from eventide_core.ports import Capability, FileInfo, OutputFile, Storage, VersionedFiles

_Answer = TypeVar("_Answer")


class SimulatedCrash(BaseException):  # not an error that a program could handle: the process is gone
    """The process died here. Each later operation of the same storage also dies."""


class Fault(Enum):
    CRASH_BEFORE = auto()
    """The process dies before the operation happens."""
    CRASH_AFTER = auto()
    """The process dies after the operation has happened."""
    ERROR = auto()
    """Raises StorageError; the operation has not happened."""
    REPLY_LOST = auto()
    """Raises StorageError; the operation has happened."""
    DUPLICATED = auto()
    """A client library sends the request twice: the operation happens, and the second request is answered.
    """
    STALE = auto()
    """A listing has the state before the last write to that directory."""
    BIT_FLIPPED = auto()
    """One bit in the middle of the returned content is wrong."""


# STALE applies to `list`, BIT_FLIPPED to the three operations that return content.
_FAULTS_OF_WRITES = frozenset(Fault) - {Fault.STALE, Fault.BIT_FLIPPED}
_FAULTS_OF_READS = frozenset(Fault) - {Fault.REPLY_LOST, Fault.DUPLICATED}


@dataclass(frozen=True, slots=True)
class FaultPlan:
    """The planned faults, by the number of the operation.

    `writes` and `reads` are numbered apart from each other, from 0. An operation whose number has no fault happens as usual.
    """

    writes: Mapping[int, Fault] = field(default_factory=dict)
    reads: Mapping[int, Fault] = field(default_factory=dict)

    def __post_init__(self) -> None:
        assert _FAULTS_OF_WRITES.issuperset(self.writes.values()), self.writes
        assert _FAULTS_OF_READS.issuperset(self.reads.values()), self.reads


class Operation(NamedTuple):
    kind: str
    path: str


@dataclass(slots=True, weakref_slot=True)
class _Record:
    """The state that all copies of one faulty storage share."""

    plan: FaultPlan
    operations: list[tuple[bool, Operation]] = field(default_factory=list)
    counts: Counter[bool] = field(default_factory=Counter[bool])
    listings: dict[str, tuple[FileInfo, ...]] = field(default_factory=dict)
    is_dead: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)

    def begin(self, operation: Operation, *, is_write: bool) -> Fault | None:
        with self.lock:
            self.require_alive()
            number = self.counts[is_write]
            self.counts[is_write] += 1
            self.operations.append((is_write, operation))
            fault = (self.plan.writes if is_write else self.plan.reads).get(number)
            self.is_dead = fault in (Fault.CRASH_BEFORE, Fault.CRASH_AFTER)
            return fault

    def require_alive(self) -> None:
        if self.is_dead:
            raise SimulatedCrash("the process of this storage is gone")


_records: weakref.WeakValueDictionary[str, _Record] = weakref.WeakValueDictionary()


class FaultyStorage:
    """ports.Storage over another storage. A pickled copy in the same process shares the count, and dies with it."""

    def __init__(self, inner: Storage, plan: FaultPlan | None = None) -> None:
        self._inner = inner
        self._key = uuid.uuid4().hex
        self._record = _records[self._key] = _Record(plan or FaultPlan())

    def __getstate__(self) -> tuple[Storage, str]:
        return self._inner, self._key

    def __setstate__(self, state: tuple[Storage, str]) -> None:
        self._inner, self._key = state
        self._record = _records[self._key]

    @property
    def operations(self) -> tuple[Operation, ...]:
        """Every operation so far, including the one that failed."""
        return tuple(operation for _, operation in self._record.operations)

    @property
    def writes(self) -> tuple[Operation, ...]:
        return tuple(operation for is_write, operation in self._record.operations if is_write)

    @property
    def reads(self) -> tuple[Operation, ...]:
        return tuple(operation for is_write, operation in self._record.operations if not is_write)

    @property
    def root(self) -> str:
        return self._inner.root

    @property
    def is_remote(self) -> bool:
        return self._inner.is_remote

    @property
    def capabilities(self) -> Capability:
        return self._inner.capabilities

    def list(self, directory: str) -> tuple[FileInfo, ...]:
        operation = Operation("list", directory)
        fault = self._record.begin(operation, is_write=False)
        if fault is Fault.STALE:
            return self._record.listings.get(directory, ())
        assert fault is not Fault.BIT_FLIPPED, "a listing has no bits"
        return _perform(fault, operation, lambda: self._inner.list(directory))

    def stat(self, path: str) -> FileInfo | None:
        operation = Operation("stat", path)
        fault = self._record.begin(operation, is_write=False)
        assert fault not in (Fault.STALE, Fault.BIT_FLIPPED), "a stat is neither stale nor has it bits"
        return _perform(fault, operation, lambda: self._inner.stat(path))

    def read(self, path: str) -> bytes:
        return self._read("read", path, lambda: self._inner.read(path))

    def read_version(self, path: str) -> tuple[bytes, str] | None:
        if not isinstance(self._inner, VersionedFiles):
            return None
        operation = Operation("read_version", path)
        fault = self._record.begin(operation, is_write=False)
        assert fault not in (Fault.STALE, Fault.BIT_FLIPPED), "a version is neither stale nor torn"
        inner = self._inner
        return _perform(fault, operation, lambda: inner.read_version(path))

    def replace_version(self, path: str, data: bytes, version: str) -> bool:
        assert isinstance(self._inner, VersionedFiles)
        inner = self._inner
        return self._write("replace_version", path, lambda: inner.replace_version(path, data, version))

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        return self._read("read_range", path, lambda: self._inner.read_range(path, offset, length))

    def open_input(self, path: str) -> BinaryIO:
        """Counts as one read, of the whole file."""
        return io.BytesIO(self._read("open_input", path, lambda: self._inner.read(path)))

    def open_output(self, path: str) -> OutputFile:
        self._record.require_alive()
        return _Output(self, self._inner.open_output(path), path)

    def put(self, path: str, data: bytes) -> None:
        self._write("put", path, lambda: self._inner.put(path, data))

    def put_if_absent(self, path: str, data: bytes) -> bool:
        return self._write("put_if_absent", path, lambda: self._inner.put_if_absent(path, data))

    def copy_if_absent(self, source: str, target: str) -> bool:
        return self._write("copy_if_absent", target, lambda: self._inner.copy_if_absent(source, target))

    def link_if_absent(self, source: str, target: str, *, is_symbolic: bool) -> bool:
        def link() -> bool:
            return self._inner.link_if_absent(source, target, is_symbolic=is_symbolic)

        return self._write("link_if_absent", target, link)

    def delete(self, path: str) -> bool:
        return self._write("delete", path, lambda: self._inner.delete(path))

    def _read(self, kind: str, path: str, read: Callable[[], bytes]) -> bytes:
        operation = Operation(kind, path)
        fault = self._record.begin(operation, is_write=False)
        assert fault is not Fault.STALE, "only a listing is stale"
        data = _perform(fault, operation, read)
        if fault is not Fault.BIT_FLIPPED or not data:
            return data
        middle = len(data) // 2
        return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]

    def _write(self, kind: str, path: str, write: Callable[[], _Answer]) -> _Answer:
        operation = Operation(kind, path)
        fault = self._record.begin(operation, is_write=True)
        if Fault.STALE in self._record.plan.reads.values():
            directory = posixpath.dirname(path)
            self._record.listings[directory] = self._inner.list(directory)
        return _perform(fault, operation, write)


class _Output:
    """ports.OutputFile whose commit is one write."""

    def __init__(self, storage: FaultyStorage, inner: OutputFile, path: str) -> None:
        self._storage = storage
        self._inner = inner
        self._path = path
        self._is_published = False

    def write(self, data: bytes | memoryview, /) -> int:
        self._storage._record.require_alive()
        return self._inner.write(data)

    def commit(self) -> bool:
        try:
            return self._storage._write("open_output", self._path, self._commit)
        finally:
            self.abort()

    def abort(self) -> None:
        """Discards the file of a process that is gone, too: nobody saw it, and an open handle would outlive the test."""
        self._inner.abort()

    def _commit(self) -> bool:
        """The second commit, for a duplicated request, finds that the name is taken."""
        if self._is_published:
            return False
        self._is_published = True
        return self._inner.commit()


def _perform(fault: Fault | None, operation: Operation, action: Callable[[], _Answer]) -> _Answer:
    if fault is Fault.CRASH_BEFORE:
        raise SimulatedCrash(f"before {operation.kind} {operation.path!r}")
    if fault is Fault.ERROR:
        raise StorageError(f"simulated failure: {operation.kind} {operation.path!r} did not happen")
    answer = action()
    if fault is Fault.CRASH_AFTER:
        raise SimulatedCrash(f"after {operation.kind} {operation.path!r}")
    if fault is Fault.REPLY_LOST:
        raise StorageError(f"simulated failure: the reply to {operation.kind} {operation.path!r} was lost")
    return action() if fault is Fault.DUPLICATED else answer
