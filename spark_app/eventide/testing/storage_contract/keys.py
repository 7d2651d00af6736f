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

    def test_the_info_of_a_file_is_of_a_file_alone(self, storage: Storage) -> None:
        assert isinstance(storage, KeyedFiles)
        storage.put("part=a/file", b"data")
        assert storage.info_of_file("part=a/file") == storage.stat("part=a/file")
        assert storage.info_of_file("part=a/other") is None
        assert storage.info_of_file("part=a") is None

    def test_a_tree_is_discarded_with_all_that_is_below_it_and_nothing_beside_it(self, storage: Storage) -> None:
        assert isinstance(storage, KeyedFiles)
        for path in ("tree/file", "tree/part=a/file", "tree/part=a/deep/file", "tree2/file", "tree.file"):
            storage.put(path, b"data")
        storage.discard_tree("tree")
        storage.discard_tree("tree")
        assert [entry.path for entry in storage.list("")] == ["tree.file", "tree2"]
        assert storage.list("tree") == ()

    def test_what_is_below_a_discarded_name_stays(self, storage: Storage) -> None:
        assert isinstance(storage, KeyedFiles)
        storage.put("part=a/file", b"data")
        storage.discard("part=a")
        assert storage.read("part=a/file") == b"data"
