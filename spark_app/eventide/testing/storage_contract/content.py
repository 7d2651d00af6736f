"""The contract of file content: a file exists whole or not at all, and is read back as written."""

import pickle
import random

import pytest

from eventide.testing.storage_contract.case import LARGE_BYTES, ContractPart, StorageCase, entry
from eventide_core.errors import MissingFileError
from eventide_core.ports import Storage


class ContentContract(ContractPart):
    """Reads, replacements, writes in pieces, copies, and all of these from an executor."""

    @pytest.mark.parametrize("size", [0, 1, LARGE_BYTES])
    def test_a_file_is_read_back_whole(self, storage: Storage, size: int) -> None:
        data = random.Random(size).randbytes(size)
        storage.put("part=a/file", data)
        assert storage.read("part=a/file") == data
        assert entry(storage, "part=a/file").size == size

    def test_put_replaces_the_whole_file(self, storage: Storage) -> None:
        storage.put("file", b"a longer first content")
        storage.put("file", b"second")
        assert storage.read("file") == b"second"

    def test_a_range_ends_where_the_file_ends(self, storage: Storage) -> None:
        storage.put("file", b"0123456789")
        assert storage.read_range("file", 2, 3) == b"234"
        assert storage.read_range("file", 8, 5) == b"89"
        assert storage.read_range("file", 10, 5) == b""
        assert storage.read_range("file", 3, 0) == b""

    def test_an_input_stream_is_seekable(self, storage: Storage) -> None:
        storage.put("file", b"0123456789")
        with storage.open_input("file") as stream:
            assert stream.seek(-2, 2) == 8
            assert stream.read() == b"89"
            assert stream.seek(1) == 1
            assert stream.read(3) == b"123"

    def test_a_missing_file_is_missing_however_it_is_read(self, storage: Storage) -> None:
        storage.put("part=a/file", b"data")
        for path in ("none", "part=a/none", "none/none", "part=a"):
            with pytest.raises(MissingFileError, match=path):
                storage.read(path)
            with pytest.raises(MissingFileError, match=path):
                storage.read_range(path, 0, 1)
            with pytest.raises(MissingFileError, match=path), storage.open_input(path) as stream:
                stream.read()

    def test_a_file_being_written_is_seen_by_nobody(self, storage: Storage) -> None:
        storage.put("part=a/other", b"")
        output = storage.open_output("part=a/file")
        output.write(b"half")
        assert [info.path for info in storage.list("part=a")] == ["part=a/other"]
        assert storage.stat("part=a/file") is None
        assert output.commit()
        assert storage.read("part=a/file") == b"half"

    def test_a_file_is_written_in_pieces(self, storage: Storage) -> None:
        data = random.Random(7).randbytes(LARGE_BYTES)
        output = storage.open_output("part=a/file")
        for start in range(0, LARGE_BYTES, 100_000):
            piece = data[start : start + 100_000]
            assert output.write(memoryview(piece)) == len(piece)
        assert output.commit()
        assert storage.read("part=a/file") == data

    def test_an_aborted_file_was_never_there(self, storage: Storage) -> None:
        output = storage.open_output("part=a/file")
        output.write(b"half")
        output.abort()
        assert storage.stat("part=a/file") is None
        assert storage.list("part=a") == ()

    def test_abort_after_commit_is_harmless(self, storage: Storage) -> None:
        output = storage.open_output("file")
        output.write(b"whole")
        assert output.commit()
        output.abort()
        assert storage.read("file") == b"whole"

    def test_a_name_taken_while_writing_stays_the_others(self, storage: Storage) -> None:
        output = storage.open_output("file")
        output.write(b"ours")
        storage.put("file", b"theirs")
        assert not output.commit()
        assert storage.read("file") == b"theirs"

    def test_a_copy_outlives_its_source(self, storage: Storage) -> None:
        data = random.Random(3).randbytes(LARGE_BYTES)
        storage.put("part=a/source", data)
        assert storage.copy_if_absent("part=a/source", "part=b/copy")
        assert storage.delete("part=a/source")
        assert storage.read("part=b/copy") == data

    def test_a_copy_onto_a_taken_name_changes_nothing(self, storage: Storage) -> None:
        storage.put("source", b"source")
        storage.put("taken", b"taken")
        assert not storage.copy_if_absent("source", "taken")
        assert storage.read("taken") == b"taken"

    def test_a_copy_of_a_missing_file_leaves_nothing(self, storage: Storage) -> None:
        with pytest.raises(MissingFileError, match="none"):
            storage.copy_if_absent("none", "copy")
        assert storage.stat("copy") is None

    def test_a_pickled_copy_meets_the_same_files(self, storage: Storage) -> None:
        storage.put("part=a/file", b"data")
        copy = pickle.loads(pickle.dumps(storage))
        assert copy.root == storage.root
        assert copy.read("part=a/file") == b"data"
        copy.put("part=a/other", b"from afar")
        assert storage.read("part=a/other") == b"from afar"


class BehindContract(ContractPart):
    """Other programs see the same files. For a case with direct access to the files."""

    def test_a_written_file_is_visible_without_the_adapter(self, case: StorageCase) -> None:
        assert case.read_behind is not None
        case.storage.put("part=a/file", b"one")
        assert case.read_behind("part=a/file") == b"one"

    def test_what_another_program_wrote_is_read(self, case: StorageCase) -> None:
        assert case.write_behind is not None
        case.write_behind("part=a/file", b"theirs")
        assert case.storage.read("part=a/file") == b"theirs"
        assert [info.path for info in case.storage.list("part=a")] == ["part=a/file"]
        assert not case.storage.put_if_absent("part=a/file", b"ours")
