"""The findings of an audit of data files, without the records."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class RepeatedKey:
    """Keys that occur more than once in the same way.

    `count` is how many keys, `example` the least of them. `places` are file ids, `commit_times` its rows' (empty if
    the table has no meta fields), both sorted. `is_same_version`: two of the rows are the same version of the record.
    """

    count: int
    example: str
    places: tuple[str, ...]
    commit_times: tuple[str, ...]
    is_same_version: bool


@dataclass(frozen=True, slots=True)
class StrayKeys:
    """Wrong keys: `count` is how many, and `example` one of them, or what is known of one, for people."""

    count: int
    example: str


@dataclass(frozen=True, slots=True)
class SliceAudit:
    """The findings in a whole slice. Paths are relative to the table's root.

    `unreadable`: why a file could not be read; nothing else is known of that file and of what needs it. `commit_times`:
    the times of the base file's rows, with their counts. `hidden_keys`: keys that the base file's footer, bloom filter, or
    key range excludes. `unstated_times`: keys of the base file with an event time outside the range that its footer states.
    `wrong_keys`: keys of the base file that its key fields don't give. `late_rows`: rows of the merged
    slice before the watermark that are not in the base file.
    `least_event_time_ms`: by log file, None for one without event times. `unreadable_event_times`: by log file, how many
    records have an event time that cannot be read, with a key and its value. `repeated`: keys of the base file.
    `log_records`: how many records each write put into the data blocks of a log file that count, by path and instant.
    """

    partition: str
    file_id: str
    unreadable: Mapping[str, str] = field(default_factory=dict[str, str])
    commit_times: Mapping[str, int] = field(default_factory=dict[str, int])
    hidden_keys: StrayKeys | None = None
    unstated_times: StrayKeys | None = None
    wrong_keys: StrayKeys | None = None
    late_rows: StrayKeys | None = None
    least_event_time_ms: Mapping[str, int | None] = field(default_factory=dict[str, int | None])
    unreadable_event_times: Mapping[str, StrayKeys] = field(default_factory=dict[str, StrayKeys])
    repeated: tuple[RepeatedKey, ...] = ()
    log_records: Mapping[str, Mapping[str, int]] = field(default_factory=dict[str, Mapping[str, int]])


@dataclass(frozen=True, slots=True)
class RowDifference:
    """How the rows of two slices differ, by keys.

    `lost` are the keys that only the earlier slice has, `added` those that only the later one has, and `changed` those with
    different values; None for none.
    """

    lost: StrayKeys | None
    added: StrayKeys | None
    changed: StrayKeys | None
