"""The port for what the base files of two views hold, by event time."""

from collections.abc import Collection, Sequence
from typing import Protocol

from eventide_core.ports.running import Engine
from eventide_core.table.files.slice_read import SliceRead
from eventide_core.table.records.event_time import EventTimeSpan
from eventide_core.table.records.record_shape import RecordShape


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
