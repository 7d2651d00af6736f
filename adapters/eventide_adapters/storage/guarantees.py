"""The core of the storage contract: each guarantee with a check that any storage can be put to.

`eventide storage check` runs all of them, `eventide.testing.storage_contract` runs them as tests, and the first write to a
storage of a package runs FIRST_TRIAL. Each check uses a directory of its own, which it leaves for the caller to remove.
"""

import pickle
import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Final

from eventide_core.errors import EventideError, MissingFileError, RefusedError, StorageError, UnsafePathError
from eventide_core.ports import Capability, FileInfo, OutputFile, Storage, VersionedFiles

LARGE_BYTES: Final = (8 << 20) + 1
"""More than one part of an upload in parts."""

_WRITERS: Final = 8
_UNSAFE_PATHS: Final = ("../other", "/etc/passwd", "part/../../other", "part//file", "")


class BrokenGuaranteeError(Exception):
    """What a storage does instead of what it guarantees."""


@dataclass(frozen=True, slots=True)
class Guarantee:
    """`text` is what holds. `check` raises BrokenGuaranteeError; `needs` returns whether the storage supports it."""

    name: str
    text: str
    check: Callable[[Storage, str], None]
    needs: Callable[[Storage], bool] = lambda _: True

    def broken_by(self, storage: Storage, directory: str) -> str | None:
        """What the storage does instead, in an empty directory; None if the guarantee holds.

        Raises StorageError if the storage cannot be reached.
        """
        try:
            self.check(storage, directory)
        except (BrokenGuaranteeError, MissingFileError, RefusedError, UnsafePathError) as broken:
            return str(broken)
        except EventideError:
            raise
        except Exception as failure:  # whatever a storage of others raises
            return f"it raised {type(failure).__name__} ({failure}) instead of a StorageError"
        return None


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise BrokenGuaranteeError(otherwise)


def _listed(storage: Storage, path: str) -> FileInfo | None:
    """The entry of that name in the listing of its directory."""
    directory, _, _ = path.rpartition("/")
    return next((info for info in storage.list(directory) if info.path == path), None)


def _opened(storage: Storage, path: str, opened: ExitStack) -> OutputFile:
    """A file to write, which is aborted at the end unless it was committed."""
    output = storage.open_output(path)
    opened.callback(output.abort)
    return output


def _exclusive(storage: Storage, directory: str) -> None:
    path = f"{directory}/file"
    _require(storage.put_if_absent(path, b"first"), "a create of a new name reported that the name is taken")
    _require(not storage.put_if_absent(path, b"second"), "a second create of a name succeeded")
    _require(storage.read(path) == b"first", "a second create of a name failed, but replaced the content")


def _exclusive_large(storage: Storage, directory: str) -> None:
    path = f"{directory}/file"
    data = [random.Random(seed).randbytes(LARGE_BYTES) for seed in range(2)]
    with ExitStack() as opened:
        outputs = [_opened(storage, path, opened) for _ in data]
        for output, content in zip(outputs, data, strict=True):
            output.write(content)
        _require(outputs[0].commit(), "a create of a new name reported that the name is taken")
        _require(not outputs[1].commit(), "a second create of a large file succeeded")
    _require(storage.read(path) == data[0], "a large file is not read back as it was written")


def _race(storage: Storage, directory: str) -> None:
    path = f"{directory}/file"
    copies = [pickle.loads(pickle.dumps(storage)) for _ in range(_WRITERS)]
    contents = [bytes([number]) * 10_000 for number in range(_WRITERS)]
    with ThreadPoolExecutor(_WRITERS) as pool:
        won = list(pool.map(lambda copy, content: copy.put_if_absent(path, content), copies, contents))
    _require(won.count(True) == 1, f"of {_WRITERS} writers that create one name at once, {won.count(True)} succeeded")
    _require(storage.read(path) == contents[won.index(True)], "the writer that succeeded wrote other content")


