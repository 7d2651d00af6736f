"""A time axis: the positions of times in a drawing, and the times to mark."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

_MINUTE_MS, _HOUR_MS, _DAY_MS = 60_000, 3_600_000, 86_400_000
_STEPS_MS = (
    *(n * 1000 for n in (1, 5, 15, 30)),
    *(n * _MINUTE_MS for n in (1, 5, 15, 30)),
    *(n * _HOUR_MS for n in (1, 3, 6, 12)),
    *(n * _DAY_MS for n in (1, 2, 7, 14, 30, 91, 365, 1826, 18262, 182621)),
)
_MARKS_MAX = 8


@dataclass(frozen=True, slots=True)
class Axis:
    """Maps epoch milliseconds to positions between `left` and `right`. A time beyond an end is placed at that end."""

    begin_ms: int
    end_ms: int
    left: float
    right: float

    @classmethod
    def over(cls, times: Iterable[int], left: float, right: float) -> "Axis":
        """An axis from the first of these times to the last, with a small margin."""
        known = tuple(times)
        begin, end = min(known), max(known)
        room = max((end - begin) // 50, 500)
        return cls(begin - room, end + room, left, right)

    def place(self, epoch_ms: int) -> float:
        within = min(max(epoch_ms, self.begin_ms), self.end_ms)
        return self.left + (self.right - self.left) * (within - self.begin_ms) / (self.end_ms - self.begin_ms)

    def marks(self) -> Sequence[tuple[int, str]]:
        """A few round times with their labels."""
        span = self.end_ms - self.begin_ms
        step = next((ms for ms in _STEPS_MS if span / ms <= _MARKS_MAX), -(-span // _MARKS_MAX))
        first = self.begin_ms + -self.begin_ms % step
        return [(at, _label(at, step)) for at in range(first, self.end_ms, step)]


def window(begins: Sequence[int], ends: Sequence[int], marked: Iterable[int], left: float, right: float) -> Axis:
    """An axis over spans, in which a few distant spans do not squeeze the others together.

    It contains the middle 80% of the beginnings and ends, and the `marked` times. If spans lie beyond, it extends to them,
    by at most twice that length to either side.
    """
    begins, ends = sorted(begins), sorted(ends)
    core = [begins[len(begins) // 10], ends[-1 - len(ends) // 10], *marked]
    span = max(max(core) - min(core), _HOUR_MS)
    begin = max(begins[0], min(core) - 2 * span)
    end = min(ends[-1], max(core) + 2 * span)
    return Axis.over((begin, end, *core), left, right)


def _label(epoch_ms: int, step_ms: int) -> str:
    try:
        at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=epoch_ms)
    except OverflowError:
        return str(epoch_ms)
    if step_ms >= _DAY_MS:
        return f"{at:%Y-%m-%d}"
    return f"{at:%d %b %H:%M}" if step_ms >= _MINUTE_MS else f"{at:%H:%M:%S}"
