"""What a writer has to know of a table: the shape and keys of records, and the layout of files."""

from dataclasses import dataclass
from enum import StrEnum

from eventide_core.table.key_format import KeyFormat
from eventide_core.table.record_shape import RecordShape


class WriteOperation(StrEnum):
    """The operation of a write."""

    UPSERT = "upsert"
    INSERT = "insert"
    BULK_INSERT = "bulk_insert"
    DELETE = "delete"

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
    """How files are written. Sizes in bytes.

    `codec` is a config.ParquetCodec. A log file ends after the block with which it reaches `log_file_bytes_max`, and the
    next one begins. The bloom filter of a base file is laid out for `bloom_entries` keys at that rate of false positives.
    `notes_event_times`: in the headers of log blocks, which Hudi skips; `tracks_event_times`: in write stats.
    `log_block_span_ms`: how much event time a block of a log file may hold, 0 for any; a block then holds what lies
    between two multiples of it, and rare records around.
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
    """The records' shape, their keys, the file layout and the table's version.

    `has_global_keys`: a key is one in the whole table; otherwise, in its partition.
    """

    records: RecordShape
    keys: KeyFormat
    layout: WriteLayout
    table_version: int
    has_global_keys: bool = False

    @property
    def stat_field(self) -> str | None:
        """The field whose event times write stats record; None if they record none."""
        return self.records.event_time_field if self.layout.tracks_event_times else None
