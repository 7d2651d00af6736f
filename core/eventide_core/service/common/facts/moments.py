"""The clock of a table: moments as instant times, and back.

Instants are UTC, or local times of the machines that write the table (`hoodie.table.timeline.timezone`). For the latter,
the files of the timeline show in which zone that is (table/timeline/observed_offset.py).

1. If that is this process's own zone, or if no file shows it, this zone applies, with its clock changes.
2. Otherwise a new instant follows the writers' clock, not this one: with an instant ahead of them, what they write next
   would be hidden.
3. A moment of the user's in a table like that is refused, because the zone's clock changes are not known, and a copied
   table may look like that. So is one in the hour that a clock change repeats: its local time means two moments.
"""

from eventide_core.errors import InstantNotFoundError
from eventide_core.ports import Clock
from eventide_core.table.settings.table_config import TableConfig
from eventide_core.table.timeline.instant import instant_epoch_ms, instant_time
from eventide_core.table.timeline.timeline import Timeline

_DAY_MS = 24 * 60 * 60 * 1000
_MINUTE_MS = 60_000


def local_instant_time(config: TableConfig, timeline: Timeline, epoch_ms: int, clock: Clock) -> str:
    """A moment of today as an instant time, by the clock of the table's writers."""
    return instant_time(epoch_ms + _offset_ms(config, timeline, epoch_ms, clock))


def put_times(config: TableConfig, timeline: Timeline, clock: Clock) -> dict[str, str]:
    """Version 6: when the completed files of writes were put, by requested time, as instants. 8 and later: nothing."""
    return {time: local_instant_time(config, timeline, ms, clock) for time, ms in timeline.put_ms.items()}


def epoch_ms_of(config: TableConfig, timeline: Timeline, time: str, clock: Clock) -> int:
    """The moment of an instant; the later one if a clock change repeated its local time. Raises CorruptTimelineError."""
    as_utc_ms = instant_epoch_ms(time)
    offset_ms = _offset_ms(config, timeline, as_utc_ms, clock)
    return as_utc_ms - _offset_ms(config, timeline, as_utc_ms - offset_ms, clock)


def differing_clocks(config: TableConfig, timeline: Timeline, clock: Clock) -> str | None:
    """Names both clocks, if the table's writers take instants in another time zone than this process."""
    seen = timeline.offset
    if config.has_utc_instants or seen is None:
        return None
    own_ms = clock.local_offset_ms(seen.seen_ms)
    if own_ms == seen.offset_ms:
        return None
    return (
        "instants of this table are local times (hoodie.table.timeline.timezone is LOCAL): by the modification times of its "
        f"timeline files at {_utc(seen.offset_ms)}, while this process is at {_utc(own_ms)}"
    )


def moment_as_instant(config: TableConfig, timeline: Timeline, epoch_ms: int, clock: Clock) -> str:
    """A user's moment as an instant time. Raises InstantNotFoundError if the writers' clock may mean another one."""
    moment = f"the moment {instant_time(epoch_ms)} UTC"
    cure = "give the time as on the timeline, in Hudi's digits (yyyyMMddHHmmssSSS)"
    differing = differing_clocks(config, timeline, clock)
    if differing is not None:
        raise InstantNotFoundError(
            f"{config.name}: {moment} can't be found on the timeline: {differing}; {cure}, or run eventide with TZ set to "
            "the writers' time zone"
        )
    offset_ms = _offset_ms(config, timeline, epoch_ms, clock)
    if not config.has_utc_instants:
        nearby = {clock.local_offset_ms(epoch_ms + shift) for shift in (-_DAY_MS, _DAY_MS)} - {offset_ms}
        if any(clock.local_offset_ms(epoch_ms + offset_ms - other) == other for other in nearby):
            raise InstantNotFoundError(
                f"{config.name}: {moment} is in an hour that a clock change repeats, and instants of this table are local "
                f"times (hoodie.table.timeline.timezone is LOCAL): {cure}"
            )
    return instant_time(epoch_ms + offset_ms)


def _offset_ms(config: TableConfig, timeline: Timeline, epoch_ms: int, clock: Clock) -> int:
    if config.has_utc_instants:
        return 0
    seen = timeline.offset
    if seen is None or clock.local_offset_ms(seen.seen_ms) == seen.offset_ms:
        return clock.local_offset_ms(epoch_ms)
    return seen.offset_ms


def _utc(offset_ms: int) -> str:
    hours, minutes = divmod(abs(offset_ms) // _MINUTE_MS, 60)
    return f"UTC{'-' if offset_ms < 0 else '+'}{hours:02d}:{minutes:02d}"
