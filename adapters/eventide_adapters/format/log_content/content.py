"""Answers the planner's questions about log files by their headers, and by the event times of their records."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from eventide_adapters.format.avro.event_time_properties import event_times_in_header
from eventide_adapters.format.log_file.blocks import (
    PlacedBlock,
    counting_blocks,
    read_headers,
    refuse_unknown,
    rollback_target,
)
from eventide_core.errors import EventideError
from eventide_core.ports import LogSummary, Storage
from eventide_core.table.files.file_slice import LogFile
from eventide_core.table.files.log_block import BlockType
from eventide_core.table.files.slice_read import BlockFilter
from eventide_core.table.records.event_time import EventTimeRange
from eventide_core.table.records.record_shape import RecordShape

if TYPE_CHECKING:
    from eventide_adapters.format.log_content.event_times import BlockEventTimes
    from eventide_adapters.format.log_content.records import ArrowRecordContent

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ArrowLogContent:
    """ports.LogContent, in columns. A torn block that may count raises an error: a plan needs the whole log file."""

    storage: Storage

    def summarize(self, logs: Sequence[LogFile], shape: RecordShape) -> list[LogSummary | EventideError]:
        """The summary of each log file. Counts all its blocks, whatever the state of their instants.

        Reads the headers. Of a data block whose schema states its event times, reads nothing else. Of the others, small
        ones are decoded together.
        """
        attempts = [_attempt(partial(_Headers.of, self.storage, log, shape)) for log in logs]
        unread = [placed for headers in attempts if isinstance(headers, _Headers) for placed in headers.unread]
        event_times = self._event_times(unread, shape) if unread else None
        return [
            headers if isinstance(headers, EventideError) else _attempt(partial(headers.summary, event_times))
            for headers in attempts
        ]

    def _event_times(self, unread: list[PlacedBlock], shape: RecordShape) -> "BlockEventTimes | EventideError":
        # Imported here: Arrow takes longer to import than most tables take to look at.
        from eventide_adapters.format.log_content.event_times import BlockEventTimes

        event_times = _attempt(partial(BlockEventTimes.of, self.storage, shape))
        if isinstance(event_times, BlockEventTimes):
            event_times.prepare(unread)
        return event_times

    def check_blocks(self, logs: Sequence[LogFile], blocks: BlockFilter) -> frozenset[str]:
        counting = counting_blocks(self.storage, [(log.path, log.size) for log in logs], blocks, is_strict=True)
        return frozenset(placed.path for placed in counting if placed.is_partial)

    @property
    def records(self) -> "ArrowRecordContent":
        from eventide_adapters.format.log_content.records import ArrowRecordContent

        return ArrowRecordContent(self.storage)


@dataclass(slots=True)
class _Headers:
    """What the headers of a log file's blocks state. `unread` are the blocks that don't state their event times."""

    path: str
    event_times: EventTimeRange
    unread: list[PlacedBlock] = field(default_factory=list[PlacedBlock])
    instants: set[str] = field(default_factory=set[str])
    rolled_back: set[str] = field(default_factory=set[str])
    has_torn_block: bool = False
    has_merged_block: bool = False
    has_partial_updates: bool = False
    nameless_from: int | None = None

    @classmethod
    def of(cls, storage: Storage, log: LogFile, shape: RecordShape) -> "_Headers":
        shape.require_event_time_field(storage.root)
        headers = cls(log.path, EventTimeRange(None, None))
        for placed in read_headers(storage, log.path, log.size, is_strict=False):
            headers._add(placed, shape.event_time_source)
        return headers

    def _add(self, placed: PlacedBlock, event_time: str | None) -> None:
        block = placed.block
        if block.block_type is BlockType.COMMAND:
            self.rolled_back.add(rollback_target(placed))
            return
        if block.block_type is BlockType.CORRUPT:
            self.has_torn_block = True
            if block.instant_time is not None:
                self.instants.add(block.instant_time)
            elif self.nameless_from is None:
                self.nameless_from = block.offset
            return
        refuse_unknown(placed)
        self.instants.add(placed.instant)
        self.has_merged_block = self.has_merged_block or bool(placed.merged_instants)
        self.has_partial_updates = self.has_partial_updates or placed.is_partial
        known = event_times_in_header(block, event_time)
        if known is None:
            self.unread.append(placed)
        else:
            self.event_times = self.event_times.union(known)

    def summary(self, event_times: "BlockEventTimes | EventideError | None") -> LogSummary:
        """`event_times` reads the blocks that are unread, or is what keeps it from that."""
        times, deletes = self.event_times, 0
        for placed in self.unread:
            if isinstance(event_times, EventideError):
                raise event_times
            assert event_times is not None
            known, deleted = event_times(placed)
            times, deletes = times.union(known), deletes + deleted
        return LogSummary(
            self.path,
            times,
            frozenset(self.instants),
            deletes,
            frozenset(self.rolled_back),
            self.has_torn_block,
            self.has_merged_block,
            self.has_partial_updates,
            self.nameless_from,
        )


def _attempt(function: Callable[[], T]) -> T | EventideError:
    try:
        return function()
    except EventideError as error:
        return error
