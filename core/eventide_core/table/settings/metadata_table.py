"""What Hudi's metadata table has: its indexes, its timeline, and its state for people and for monitoring."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from eventide_core.cure import Cure
from eventide_core.errors import MissingFileError
from eventide_core.table.files.table_path import METADATA_DIRECTORY
from eventide_core.table.settings.properties import PROPERTIES_PATH, ReadFileRange, parse_properties, properties_bytes
from eventide_core.table.timeline.instant import Action
from eventide_core.table.timeline.layout import Layout, layout_of
from eventide_core.table.timeline.timeline import Timeline

FILES: Final = "files"
COLUMN_STATS: Final = "column_stats"
PARTITION_STATS: Final = "partition_stats"
RECORD_INDEX: Final = "record_index"
BLOOM_FILTERS: Final = "bloom_filters"
SECONDARY_INDEX_PREFIX: Final = "secondary_index_"
EXPRESSION_INDEX_PREFIX: Final = "expr_index_"
REBUILT_INDEXES: Final = (BLOOM_FILTERS, COLUMN_STATS, RECORD_INDEX)
"""The indexes that a rebuild can make besides `files`. `partition_stats` come with `column_stats`."""

OWN_PROPERTIES_PATH: Final = f"{METADATA_DIRECTORY}/{PROPERTIES_PATH}"

REBUILD_CURE: Final = f"rebuild the metadata table ({Cure.rebuild_metadata_table()}), which changes no data"

BESIDE_REBUILD: Final = frozenset(
    {Action.COMPACTION, Action.LOG_COMPACTION, Action.CLUSTERING, Action.CLEAN, Action.SAVEPOINT}
)
"""The actions that may be pending while the metadata table is rebuilt: none of them makes one itself."""

_GLOBAL_FILE_ID: Final = re.compile(r"record-index-\d+-\d+")
_WRITING: Final = (Action.COMMIT, Action.DELTA_COMMIT, Action.REPLACE_COMMIT)


def own_properties(read_range: ReadFileRange) -> Mapping[str, str]:
    """The metadata table's settings, complete or not; none if it has no file of them. Raises ResourceLimitError."""
    try:
        own = properties_bytes(read_range, OWN_PROPERTIES_PATH)
    except MissingFileError:
        return {}
    return parse_properties(own.decode(errors="replace"))


def is_of_whole_table(file_id: str) -> bool:
    """Whether a file group of a record index is of the whole table; otherwise, it is of one partition."""
    return _GLOBAL_FILE_ID.fullmatch(file_id) is not None


def kind_of(partition: str) -> str:
    """The kind of a partition of the metadata table: its name, or the prefix that partitions of its kind share."""
    prefixes = (SECONDARY_INDEX_PREFIX, EXPRESSION_INDEX_PREFIX)
    return next((prefix for prefix in prefixes if partition.startswith(prefix)), partition)


class RowChange(Enum):
    """An action's effect on the rows of a table, for indexes over rows."""

    NONE = auto()  # compaction, clean: every row stays, in its file group
    WRITTEN = auto()  # upsert, insert, delete
    WIDENED = auto()  # as WRITTEN, of records with columns or types that the table did not have
    ROLLED_BACK = auto()  # rollback or restore of a completed write


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


@dataclass(frozen=True, slots=True)
class MetadataTableFacts:
    """The metadata table at one moment: its own `timeline`, and `data_timeline`, the timeline of the table it describes.

    `version` is its own, which Hudi 1.1 may raise above the table's. `partitions` are in use; `building` are those that
    Hudi is building.
    """

    version: int
    partitions: tuple[str, ...]
    building: tuple[str, ...]
    timeline: Timeline
    data_timeline: Timeline

    @property
    def layout(self) -> Layout:
        """How the metadata table lies on disk."""
        return layout_of(self.version)

    @property
    def last_compaction(self) -> str:
        """The instant of the last completed compaction; empty if there was none."""
        return max((i.requested_time for i in self.timeline.completed if i.action is Action.COMMIT), default="")

    @property
    def status(self) -> MetadataTableStatus:
        """Its partitions, its last compaction, and the completed delta commits that no compaction has merged."""
        last = self.last_compaction
        deltas = [i for i in self.timeline.completed if i.action is Action.DELTA_COMMIT]
        since = sum((i.completion_time or i.requested_time) >= last for i in deltas)
        return MetadataTableStatus(self.partitions, since, last or None)

    @property
    def open_writes(self) -> tuple[str, ...]:
        """The requested times of the table's pending writes."""
        return tuple(i.requested_time for i in self.data_timeline.pending if i.action in _WRITING)
