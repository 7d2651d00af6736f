"""Draws freshness over time: what each compaction reached, by its completion time."""

from collections.abc import Sequence
from itertools import pairwise

from eventide.report.axis import Axis, window
from eventide.report.drawing import WIDTH, grid, ticks
from eventide.report.tables import shown
from eventide_core.errors import counted, format_timestamp
from eventide_core.service.common.facts.compaction_history import PastCompaction

_HEIGHT = 260
_LEFT = 130  # space for the labels of event times
_TOP, _BOTTOM = 40, 14
_MARGIN = 24  # height for what lies beyond the axis


def draw_history(history: Sequence[PastCompaction], now_ms: int, watermark_ms: int | None) -> str | None:
    """Cut and watermark by completion time, and the current watermark; None if no compaction published a cut."""
    reached = [(past, past.cut_ms) for past in history if past.cut_ms is not None]
    if not reached:
        return None
    across = Axis.over((*(past.completed_ms for past, _ in reached), now_ms), _LEFT, WIDTH - 14)
    levels = [cut for _, cut in reached] + [p.watermark_ms for p, _ in reached if p.watermark_ms is not None]
    levels += [] if watermark_ms is None else [watermark_ms]
    up = window([(level, level) for level in levels], _HEIGHT - _BOTTOM, _TOP, margin=_MARGIN)
    rungs = "".join(
        f'<line class="grid" x1="{_LEFT}" x2="{WIDTH}" y1="{up.place(at):.1f}" y2="{up.place(at):.1f}"/>'
        f'<text class="tick" x="{_LEFT - 8}" y="{up.place(at) + 4:.1f}" text-anchor="end">{shown(label)}</text>'
        for at, label in up.marks()
    ) + _margins(up)
    # The cut does not change until the next compaction completes.
    points = [(across.place(past.completed_ms), up.place(cut)) for past, cut in reached]
    steps = "".join(f"H{x:.1f}V{y:.1f}" for _, (x, y) in pairwise(points))
    cut_line = f'<path class="cut-line" d="M{points[0][0]:.1f} {points[0][1]:.1f}{steps}H{across.place(now_ms):.1f}"/>'
    dots = "".join(_dots(past, cut, across, up) for past, cut in reached)
    now = "" if watermark_ms is None else _dot("watermark-dot", now_ms, watermark_ms, across, up, "watermark now")
    about = (
        f"{counted(len(reached), 'compaction')} from {format_timestamp(reached[0][0].completed_ms)} "
        f"to {format_timestamp(reached[-1][0].completed_ms)}, "
        f"the last one with its cut at {format_timestamp(reached[-1][1])}; the table below has the numbers"
    )
    return (
        f'<svg viewBox="0 0 {WIDTH} {_HEIGHT}" role="img" aria-labelledby="history-title history-desc">'
        f'<title id="history-title">Freshness over time</title>'
        f'<desc id="history-desc">{shown(about)}</desc>{grid(across, 26, _HEIGHT - _BOTTOM)}{ticks(across, 26)}{rungs}'
        f'<text class="tick" x="0" y="12">event time, by the time of completion</text>{cut_line}{dots}{now}</svg>'
    )


def _margins(up: Axis) -> str:
    """The margins of the times beyond the axis, which grows upward."""
    sides = ((up.left, up.margin_before, "earlier"), (up.right - up.margin_after, up.margin_after, "later"))
    return "".join(
        f'<rect class="margin" x="{_LEFT}" y="{top:.1f}" width="{WIDTH - _LEFT}" height="{height}"/>'
        f'<text class="tick" x="{_LEFT - 8}" y="{top + height / 2 + 4:.1f}" text-anchor="end">{word}</text>'
        for top, height, word in sides
        if height
    )


def _dots(past: PastCompaction, cut_ms: int, across: Axis, up: Axis) -> str:
    cut = _dot("cut-dot", past.completed_ms, cut_ms, across, up, f"cut of the compaction at {past.instant}")
    if past.watermark_ms is None or past.watermark_ms == cut_ms:
        return cut
    return cut + _dot("watermark-dot", past.completed_ms, past.watermark_ms, across, up, f"watermark at {past.instant}")


def _dot(kind: str, at_ms: int, level_ms: int, across: Axis, up: Axis, title: str) -> str:
    return (
        f'<circle class="{kind}" cx="{across.place(at_ms):.1f}" cy="{up.place(level_ms):.1f}" r="4">'
        f"<title>{shown(f'{title}: {format_timestamp(level_ms)}')}</title></circle>"
    )
