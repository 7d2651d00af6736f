"""A time axis: the positions of times in a drawing, and the times to mark.

A few distant times would squeeze all others into a few pixels. `window` leaves them out of the axis: they are placed in a
margin beyond its end, which the drawing marks.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
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
    """Maps epoch milliseconds to positions between `left` and `right`.

    `begin_ms` is at `left` and `end_ms`, which is later, at `right`. `margin_before` and `margin_after` are the widths of
    the margins for times beyond the ends. Such a time is placed in the middle of its margin, or at the end if there is none.
    """

    begin_ms: int
    end_ms: int
    left: float
    right: float
    margin_before: float = 0
    margin_after: float = 0

    @classmethod
    def over(cls, times: Iterable[int], left: float, right: float) -> "Axis":
        """An axis from the first of these times to the last, with a small margin."""
        known = tuple(times)
        begin, end = min(known), max(known)
        room = max((end - begin) // 50, 500)
        return cls(begin - room, end + room, left, right)

    def place(self, epoch_ms: int) -> float:
        sign = 1 if self.left < self.right else -1
        if epoch_ms < self.begin_ms:
            return self.left - sign * self.margin_before / 2
        if epoch_ms > self.end_ms:
            return self.right + sign * self.margin_after / 2
        return self.left + (self.right - self.left) * (epoch_ms - self.begin_ms) / (self.end_ms - self.begin_ms)

    def marks(self) -> Sequence[tuple[int, str]]:
        """A few round times with their labels."""
        span = self.end_ms - self.begin_ms
        step = next((ms for ms in _STEPS_MS if span / ms <= _MARKS_MAX), -(-span // _MARKS_MAX))
        first = self.begin_ms + -self.begin_ms % step
        return [(at, _label(at, step)) for at in range(first, self.end_ms, step)]


def window(spans: Sequence[tuple[int, int]], left: float, right: float, *, margin: float) -> Axis:
    """An axis over spans of time in which a few distant ones do not squeeze the others together.

    Leaves out at most a fifth of the spans (one of a few), where the gap to them is more than twice as long as
    all that remains. `margin` is the width that is kept free for them.
    """
    times = sorted(time for span in spans for time in span)
    first, last = _bulk(times, 2 * max(len(spans) // 5, 1 if len(spans) > 2 else 0))
    before, after = (margin if is_cut else 0 for is_cut in (first > 0, last < len(times)))
    sign = 1 if left < right else -1
    axis = Axis.over(times[first:last], left + sign * before, right - sign * after)
    return replace(axis, margin_before=before, margin_after=after)


def _bulk(times: Sequence[int], most: int) -> tuple[int, int]:
    """The range of positions in sorted times that is left without the distant ones, at most so many."""
    first, last = 0, len(times)

    def left() -> int:
        return most - first - (len(times) - last)

    def is_distant(gap_ms: int, begin: int, end: int) -> bool:
        return gap_ms > max(2 * (times[end - 1] - times[begin]), _HOUR_MS)

    def without_last() -> int | None:
        at = range(last - 1, max(first, last - left() - 1), -1)
        return next((n for n in at if is_distant(times[n] - times[n - 1], first, n)), None)

    def without_first() -> int | None:
        at = range(first + 1, min(last, first + left() + 1))
        return next((n for n in at if is_distant(times[n] - times[n - 1], n, last)), None)

    while True:
        if (end := without_last()) is not None:
            last = end
        elif (begin := without_first()) is not None:
            first = begin
        else:
            return first, last


def _label(epoch_ms: int, step_ms: int) -> str:
    try:
        at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=epoch_ms)
    except OverflowError:
        return str(epoch_ms)
    if step_ms >= _DAY_MS:
        return f"{at:%Y-%m-%d}"
    return f"{at:%d %b %H:%M}" if step_ms >= _MINUTE_MS else f"{at:%H:%M:%S}"
