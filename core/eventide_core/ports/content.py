"""What base and log files hold, without their records."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from eventide_core.errors import EventideError
from eventide_core.ports.running import Engine
from eventide_core.table.files.file_slice import LogFile
from eventide_core.table.files.log_facts import LogFacts
from eventide_core.table.files.slice_audit import RepeatedKey, RowDifference, SliceAudit
from eventide_core.table.files.slice_read import BlockFilter, SliceRead
from eventide_core.table.records.event_time import EventTimeRange, EventTimeSpan
from eventide_core.table.records.key_history import KeyHistory
from eventide_core.table.records.record_shape import RecordShape
from eventide_core.table.settings.key_format import KeyFormat


@dataclass(frozen=True, slots=True)
class TimedKey:
    """The record key (`key`) and the event time of a record or delete: `event_time_ms`, in epoch milliseconds."""

    key: str
    event_time_ms: int


@dataclass(frozen=True, slots=True)
class UnreadableEventTime:
    """A record or delete of a log file whose event time cannot be read.

    `key` is its record key, `value` the event time as text for people.
    """

    path: str
    key: str
    value: str

    def __str__(self) -> str:
        return f"{self.path}: key {self.key!r} has the event time {self.value}"


class LogContent(Protocol):
    """What log files hold, answered without handing out records. Picklable.

    Raises CorruptLogBlockError, RecordDecodeError, UnsupportedLogFormatError.
    """

    def summarize(self, logs: Sequence[LogFile], shape: RecordShape) -> list[LogFacts | EventideError]:
        """The facts of each log file: from its block headers if they state the range, else from a scan.

        An error stands for a log file that it can't read, and states why.
        """
        ...

    def check_blocks(self, logs: Sequence[LogFile], blocks: BlockFilter) -> frozenset[str]:
        """Checks that a merge can read all of a slice's log files, by their headers alone.

        Returns the paths of those that hold partial updates. Raises what a merge would: UnsupportedTableError for change
        data, and for what else eventide doesn't know; CorruptLogBlockError for a torn block that would count.
        """
        ...

    @property
    def records(self) -> "RecordContent":
        """What needs more than the headers of most log files."""
        ...


@dataclass(frozen=True, slots=True)
class SplitSlice:
    """The two sides into which a plan splits a slice.

    `base_path` and `merged` are one side, `left_overs` the other. What lies before `threshold_ms` in `left_overs` (None:
    nothing), or has no event time, belongs to both sides; but not in the log files `above`, by path.
    """

    base_path: str | None
    merged: tuple[LogFile, ...]
    left_overs: tuple[LogFile, ...]
    threshold_ms: int | None = None
    above: frozenset[str] = frozenset()


class RecordContent(Protocol):
    """What the records of files show, answered without handing them out. Raises as `LogContent` does."""

    def count_before(self, log: LogFile, shape: RecordShape, threshold_ms: int, blocks: BlockFilter) -> int:
        """The number of its records and deletes with an event time before the threshold. Unknown ones don't count."""
        ...

    def latest_keys(
        self, log: LogFile, shape: RecordShape, since_ms: int, limit: int, blocks: BlockFilter
    ) -> tuple[TimedKey, ...]:
        """At most `limit` of the keys with an event time at or after `since_ms`, the latest first, each once.

        Blocks whose headers state that they hold none are not read.
        """
        ...

    def unreadable_event_times(
        self, log: LogFile, shape: RecordShape, limit: int, blocks: BlockFilter
    ) -> tuple[UnreadableEventTime, ...]:
        """At most `limit` of its records and deletes whose event time cannot be read, in reader order."""
        ...

    def key_histories(
        self, split: SplitSlice, shape: RecordShape, blocks: BlockFilter, *, only_deleted: bool
    ) -> tuple[KeyHistory, ...]:
        """The histories of the keys on both sides, in the order of their first appearance on the merged side.

        `only_deleted`: of those, the ones with a delete in either.
        """
        ...

    def doubled_key(self, base_path: str, shape: RecordShape, /) -> str | None:
        """A key that several records of the base file have, as insert operations may write them; None if there is none."""
        ...


class BaseContent(Protocol):
    """What base files hold, as far as their footers show."""

    def event_times(self, base_path: str, shape: RecordShape) -> EventTimeRange | None:
        """The range of a base file's event times; None if its footer doesn't state it, as of texts. Reads no record.

        The shape names the event-time field.

        Raises MissingFileError, CorruptBaseFileError.
        """
        ...


class ContentAudit(Protocol):
    """Looks into data files to verify them. Picklable.

    A file's own fault comes as an answer where it can be found beside others, else as the error that reading it raises.
    """

    def row_count(self, base_path: str) -> int:
        """The number of records in a base file, by its footer. Raises MissingFileError, CorruptBaseFileError."""
        ...

    def checksum(self, path: str, size: int) -> str | None:
        """The checksum of a file's first `size` bytes (table/files/checksum.py); None if there are fewer.

        Raises MissingFileError.
        """
        ...

    def have_same_bytes(self, path: str, other: str) -> bool:
        """Whether two files hold the same. Raises MissingFileError."""
        ...

    def audit(
        self, slice_read: SliceRead, shape: RecordShape, watermark_ms: int | None, keys: KeyFormat | None
    ) -> SliceAudit:
        """Reads all of a slice, every column of every record. `keys`: how its keys follow from its key fields, if known."""
        ...

    def shown_keys(self, slice_read: SliceRead, shape: RecordShape) -> frozenset[str]:
        """The record keys that a snapshot query of the slice returns."""
        ...

    def repeated_keys(self, slices: Sequence[SliceRead], shape: RecordShape) -> tuple[RepeatedKey, ...]:
        """The keys that several of these slices show in a snapshot. Raises what reading a slice raises."""
        ...

    def differences(self, before: SliceRead, after: SliceRead, shape: RecordShape) -> RowDifference | None:
        """How the snapshots of two slices differ in anything but file names; None if they don't. Raises the same."""
        ...


class WindowContent(Protocol):
    """What base files hold, by event time. The slices have no log files."""

    def earliest(self, slices: Sequence[SliceRead], shape: RecordShape, engine: Engine) -> int | None:
        """The earliest event time, in epoch milliseconds; None if no row has one."""
        ...

    def changed_times(
        self,
        before: Sequence[SliceRead],
        after: Sequence[SliceRead],
        shape: RecordShape,
        span: EventTimeSpan,
        keys: Sequence[str],
        engine: Engine,
    ) -> Collection[int]:
        """The event times in the span, floored to seconds, of the rows that differ: added, removed, or changed.

        A changed row counts with both of its event times. Rows are the same if they have the same `keys` (fields by path, if
        they are columns) in one partition, and equal values in every column but Hudi's meta columns. Both sides are read
        as `shape` has it.
        """
        ...
