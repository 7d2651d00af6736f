"""A local and a memory storage, two independent implementations of one contract, always give the same results.

Not compared: times, and directories that have become empty: only the local one keeps those.
"""

import tempfile
from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st

from eventide_adapters.storage.local import LocalStorage
from eventide_adapters.storage.memory import MemoryStorage
from eventide_core.errors import EventideError
from eventide_core.ports import Storage

_paths = st.sampled_from(["a", "b", "p/a", "p/b", "p/q/a", "../a"])
_data = st.binary(max_size=4)


def _operation(name: str, *arguments: st.SearchStrategy[object]) -> st.SearchStrategy[Callable[[Storage], object]]:
    return st.tuples(*arguments).map(lambda given: lambda storage: getattr(storage, name)(*given))


_links = st.tuples(_paths, _paths, st.booleans()).map(
    lambda link: lambda storage: storage.link_if_absent(link[0], link[1], is_symbolic=link[2])
)
_operations = st.one_of(
    _operation("put", _paths, _data),
    _operation("put_if_absent", _paths, _data),
    _operation("copy_if_absent", _paths, _paths),
    _links,
    _operation("delete", _paths),
    _operation("read", _paths),
)


@settings(max_examples=200)
@given(st.lists(_operations, max_size=12))
def test_a_local_and_a_memory_storage_answer_alike(operations: list[Callable[[Storage], object]]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        local, memory = LocalStorage(directory), MemoryStorage.from_dump("agree", {})
        for operation in operations:
            assert _answer(local, operation) == _answer(memory, operation)
        assert _files(local, "") == _files(memory, "")


def _answer(storage: Storage, operation: Callable[[Storage], object]) -> object:
    try:
        return operation(storage)
    except EventideError as error:
        return type(error)


def _files(storage: Storage, directory: str) -> list[tuple[str, int, str | None, bytes | None]]:
    files: list[tuple[str, int, str | None, bytes | None]] = []
    for info in storage.list(directory):
        if info.path == ".hoodie":
            continue
        if info.is_directory:
            files += _files(storage, info.path)
        else:
            content = storage.read(info.path) if storage.stat(info.path) is not None else None
            files.append((info.path, info.size, info.link_target, content))
    return files
