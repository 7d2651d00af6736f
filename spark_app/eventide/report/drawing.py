"""Draws coverage over a time axis: one bar per file, as long as its span of event times, and one group of bars per slice."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from eventide.report.axis import Axis, window
from eventide.report.coverage import FileCoverage, Role, SliceCoverage
from eventide.report.words import shortened, shown
from eventide_core.errors import counted, format_timestamp
from eventide_core.table.records.event_time import EventTimeRange

WIDTH = 960  # of a drawing, in SVG user units
_TOP = 34  # space for the labels of the marks and of the axis
_TITLE = 17  # height of a slice's name
_ROW = 8  # height of a file's bar, with the gap below it
_GAP = 9  # between slices
_FILES_SHOWN = 24  # of a slice, always including its late files
_NAME_CHARACTERS = 60
_ARROW = (_ROW - 1) / 2  # half the height of an arrow
_LEAST = 2.5  # least width of a bar
_LEAST_LATE = 7.0  # least width of a late file's bar, so that nobody overlooks it

_MEANING = {
    Role.BASE: "in the base file",
    Role.MERGED: "in a log file, to be merged",
    Role.REMAINING: "in a log",
    Role.LATE: "in a log file, with records before the cut",
}


def coverage_axis(slices: Iterable[SliceCoverage], marked: Iterable[int]) -> Axis | None:
    """An axis for these slices that fits their log files: base files reach further back. None without event times."""
    found = [file for one in slices for file in one.files if file.event_times is not None]
    ranges = {
        is_base: [
            (f.event_times.min_ms, f.event_times.max_ms)
            for f in found
            if (f.role is Role.BASE) is is_base
            and f.event_times is not None
            and f.event_times.min_ms is not None
            and f.event_times.max_ms is not None
        ]
        for is_base in (True, False)
    }
    known = ranges[False] or ranges[True]
    marked = tuple(marked)
    if not known:
        return None
    ends = [end for _, end in known]
    return window([begin for begin, _ in known], ends, marked, 10, WIDTH - 10)


def draw_coverage(
    slices: Sequence[SliceCoverage], axis: Axis, marks: Mapping[str, int], *, name: str, title: str
) -> str:
    """The drawing as SVG. `marks` are the times with a line, by label. `name` is unique on the page."""
    parts: list[str] = []
    top = _TOP
    for found in slices:
        parts.append(
            f'<text class="name" x="10" y="{top + 11}">{shown(shortened(_name(found), _NAME_CHARACTERS))}'
            f"<title>{shown(_name(found))}</title></text>"
            f'<text class="note" x="{WIDTH - 10}" y="{top + 11}" text-anchor="end">{_note(found)}</text>'
        )
        top += _TITLE
        for file in _drawn(found):
            parts.append(_file(file, top, axis))
            top += _ROW
        top += _GAP
    describes = (
        f"{counted(len(slices), 'slice')}, each with a bar a file from its earliest to its latest event time. "
        + ("; ".join(f"{label} at {format_timestamp(at)}" for label, at in marks.items()))
    )
    return (
        f'<svg viewBox="0 0 {WIDTH} {top}" role="img" aria-labelledby="{name}-title {name}-desc">'
        f'<title id="{name}-title">{shown(title)}</title>'
        f'<desc id="{name}-desc">{shown(describes)}</desc>'
        f"{grid(axis, 30, top)}{''.join(parts)}{_marks(marks, axis, top)}</svg>"
    )


def grid(axis: Axis, label_y: int, bottom: int) -> str:
    """Vertical lines at round times, with labels above."""
    return "".join(
        f'<line class="grid" x1="{axis.place(at):.1f}" x2="{axis.place(at):.1f}" y1="{label_y + 4}" y2="{bottom}"/>'
        f'<text class="tick" x="{axis.place(at):.1f}" y="{label_y}" text-anchor="{_anchor(axis, at)}">{shown(label)}</text>'
        for at, label in axis.marks()
    )


def _anchor(axis: Axis, at: int) -> str:
    place = (axis.place(at) - axis.left) / (axis.right - axis.left)
    return "start" if place < 0.05 else "end" if place > 0.95 else "middle"


def _marks(marks: Mapping[str, int], axis: Axis, bottom: int) -> str:
    # Marks at the same position share a label that names both.
    by_place: dict[str, list[tuple[str, int]]] = {}
    for label, at in marks.items():
        by_place.setdefault(f"{axis.place(at):.1f}", []).append((label, at))
    lines: list[str] = []
    for number, (place, found) in enumerate(sorted(by_place.items(), key=lambda item: float(item[0]))):
        label = " = ".join(text for text, _ in found)
        at = found[0][1]
        label = f"◂ {label}" if at < axis.begin_ms else f"{label} ▸" if at > axis.end_ms else label
        # If two marks are close, the label of the earlier one ends at its mark, and the label of the later one begins there.
        is_left = float(place) > axis.right - 120 or (number == 0 and len(by_place) > 1 and float(place) > 120)
        x, anchor = (float(place) - 4, "end") if is_left else (float(place) + 4, "start")
        lines.append(
            f'<line class="mark" x1="{place}" x2="{place}" y1="2" y2="{bottom}"/>'
            f'<text class="mark-label" x="{x:.1f}" y="12" text-anchor="{anchor}">{shown(label)}'
            f"<title>{shown(f'{label}: {format_timestamp(at)}')}</title></text>"
        )
    return "".join(lines)


def _name(found: SliceCoverage) -> str:
    return f"{found.partition or '.'}  {found.file_id[:8]}"


def _note(found: SliceCoverage) -> str:
    logs = sum(file.role is not Role.BASE for file in found.files)
    hidden = len(found.files) - len(_drawn(found))
    parts = [counted(logs, "log") if logs else "no logs"]
    if found.late:
        parts.append(f"{len(found.late)} late")
    if hidden:
        parts.append(f"{hidden} not drawn")
    return ", ".join(parts)


def _drawn(found: SliceCoverage) -> list[FileCoverage]:
    if len(found.files) <= _FILES_SHOWN:
        return list(found.files)
    first = sorted(range(len(found.files)), key=lambda n: (n > 0, found.files[n].role is not Role.LATE, n))
    return [found.files[n] for n in sorted(first[:_FILES_SHOWN])]


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
            said = ", and ".join(_without_times(times)) or "no records"
        else:
            said = f"unknown event times: {file.problem or 'no reason known'}"
        title = f"{file.name}: {said}"
        return (
            f'<rect class="unknown" x="{axis.left}" y="{top}" width="{axis.right - axis.left:.1f}" height="{_ROW - 3}">'
            f"<title>{shown(title)}</title></rect>"
        )
    title = f"{file.name}: {_MEANING[file.role]}, {format_timestamp(times.min_ms)} to {format_timestamp(times.max_ms)}"
    title += "".join(f", and {said}" for said in _without_times(times))
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
    begin, end = axis.place(begin_ms), axis.place(end_ms)
    width = max(end - begin, _LEAST_LATE if role is Role.LATE else _LEAST)
    begin = min(begin, axis.right - width)
    # If a file reaches beyond the axis, an arrow at the end of its bar shows that.
    beyond = ""
    if begin_ms < axis.begin_ms:
        beyond += f'<path class="{role}" d="M{axis.left - 2:.1f} {top - 1}l-6 {_ARROW}l6 {_ARROW}z"/>'
    if end_ms > axis.end_ms:
        beyond += f'<path class="{role}" d="M{axis.right + 2:.1f} {top - 1}l6 {_ARROW}l-6 {_ARROW}z"/>'
    return (
        f'<rect class="{role}" x="{begin:.1f}" y="{top}" width="{width:.1f}" height="{_ROW - 3}">'
        f"<title>{shown(title)}</title></rect>{beyond}"
    )
