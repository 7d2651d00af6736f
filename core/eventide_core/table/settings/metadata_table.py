"""The state of Hudi's metadata table, for people and for monitoring."""

from dataclasses import dataclass
from typing import Final

from eventide_core.cure import Cure
from eventide_core.table.timeline.instant import Action

FILES: Final = "files"
COLUMN_STATS: Final = "column_stats"
PARTITION_STATS: Final = "partition_stats"
RECORD_INDEX: Final = "record_index"
REBUILT_INDEXES: Final = ("bloom_filters", COLUMN_STATS, RECORD_INDEX)
"""The indexes that a rebuild can make besides `files`. `partition_stats` come with `column_stats`."""

REBUILD_CURE: Final = f"rebuild the metadata table ({Cure.rebuild_metadata_table()}), which changes no data"

BESIDE_REBUILD: Final = frozenset(
    {Action.COMPACTION, Action.LOG_COMPACTION, Action.CLUSTERING, Action.CLEAN, Action.SAVEPOINT}
)
"""The actions that may be pending while the metadata table is made anew: none of them makes one itself."""


@dataclass(frozen=True, slots=True)
class MetadataTableStatus:
    """The state of a metadata table.

    `partitions` are those in use. `delta_commits` are the ones that no compaction has merged, each a log file a reader
    merges. `last_compaction` is the requested time of the last completed one, None if there was none.
    """

    partitions: tuple[str, ...]
    delta_commits: int
    last_compaction: str | None

    def __str__(self) -> str:
        commits = f"{self.delta_commits:,} delta commit{'' if self.delta_commits == 1 else 's'}"
        if self.last_compaction is None:
            since = f"{commits}, never compacted"
        else:
            since = f"{commits} since its last compaction at {self.last_compaction}"
        return f"{', '.join(self.partitions)}; {since}"
