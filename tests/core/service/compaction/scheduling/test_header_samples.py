"""Of each write of Hudi, one log file's headers are read: what is known of a slice is what reading all of them tells."""

import itertools
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

from eventide_adapters.format.slice.log_file.blocks import read_headers
from eventide_adapters.storage.local import LocalStorage
from eventide_core.action.compaction.slice_selection import Selection, SliceFacts
from eventide_core.config import Options
from eventide_core.ports import Engine, LogContent
from eventide_core.service.common.facts.log_facts import LogFactsReader
from eventide_core.service.compaction.scheduling.slice_facts import SliceFactsReader
from eventide_core.table.files.file_name import LogFileName
from eventide_core.table.files.file_slice import FileSlice, LogFile
from eventide_core.table.files.log_block import BlockType
from eventide_core.table.files.log_facts import HeaderCheck, LogFacts
from eventide_core.table.files.slice_read import BlockFilter
from eventide_core.table.records.event_time import EventTimeRange
from eventide_core.table.records.record_order import MergeRule
from eventide_core.table.records.record_shape import RecordShape
from eventide_core.table.schema.avro_schema import AvroSchema
from support.pasts import golden

WRITES = ("20260101000000001", "20260101000000002", "20260101000000003")
GROUPS = ("f0", "f1", "f2")
SHAPE = RecordShape(
    AvroSchema.of('{"type":"record","name":"r","fields":[]}'), MergeRule.EVENT_TIME_ORDERING, ("ts",), "ts"
)
BLOCKS = BlockFilter(frozenset(WRITES), None)

Wrote = frozenset[tuple[str, str]]
"""The write and the file group of each log file."""


@dataclass(slots=True)
class Content:
    """Log files, of which some writes' have partial updates; and the ones that were opened."""

    partial: Collection[str]
    opened: set[str] = field(default_factory=set[str])

    def check_blocks(self, logs: Sequence[LogFile], _: BlockFilter) -> frozenset[str]:
        self.opened |= {log.path for log in logs}
        return frozenset(log.path for log in logs if log.name.instant in self.partial)


class Here:
    """An engine that runs each task at once."""

    def map(self, function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
        return [function(item) for item in items]


def test_what_is_known_by_samples_is_what_all_headers_tell_in_all_small_histories() -> None:
    places = [*itertools.product(WRITES, GROUPS)]
    count = 0
    for size in range(1, len(places) + 1):
        for wrote in map(frozenset[tuple[str, str]], itertools.combinations(places, size)):
            for flags in itertools.product((False, True), repeat=len(WRITES)):
                partial = {write for write, is_partial in zip(WRITES, flags, strict=True) if is_partial}
                content = Content(partial)
                known = _known_partial(content, wrote, HeaderCheck.OF_WRITE)
                assert known == {_log(write, group).path for write, group in wrote if write in partial}
                count += 1
    assert count == 511 * 8


def test_one_slice_stands_for_all_that_have_the_same_writes() -> None:
    content = Content(())
    _known_partial(content, frozenset(itertools.product(WRITES, GROUPS)), HeaderCheck.OF_WRITE)
    assert content.opened == {_log(write, GROUPS[0]).path for write in WRITES}


def test_log_files_that_stand_for_themselves_are_all_read() -> None:
    content = Content(())
    wrote = frozenset(itertools.product(WRITES, GROUPS))
    _known_partial(content, wrote, HeaderCheck.OF_FILE)
    assert content.opened == {_log(write, group).path for write, group in wrote}


@pytest.mark.parametrize("name", [name for name in golden.names() if not name.startswith("v6")])
def test_the_log_files_of_one_write_of_hudi_are_all_partial_or_none_of_them(name: str, tmp_path: Path) -> None:
    """What the samples rest on, of all tables of versions 8 and 9 that real Hudi wrote."""
    table = golden.unpack(name, tmp_path)
    storage = LocalStorage(table)
    partial: dict[str, set[bool]] = {}
    for file in sorted(table.rglob(".*.log.*")):
        path = str(file.relative_to(table))
        parsed = LogFileName.parse(file.name)
        if path.startswith(".hoodie/") or parsed is None or parsed.suffix:
            continue
        for placed in read_headers(storage, path, file.stat().st_size):
            if placed.block.block_type not in (BlockType.COMMAND, BlockType.CORRUPT):
                assert placed.instant == parsed.instant, "a log file has the blocks of the write in its name alone"
                partial.setdefault(parsed.instant, set()).add(placed.is_partial)
    assert all(len(kinds) == 1 for kinds in partial.values()), partial
    assert any(True in kinds for kinds in partial.values()) == ("partial_updates" in name)


def _known_partial(content: Content, wrote: Wrote, check: HeaderCheck) -> set[str]:
    selections = [
        Selection(
            SliceFacts(FileSlice("p", group, WRITES[0], None, logs), tuple(_facts(log, check) for log in logs)),
            1,
            None,
            "",
        )
        for group in GROUPS
        if (logs := tuple(_log(write, group) for write in WRITES if (write, group) in wrote))
    ]
    engine = cast("Engine", Here())
    reader = SliceFactsReader(LogFactsReader(cast("LogContent", content), engine, engine), Options({}))
    checked = reader.checked(selections, BLOCKS, SHAPE)
    return {fact.log_file.path for s in checked for fact in s.facts.log_facts if fact.has_partial_updates}


def _facts(log: LogFile, check: HeaderCheck) -> LogFacts:
    times, nothing = EventTimeRange(1, 2), frozenset[str]()
    return LogFacts(
        log, times, frozenset({log.name.instant}), 0, nothing, check, has_merged_block=False, uncompacted=times
    )


def _log(write: str, group: str) -> LogFile:
    name = LogFileName(group, write, 1, "0-1-1")
    return LogFile(name, f"p/{name}", 100)
