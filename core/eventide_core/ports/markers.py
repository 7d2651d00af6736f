"""Where windows are marked as done, for tools that know files and calls alone."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class MarkerEvent:
    """A window was done (`is_done`), or reopened, because late data has come that isn't in the view yet.

    `begin_ms`, `end_ms`: the window, in epoch milliseconds, the end excluded. `number` rises from event to event of a
    table's marker, with gaps. An event that is sent again, after a crash, has the number that it had. `basis`: what the
    event rests on, as `Freshness.basis` has it; empty if it is sent again after a crash.
    """

    number: int
    begin_ms: int
    end_ms: int
    is_done: bool
    basis: str = ""

    @property
    def kind(self) -> str:
        return "done" if self.is_done else "reopened"


class MarkerTarget(Protocol):
    """Takes events in their order, each at least once. An event that it has had before changes nothing."""

    def tell(self, event: MarkerEvent) -> None:
        """Returns once the event is there to stay. Raises MarkerError or StorageError; then it is sent again."""
        ...

    def settle(self, begin_ms: int, end_ms: int, *, is_done: bool) -> None:
        """Makes what is there agree, if a process that was paused may have sent an old event late."""
        ...
