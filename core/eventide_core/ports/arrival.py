"""Sources of a table, which say how far they have come."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from eventide_core.table.timeline.source_progress import SourceProgress


@dataclass(frozen=True, slots=True)
class StatedCommit:
    """A completed write. `instant` is its requested time, `completed_ms` when it completed, and `extra_metadata` texts."""

    instant: str
    completed_ms: int
    extra_metadata: Mapping[str, str]


CountRows: TypeAlias = Callable[[Sequence[tuple[int, int]]], Sequence[int]]
"""The number of rows of the table whose event time is in each span: its begin included, its end excluded."""


@dataclass(frozen=True, slots=True)
class SourceQuestion:
    """What a source may know of the table: `commits` that count, the newest first, and `now_ms`, the time.

    `count_rows` counts the rows that these commits left. It reads their event times, so it is called by who needs it, once.
    `as_of_ms` is the latest time at which the table is known to have been as these commits left it: what a source says only
    since then may be of rows that came later. It looks at the table again.
    """

    commits: tuple[StatedCommit, ...]
    now_ms: int
    count_rows: CountRows
    as_of_ms: Callable[[], int]


class ArrivalSource(Protocol):
    """A source that the table declares. Its adapter is opened with its name and settings."""

    def progress(self, question: SourceQuestion) -> SourceProgress:
        """How far it has come: everything of it before that time is in these writes, or was never on its way.

        A source that doesn't go by the commits counts what it had said at `as_of_ms`: it may be asked of an earlier view of
        the table. One that can't be asked has no progress, and says so in its evidence. Raises ConfigError for settings that
        can't be right.
        """
        ...
