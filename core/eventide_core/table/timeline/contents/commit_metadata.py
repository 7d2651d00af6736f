"""The metadata of a completed write: a write stat for each file, and extra metadata."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple

from eventide_core.table.records.event_time import EventTimeRange
from eventide_core.table.schema.avro_schema import AvroSchema

LOG_COMPACT = "LOG_COMPACT"
"""The operation type of a log compaction's delta commit."""

SCHEMA_KEY = "schema"
"""Extra metadata of any commit: the table's Avro schema after it."""

DROPPED_INDEXES_KEY = "eventide.dropped.indexes"
"""Extra metadata of a commit by eventide: the indexes of the metadata table that it dropped, separated by commas."""

WRITER_KEY = "eventide.writer"
"""Extra metadata of a write by eventide: its log files hold blocks of whole records and of deletes, and no others."""
WRITER = "1"

ADDED_COLUMNS_KEY = "eventide.columns.added"
WIDENED_COLUMNS_KEY = "eventide.columns.widened"
DROPPED_COLUMNS_KEY = "eventide.columns.dropped"
RENAMED_COLUMNS_KEY = "eventide.columns.renamed"
"""Extra metadata of a write by eventide: the columns that it added to the table, those whose types it widened, and those
that it dropped."""

ALTER_SCHEMA = "ALTER_SCHEMA"
"""The operation type of a commit without files that changes the table's schema."""

EVENT_TIMES_KEY = "eventide.event.times"
"""Extra metadata of a commit by eventide: the field whose event times its write stats state, with how its texts are read
(`EventTimeTexts.source`). The range in the stat of a
log file covers every record and delete in the file, none of them without an event time; a stat without a range says
nothing."""

_NO_COMMIT = (None, "", "null")  # Hudi's values for the first base file of a file group


class WriteStat(NamedTuple):
    """The fields of Hudi's HoodieWriteStat that eventide uses. `path` is relative to the table's root.

    A tuple, although other values are dataclasses: a timeline has millions of them, and a tuple takes a tenth of the
    time to make.

    Event times are epoch milliseconds, null if the writer did not track them; see EVENT_TIMES_KEY. For a log file
    `log_version` and `base_file` are set, for a base file they are None.

    Only a stat that this process has made has the last three fields: commits are read without them. `log_files` are the
    names that Hudi wants in the stat of a log file: on version 6 of all log files of its slice. `checksum` is the file's;
    a commit keeps it in its extra metadata (checksums.py). `change_log` is the path and the size of the change log
    beside a base file.
    """

    file_id: str
    path: str
    partition: str
    prev_commit: str | None = None
    num_writes: int = 0
    num_deletes: int = 0
    num_update_writes: int = 0
    num_inserts: int = 0
    total_write_bytes: int = 0
    file_size_bytes: int = 0
    total_log_records: int = 0
    total_log_files_compacted: int = 0
    total_log_size_compacted: int = 0
    total_updated_records_compacted: int = 0
    total_log_blocks: int = 0
    min_event_time_ms: int | None = None
    max_event_time_ms: int | None = None
    log_version: int | None = None
    base_file: str | None = None
    prev_base_file: str | None = None
    total_scan_time_ms: int = 0
    total_upsert_time_ms: int = 0
    log_files: tuple[str, ...] = ()
    checksum: str | None = None
    change_log: tuple[str, int] | None = None

    @property
    def has_slice_below(self) -> bool:
        """Whether the file was made from an earlier slice of its file group, which `prev_commit` names."""
        return self.prev_commit not in _NO_COMMIT

    @property
    def event_time_range(self) -> EventTimeRange | None:
        """The range that the writer tracked; None if it tracked none."""
        least, greatest = self.min_event_time_ms, self.max_event_time_ms
        return None if least is None or greatest is None else EventTimeRange(least, greatest)


@dataclass(frozen=True, slots=True)
class CommitMetadata:
    """Hudi's HoodieCommitMetadata (and HoodieReplaceCommitMetadata: `replaced_file_ids` by partition).

    `write_stats` are by partition; `stats` are all of them, in that order. `extra_metadata` has texts by key, the table's
    schema and eventide's own keys among them. `operation_type` is Hudi's name, such as UPSERT or COMPACT, and UNKNOWN if the
    commit states none. `is_compacted`: the commit is a compaction's; a log compaction is none.
    """

    write_stats: Mapping[str, tuple[WriteStat, ...]]
    extra_metadata: Mapping[str, str]
    operation_type: str
    is_compacted: bool = False
    replaced_file_ids: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    stats: tuple[WriteStat, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "stats", tuple(chain.from_iterable(self.write_stats.values())))

    @property
    def schema(self) -> AvroSchema | None:
        """The table's Avro schema after this write, without Hudi's meta fields; None if the commit has none."""
        text = self.extra_metadata.get(SCHEMA_KEY)
        return AvroSchema.of(text).without_meta_fields() if text else None


def by_partition(stats: Iterable[WriteStat]) -> dict[str, tuple[WriteStat, ...]]:
    """Write stats by their partitions, in their order."""
    partitions: dict[str, list[WriteStat]] = {}
    for stat in stats:
        partitions.setdefault(stat.partition, []).append(stat)
    return {partition: tuple(of_partition) for partition, of_partition in partitions.items()}
