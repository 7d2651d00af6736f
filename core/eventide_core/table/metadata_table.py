"""The state of Hudi's metadata table, for people and for monitoring."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MetadataTableStatus:
    """`partitions` are those in use. `delta_commits` are the ones that no compaction has merged, each a log file a reader
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
