"""The completed compactions on the active timeline: freshness over time, and its cost."""

from collections.abc import Mapping
from dataclasses import dataclass

from eventide_core.ports import Clock, Storage
from eventide_core.service.common.facts.moments import epoch_ms_of
from eventide_core.service.common.state.table import TableState
from eventide_core.table.timeline.contents.commit_metadata import CommitMetadata
from eventide_core.table.timeline.contents.compaction_extra_metadata import CompactionExtraMetadata
from eventide_core.table.timeline.instant import Action, Instant, State


@dataclass(frozen=True, slots=True)
class PastCompaction:
    """A compaction that eventide made. Times are in epoch milliseconds.

    `completed_ms` is its completion time; on version 6, where none is recorded, the time of its `instant`. `link_mode` is a
    LinkMode's text, `slices` the number of slices that it compacted.

    `cut_ms`, `watermark_ms`, and `late_records` are the published values, None if it published no cut. `duration_ms` is the
    time from the beginning of the plan to the commit, by the modification times of the timeline's files; None if they don't
    state it. `fallbacks` are slices compacted in full, by reason. `linked_bytes` are the left-over files that it made, by
    path, and `carried_bytes` the log files with the `carried_tombstones`.
    """

    instant: str
    completed_ms: int
    duration_ms: int | None
    link_mode: str
    cut_ms: int | None
    watermark_ms: int | None
    late_records: int | None
    slices: int
    fallbacks: Mapping[str, int]
    linked_bytes: Mapping[str, int]
    carried_tombstones: int
    carried_bytes: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class KeptBytes:
    """Bytes that partial compactions added to slices in use and that cleaning can't free.

    `linked` are the left-overs', as large as the log files even where they are links; `carried` are for carried
    tombstones.
    """

    linked: int
    carried: int


def compaction_history(state: TableState, storage: Storage, clock: Clock) -> tuple[PastCompaction, ...]:
    """The compactions of eventide on the active timeline, by completion. Raises CorruptTimelineError."""
    ours = state.publications
    if not ours:
        return ()
    written_ms = {e.path.rpartition("/")[2]: e.modified_ms for e in storage.list(state.config.timeline_path)}
    compactions = (
        _past(
            instant,
            ours[instant.requested_time],
            state.commits[instant.requested_time],
            written_ms,
            epoch_ms_of(state.config, state.timeline, instant.completion_time or instant.requested_time, clock),
        )
        for instant in state.timeline.writes
        if instant.requested_time in ours
    )
    return tuple(sorted(compactions, key=lambda past: (past.completed_ms, past.instant)))


def kept_bytes(state: TableState, history: tuple[PastCompaction, ...]) -> KeptBytes:
    """The bytes of left-over files, linked or copied, and of carried tombstones in the latest slices."""
    linked = {path: size for past in history for path, size in past.linked_bytes.items()}
    carried = {path: size for past in history for path, size in past.carried_bytes.items()}
    logs = [log.path for file_slice in state.view.latest_slices() for log in file_slice.log_files]
    return KeptBytes(sum(linked.get(path, 0) for path in logs), sum(carried.get(path, 0) for path in logs))


def _past(
    instant: Instant,
    publication: CompactionExtraMetadata,
    commit: CommitMetadata,
    written_ms: Mapping[str, int],
    completed_ms: int,
) -> PastCompaction:
    links = publication.links
    return PastCompaction(
        instant=instant.requested_time,
        completed_ms=completed_ms,
        duration_ms=_duration_ms(instant, written_ms),
        link_mode=publication.link_mode,
        cut_ms=publication.cut_ms,
        watermark_ms=publication.watermark_ms,
        late_records=publication.late_records,
        slices=sum(stat.log_version is None for stat in commit.stats),
        fallbacks=publication.fallbacks,
        linked_bytes={stat.path: stat.file_size_bytes for stat in commit.stats if stat.path in links},
        carried_tombstones=sum(stat.num_deletes for stat in commit.stats if stat.log_version is not None),
        carried_bytes={
            stat.path: stat.file_size_bytes
            for stat in commit.stats
            if stat.log_version is not None and stat.path not in links
        },
    )


def _duration_ms(instant: Instant, written_ms: Mapping[str, int]) -> int | None:
    begun = written_ms.get(Instant(instant.requested_time, Action.COMPACTION, State.INFLIGHT).file_name)
    ended = written_ms.get(instant.file_name)
    if begun is None or ended is None or ended < begun:  # removed, or copied from elsewhere in another order
        return None
    return ended - begun
