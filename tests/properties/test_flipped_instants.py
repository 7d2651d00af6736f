"""Every bit of a log block's instant flips: `verify` finds it, and no query or compaction loses a row silently."""

from collections.abc import Iterator, Mapping
from functools import partial

import pytest

from eventide.bootstrap import Application
from eventide.testing.crash_enumeration import OPTIONS, Bench, Moment, pending_plan
from eventide.testing.histories import EPOCH_MS
from eventide_adapters.storage.memory import MemoryFile
from eventide_core.action.compaction.request import CompactionRequest
from eventide_core.config import EXCLUSIVE, LinkChoice
from eventide_core.errors import CorruptLogBlockError, EventideError
from eventide_core.ports import NoProgress
from eventide_core.table.files.file_name import LogFileName
from eventide_core.table.files.log_block import BlockType, read_blocks
from support.run.campaign import IS_PROOF
from support.run.reach import reached
from support.tables.compacted_bench import compacted_bench

VERSIONS = (6, 9)
BITS = 8
_KEY_AND_LENGTH = 4 + 4


pytestmark = pytest.mark.campaign


def flipped(files: Mapping[str, MemoryFile]) -> Iterator[tuple[str, MemoryFile]]:
    """Each log file, once for each bit of the instants in its block headers; for every fifth bit unless in a campaign."""
    for path, file in sorted(files.items()):
        if path.startswith(".hoodie") or LogFileName.parse(path.rpartition("/")[2]) is None:
            continue
        for block in read_blocks(partial(_part, file.data), len(file.data), path, is_strict=True):
            assert block.block_type is not BlockType.COMMAND
            instant = (block.instant_time or "").encode()
            start = file.data.index(instant, block.offset)
            assert file.data[start - _KEY_AND_LENGTH : start - 4] == bytes(4), "the key of INSTANT_TIME"
            for bit in range(0, BITS * len(instant), 1 if IS_PROOF else 5):
                data = bytearray(file.data)
                data[start + bit // BITS] ^= 1 << bit % BITS
                yield path, MemoryFile(bytes(data), file.modified_ms)


def _part(data: bytes, offset: int, length: int) -> bytes:
    return data[offset : offset + length]


@pytest.mark.parametrize("version", VERSIONS)
def test_verify_finds_each_flipped_bit_of_an_instant(version: int) -> None:
    bench, moment = compacted_bench("flipped-instants", version, {**OPTIONS, EXCLUSIVE: "true"})
    assert verified(bench, moment) == set()
    live = {log.path for found in bench.process().state().view.latest_slices() for log in found.log_files}
    for path, file in flipped({path: file for path, file in moment.files.items() if path in live}):
        failed = verified(bench, Moment({**moment.files, path: file}, moment.time_ms))
        assert "log-blocks" in failed, path
        reached(f"flipped bits of instants found, version {version}")


@pytest.mark.parametrize("version", VERSIONS)
def test_a_flipped_instant_costs_a_query_or_a_compaction_an_error_at_most(version: int) -> None:
    bench, moment = compacted_bench("flipped-instants", version, {**OPTIONS, EXCLUSIVE: "true"})
    before = snapshot(bench.process())
    for path, file in flipped(moment.files):
        bench.load(Moment({**moment.files, path: file}, moment.time_ms))
        try:
            assert snapshot(bench.process()) == before, path
            reached(f"flipped bits of instants that change no row, version {version}")
        except CorruptLogBlockError:
            reached(f"flipped bits of instants refused by readers, version {version}")
        try:
            compact(bench.process())
        except EventideError:
            continue
        assert snapshot(bench.process()) == before, path


def verified(bench: Bench, moment: Moment) -> set[str]:
    bench.load(moment)
    found = bench.process().verifier.verify(is_deep=False, progress=NoProgress())
    return {check.name for check in found.failed}


def compact(application: Application) -> None:
    application.scheduler.schedule(CompactionRequest(EPOCH_MS + 1000, None, LinkChoice.COPY))
    application.runner.execute(pending_plan(application).instant, NoProgress())


def snapshot(application: Application) -> list[tuple[object, ...]]:
    plan = application.queries.snapshot()
    rows = [
        (row["key"], row["ms"], row["word"])
        for found in plan.slices
        for batch in application.reader.read(found, plan.shape, None)
        for row in batch.to_pylist()
    ]
    return sorted(rows)
