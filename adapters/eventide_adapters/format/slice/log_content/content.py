"""Answers the planner's questions about log files by their headers, and by the event times of their records."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import TYPE_CHECKING, TypeVar

from eventide_adapters.format.encoding.avro.event_time_properties import event_times_in_header
from eventide_adapters.format.slice.log_file.blocks import (
    PlacedBlock,
    counting_blocks,
    read_headers,
    refuse_unknown,
    rollback_target,
)
from eventide_core.errors import EventideError
from eventide_core.ports import Storage
from eventide_core.table.files.file_slice import LogFile
from eventide_core.table.files.log_block import BlockType, LogBlock
from eventide_core.table.files.log_facts import HeaderCheck, LogFacts
from eventide_core.table.files.slice_read import BlockFilter
from eventide_core.table.records.event_time import EventTimeRange
from eventide_core.table.records.record_shape import RecordShape

if TYPE_CHECKING:
    from eventide_adapters.format.slice.log_content.event_times import BlockEventTimes
    from eventide_adapters.format.slice.log_content.records import ArrowRecordContent

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ArrowLogContent:
    """ports.LogContent, in columns. A torn block that may count raises an error: a plan needs the whole log file."""

    storage: Storage

    def summarize(self, logs: Sequence[LogFile], shape: RecordShape) -> list[LogFacts | EventideError]:
        """The facts of each log file. Counts all its blocks, whatever the state of their instants.

        Reads the headers. Of a data block whose schema states its event times, reads nothing else. Of the others, small
        ones are decoded together.
        """
        attempts = [_attempt(partial(_stated, self.storage, log, shape)) for log in logs]
        unread = [placed for attempt in attempts if isinstance(attempt, tuple) for placed in attempt[1]]
        event_times = self._event_times(unread, shape) if unread else None
        return [
            attempt if isinstance(attempt, EventideError) else _attempt(partial(_complete, *attempt, event_times))
            for attempt in attempts
        ]

    def _event_times(self, unread: list[PlacedBlock], shape: RecordShape) -> "BlockEventTimes | EventideError":
        # Imported here: Arrow takes longer to import than most tables take to look at.
        from eventide_adapters.format.slice.log_content.event_times import BlockEventTimes

        event_times = _attempt(partial(BlockEventTimes.of, self.storage, shape))
        if isinstance(event_times, BlockEventTimes):
            event_times.prepare(unread)
        return event_times

    def check_blocks(self, logs: Sequence[LogFile], blocks: BlockFilter) -> frozenset[str]:
        counting = counting_blocks(self.storage, [(log.path, log.size) for log in logs], blocks, is_strict=True)
        return frozenset(placed.path for placed in counting if placed.is_partial)

    @property
    def records(self) -> "ArrowRecordContent":
        from eventide_adapters.format.slice.log_content.records import ArrowRecordContent

        return ArrowRecordContent(self.storage)


def _stated(storage: Storage, log: LogFile, shape: RecordShape) -> tuple[LogFacts, list[PlacedBlock]]:
    """What the headers of a log file's blocks state, and the blocks that don't state their event times."""
    shape.require_event_time_field(storage.root)
    rolled_back: list[str] = []
    torn: list[LogBlock] = []
    written: list[PlacedBlock] = []
    for placed in read_headers(storage, log.path, log.size):
        match placed.block.block_type:
            case BlockType.COMMAND:
                rolled_back.append(rollback_target(placed))
            case BlockType.CORRUPT:
                torn.append(placed.block)
            case _:
                refuse_unknown(placed)
                written.append(placed)
    known = [event_times_in_header(placed.block, shape.event_time_source) for placed in written]
    whole = {placed.instant for placed in written}
    named = {block.instant_time for block in torn if block.instant_time is not None}
    event_times = reduce(EventTimeRange.union, filter(None, known), EventTimeRange(None, None))
    facts = LogFacts(
        log,
        event_times,
        frozenset(whole | named),
        delete_count=0,
        rolled_back=frozenset(rolled_back),
        check=HeaderCheck.OF_FILE if torn else HeaderCheck.NONE,
        has_merged_block=any(placed.merged_instants for placed in written),
        uncompacted=event_times,
        has_partial_updates=any(placed.is_partial for placed in written),
        nameless_from=next((block.offset for block in torn if block.instant_time is None), None),
        torn_instants=frozenset(named - whole),
    )
    return facts, [placed for placed, times in zip(written, known, strict=True) if times is None]


def _complete(
    stated: LogFacts, unread: list[PlacedBlock], event_times: "BlockEventTimes | EventideError | None"
) -> LogFacts:
    """`event_times` reads the blocks that are unread, or is what keeps it from that."""
    for placed in unread:
        if isinstance(event_times, EventideError):
            raise event_times
        assert event_times is not None
        known, deleted = event_times(placed)
        times, deletes = stated.event_times.union(known), stated.delete_count + deleted
        stated = replace(stated, event_times=times, delete_count=deletes, uncompacted=times)
    return stated


def _attempt(function: Callable[[], T]) -> T | EventideError:
    try:
        return function()
    except EventideError as error:
        return error
