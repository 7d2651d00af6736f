"""One self-contained page: which event times the files of each slice cover, before and after the compaction."""

from collections.abc import Sequence

from eventide.report.axis import Axis
from eventide.report.coverage import Role, SliceCoverage
from eventide.report.drawing import MARGIN, WIDTH, draw_coverage
from eventide.report.style import key, page
from eventide.report.tables import wide
from eventide.report.words import shown
from eventide_core.errors import format_timestamp

_HOUR_MS = 3_600_000
_SHOWN_BEFORE_MS = 30 * _HOUR_MS  # how far before T the picture begins: the base files reach further back
_KEY = {Role.BASE: "base file", Role.MERGED: "log, to be merged", Role.REMAINING: "log, left over"}

Coverage = Sequence[SliceCoverage]


def draw(before: Coverage, after: Coverage, threshold_ms: int, sentences: Sequence[str]) -> str:
    """The page as HTML. Times are in UTC."""
    ranges = [file.event_times for slice_coverage in (*before, *after) for file in slice_coverage.files]
    last_ms = max(times.max_ms for times in ranges if times is not None and times.max_ms is not None)
    end_ms = max(last_ms, threshold_ms + _HOUR_MS)
    axis = Axis(threshold_ms - _SHOWN_BEFORE_MS, end_ms, 10 + MARGIN, WIDTH - 10, margin_before=MARGIN)
    marks = {"T": threshold_ms}
    drawings = "".join(
        f"<h2>{title}</h2>"
        + wide(title, draw_coverage(slices, axis, marks, name=title.lower(), title=f"{title} the compaction"))
        for title, slices in (("Before", before), ("After", after))
    )
    steps = "".join(f"<li>{shown(sentence)}</li>" for sentence in sentences)
    body = f"""<h1>Compaction of everything before {format_timestamp(threshold_ms)}</h1>
<p>Each bar is a file, as long as the event times it holds; a group of bars is a file slice.</p>
{key(_KEY)}{drawings}
<h2>What happened</h2><ol>{steps}</ol>"""
    return page("eventide demo", body)
