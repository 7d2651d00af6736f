"""In which time zone the writers of a table take instants, as its timeline files show.

With `hoodie.table.timeline.timezone=LOCAL`, Hudi's default, an instant is the local time of the machine that made it, and
nothing on the table states its zone. But a file is put just after its time is taken:

1. From version 8 on, a completed file just after its completion time. On version 6, which records none, the requested
   file of a write just after its requested time. A compaction may have an instant long before its file, and a savepoint
   has its commit's; these don't count.
2. The difference between that time, taken as UTC, and the file's modification time is the zone's offset. Offsets are
   multiples of a quarter of an hour between -12 and +14 hours. Any other difference is ignored: the file was copied.
3. Of the newest such files, the least offset counts. Instants that are too early are harmless, as a new one is later than
   all others anyway; those that are too late hide what the table's writers write next.

A copy of a table, a few hours after its last write, looks like a zone to the west.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from eventide_core.errors import CorruptTimelineError
from eventide_core.table.timeline.instant import WRITE_ACTIONS, Instant, State, instant_epoch_ms

_MINUTE_MS = 60_000
_QUARTER_MS = 15 * _MINUTE_MS
_DELAY_MS = 5 * _MINUTE_MS
_LEAST_MS, _GREATEST_MS = -12 * 60 * _MINUTE_MS, 14 * 60 * _MINUTE_MS
_NEWEST = 8
"""So many files, so that an engine in another zone is noticed among the writers' own."""


@dataclass(frozen=True, slots=True)
class ObservedOffset:
    """An offset from UTC, `offset_ms` in milliseconds, to the east positive.

    `seen_ms` is when it was seen, the modification time of a timeline file, in epoch milliseconds.
    """

    offset_ms: int
    seen_ms: int


def observed_offset(files: Iterable[tuple[str, int]]) -> ObservedOffset | None:
    """The offset of the instants in a listing of the timeline: names, and modification times in epoch milliseconds.

    None if no file shows it.
    """
    offsets: list[ObservedOffset] = []
    for name, modified_ms in sorted(files, key=lambda file: file[1], reverse=True):
        taken = _time_taken(Instant.parse(name))
        offset_ms = None if taken is None else _offset_ms(taken, modified_ms)
        if offset_ms is not None:
            offsets.append(ObservedOffset(offset_ms, modified_ms))
        if len(offsets) == _NEWEST:
            break
    return min(offsets, key=lambda seen: seen.offset_ms, default=None)


def _time_taken(instant: Instant | None) -> str | None:
    """The time of the instant that was taken just before its file was put."""
    if instant is None or instant.is_completed:
        return None if instant is None else instant.completion_time
    is_write = instant.state is State.REQUESTED and instant.action in WRITE_ACTIONS
    return instant.requested_time if is_write else None


def _offset_ms(time: str, modified_ms: int) -> int | None:
    try:
        ahead_ms = instant_epoch_ms(time) - modified_ms
    except (CorruptTimelineError, ValueError):
        return None
    offset_ms = round(ahead_ms / _QUARTER_MS) * _QUARTER_MS
    is_offset = abs(ahead_ms - offset_ms) <= _DELAY_MS and _LEAST_MS <= offset_ms <= _GREATEST_MS
    return offset_ms if is_offset else None
