"""A base file in which a key stands twice, as insert operations may write it: read and merged as Hudi does."""

from time import time_ns
from uuid import uuid4

import pytest

from eventide_adapters.format.slice.log_content.content import ArrowLogContent
from eventide_adapters.format.slice.merge.slice_merger import ArrowSliceMerger
from eventide_adapters.format.slice.merge.slice_reader import ArrowSliceReader
from eventide_adapters.storage.memory import MemoryStorage
from eventide_core.service.compaction.compact_slice import SliceCompactor
from eventide_core.table.files.log_block import BlockType, HeaderKey, encode_block, read_blocks
from eventide_core.table.files.slice_read import SliceRead
from support.files.one_slice import BASE, D0, D1, D2, LOGS, NEW_BASE, logged, task
from support.files.slices import base_file, data_block, delete_block, row

ROWS = [row(key, ts, f"{key}{ts}", D0, "old") for key, ts in (("a", 10), ("a", 30), ("b", 10), ("b", 20), ("c", 10))]


def positioned(block: bytes, base_instant: str) -> bytes:
    """The block as a writer of Hudi 1 makes it that has looked up its keys in the base file of an instant."""
    (read,) = read_blocks(lambda offset, length: block[offset : offset + length], len(block), "log", is_strict=True)
    header = {
        **read.header,
        HeaderKey.RECORD_POSITIONS: "AQAAAAAAAAAAAAAAOjAAAAEAAAAAAAEAEAAAAAAAAQA=",
        HeaderKey.BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS: base_instant,
    }
    content = block[read.content_offset : read.content_offset + read.content_length]
    return encode_block(BlockType(read.block_type), header, content)


def storage_of(*instants: str | None) -> MemoryStorage:
    """An upsert of `a` and a delete of `b`, each with positions in the base file of an instant, or without."""
    blocks = data_block(D1, [row("a", 20, "new", D1, "f-0")]), delete_block(D2, [("b", None)])
    storage = MemoryStorage(uuid4().hex)
    storage.put(BASE, base_file(ROWS))
    for path, block, instant in zip(LOGS, blocks, instants, strict=False):
        storage.put(path, block if instant is None else positioned(block, instant))
    return storage


@pytest.mark.parametrize(
    ("instants", "left"),
    [
        ((D0, D0), ["a30", "c10", "new"]),
        ((None, None), ["a30", "b20", "c10", "new"]),
        ((D0, None), ["a30", "b20", "c10", "new"]),
        ((D0, D1), ["a30", "b20", "c10", "new"]),
    ],
    ids=["by positions", "by keys", "one block has no positions", "one block has positions in another base file"],
)
def test_a_record_meets_every_row_of_its_key_if_all_blocks_have_positions(
    instants: tuple[str | None, ...], left: list[str]
) -> None:
    storage = storage_of(*instants)
    logs = tuple((path, len(storage.read(path))) for path in LOGS[:2])
    made = task(compacted=tuple(logged(*log) for log in logs), left_overs=(), carried_name=None)
    rows = ArrowSliceReader(storage).read(SliceRead("part=a", "f-0", BASE, logs, made.blocks), made.shape, ["val"])
    assert sorted(str(value) for batch in rows for value in batch.column("val").to_pylist()) == left

    result = SliceCompactor(storage, ArrowSliceMerger(storage), time_ns)(made)
    assert result.num_deletes == 5 - len(left)
    compacted = ArrowSliceReader(storage).read(
        SliceRead("part=a", "f-0", NEW_BASE, (), made.blocks), made.shape, ["val"]
    )
    assert sorted(str(value) for batch in compacted for value in batch.column("val").to_pylist()) == left


def test_a_doubled_key_is_found_in_a_base_file() -> None:
    storage, shape = storage_of(), task().shape
    assert ArrowLogContent(storage).records.doubled_key(BASE, shape) == "a"
    storage.put(BASE, base_file(ROWS[1:3]))
    assert ArrowLogContent(storage).records.doubled_key(BASE, shape) is None
