"""Draws coverage over a time axis: one bar per file, as long as its span of event times, and one group of bars per slice.

Each partition is drawn by itself, and folded if it holds nothing back or has many slices.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from eventide.report.axis import Axis, window
from eventide.report.coverage import FileCoverage, Role, SliceCoverage
from eventide.report.gather import Report
from eventide.report.tables import named, shortened, shown, wide
from eventide_core.errors import counted, format_timestamp
from eventide_core.table.records.event_time import EventTimeRange

WIDTH = 960  # of a drawing, in SVG user units
_LABEL = 14  # height of a row of labels of marks
_LETTER = 8  # width of a letter of these labels, at most
MARGIN = 60  # width for what lies beyond the axis
_TITLE = 17  # height of a slice's name
_ROW = 8  # height of a file's bar, with the gap below it
_GAP = 9  # between slices
_FILES_SHOWN = 24  # of a slice, always including its late files
_NAME_CHARACTERS = 24
_LEAST = 2.5  # least width of a bar
_LEAST_LATE = 7.0  # least width of a late file's bar, so that nobody overlooks it

_MEANING = {
    Role.BASE: "in the base file",
    Role.MERGED: "in a log file, to be merged",
    Role.REMAINING: "in a log file",
    Role.LATE: "in a log file, with records before the cut",
}


def coverage_axis(slices: Iterable[SliceCoverage], marked: Iterable[int]) -> Axis | None:
    """An axis for these slices that fits their log files: base files reach further back. None without event times."""
    spans: dict[bool, list[tuple[int, int]]] = {True: [], False: []}
    for file in (file for one in slices for file in one.files):
        times = file.event_times
        if times is not None and times.min_ms is not None and times.max_ms is not None:
            spans[file.role is Role.BASE].append((times.min_ms, times.max_ms))
    known = spans[False] or spans[True]
    if not known:
        return None
    axis = window([*known, *((at, at) for at in marked)], 10, WIDTH - 10, margin=MARGIN)
    # Base files that reach further back have a margin, too.
    if axis.margin_before == 0 and any(begin < axis.begin_ms for begin, _ in spans[True]):
        axis = replace(axis, left=axis.left + MARGIN, margin_before=MARGIN)
    return axis


def draw_coverage(
    slices: Sequence[SliceCoverage], axis: Axis, marks: Mapping[str, int], *, name: str, title: str
) -> str:
    """The drawing as SVG. `marks` are the times with a line, by label. `name` is unique on the page."""
    partitions = {coverage.partition for coverage in slices}
    labels = _labels(marks, axis)
    ticks_y = _LABEL * (1 + max((row for *_, row in labels), default=0)) + 18
    bars: list[str] = []
    texts: list[str] = []
    between_names: list[str] = []
    top = ticks_y + 6
    for coverage in slices:
        texts.append(
            f'<text class="name" x="10" y="{top + 11}">{shown(_name(coverage, is_one_of_many=len(partitions) > 1))}'
            f"<title>{shown(coverage.partition or '.')} {shown(coverage.file_id)}</title></text>"
            f'<text class="note" x="{WIDTH - 10}" y="{top + 11}" text-anchor="end">{_note(coverage)}</text>'
        )
        top += _TITLE
        between_names.append(f"M{{x}} {top - 2}")
        for file in _drawn(coverage):
            bars.append(_file(file, top, axis))
            top += _ROW
        between_names.append(f"V{top}")
        top += _GAP
    describes = (
        f"{counted(len(slices), 'slice')}, each with one bar for each file, from its earliest to its latest event time. "
        + ("; ".join(f"{label} at {format_timestamp(at)}" for label, at in marks.items()))
    )
    spans = "".join(between_names)
    lines = "".join(
        f'<path class="mark" d="M{place:.1f} {_LABEL * row + 2}V{ticks_y + 4}{spans.format(x=f"{place:.1f}")}"/>'
        for _, _, place, row in labels
    )
    return (
        f'<svg viewBox="0 0 {WIDTH} {top}" role="img" aria-labelledby="{name}-title {name}-desc">'
        f'<title id="{name}-title">{shown(title)}</title>'
        f'<desc id="{name}-desc">{shown(describes)}</desc>'
        # Texts come last: a line would run through them.
        f"{_margins(axis, ticks_y, top)}{grid(axis, ticks_y, top)}{''.join(bars)}{lines}"
        f"{ticks(axis, ticks_y)}{_mark_texts(labels)}{''.join(texts)}</svg>"
    )


def grid(axis: Axis, label_y: int, bottom: int) -> str:
    """Vertical lines at round times."""
    return "".join(
        f'<line class="grid" x1="{axis.place(at):.1f}" x2="{axis.place(at):.1f}" y1="{label_y + 4}" y2="{bottom}"/>'
        for at, _ in axis.marks()
    )


def ticks(axis: Axis, y: int) -> str:
    """The labels of the round times."""
    return "".join(
        f'<text class="tick" x="{axis.place(at):.1f}" y="{y}" text-anchor="{_anchor(axis, at)}">{shown(label)}</text>'
        for at, label in axis.marks()
    )


def _anchor(axis: Axis, at: int) -> str:
    place = (axis.place(at) - axis.left) / (axis.right - axis.left)
    return "start" if place < 0.05 else "end" if place > 0.95 else "middle"


def _margins(axis: Axis, label_y: int, bottom: int) -> str:
    """The margins of the files and marks beyond the axis."""
    sides = ((axis.left - axis.margin_before, axis.margin_before, "earlier"), (axis.right, axis.margin_after, "later"))
    return "".join(
        f'<rect class="margin" x="{left:.1f}" y="{label_y - 12}" width="{width}" height="{bottom - label_y + 12}"/>'
        f'<text class="tick" x="{left + width / 2:.1f}" y="{label_y}" text-anchor="middle">{word}</text>'
        for left, width, word in sides
        if width
    )


def _labels(marks: Mapping[str, int], axis: Axis) -> list[tuple[str, str, float, int]]:
    """The label of each line, its title, its position, and the row in which no other label overprints it."""
    by_place: dict[float, list[tuple[str, int]]] = {}
    for label, at in marks.items():
        by_place.setdefault(round(axis.place(at), 1), []).append((label, at))
    labels: list[tuple[str, str, float, int]] = []
    row_ends: list[float] = []
    for place in sorted(by_place):
        # Marks of the same time share a label, and so do those that share a margin.
        label = (" = " if len({at for _, at in by_place[place]}) == 1 else ", ").join(
            text for text, _ in by_place[place]
        )
        title = "; ".join(f"{text}: {format_timestamp(at)}" for text, at in by_place[place])
        begin, end = _reach(label, place)
        row = next((n for n, taken in enumerate(row_ends) if taken < begin), len(row_ends))
        row_ends[row : row + 1] = [end]
        labels.append((label, title, place, row))
    return labels


def _reach(label: str, place: float) -> tuple[float, float]:
    """From where to where a label reaches, at most. It is right of its line, or left of it where it would be cut off."""
    width = _LETTER * len(label) + 8
    return (place - width, place) if place + width > WIDTH else (place, place + width)


def _mark_texts(labels: Sequence[tuple[str, str, float, int]]) -> str:
    texts: list[str] = []
    for label, title, place, row in labels:
        x, anchor = (place - 4, "end") if _reach(label, place)[0] < place else (place + 4, "start")
        texts.append(
            f'<text class="mark-label" x="{x:.1f}" y="{_LABEL * row + 12}" text-anchor="{anchor}">{shown(label)}'
            f"<title>{shown(title)}</title></text>"
        )
    return "".join(texts)


def _name(coverage: SliceCoverage, *, is_one_of_many: bool) -> str:
    """The slice, with its partition if the drawing has slices of others."""
    partition = f"{shortened(coverage.partition or '.', 2 * _NAME_CHARACTERS)}, " if is_one_of_many else ""
    return f"{partition}slice {shortened(coverage.file_id, _NAME_CHARACTERS)}"


def _note(coverage: SliceCoverage) -> str:
    logs = sum(file.role is not Role.BASE for file in coverage.files)
    hidden = len(coverage.files) - len(_drawn(coverage))
    parts = [counted(logs, "log file") if logs else "no log files"]
    if coverage.late:
        parts.append(f"{len(coverage.late)} late")
    if hidden:
        parts.append(f"{hidden} not drawn")
    return ", ".join(parts)


def _drawn(coverage: SliceCoverage) -> list[FileCoverage]:
    if len(coverage.files) <= _FILES_SHOWN:
        return list(coverage.files)
    first = sorted(range(len(coverage.files)), key=lambda n: (n > 0, coverage.files[n].role is not Role.LATE, n))
    return [coverage.files[n] for n in sorted(first[:_FILES_SHOWN])]


def _without_times(times: EventTimeRange) -> Iterator[str]:
    """How many records have no event time, and how many have one that cannot be read."""
    if times.unknown_records:
        yield f"{counted(times.unknown_records, 'record')} without event time"
    if times.unreadable_records:
        yield f"{counted(times.unreadable_records, 'record')} with an unreadable event time"


def _file(file: FileCoverage, top: int, axis: Axis) -> str:
    times = file.event_times
    if times is None or times.min_ms is None or times.max_ms is None:
        if times is not None and file.problem is None:
            content = ", and ".join(_without_times(times)) or "no records"
        else:
            content = f"unknown event times: {file.problem or 'no reason known'}"
        title = f"{file.name}: {content}"
        return (
            f'<rect class="unknown" x="{axis.left}" y="{top}" width="{axis.right - axis.left:.1f}" height="{_ROW - 3}">'
            f"<title>{shown(title)}</title></rect>"
        )
    title = f"{file.name}: {_MEANING[file.role]}, {format_timestamp(times.min_ms)} to {format_timestamp(times.max_ms)}"
    title += "".join(f", and {count}" for count in _without_times(times))
    uncompacted = file.uncompacted
    if file.role is Role.BASE or uncompacted is None or uncompacted == times:
        return _bar(file.role, times.min_ms, times.max_ms, top, axis, title)
    # An exact cut has merged the file up to some time, or completely: that part of it is in the base file.
    if uncompacted.min_ms is None or uncompacted.max_ms is None:
        return _bar(Role.BASE, times.min_ms, times.max_ms, top, axis, f"{title}; all of it is in the base file")
    title += f"; up to {format_timestamp(uncompacted.min_ms)} it is in the base file"
    return _bar(Role.BASE, times.min_ms, uncompacted.min_ms, top, axis, title) + _bar(
        file.role, uncompacted.min_ms, uncompacted.max_ms, top, axis, title
    )


def _bar(role: Role, begin_ms: int, end_ms: int, top: int, axis: Axis, title: str) -> str:
    """A bar that ends in a margin reaches beyond the axis."""
    begin, end = axis.place(begin_ms), axis.place(end_ms)
    width = max(end - begin, _LEAST_LATE if role is Role.LATE else _LEAST)
    begin = min(begin, axis.right + axis.margin_after - width)
    return (
        f'<rect class="{role}" x="{begin:.1f}" y="{top}" width="{width:.1f}" height="{_ROW - 3}">'
        f"<title>{shown(title)}</title></rect>"
    )


_SLICES_UNFOLDED: Final = 24
"""How many slices are drawn before partitions are folded. The first partition is never folded."""
_CALM_SLICES_UNFOLDED: Final = 6
"""How many are drawn before a partition is folded in which nothing holds the watermark back."""

_NAME: Final = 80
"""Characters of a partition's name."""