def _read_after_write(storage: Storage, directory: str) -> None:
    path = f"{directory}/file"
    for data in (b"a longer first content", b"second", b""):
        storage.put(path, data)
        _require(storage.read(path) == data, "a read after a write did not return what was written")
        info = storage.stat(path)
        _require(info is not None and not info.is_directory, "a file that was written is not there")
        _require(info is not None and info.size == len(data), "a file that was written has another size")


def _list_after_write(storage: Storage, directory: str) -> None:
    paths = [f"{directory}/{name}" for name in (".hidden", "a", "b/deep", "c")]
    for path in paths:
        storage.put(path, b"12")
    listed = [(info.path, info.size, info.is_directory) for info in storage.list(directory)]
    expected = [(path, 2, False) for path in paths if "deep" not in path] + [(f"{directory}/b", 0, True)]
    _require(
        sorted(listed) == sorted(expected), f"a listing after writes of {paths} showed {[path for path, *_ in listed]}"
    )
    _require(listed == sorted(listed), "a listing is not in the order of its names")


def _list_after_delete(storage: Storage, directory: str) -> None:
    path = f"{directory}/file"
    storage.put(path, b"data")
    _require(storage.delete(path), "a delete of a file reported that it was absent")
    _require(storage.stat(path) is None, "a deleted file is still there")
    _require(_listed(storage, path) is None, "a listing shows a deleted file")
    _require(not storage.delete(path), "a delete of an absent file reported that it was there")
    _require(storage.put_if_absent(path, b"again"), "the name of a deleted file cannot be created again")


def _ranges(storage: Storage, directory: str) -> None:
    path = f"{directory}/file"
    storage.put(path, b"0123456789")
    for offset, length, expected in ((2, 3, b"234"), (8, 5, b"89"), (10, 5, b""), (3, 0, b"")):
        got = storage.read_range(path, offset, length)
        _require(got == expected, f"the {length} bytes at {offset} of 0123456789 were {got!r}")
    with storage.open_input(path) as stream:
        _require(stream.seek(-2, 2) == 8 and stream.read() == b"89", "a stream is not seekable from its end")
        _require(stream.seek(1) == 1 and stream.read(3) == b"123", "a stream is not seekable")


def _missing(storage: Storage, directory: str) -> None:
    path = f"{directory}/none"
    _require(storage.stat(path) is None, "a file that was never written is there")
    _require(storage.list(path) == (), "a directory that was never written is not empty")
    for read in (storage.read, lambda name: storage.read_range(name, 0, 1)):
        try:
            read(path)
        except MissingFileError:
            continue
        raise BrokenGuaranteeError("a read of an absent file returned content")


def _whole_or_not(storage: Storage, directory: str) -> None:
    path = f"{directory}/file"
    with ExitStack() as opened:
        _opened(storage, path, opened).write(b"half")
        _require(storage.stat(path) is None and _listed(storage, path) is None, "a file is visible while it is written")
    _require(storage.stat(path) is None and storage.list(directory) == (), "an aborted file left something behind")


def _copy(storage: Storage, directory: str) -> None:
    source, target = f"{directory}/source", f"{directory}/target"
    data = random.Random(3).randbytes(LARGE_BYTES)
    storage.put(source, data)
    _require(storage.copy_if_absent(source, target), "a copy to a new name reported that the name is taken")
    _require(storage.read(target) == data, "a copy has another content than its source")
    storage.put(source, b"other")
    _require(not storage.copy_if_absent(source, target), "a copy onto a taken name succeeded")
    _require(storage.read(target) == data, "a copy onto a taken name replaced the content")


