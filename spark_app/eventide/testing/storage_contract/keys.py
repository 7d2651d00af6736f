"""The contract of storages that have no directories."""

from eventide.testing.storage_contract.case import ContractPart
from eventide_core.ports import KeyedFiles, Storage


class KeyContract(ContractPart):
    """ports.KeyedFiles."""

    def test_a_file_is_discarded_whether_or_not_it_exists(self, storage: Storage) -> None:
        assert isinstance(storage, KeyedFiles)
        storage.put("part=a/file", b"data")
        storage.discard("part=a/file")
        storage.discard("part=a/file")
        assert storage.stat("part=a/file") is None
        assert storage.put_if_absent("part=a/file", b"again")

    def test_what_is_below_a_discarded_name_stays(self, storage: Storage) -> None:
        assert isinstance(storage, KeyedFiles)
        storage.put("part=a/file", b"data")
        storage.discard("part=a")
        assert storage.read("part=a/file") == b"data"
