"""The planner's facts besides the log files'."""

from collections.abc import Iterable, Sequence

from eventide_core import config as keys
from eventide_core.action.compaction.quiet_moment import AWAY_FROM_WRITERS_MS, BackdatingFacts
from eventide_core.ports import Clock
from eventide_core.service.common.facts.moments import local_instant_time, put_times
from eventide_core.service.common.state.table import TableState
from eventide_core.table.files.bucket import PURE_LOG_INDEXES, bucket_of_file_id, is_flink_file_id
from eventide_core.table.files.file_slice import FileSlice, LogFile
from eventide_core.table.settings.table_config import TableConfig
from eventide_core.table.timeline.contents.plans import LinkMode
from eventide_core.table.timeline.instant import instant_epoch_ms, instant_time, next_instant_time
from eventide_core.table.timeline.timeline import Timeline


def backdating_facts(
    state: TableState, retained: int, now: str, rolled_back: Iterable[str], clock: Clock
) -> BackdatingFacts:
    """The limits for the instant of a compaction.

    `retained` is the number of commits that cleaning keeps. `now` is an unused instant; `rolled_back` are those that
    rollbacks undid.
    """
    writes = state.timeline.writes
    known = (*state.timeline.instants, *state.timeline.archived)
    used = {time for i in known for time in (i.requested_time, i.completion_time) if time}
    logged = frozenset([log.name.instant for file in state.listing if isinstance(log := file.sliced, LogFile)])
    put_at = _put_at(state, logged, now, clock)
    return BackdatingFacts(
        timeline=state.timeline,
        now=max([now, *map(next_instant_time, put_at.values())]),
        used_times=frozenset(used | state.ended | {*rolled_back, *put_at.values()}),
        earliest_retained=writes[-retained].requested_time if 0 < retained < len(writes) else None,
        schema_since=schema_since(state),
        logged=logged,
        put_at=put_at,
    )


def _put_at(state: TableState, logged: frozenset[str], now: str, clock: Clock) -> dict[str, str]:
    """Version 6: when the completed files of the writes in `logged` were put, as instants, by requested time.

    Omits a time so far ahead of the clock that it can't be the storage's own: an instant there would hide later writes.
    """
    ahead = instant_time(instant_epoch_ms(now) + AWAY_FROM_WRITERS_MS)
    put_at = put_times(state.config, state.timeline, clock)
    return {requested: time for requested, time in put_at.items() if requested in logged and time <= ahead}


def schema_since(state: TableState) -> str:
    """The earliest instant on the timeline from which on every write that states a schema states the latest one."""
    latest, since = state.schema, ""
    for instant in reversed(state.timeline.writes):
        if state.commit(instant).schema not in (None, latest):
            return since
        since = instant.requested_time
    return ""


def is_base_file_index(config: TableConfig, slices: Sequence[FileSlice], index_type: str | None) -> bool:
    """Whether writers find a key only in base files.

    `index_type`, which the user states, or the setting of the table applies, otherwise the file ids: ids of buckets and
    of Flink need no base files.
    """
    index = index_type or config.properties.get(keys.INDEX_TYPE)
    if index is not None:
        return index.upper() not in PURE_LOG_INDEXES
    ids = [file_slice.file_id for file_slice in slices]
    return not all(bucket_of_file_id(file_id) is not None or is_flink_file_id(file_id) for file_id in ids)


def backdated_compactions(state: TableState) -> frozenset[str]:
    """The requested times of the active compactions whose instant is below their left-overs."""
    return frozenset(
        time for time, publication in state.publications.items() if publication.link_mode is LinkMode.PREFIX
    )


def unused_instant(state: TableState, clock: Clock) -> str:
    """An instant above every time of the timeline, and not before now, by the clock of the table's writers.

    It is also above the instants of event-time compactions that were rolled back, because they are never used again.
    """
    return instant_beyond(state.timeline, state.ended, state.config, clock)


def instant_beyond(timeline: Timeline, compactions: Iterable[str], config: TableConfig, clock: Clock) -> str:
    """An instant above every time of the timeline and of `compactions`, the instants of all event-time compactions ever."""
    times = (time for i in timeline.instants for time in (i.requested_time, i.completion_time) if time)
    last = max((*times, *compactions), default="")
    now = local_instant_time(config, timeline, clock.now_ms(), clock)
    return now if now > last else next_instant_time(last)
