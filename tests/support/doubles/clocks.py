"""Clocks for tests of waiting."""

from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass
class ManualClock:
    """A clock that advances only by sleeping. Runs each of `events` when a sleep reaches its time."""

    time_ms: int = 1_795_000_000_000
    zone_ms: int = 0
    events: list[tuple[int, Callable[[], object]]] = field(default_factory=list)

    def now_ms(self) -> int:
        return self.time_ms

    def sleep(self, milliseconds: int) -> None:
        assert milliseconds > 0
        self.time_ms += milliseconds
        for event in [event for event in self.events if event[0] <= self.time_ms]:
            self.events.remove(event)
            event[1]()

    def local_offset_ms(self, _epoch_ms: int, /) -> int:
        return self.zone_ms


class StoppedClock:
    """A clock that stands still, for what must not wait."""

    def now_ms(self) -> int:
        return 0

    def sleep(self, milliseconds: int) -> None:
        raise AssertionError(f"waits {milliseconds} ms for a lock that nobody holds")

    def local_offset_ms(self, _epoch_ms: int, /) -> int:
        return 0
