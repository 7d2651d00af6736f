"""The options of a compaction, read once: a value that can't be used raises before anything is written."""

from dataclasses import dataclass

from eventide_core import config as keys
from eventide_core.config import Options, ParquetCodec


@dataclass(frozen=True, slots=True)
class CompactionSettings:
    """What the steps of a compaction share of the options.

    `wait_ms`: how long to wait for what is pending. `skew_ms`: by how much clocks of writers may differ. `is_exclusive`:
    no other engine runs the table's plans. `runs_foreign_plans`: eventide runs theirs. `streams_compact`: Hudi's streams may
    compact the table, too (`hudi_streams`). `max_left_overs` is the number of log files that an exact cut leaves in a slice
    at most, `commits_retained` the number of commits that cleaning keeps. `index_type` is the index that the user states;
    None if there is none. `codec` compresses base files.
    """

    wait_ms: int
    skew_ms: int
    is_exclusive: bool
    runs_foreign_plans: bool
    streams_compact: bool
    max_left_overs: int
    commits_retained: int
    index_type: str | None
    codec: ParquetCodec

    @classmethod
    def of(cls, options: Options) -> "CompactionSettings":
        """Raises ConfigError."""
        return cls(
            wait_ms=options.get(keys.PENDING_WRITE_WAIT_MS),
            skew_ms=options.get(keys.CLOCK_SKEW_MS),
            is_exclusive=options.get(keys.EXCLUSIVE),
            runs_foreign_plans=options.get(keys.FOREIGN_PLANS),
            streams_compact=options.get(keys.STREAMS_COMPACT) and not options.get(keys.EXCLUSIVE),
            max_left_overs=options.get(keys.MAX_LEFT_OVERS),
            commits_retained=options.get(keys.COMMITS_RETAINED),
            index_type=options.text(keys.INDEX_TYPE),
            codec=options.get(keys.PARQUET_CODEC),
        )
