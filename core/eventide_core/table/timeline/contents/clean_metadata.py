"""The plan of a clean, which its metadata repeat: which files it removes, or has removed."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from eventide_core.table.files.file_name import path_in
from eventide_core.table.timeline.instant import Instant


class CleaningPolicy(StrEnum):
    """Which old file slices stay, as in Hudi."""

    COMMITS = "KEEP_LATEST_COMMITS"
    FILE_VERSIONS = "KEEP_LATEST_FILE_VERSIONS"
    HOURS = "KEEP_LATEST_BY_HOURS"


@dataclass(frozen=True, slots=True)
class CleanPlan:
    """What the clean requested at `instant` removes, or, once it has completed, was to remove.

    `deleted` are file names by partition, sorted. `policy` is what chose them. `earliest_to_retain` is the first write whose
    slices stay; None if the policy does not go by time, or keeps all. `last_completed` is the requested time of the last
    write that had completed, empty if none had. `savepoints` are those at that time: an engine that cleans incrementally
    reexamines a partition if one of them was deleted. `cleaned_until` is the first write whose older slices no earlier clean
    has removed, the only limit that a plan of eventide states to Hudi; None in a completed clean. `is_left`: Hudi completed
    a plan of eventide, and has removed none of its files.
    """

    instant: str
    policy: CleaningPolicy
    earliest_to_retain: Instant | None
    last_completed: str
    deleted: Mapping[str, tuple[str, ...]]
    savepoints: tuple[str, ...] = ()
    cleaned_until: Instant | None = None
    is_left: bool = False

    @property
    def deleted_paths(self) -> tuple[str, ...]:
        return tuple(path_in(partition, name) for partition, names in self.deleted.items() for name in names)
