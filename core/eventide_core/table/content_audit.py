"""What an audit of data files finds, without their records."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class RepeatedKey:
    """A key that is there more than once: how many keys are so in the same way, and one of them.

    `places` are file ids, `commit_times` those of its rows (empty if the table has no meta fields), both sorted.
    `is_same_version`: two of the rows are one and the same version of the record.
    """

    count: int
    example: str
    places: tuple[str, ...]
    commit_times: tuple[str, ...]
    is_same_version: bool


@dataclass(frozen=True, slots=True)
class StrayKeys:
    """How many keys are not as they should be, and one of them."""

    count: int
    example: str


@dataclass(frozen=True, slots=True)
class SliceAudit:
    """What reading one slice whole found. Paths are relative to the table's root.

    `unreadable` says why a file could not be read; of it, and of what needs it, nothing else is known. `commit_times` are
    those of the base's rows with their counts. `hidden_keys` are not to be found by the base's footer, its bloom filter or
    its range of keys. `late_rows` of the merged slice lie before the watermark and are not in the base.
    `least_event_time_ms` is by log file, None for one without any. `repeated` are keys of the base.
    """

    partition: str
    file_id: str
    unreadable: Mapping[str, str] = field(default_factory=dict[str, str])
    commit_times: Mapping[str, int] = field(default_factory=dict[str, int])
    hidden_keys: StrayKeys | None = None
    late_rows: StrayKeys | None = None
    least_event_time_ms: Mapping[str, int | None] = field(default_factory=dict[str, int | None])
    repeated: tuple[RepeatedKey, ...] = ()


@dataclass(frozen=True, slots=True)
class RowDifference:
    """How the rows of two slices differ: how many keys only one has, or both with other values, and one of each."""

    lost: StrayKeys | None
    added: StrayKeys | None
    changed: StrayKeys | None