def coverage_by_partition(report: Report, axis: Axis, marks: Mapping[str, int]) -> str:
    """The drawings as HTML, on the same time axis, the partition of the most urgent slice first."""
    groups: dict[str, list[SliceCoverage]] = {}
    for coverage in report.slices:
        groups.setdefault(coverage.partition, []).append(coverage)
    slices_of = Counter(file_slice.partition for file_slice in report.table.file_slices)
    parts: list[str] = []
    drawn = 0
    for number, (partition, slices) in enumerate(groups.items()):
        title = f"Coverage of event time in {partition or 'the table'}"
        drawing = wide(title, draw_coverage(slices, axis, marks, name=f"coverage-{number}", title=title))
        drawn += len(slices)
        if len(groups) == 1:
            return drawing
        is_open = " open" if number == 0 or drawn <= _unfolded(slices, has_cut=bool(marks)) else ""
        about = _about(slices, slices_of[partition])
        summary = f'<summary>{named(partition or ".", _NAME)} <span class="soft">{about}</span></summary>'
        parts.append(f"<details{is_open}>{summary}{drawing}</details>")
    return "".join(parts)


def _unfolded(slices: list[SliceCoverage], *, has_cut: bool) -> int:
    """Up to how many drawn slices the partition is unfolded."""
    files = [file for coverage in slices for file in coverage.files]
    if any(file.role is Role.LATE or file.event_times is None for file in files):
        return _SLICES_UNFOLDED
    if all(file.uncompacted is not None and file.uncompacted.min_ms is None for file in files):
        return 0  # nothing waits
    return _CALM_SLICES_UNFOLDED if has_cut else _SLICES_UNFOLDED


def _about(slices: list[SliceCoverage], in_partition: int) -> str:
    """What is in a partition, as HTML."""
    late = sum(1 for coverage in slices if coverage.late)
    since = min((ms for coverage in slices if (ms := coverage.uncompacted_from_ms) is not None), default=None)
    parts = [counted(in_partition, "slice")]
    if len(slices) < in_partition:
        parts.append(f"{len(slices):,} drawn")
    if late:
        parts.append(f"{late:,} with late records")
    if since is not None:
        parts.append(f'uncompacted from <span class="moment">{format_timestamp(since)}</span>')
    return ", ".join(parts)
