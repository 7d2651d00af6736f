"""The contract of concurrent writers: if several create one name, exactly one wins."""

from eventide.testing.storage_contract.case import WRITERS, ContractPart, content_of, race
from eventide_core.ports import Storage


class RaceContract(ContractPart):
    """If several writers create one name, exactly one succeeds."""

    def test_put_if_absent_leaves_a_taken_name_as_it_was(self, storage: Storage) -> None:
        assert storage.put_if_absent("part=a/file", b"first")
        before = storage.stat("part=a/file")
        assert not storage.put_if_absent("part=a/file", b"second")
        assert not storage.put_if_absent("part=a/file", b"")
        assert storage.read("part=a/file") == b"first"
        assert storage.stat("part=a/file") == before
        assert storage.put_if_absent("part=a/empty", b"")
        assert not storage.put_if_absent("part=a/empty", b"")
        assert storage.read("part=a/empty") == b""

    def test_if_many_put_exactly_one_wins(self, storage: Storage) -> None:
        def put(copy: Storage, number: int, name: str) -> bool:
            return copy.put_if_absent(name, content_of(number))

        race(storage, put, self.rounds)

    def test_if_many_write_a_file_exactly_one_wins(self, storage: Storage) -> None:
        def write(copy: Storage, number: int, name: str) -> bool:
            output = copy.open_output(name)
            output.write(content_of(number))
            return output.commit()

        race(storage, write, self.rounds)

    def test_if_many_copy_exactly_one_wins(self, storage: Storage) -> None:
        for number in range(WRITERS):
            storage.put(f"source/{number}", content_of(number))

        def copy_file(copy: Storage, number: int, name: str) -> bool:
            return copy.copy_if_absent(f"source/{number}", name)

        race(storage, copy_file, self.rounds)
