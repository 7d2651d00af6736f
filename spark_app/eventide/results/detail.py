"""How much a description of a table or of a plan shows."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Protocol, TypeVar

WORST: Final = 5
"""How many slices a short text names."""


class InPartition(Protocol):
    @property
    def partition(self) -> str: ...


_InPartition = TypeVar("_InPartition", bound=InPartition)


@dataclass(frozen=True, slots=True)
class Detail:
    """Which file slices a text shows with their files: by default none.

    `is_verbose`: all of them. `partition` and `limit` restrict them to one partition and to so many; one of them alone shows
    slices, too.
    """

    is_verbose: bool = False
    partition: str | None = None
    limit: int | None = None

    @property
    def shows_files(self) -> bool:
        return self.is_verbose or self.partition is not None or self.limit is not None

    def slices_of(self, slices: Iterable[_InPartition]) -> tuple[list[_InPartition], list[str]]:
        """The slices to show, and a line about slices that are left out or missing."""
        if not self.shows_files:
            return [], []
        chosen = [one for one in slices if self.partition is None or one.partition == self.partition]
        if not chosen and self.partition is not None:
            return [], [f"  none of these file slices is in partition {self.partition!r}"]
        shown = chosen if self.limit is None else chosen[: self.limit]
        return shown, more(len(chosen) - len(shown))


SHORT: Final = Detail()


def more(left_out: int) -> list[str]:
    """A line that states how many a limit leaves out; no line for 0."""
    return [f"  ... and {left_out:,} more"] if left_out else []
