"""The metrics of a table: the RFC's backlog metrics, and eventide's own on freshness and compactions.

Leaves out values that don't exist, such as the watermark before the first compaction by event time.
"""

from collections.abc import Callable, Iterator, Sequence

from eventide_core.action.compaction.backlog import Backlog
from eventide_core.action.freshness.freshness import Freshness
from eventide_core.service.common.facts.compaction_history import KeptBytes, PastCompaction
from eventide_core.table.catalog.metric import Metric
from eventide_core.table.settings.metadata_table import MetadataTableStatus
from eventide_core.table.timeline.contents.plans import FallbackReason

_INSTANT_LENGTH = 17


def table_metrics(
    fresh: Freshness | None,
    logs: Backlog,
    kept: KeptBytes,
    history: Sequence[PastCompaction],
    metadata_table: MetadataTableStatus | None,
    now_ms: int,
    *,
    moment_of: Callable[[str], int],
) -> tuple[Metric, ...]:
    """The metrics at `now_ms`. `fresh` is None if event times are not known; `history` by completion.

    `moment_of`: the epoch milliseconds of an instant, by the clock of the table's writers.
    """
    measured = Metric("measured_timestamp_seconds", "When all of these were measured.", now_ms / 1000)
    return (
        measured,
        *_of_freshness(fresh, now_ms),
        *_of_backlog(logs, kept),
        *_of_compactions(history),
        *_of_metadata_table(metadata_table, moment_of),
    )


def _of_freshness(fresh: Freshness | None, now_ms: int) -> Iterator[Metric]:
    if fresh is None:
        return
    if fresh.cut_ms is not None and fresh.watermark_ms is not None:
        yield Metric(
            "ro_event_time_cut_timestamp_seconds", "What the last event-time compaction reached.", fresh.cut_ms / 1000
        )
        yield Metric(
            "ro_event_time_watermark_timestamp_seconds",
            "Everything before it that was committed is in the read-optimized table.",
            fresh.watermark_ms / 1000,
        )
        yield Metric(
            "ro_lag_seconds", "How far the watermark lies behind the clock.", (now_ms - fresh.watermark_ms) / 1000
        )
    yield Metric(
        "ro_sources",
        "Sources that vouch for arrival; with none, the watermark rests on files alone.",
        len(fresh.sources),
    )
    yield Metric("ro_late_records", "Records before the cut that are in no base file yet.", fresh.late_records)
    yield Metric(
        "unknown_event_time_records", "Records in log files without event time.", fresh.unknown_event_time_records
    )
    yield Metric(
        "unreadable_event_time_records",
        "Records in log files whose event time cannot be read, and which may be before any T.",
        fresh.unreadable_event_time_records,
    )


def _of_backlog(logs: Backlog, kept: KeptBytes) -> Iterator[Metric]:
    if logs.min_event_time_ms is not None:
        yield Metric(
            "log_files_min_event_time_timestamp_seconds",
            "The least event time over all log files.",
            logs.min_event_time_ms / 1000,
        )
    yield Metric("file_slices_with_log_files", "File slices that have log files.", logs.file_slices)
    yield Metric("log_files", "Log files of the latest file slices.", logs.log_files)
    yield Metric("log_files_size_bytes", "The size of these log files.", logs.bytes)
    yield Metric("pinned_bytes", "Left-over files, linked or copied, that slices in use have.", kept.linked)
    yield Metric("carried_tombstones_bytes", "Log files of carried tombstones that slices in use have.", kept.carried)


def _of_compactions(history: Sequence[PastCompaction]) -> Iterator[Metric]:
    if not history:
        return
    last = history[-1]
    yield Metric(
        "last_compaction_timestamp_seconds", "When the last compaction of eventide completed.", last.completed_ms / 1000
    )
    if last.duration_ms is not None:
        yield Metric("last_compaction_duration_seconds", "How long it took.", last.duration_ms / 1000)
    yield Metric("last_compaction_file_slices", "How many file slices it compacted.", last.slices)
    yield Metric(
        "last_compaction_carried_tombstones", "Deletes that it carried for left-overs.", last.carried_tombstones
    )
    # For every reason, so that a series does not end if a reason did not occur.
    for reason in sorted({*FallbackReason, *last.fallbacks}):
        yield Metric(
            "last_compaction_fallbacks",
            "File slices that it compacted in full, by reason.",
            last.fallbacks.get(reason, 0),
            str(reason),
        )


def _of_metadata_table(status: MetadataTableStatus | None, moment_of: Callable[[str], int]) -> Iterator[Metric]:
    if status is None:
        return
    yield Metric("metadata_table_partitions", "Partitions of Hudi's metadata table.", len(status.partitions))
    yield Metric(
        "metadata_table_delta_commits",
        "Delta commits of Hudi's metadata table that no compaction of it has merged.",
        status.delta_commits,
    )
    if status.last_compaction is not None:
        yield Metric(
            "metadata_table_last_compaction_timestamp_seconds",
            "The instant of its last compaction.",
            # On version 6, Hudi appends a suffix to the instant.
            moment_of(status.last_compaction[:_INSTANT_LENGTH]) / 1000,
        )
