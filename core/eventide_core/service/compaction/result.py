"""What a compaction, and the handling of pending actions, return to their caller."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from eventide_core.action.freshness.freshness import Freshness
from eventide_core.errors import EventideError
from eventide_core.table.timeline.contents.commit_metadata import WriteStat


@dataclass(frozen=True, slots=True)
class Ended:
    """What was pending and has ended, by requested time.

    `resumed` are completed compactions; `rolled_back` are writes and plans.
    """

    resumed: tuple[str, ...] = ()
    rolled_back: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CompactionResult:
    """A completed compaction. Counts are in records and files, sizes in bytes.

    `freshness` is the table's after it. `metrics` are the counts and sizes of its write stats, by the names in `metrics_of`.

    `is_already_reached`: everything before T was compacted before, by the compaction at `instant`, and nothing was written.
    `sync_error` is the reason why a requested catalog update failed: the commit is valid, and the next sync updates the
    catalog. `ended` is what dead runs had left, and this run completed or rolled back first. `dropped_indexes` are the
    indexes of the metadata table that could not follow the compaction.
    """

    instant: str
    freshness: Freshness
    metrics: Mapping[str, int]
    sync_error: EventideError | None = None
    ended: Ended = field(default_factory=Ended)
    is_already_reached: bool = False
    dropped_indexes: tuple[str, ...] = ()


def metrics_of(stats: Sequence[WriteStat]) -> dict[str, int]:
    """The counts of a compaction's write stats."""
    bases = [stat for stat in stats if stat.log_version is None]
    links = [stat for stat in stats if stat.log_version is not None]
    return {
        "operations": len(bases),
        "records_written": sum(stat.num_writes for stat in bases),
        "records_deleted": sum(stat.num_deletes for stat in bases),
        "log_files_compacted": sum(stat.total_log_files_compacted for stat in bases),
        "log_files_linked": len(links),
        "carried_tombstones": sum(stat.num_deletes for stat in links),
        "bytes_written": sum(stat.file_size_bytes for stat in bases),
        "bytes_linked": sum(stat.file_size_bytes for stat in links),
    }
