"""The report page: whole, self-contained, true to the table, and safe from names that are markup."""

import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from pathlib import Path
from shlex import quote
from typing import Literal

import pyarrow as pa
import pytest

from eventide import ConfigError, Table
from eventide.report.page import code_of
from eventide.report.style import page, write_page
from eventide.report.tables import html_table, shown
from eventide_core.config import BUCKETS, CLOCK_SKEW_MS
from eventide_core.errors import format_timestamp
from support.pasts import golden
from support.processes.browser import seen_in_browser
from support.run.command_line import content_of, run, run_json
from support.values.columns import schema_of

pytestmark = pytest.mark.slow

HOSTILE = '"><img src=x onerror=alert(1)>&lt;\u202e'
HOUR_MS = 3_600_000
T_MS = 1_700_006_400_000
VOID = {"meta", "img", "link", "br"}
SCHEMA = schema_of(id=pa.string(), part=pa.string(), ms=pa.int64())


class Page(HTMLParser):
    """The elements, attributes and text of a page. Raises AssertionError if elements don't nest."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def rows(*values: tuple[str, str, int]) -> pa.Table:
    """Event times in hours after T."""
    found = [{"id": key, "part": part, "ms": T_MS + hours * HOUR_MS} for key, part, hours in values]
    return pa.Table.from_pylist(found, schema=SCHEMA)


@pytest.fixture(scope="module", params=["file", "exact"])
def table(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Table:
    """Compacted up to T; a log is left over, with an exact cut merged in part; then a late record and a later one."""
    options: dict[str, object] = {BUCKETS: 1, CLOCK_SKEW_MS: "1"}
    directory = tmp_path_factory.mktemp("report")
    made = Table.create(
        str(directory / "a<b>'&"), schema=SCHEMA, record_key="id", partition="part", event_time="ms", options=options
    )
    made.upsert(rows(("1", HOSTILE, -9), ("2", "b", -8)))
    made.upsert(rows(("3", HOSTILE, -2), ("4", "b", 3)))
    made.upsert(rows(("5", HOSTILE, -1), ("6", HOSTILE, 1)) if request.param == "exact" else rows(("6", HOSTILE, 1)))
    made.compact(made.plan_compaction(T_MS, cut=request.param))
    made.upsert(rows(("7", "b", -3), ("8", "b", 2)))
    return made


def test_the_page_is_whole_and_asks_for_nothing(table: Table, tmp_path: Path) -> None:
    table.report(tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    page = Page(text)
    assert {"script", "link", "img", "iframe", "a", "use", "image"}.isdisjoint(page.tags)
    assert {"href", "src", "xlink:href"}.isdisjoint(name for name, _ in page.attributes)
    assert not [name for name, _ in page.attributes if name.startswith("on")]
    assert not re.search(r"https?:|url\(|@import", text)
    assert "prefers-color-scheme: dark" in text
    drawings = re.findall(r"<svg.*?</svg>", text, re.DOTALL)
    assert len(drawings) == text.count("<details") + 1 == 3, "one for each partition, and the history"
    assert text.count("<details open>") == 2, "a small table is not folded"
    for drawing in drawings:
        parsed = ET.fromstring(drawing)
        titles = {found.get("id") for found in (parsed.find("title"), parsed.find("desc")) if found is not None}
        assert titles == set((parsed.get("aria-labelledby") or "").split())


def test_partitions_of_a_large_table_are_folded_behind_the_most_urgent_one(tmp_path: Path) -> None:
    parts = [f"p{number:03}" for number in range(400)]
    made = Table.create(
        str(tmp_path / "t"), schema=SCHEMA, record_key="id", partition="part", event_time="ms", options={BUCKETS: 1}
    )
    for _ in range(2):  # base files, then log files
        made.upsert(rows(*((part, part, hours) for hours, part in enumerate(reversed(parts)))))
    made.report(tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert len(text) < 225_000
    folded = re.findall(r"<details( open)?><summary>(\S+) ", text)
    assert len(folded) == 60
    assert folded[0] == (" open", "part=p399")
    assert [is_open for is_open, _ in folded].count(" open") == 24
    assert "omits 340 more" in text


def test_the_numbers_are_those_of_freshness(table: Table, tmp_path: Path) -> None:
    report = table.report(tmp_path / "page.html")
    fresh = table.freshness(is_exact=False)
    assert report.freshness == fresh
    assert (fresh.watermark_ms, fresh.cut_ms, fresh.late_records) == (T_MS - 3 * HOUR_MS, T_MS, 1)
    assert dict(report.partitions) == dict(table.freshness_by_partition())
    assert [(found.partition, found.uncompacted_from_ms) for found in report.late] == [("part=b", T_MS - 3 * HOUR_MS)]
    logs = [path for path in Path(table.uri).rglob(".*.log.*") if path.suffix != ".crc"]
    live = {log.path for found in table.state().view.latest_slices() for log in found.log_files}
    sizes = [path.stat().st_size for path in logs if str(path.relative_to(table.uri)) in live]
    assert (report.backlog.log_files, report.backlog.bytes) == (len(sizes), sum(sizes))
    assert [past.cut_ms for past in report.history] == [T_MS]
    assert report.lag_ms == report.now_ms - (T_MS - 3 * HOUR_MS)
    page = Page((tmp_path / "page.html").read_text(encoding="utf-8"))
    for said in (
        format_timestamp(fresh.watermark_ms),
        format_timestamp(fresh.cut_ms),
        "1 late record has arrived since",
        "3 h",
    ):
        assert said in page.text


def test_the_page_states_what_to_do_first_and_defines_its_terms(table: Table, tmp_path: Path) -> None:
    report = table.report(tmp_path / "page.html")
    page = Page((tmp_path / "page.html").read_text(encoding="utf-8"))
    cut = format_timestamp(T_MS)
    assert (
        f"Compact again up to the cut, to merge 1 late record: eventide compact {quote(report.table.uri)} --before {cut}"
        in re.sub(r"\s+", " ", page.text)
    )
    meanings = [value for name, value in page.attributes if name == "title"]
    assert "T of the last compaction by event time" in meanings


@pytest.mark.parametrize(
    ("compacts", "said"),
    [(False, "Plan the first compaction by event time"), (True, "Nothing: no record before the cut")],
)
def test_a_page_without_late_records_states_the_next_step_or_that_there_is_none(
    compacts: bool, said: str, tmp_path: Path
) -> None:
    made = Table.create(
        str(tmp_path / "t"), schema=SCHEMA, record_key="id", event_time="ms", options={BUCKETS: 1, CLOCK_SKEW_MS: "1"}
    )
    made.upsert(rows(("1", "a", -9)))
    if compacts:
        made.compact(before=T_MS)
    made.report(tmp_path / "page.html")
    assert said in Page((tmp_path / "page.html").read_text(encoding="utf-8")).text


def test_bars_are_as_long_as_the_event_times_of_their_files(table: Table, tmp_path: Path) -> None:
    report = table.report(tmp_path / "page.html")
    seen: dict[str, tuple[int, int]] = {}
    for row in table.read_optimized().to_arrow(["_hoodie_file_name", "ms"]).to_pylist():
        least, greatest = seen.get(row["_hoodie_file_name"], (row["ms"], row["ms"]))
        seen[row["_hoodie_file_name"]] = (min(least, row["ms"]), max(greatest, row["ms"]))
    bases = [file for found in report.slices for file in found.files if file.role == "base"]
    told = {file.name: (file.event_times.min_ms, file.event_times.max_ms) for file in bases if file.event_times}
    assert told == seen


def test_records_of_the_future_are_named_in_the_plan_and_on_the_page(tmp_path: Path) -> None:
    options: dict[str, object] = {
        BUCKETS: 1,
        CLOCK_SKEW_MS: "1",
        "hoodie.compaction.event.time.max.left.over.logs": "3",
    }
    uri = str(tmp_path / "future")
    made = Table.create(uri, schema=SCHEMA, record_key="id", partition="part", event_time="ms", options=options)
    made.upsert(rows(("1", "a", -9)))
    made.upsert(rows((HOSTILE, "a", 1_000_000), ("2", "a", -8), ("3", "a", 900_000)))
    for hour in range(-7, -3):
        made.upsert(rows((f"on time {hour}", "a", hour)))
    plan = made.plan_compaction(T_MS, cut="exact")
    assert [str(op.fallback) for op in plan.operations] == ["too-many-left-overs"]
    (found,) = plan.offending
    assert [key.key for key in found.keys] == [HOSTILE, "3"]
    assert found.offending.held_back == 4
    assert f"key {HOSTILE!r} has event time {format_timestamp(T_MS + 1_000_000 * HOUR_MS)}" in plan.explain()
    assert plan.to_json()["offending"][0]["records"][1] == {"key": "3", "event_time_ms": T_MS + 900_000 * HOUR_MS}
    made.tag(name := "day/1")
    report = made.report(tmp_path / "page.html")
    assert [key.key for one in report.offending for key in one.keys] == [HOSTILE, "3"]
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    page = Page(text)
    assert {"script", "img"}.isdisjoint(page.tags)
    assert "Records from the future" in page.text
    assert f'title="{shown(HOSTILE)}"' in text  # of a name without its middle
    assert "Tags" in page.text
    assert name in page.text


def test_names_that_are_markup_are_text_on_the_page(table: Table, tmp_path: Path) -> None:
    table.report(tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "\u202e" not in text
    page = Page(text)
    assert HOSTILE.replace("\u202e", "\\u202e") in page.text
    assert Path(table.uri).name in page.text


@pytest.mark.parametrize("name", ["v6_no_deletes", "v9_no_deletes"])
def test_the_verb_writes_the_page_and_nothing_to_the_table(name: str, tmp_path: Path) -> None:
    path = golden.unpack(name, tmp_path)
    before = content_of(path)
    document = run_json("report", path, "--to", tmp_path / "page.html")
    assert content_of(path) == before
    assert document["file"] == str(tmp_path / "page.html")
    assert document["freshness"]["watermark_ms"] is None
    page = Page((tmp_path / "page.html").read_text(encoding="utf-8"))
    assert "There has been no compaction by event time yet" in page.text


def test_a_log_that_cannot_be_read_is_named_on_the_page(tmp_path: Path) -> None:
    path = golden.unpack("v9_no_deletes", tmp_path)
    torn = min(path.glob("part=*/.*.log.*[0-9]"))
    torn.write_bytes(b"\0" * torn.stat().st_size)
    document = run_json("report", path, "--to", tmp_path / "page.html")
    assert document["freshness"] is None
    page = Page((tmp_path / "page.html").read_text(encoding="utf-8"))
    assert torn.name in page.text
    assert "A dashed bar is a file whose event times are unknown" in page.text


def test_a_page_that_cannot_be_written_ends_with_2(tmp_path: Path) -> None:
    path = golden.unpack("v9_no_deletes", tmp_path)
    assert run("report", path, "--to", tmp_path / "nowhere" / "page.html").exit_code == 2


def test_invisible_characters_are_escaped() -> None:
    assert shown("a\0\x1b<\udcff\u200b é") == "a\\x00\\x1b&lt;\\udcff\\u200b é"


@pytest.mark.slow
@pytest.mark.parametrize(("scheme", "is_dark"), [("light", False), ("dark", True)])
def test_a_browser_shows_all_of_it_in_either_scheme_and_fetches_nothing(
    scheme: Literal["light", "dark"], is_dark: bool, table: Table, tmp_path: Path
) -> None:
    table.report(str(tmp_path / "report.html"))
    marks = (tmp_path / "report.html").read_text().count("<rect")
    for width in (1200, 500):
        seen = seen_in_browser(tmp_path / "report.html", scheme, width, tmp_path)
        assert (seen["width"], seen["scripts"], seen["fetched"], seen["failed"]) == (width, 0, [], [])
        assert seen["overflow"] <= 0, "the page is wider than the window"
        assert seen["cut"] == 0, "a column is out of sight"
        assert seen["marks"] >= marks > 0
        assert seen["tables"] > 0
        background, ink = (sum(map(int, re.findall(r"\d+", seen[part])[:3])) for part in ("background", "color"))
        assert abs(background - ink) > 400, "text that is hard to read"
        assert (background < ink) is is_dark


def test_a_command_is_wrapped_because_its_end_says_what_it_does() -> None:
    (rule,) = re.findall(r"ol code \{([^}]*)\}", page("a title", ""))
    assert "overflow-wrap: anywhere" in rule
    assert "nowrap" not in rule


def test_a_long_table_is_folded_after_a_screen_and_its_rest_has_its_heads() -> None:
    rows = [(f"2026-11-21T00:00:{number:02}Z", f"day={number}") for number in range(40)]
    short, long = (html_table("", ("earliest event time", "partition"), rows[:count]) for count in (13, 40))
    assert "<details" not in short
    unfolded, folded = long.split("<details ")
    assert "28 more" in folded
    assert [part.count("<td") // 2 for part in (unfolded, folded)] == [12, 28]
    assert unfolded.count("<th ") == folded.count("<th ") == 2


def test_no_line_end_breaks_an_option_of_a_command() -> None:
    assert code_of("eventide plan '<x>' --before T") == (
        "<code>eventide plan &#x27;&lt;x&gt;&#x27; <b>--before</b> T</code>"
    )


@pytest.mark.parametrize("place", [".", "..", ""])
def test_a_directory_is_no_place_for_a_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    with pytest.raises(ConfigError, match=r"is a directory: name a file in it, such as '.*report\.html'"):
        write_page(Path(place), "page")
