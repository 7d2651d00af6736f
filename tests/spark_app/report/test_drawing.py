"""What the drawings show: an axis over the bulk, labels that are legible, and partitions that have something to say."""

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from eventide import Table
from eventide.report.axis import window
from eventide.report.coverage import FileCoverage, Role, SliceCoverage
from eventide.report.drawing import WIDTH, coverage_axis, draw_coverage
from eventide.report.tables import named
from eventide_core.config import BUCKETS, CLOCK_SKEW_MS
from eventide_core.table.records.event_time import EventTimeRange
from support.values.columns import schema_of

HOUR = 3_600_000
T = 1_700_006_400_000
YEAR = 365 * 24 * HOUR
SCHEMA = schema_of(id=pa.string(), part=pa.string(), ms=pa.int64())


def log(begin: int, end: int, role: Role = Role.REMAINING) -> FileCoverage:
    times = EventTimeRange(begin, end)
    return FileCoverage(f"p/.{begin}.log.1_0-1-1", 1, role, times, times)


def slices_of(*files: FileCoverage) -> list[SliceCoverage]:
    return [
        SliceCoverage("p", f"{number:08}-0000-0000-0000-000000000000-0", (file,)) for number, file in enumerate(files)
    ]


@given(
    lengths=st.lists(st.integers(HOUR // 4, HOUR), min_size=2, max_size=40),
    years=st.integers(-50, 50).filter(bool),
)
def test_one_distant_file_leaves_the_axis_to_the_others(lengths: list[int], years: int) -> None:
    spans = [(T + number * HOUR // 4, T + number * HOUR // 4 + length) for number, length in enumerate(lengths)]
    far = T + years * YEAR
    axis = window([*spans, (far, far)], 10, WIDTH - 10, margin=60)
    assert min(begin for begin, _ in spans) >= axis.begin_ms
    assert max(end for _, end in spans) <= axis.end_ms
    assert axis.end_ms - axis.begin_ms <= 12 * HOUR
    assert (axis.margin_before, axis.margin_after) == ((60, 0) if years < 0 else (0, 60))
    outside = axis.place(far)
    assert outside < axis.left if years < 0 else outside > axis.right
    assert 0 < outside < WIDTH


@given(st.lists(st.integers(0, 100 * HOUR), min_size=1, max_size=30), st.integers(2, 40))
def test_no_more_than_a_fifth_of_the_files_or_one_of_a_few_is_left_out(begins: list[int], power: int) -> None:
    spans = [(T + begin**2 // power, T + begin**2 // power) for begin in begins]
    axis = window(spans, 0, 100, margin=5)
    assert sum(end < axis.begin_ms or begin > axis.end_ms for begin, end in spans) <= max(len(spans) // 5, 1)


def test_files_beyond_the_axis_lie_in_a_marked_margin() -> None:
    found = slices_of(*(log(T + n * HOUR, T + (n + 1) * HOUR) for n in range(4)), log(T + YEAR, T + YEAR))
    axis = coverage_axis(found, (T,))
    assert axis is not None
    drawing = ET.fromstring(draw_coverage(found, axis, {"cut T": T}, name="c", title="c"))
    (margin,) = (rect for rect in drawing.iter("rect") if rect.get("class") == "margin")
    *near, far = (rect for rect in drawing.iter("rect") if rect.get("class") == "remaining")
    left, right = float(margin.get("x", "")), float(margin.get("x", "")) + float(margin.get("width", ""))
    assert left < float(far.get("x", "")) < right
    assert all(float(rect.get("width", "")) > 100 for rect in near)
    assert "later" in [text.text for text in drawing.iter("text")]


@given(st.integers(-2 * HOUR, 40 * HOUR), st.integers(-2 * HOUR, 40 * HOUR))
def test_labels_of_marks_never_overprint_and_are_never_cut_off(watermark: int, cut: int) -> None:
    found = slices_of(*(log(T + n * HOUR, T + (n + 1) * HOUR) for n in range(20)))
    axis = coverage_axis(found, (T + cut,))
    assert axis is not None
    drawing = draw_coverage(found, axis, {"watermark": T + watermark, "cut T": T + cut}, name="c", title="c")
    boxes: list[tuple[float, float, str]] = []
    for text in ET.fromstring(drawing).iter("text"):
        if text.get("class") == "mark-label":
            x, width = float(text.get("x", "")), 8 * len(text.text or "")
            begin = x - width if text.get("text-anchor") == "end" else x
            assert begin >= 0
            assert begin + width <= WIDTH
            boxes.append((begin, begin + width, text.get("y", "")))
    assert 1 <= len(boxes) <= 2
    if len(boxes) == 2 and boxes[0][2] == boxes[1][2]:
        assert boxes[0][1] <= boxes[1][0] or boxes[1][1] <= boxes[0][0]


def test_partitions_without_late_records_are_folded(tmp_path: Path) -> None:
    parts = [f"p{number}" for number in range(12)]
    table = Table.create(
        str(tmp_path / "t"),
        schema=SCHEMA,
        record_key="id",
        partition="part",
        event_time="ms",
        options={BUCKETS: 1, CLOCK_SKEW_MS: "1"},
    )

    def write(chosen: list[str], hours: int) -> None:
        found = [{"id": f"{part}{hours}", "part": part, "ms": T + hours * HOUR} for part in chosen]
        table.upsert(pa.Table.from_pylist(found, schema=SCHEMA))

    write(parts, -2)
    table.compact(before=T)
    write(["p3", "p7"], -1)  # late
    write(parts[:6], 1)
    table.report(tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    folded = re.findall(r"<details( open)?><summary>part=(\w+) ", text)
    assert [name for is_open, name in folded if is_open] == ["p3", "p7", "p0", "p1", "p2", "p4"]
    assert len(folded) == len(parts)


def test_a_long_name_is_shortened_and_whole_in_its_title() -> None:
    assert (named("short"), named("دفتر")) == ("short", "<bdi>دفتر</bdi>")
    assert (
        named("<" * 20 + ">" * 20, 9)
        == f'<bdi class="short" title="{"&lt;" * 20}{"&gt;" * 20}">&lt;&lt;&lt;&lt;…&gt;&gt;&gt;&gt;</bdi>'
    )


def test_no_line_of_a_mark_runs_through_a_name() -> None:
    """Each name has 17 units above the bars of its slice."""
    slices = slices_of(*(log(T + number * HOUR, T + (number + 1) * HOUR) for number in range(3)))
    marks = {"cut T": T + HOUR}
    axis = coverage_axis(slices, marks.values())
    assert axis is not None
    drawing = draw_coverage(slices, axis, marks, name="d", title="t")
    names = [float(y) for y in re.findall(r'<text class="name" x="10" y="([\d.]+)"', drawing)]
    (path,) = set(re.findall(r'<path class="mark" d="M[\d.]+ ([^"]*)"', drawing))
    spans = re.findall(r"(?:^|M[\d.]+ )([\d.]+)V([\d.]+)", path)
    assert len(spans) == 1 + len(names) == 4
    assert not any(float(begin) < y and float(end) > y - 10 for begin, end in spans for y in names)
