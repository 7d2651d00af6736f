"""What a writer needs to know of a table: the shape and keys of records, and the layout of files."""

from dataclasses import dataclass
from enum import StrEnum

from eventide_core.table.records.record_shape import RecordShape
from eventide_core.table.settings.key_format import KeyFormat
from eventide_core.table.timeline.instant import Action
from eventide_core.table.timeline.layout import Layout


@dataclass(frozen=True, slots=True)
class SchemaRules:
    """What a write may do where its columns are not the table's.

    `adds_columns`: columns that the table lacks are added to it, and wider ones widen its own, instead of being refused.
    `nulls_missing`: columns that the
    records lack are null in them, instead of refused.
    """

    adds_columns: bool = False
    nulls_missing: bool = False


class WriteOperation(StrEnum):
    """The operation of a write."""

    UPSERT = "upsert"
    INSERT = "insert"
    BULK_INSERT = "bulk_insert"
    DELETE = "delete"
    INSERT_OVERWRITE = "insert_overwrite"
    INSERT_OVERWRITE_TABLE = "insert_overwrite_table"

    @property
    def is_overwrite(self) -> bool:
        """Whether it replaces what the partitions of its records hold, or the whole table."""
        return self in (WriteOperation.INSERT_OVERWRITE, WriteOperation.INSERT_OVERWRITE_TABLE)

    @property
    def action(self) -> Action:
        """The action on the timeline."""
        return Action.REPLACE_COMMIT if self.is_overwrite else Action.DELTA_COMMIT

    @property
    def operation_type(self) -> str:
        """Hudi's name of the operation in commit metadata."""
        return self.value.upper()


class LogBlockFormat(StrEnum):
    """The format of a log file's data blocks."""

    AVRO = "avro"
    PARQUET = "parquet"


@dataclass(frozen=True, slots=True)
class WriteLayout:
    """The layout of files. Sizes are in bytes.

    `log_block_format` is the format of data blocks; as many records go into one as, by their average size in memory, make
    `log_block_bytes_max`. `codec` is a config.ParquetCodec. A log file ends after the block with which it reaches
    `log_file_bytes_max`, and the next one begins. The bloom filter of a base file is designed for `bloom_entries` keys at a
    rate of false positives of `bloom_false_positives`, from 0 to 1. `notes_event_times`: records event times in the headers
    of log blocks, which Hudi ignores. `tracks_event_times`: records them in write stats. `log_block_span_ms`: the span of
    event times in a block of a log file, 0 for no limit. A block then contains the records between two multiples of it, and
    adjacent ones that are rare.
    """

    log_block_format: LogBlockFormat
    log_block_bytes_max: int
    log_file_bytes_max: int
    log_block_span_ms: int
    codec: str
    bloom_entries: int
    bloom_false_positives: float
    notes_event_times: bool
    tracks_event_times: bool


@dataclass(frozen=True, slots=True)
class WriteShape:
    """What a write needs to know: the shape of the `records`, how their `keys` are made, and two layouts.

    `layout` is how the write makes its files, `table_layout` how the table is laid out on disk. `has_global_keys`: a key is
    unique in the whole table; otherwise, in its partition. `refuses_unreadable_times`: the event-time field is one that the
    user named, so that each of its values has to be a time or null.
    """

    records: RecordShape
    keys: KeyFormat
    layout: WriteLayout
    table_layout: Layout
    has_global_keys: bool = False
    refuses_unreadable_times: bool = False

    @property
    def stat_field(self) -> str | None:
        """What names the event times that write stats record; None if they record none."""
        return self.records.event_time_source if self.layout.tracks_event_times else None
