"""Sources of a table, which say how far they have come."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from eventide_core.table.timeline.source_progress import SourceProgress


@dataclass(frozen=True, slots=True)
class StatedCommit:
    """A completed write. `instant` is its requested time, `completed_ms` when it completed, and `extra_metadata` texts."""

    instant: str
    completed_ms: int
    extra_metadata: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class SourceQuestion:
    """What a source may know of the table: `commits` that count, the newest first, and `now_ms`, the time."""

    commits: tuple[StatedCommit, ...]
    now_ms: int


class ArrivalSource(Protocol):
    """A source that the table declares. Its adapter is opened with its name and settings."""

    def progress(self, question: SourceQuestion) -> SourceProgress:
        """How far it has come: everything of it before that time is in these writes, or was never on its way.

        A source that can't be asked has no progress, and says so in its evidence. Raises ConfigError for settings that
        can't be right.
        """
        ...
