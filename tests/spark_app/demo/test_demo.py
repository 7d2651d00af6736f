"""The demo, compared with an independent reading of the flights."""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from support.run.command_line import content_of, run, run_json
from support.tables.flights import flights, last_report, reports

pytestmark = pytest.mark.slow

DAYS = 10
T = datetime(2013, 1, 11, tzinfo=UTC)


@pytest.fixture(scope="module", params=[6, 9])
def demo(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The document of a demo in this process, on each table version."""
    directory = tmp_path_factory.mktemp("demo")
    words = ("--days", DAYS, "--engine", "local", "--option", f"hoodie.write.table.version={request.param}")
    document: dict[str, Any] = run_json("demo", "--dir", directory, *words)
    return document


def _step(demo: dict[str, Any], name: str) -> dict[str, Any]:
    return next(step for step in demo["steps"] if step["name"] == name)


def test_every_check_of_the_demo_holds(demo: dict[str, Any]) -> None:
    assert demo["ok"] is True
    assert demo["watermark_ms"] == demo["watermark"] == int(T.timestamp() * 1000)
    assert [step["name"] for step in demo["steps"]] == [
        "load", "arrivals", "before", "plan", "compact", "after", "queries", "freshness", "late",
    ]  # fmt: skip


def test_some_logs_are_merged_and_some_are_left_over(demo: dict[str, Any]) -> None:
    plan = _step(demo, "plan")
    assert plan["logs_merged"] > 0
    assert plan["logs_left_over"] > 0
    assert _step(demo, "arrivals")["late_rows"] > 0


def test_the_compaction_completes_the_read_optimized_view_before_t(demo: dict[str, Any]) -> None:
    before, after = _step(demo, "before"), _step(demo, "after")
    assert before["read_optimized_rows_before_t"] < before["snapshot_rows_before_t"]
    assert after["read_optimized_rows_before_t"] == after["snapshot_rows_before_t"] == before["snapshot_rows_before_t"]
    assert before["read_optimized_max_event_time_ms"] < after["read_optimized_max_event_time_ms"]


def test_the_four_queries_answer_differently(demo: dict[str, Any]) -> None:
    counts = _step(demo, "queries")
    assert counts["incremental"] < counts["as_of"] < counts["read_optimized"] < counts["snapshot"]


def test_the_flight_that_lands_a_day_late_lowers_the_watermark(demo: dict[str, Any]) -> None:
    late = _step(demo, "late")
    assert late["late_records"] == 1
    # MQ 3695 from Newark to Chicago, due at 16:35 in New York, which left at 11:21 on the next day.
    lowered = datetime.fromtimestamp(late["watermark_ms"] / 1000, UTC)
    overdue = [f for f in flights(DAYS + 3) if f["scheduled"] < T <= last_report(f)[1] - timedelta(hours=15)]
    assert [flight["scheduled"] for flight in overdue] == [lowered]


def test_the_table_holds_the_last_report_of_each_flight(demo: dict[str, Any]) -> None:
    document = run_json("read", demo["table"], "--all", "--columns", "flight_id,origin,scheduled_departure,status")
    rows = {
        row["flight_id"]: (row["origin"], datetime.fromisoformat(row["scheduled_departure"]), row["status"])
        for row in document["data"]
    }
    end = T + timedelta(days=1)
    expected: dict[str, tuple[str, datetime, str]] = {}
    for flight in flights(DAYS + 3):
        known = [(status, at) for status, at in reports(flight) if at < end]
        if known:
            expected[flight["id"]] = (flight["origin"], flight["scheduled"], max(known, key=lambda r: r[1])[0])
    assert rows == expected


def test_the_picture_is_one_page_that_needs_nothing_else(demo: dict[str, Any]) -> None:
    page = Path(demo["report"]).read_text(encoding="utf-8")
    assert not re.search(r"https?://|<script|<link|url\(", page)
    assert "prefers-color-scheme: dark" in page
    bars = {role: page.count(f'<rect class="{role}"') for role in ("base", "merged", "remaining")}
    plan = _step(demo, "plan")
    # Before and after: left-overs are in both drawings, merged logs in the first alone.
    assert bars["merged"] == plan["logs_merged"]
    assert bars["remaining"] == 2 * plan["logs_left_over"]
    assert bars["base"] == 2 * len(plan["plan"]["operations"])


def test_a_second_demo_in_the_same_directory_is_refused_and_writes_nothing(demo: dict[str, Any]) -> None:
    directory = Path(demo["table"]).parent
    before = content_of(directory)
    answer = run("demo", "--dir", directory, "--engine", "local")
    assert answer.exit_code == 2
    assert content_of(directory) == before


@pytest.mark.parametrize("end", ["", "deep/er"])
def test_a_directory_that_cannot_be_made_is_refused_before_anything_starts(end: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    answer = run("demo", "--dir", tmp_path / "file" / end, "--engine", "spark")
    assert answer.exit_code == 2
    assert "is a file; name another one" in answer.stderr
    assert "starting Spark" not in answer.stderr


def test_a_directory_in_a_table_is_refused_before_anything_starts(demo: dict[str, Any]) -> None:
    answer = run("demo", "--dir", demo["table"], "--engine", "spark")
    assert answer.exit_code == 2
    assert "is in the Hudi table" in answer.stderr
    assert "starting Spark" not in answer.stderr


def test_a_directory_without_permission_is_refused_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eventide.demo.story.os.access", lambda *_: False)
    answer = run("demo", "--dir", tmp_path / "new", "--engine", "spark")
    assert (answer.exit_code, "starting Spark" in answer.stderr) == (2, False)
    assert f"no permission in {str(tmp_path)!r}" in answer.stderr


def test_what_the_demo_prints_fits_a_screen(tmp_path: Path) -> None:
    answer = run("demo", "--dir", tmp_path / "demo", "--engine", "local")
    assert 12 <= answer.stdout.count("\n") <= 30
    assert "predicted watermark: 2013-01-11T00:00:00Z" in answer.stdout
