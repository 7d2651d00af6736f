"""Draws the slices of each partition by themselves, and folds those that hold nothing back or have many slices."""

from collections import Counter
from collections.abc import Mapping
from typing import Final

from eventide.report.axis import Axis
from eventide.report.coverage import Role, SliceCoverage
from eventide.report.drawing import draw_coverage
from eventide.report.gather import Report
from eventide.report.tables import wide
from eventide.report.words import named
from eventide_core.errors import counted, format_timestamp

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
