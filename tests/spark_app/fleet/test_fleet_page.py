"""The page of a fleet: the worst table first, each with a bar, and names that are only text."""

import re
from pathlib import Path
from typing import Literal

import pytest

from eventide.fleet.memory import Remembered
from eventide.fleet.settings import FleetTable
from eventide.fleet.status import TableStatus, write_fleet_page
from eventide_core.action.compaction.backlog import Backlog
from eventide_core.action.fleet.scheduler import Target
from support.processes.browser import seen_in_browser

NOW = 1_700_006_400_000
MINUTE = 60_000
HOSTILE = '"><img src=x onerror=alert(1)>\u202e'


def status(name: str, lag_ms: int | None, *, problem: str | None = None, held_by: str | None = None) -> TableStatus:
    backlog = None if problem else Backlog(3, 12, 4096, NOW)
    table = FleetTable(f"/lake/{name}", Target(name, 5 * MINUTE), {})
    watermark_ms = None if lag_ms is None else NOW - lag_ms
    return TableStatus(table, lag_ms, watermark_ms, backlog, held_by, problem, Remembered())


TABLES = (
    status("gone", None, problem="/lake/gone is not a Hudi table"),
    status(HOSTILE, 300 * MINUTE, held_by=f"late records in 2 slices, the earliest in {HOSTILE}"),
    status("long-" * 40, 9 * MINUTE),
    status("شحنات", 4 * MINUTE),
)


def written(directory: Path) -> str:
    write_fleet_page(directory / "fleet.html", TABLES, "fleet_tables", NOW)
    return (directory / "fleet.html").read_text(encoding="utf-8")


def test_each_table_has_a_bar_of_its_lag_against_its_target(tmp_path: Path) -> None:
    text = written(tmp_path)
    assert re.findall(r'<i class="(\w+)" style="width: (\d+)%">', text) == [
        ("late", "100"),
        ("late", "90"),
        ("merged", "40"),
    ]
    assert "1 of 4 tables within the target" in text
    assert "as of" in text
    assert "2023-11-15T00:00:00Z" in text


def test_names_of_a_fleet_are_text_and_link_to_reports_of_measured_tables(tmp_path: Path) -> None:
    text = written(tmp_path)
    assert "<img" not in text
    assert "\u202e" not in text
    links = re.findall(r'href="([^"]*)"', text)
    assert len(links) == 3, "the one with a problem has no report"
    assert all(link.startswith("fleet_tables/") and link.count("/") == 1 for link in links)


def test_what_holds_a_table_back_and_its_last_error_fill_a_line_below_its_row(tmp_path: Path) -> None:
    whys = re.findall(r'<tr class="why"><td colspan="5"><div><p>(.*?)</p></div></td></tr>', written(tmp_path))
    assert [why.partition(" <")[0] for why in whys] == [
        "last error: /lake/gone is not a Hudi table",
        "held back by late records in 2 slices, the earliest in &quot;&gt;&lt;img src=x onerror=alert(1)&gt;\\u202e",
    ]


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_of_a_fleet_fits_each_window(scheme: Literal["light", "dark"], tmp_path: Path) -> None:
    written(tmp_path)
    for width in (1280, 500):
        seen = seen_in_browser(tmp_path / "fleet.html", scheme, width, tmp_path)
        assert (seen["width"], seen["failed"], seen["fetched"]) == (width, [], [])
        assert seen["overflow"] <= 0
        assert seen["cut"] == 0, "a column is out of sight"