def _link(*, is_symbolic: bool) -> Callable[[Storage, str], None]:
    def check(storage: Storage, directory: str) -> None:
        source, link = f"{directory}/source", f"{directory}/link"
        storage.put(source, b"data")
        _require(storage.link_if_absent(source, link, is_symbolic=is_symbolic), "a link to a new name was not made")
        _require(not storage.link_if_absent(source, link, is_symbolic=is_symbolic), "a link onto a taken name was made")
        info = _listed(storage, link)
        _require(info is not None and info.size == 4, "a listing does not show a link with the size of its target")
        target = source if is_symbolic else None
        _require(
            info is not None and info.link_target == target, f"a listing does not show {target} as a link's target"
        )
        _require(storage.read(link) == b"data", "a link does not lead to its source")
        storage.delete(source if not is_symbolic else link)
        _require(storage.read(link if not is_symbolic else source) == b"data", "a delete of one name removed both")

    return check


def _version(storage: Storage, directory: str) -> None:
    assert isinstance(storage, VersionedFiles)
    path = f"{directory}/file"
    storage.put(path, b"first")
    current = storage.read_version(path)
    _require(current is not None and current[0] == b"first", "a file that was written has no version")
    assert current is not None
    _require(storage.replace_version(path, b"second", current[1]), "a replacement of the current version failed")
    _require(not storage.replace_version(path, b"third", current[1]), "a replacement of an old version succeeded")
    _require(storage.read(path) == b"second", "the replacement that succeeded wrote other content")


def _pickled(storage: Storage, directory: str) -> None:
    storage.put(f"{directory}/file", b"data")
    copy: Storage = pickle.loads(pickle.dumps(storage))
    _require(copy.root == storage.root, f"a pickled copy has another root, {copy.root}")
    _require(copy.read(f"{directory}/file") == b"data", "a pickled copy does not read what was written")


def _unsafe_paths(storage: Storage, directory: str) -> None:  # noqa: ARG001  # as every check
    for path in _UNSAFE_PATHS:
        try:
            storage.read(path)
        except UnsafePathError:
            continue
        except StorageError as other:
            raise BrokenGuaranteeError(f"the path {path!r} was not refused as unsafe: {other}") from other
        raise BrokenGuaranteeError(f"the path {path!r}, which may leave the table, was read")


def _has(capability: Capability) -> Callable[[Storage], bool]:
    return lambda storage: capability in storage.capabilities


FIRST_TRIAL: Final = (
    Guarantee("exclusive create", "a create of a taken name fails and changes nothing", _exclusive),
    Guarantee("read after write", "a file is read back whole, as it was written last", _read_after_write),
    Guarantee("list after write", "a listing shows every file that was written, by name", _list_after_write),
    Guarantee("list after delete", "a deleted file is gone from reads and listings", _list_after_delete),
)
"""The guarantees without which rows could be lost or doubled."""

GUARANTEES: Final = (
    *FIRST_TRIAL,
    Guarantee("exclusive create, large", "the same for a file that is sent in parts", _exclusive_large),
    Guarantee("exclusive create, at once", f"if {_WRITERS} writers create a name at once, one succeeds", _race),
    Guarantee("whole or not", "a file that is being written is visible to nobody", _whole_or_not),
    Guarantee("ranges", "a range of a file is read, and ends where the file ends", _ranges),
    Guarantee("absent files", "an absent file is reported as absent", _missing),
    Guarantee("copies", "a copy is whole and replaces nothing", _copy),
    Guarantee(
        "symbolic links",
        "a link shows its target and replaces nothing",
        _link(is_symbolic=True),
        _has(Capability.SYMLINK),
    ),
    Guarantee("hard links", "a file has several names", _link(is_symbolic=False), _has(Capability.HARDLINK)),
    Guarantee(
        "versions",
        "a replacement on the condition of a version succeeds once, which a storage-based lock needs",
        _version,
        lambda storage: isinstance(storage, VersionedFiles),
    ),
    Guarantee("copies on executors", "a pickled copy of the storage sees the same files", _pickled),
    Guarantee("paths stay below the root", "a path that would leave the table is refused", _unsafe_paths),
)
