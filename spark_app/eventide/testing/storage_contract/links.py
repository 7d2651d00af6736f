"""The contract of links, for storages that support them."""

import pytest

from eventide.testing.storage_contract.case import WRITERS, ContractPart, content_of, entry, race
from eventide_core.errors import MissingFileError
from eventide_core.ports import Storage


class SymbolicLinkContract(ContractPart):
    """Links that show their target."""

    def test_a_symbolic_link_shows_its_target_and_the_targets_size(self, storage: Storage) -> None:
        storage.put("part=a/source", b"data")
        assert storage.link_if_absent("part=a/source", "part=b/link", is_symbolic=True)
        info = entry(storage, "part=b/link")
        assert (info.size, info.link_target, info.is_directory) == (4, "part=a/source", False)
        assert storage.stat("part=b/link") == info
        assert storage.read("part=b/link") == b"data"
        assert storage.read_range("part=b/link", 1, 2) == b"at"

    def test_a_dangling_link_is_listed_but_holds_nothing(self, storage: Storage) -> None:
        storage.put("part=a/source", b"data")
        storage.link_if_absent("part=a/source", "part=b/link", is_symbolic=True)
        storage.delete("part=a/source")
        info = entry(storage, "part=b/link")
        assert (info.size, info.link_target) == (0, "part=a/source")
        assert storage.stat("part=b/link") is None
        with pytest.raises(MissingFileError, match="part=b/link"):
            storage.read("part=b/link")
        assert not storage.put_if_absent("part=b/link", b"ours")

    def test_a_deleted_link_leaves_its_target(self, storage: Storage) -> None:
        storage.put("part=a/source", b"data")
        storage.link_if_absent("part=a/source", "part=b/link", is_symbolic=True)
        assert storage.delete("part=b/link")
        assert storage.read("part=a/source") == b"data"
        assert storage.stat("part=b/link") is None

    def test_a_replaced_link_leaves_its_target(self, storage: Storage) -> None:
        storage.put("source", b"data")
        storage.link_if_absent("source", "link", is_symbolic=True)
        storage.put("link", b"own")
        assert storage.read("source") == b"data"
        assert storage.read("link") == b"own"
        assert entry(storage, "link").link_target is None

    def test_a_copy_of_a_link_is_a_file(self, storage: Storage) -> None:
        storage.put("source", b"data")
        storage.link_if_absent("source", "link", is_symbolic=True)
        assert storage.copy_if_absent("link", "copy")
        storage.delete("source")
        assert storage.read("copy") == b"data"

    def test_a_link_to_a_link_leads_to_the_file(self, storage: Storage) -> None:
        storage.put("source", b"data")
        storage.link_if_absent("source", "part=a/first", is_symbolic=True)
        assert storage.link_if_absent("part=a/first", "part=b/second", is_symbolic=True)
        storage.delete("part=a/first")
        assert storage.read("part=b/second") == b"data"

    def test_if_many_create_a_symbolic_link_exactly_one_wins(self, storage: Storage) -> None:
        check_race(storage, self.rounds, is_symbolic=True)

    def test_a_symbolic_link_onto_a_taken_name_changes_nothing(self, storage: Storage) -> None:
        check_taken_name(storage, is_symbolic=True)

    def test_a_symbolic_link_to_a_missing_file_is_not_made(self, storage: Storage) -> None:
        check_missing_file(storage, is_symbolic=True)


class HardLinkContract(ContractPart):
    """Several names of one file."""

    def test_a_hard_link_outlives_its_source(self, storage: Storage) -> None:
        storage.put("part=a/source", b"data")
        assert storage.link_if_absent("part=a/source", "part=b/link", is_symbolic=False)
        assert storage.delete("part=a/source")
        assert storage.read("part=b/link") == b"data"
        assert entry(storage, "part=b/link").link_target is None

    def test_if_many_create_a_hard_link_exactly_one_wins(self, storage: Storage) -> None:
        check_race(storage, self.rounds, is_symbolic=False)

    def test_a_hard_link_onto_a_taken_name_changes_nothing(self, storage: Storage) -> None:
        check_taken_name(storage, is_symbolic=False)

    def test_a_hard_link_to_a_missing_file_is_not_made(self, storage: Storage) -> None:
        check_missing_file(storage, is_symbolic=False)


class LinkContract(SymbolicLinkContract, HardLinkContract):
    """For storages that support both kinds of links."""

    def test_a_hard_link_to_a_symbolic_one_is_the_file(self, storage: Storage) -> None:
        storage.put("source", b"data")
        storage.link_if_absent("source", "part=a/first", is_symbolic=True)
        assert storage.link_if_absent("part=a/first", "part=b/second", is_symbolic=False)
        storage.delete("part=a/first")
        assert storage.read("part=b/second") == b"data"


def check_race(storage: Storage, rounds: int, *, is_symbolic: bool) -> None:
    for number in range(WRITERS):
        storage.put(f"source/{number}", content_of(number))

    def link(copy: Storage, number: int, name: str) -> bool:
        return copy.link_if_absent(f"source/{number}", name, is_symbolic=is_symbolic)

    race(storage, link, rounds)


def check_taken_name(storage: Storage, *, is_symbolic: bool) -> None:
    storage.put("source", b"source")
    storage.put("taken", b"taken")
    assert not storage.link_if_absent("source", "taken", is_symbolic=is_symbolic)
    assert storage.read("taken") == b"taken"


def check_missing_file(storage: Storage, *, is_symbolic: bool) -> None:
    with pytest.raises(MissingFileError, match="none"):
        storage.link_if_absent("none", "link", is_symbolic=is_symbolic)
    assert "link" not in [info.path for info in storage.list("")]
