"""The contract of conditional replacements, for storages that support them."""

from eventide.testing.storage_contract.case import ContractPart, content_of, race
from eventide_core.ports import Storage, VersionedFiles


class VersionContract(ContractPart):
    """ports.VersionedFiles, on which storage-based locks are built."""

    def test_a_version_is_replaced_once(self, storage: Storage) -> None:
        files = _versioned(storage)
        storage.put("part=a/file", b"first")
        first, version = _read(files, "part=a/file")
        assert first == b"first"
        assert files.replace_version("part=a/file", b"second", version)
        assert not files.replace_version("part=a/file", b"third", version)
        second, next_version = _read(files, "part=a/file")
        assert second == storage.read("part=a/file") == b"second"
        assert next_version != version

    def test_what_is_absent_has_no_version_and_is_not_replaced(self, storage: Storage) -> None:
        files = _versioned(storage)
        storage.put("file", b"data")
        _, version = _read(files, "file")
        storage.delete("file")
        assert files.read_version("file") is None
        assert not files.replace_version("file", b"other", version)
        assert storage.stat("file") is None

    def test_if_many_replace_one_version_one_wins(self, storage: Storage) -> None:
        versions: dict[str, str] = {}
        for number in range(self.rounds):
            storage.put(f"race/{number}", b"old")
            _, versions[f"race/{number}"] = _read(_versioned(storage), f"race/{number}")

        def replace(copy: Storage, number: int, name: str) -> bool:
            return _versioned(copy).replace_version(name, content_of(number), versions[name])

        race(storage, replace, self.rounds)


def _versioned(storage: Storage) -> VersionedFiles:
    assert isinstance(storage, VersionedFiles)
    return storage


def _read(files: VersionedFiles, path: str) -> tuple[bytes, str]:
    read = files.read_version(path)
    assert read is not None
    return read
