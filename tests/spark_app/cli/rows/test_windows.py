"""`eventide windows`: what is due, the next window in a file, and done."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eventide import Table
from eventide_core.config import BUCKETS, CLOCK_SKEW_MS
from support.run.command_line import content_of, run, run_json

pytestmark = pytest.mark.slow

COLUMNS: "list[pa.Field[Any]]" = [pa.field("id", pa.string()), pa.field("at", pa.timestamp("us", "UTC"))]
SCHEMA = pa.schema(COLUMNS)


def rows(**times: str) -> pa.Table:
    found = [
        {"id": key, "at": datetime.fromisoformat(f"2026-03-02T{at}").replace(tzinfo=UTC)} for key, at in times.items()
    ]
    return pa.Table.from_pylist(found, schema=SCHEMA)


@pytest.fixture
def table(tmp_path: Path) -> str:
    """Two hours are closed."""
    uri = str(tmp_path / "t")
    options = {str(BUCKETS): "1", str(CLOCK_SKEW_MS): "1"}
    made = Table.create(uri, schema=SCHEMA, record_key="id", event_time="at", options=options)
    made.upsert(rows(a="08:05", b="09:10"))
    made.upsert(rows(a="08:20", c="10:30"))
    made.compact(before="2026-03-02T10:00Z")
    return uri


def test_a_window_is_listed_taken_and_done(table: str, tmp_path: Path) -> None:
    verb = ("windows", table, "--every", "1h", "--consumer", "reports")
    before = content_of(Path(table))
    listed = run_json(*verb)["windows"]
    assert [(one["begin"], one["state"]) for one in listed] == [
        ("2026-03-02T08:00:00Z", "due"),
        ("2026-03-02T09:00:00Z", "due"),
    ]
    assert content_of(Path(table)) == before
    file = tmp_path / "hour.parquet"
    (taken,) = run_json(*verb, "--next", "--to", file)["windows"]
    assert (taken["begin"], taken["rows"], taken["state"], taken["is_correction"]) == (
        "2026-03-02T08:00:00Z",
        1,
        "open",
        False,
    )
    assert pq.read_table(file)["id"].to_pylist() == ["a"]
    assert run_json(*verb)["windows"][0]["state"] == "open"
    assert run(*verb, "--next").exit_code == 4
    assert run(*verb, "--done", "--token", taken["token"] + 1).exit_code == 4
    assert run_json(*verb, "--done", "--token", taken["token"])["windows"][0]["state"] == "done"
    assert run(*verb, "--done").exit_code == 2
    (taken,) = run_json(*verb, "--next", "--done")["windows"]
    assert (taken["begin"], taken["state"]) == ("2026-03-02T09:00:00Z", "done")
    assert run_json(*verb, "--next")["windows"] == []
    assert "closed up to: 2026-03-02T10:00:00Z" in run(*verb).stdout


def test_a_correction_comes_first_and_a_ledger_is_listed(table: str) -> None:
    verb = ("windows", table, "--every", "1h", "--consumer", "reports")
    run_json(*verb, "--next", "--done")
    opened = Table.open(table, {CLOCK_SKEW_MS: "1"})
    opened.upsert(rows(d="08:40"))
    opened.compact(before="2026-03-02T11:00Z")
    (taken,) = run_json(*verb, "--next")["windows"]
    assert (taken["begin"], taken["rows"], taken["is_correction"]) == ("2026-03-02T08:00:00Z", 2, True)
    other = ("windows", table, "--every", "1h", "--consumer", "audit", "--late", "ledger")
    while run_json(*other, "--next", "--done")["windows"]:
        pass
    opened.upsert(rows(e="08:50"))
    opened.compact(before="2026-03-02T11:00Z")
    assert run_json(*other, "--next")["windows"] == []
    (entry,) = run_json(*other)["windows"]
    assert (entry["begin"], entry["state"], entry["is_correction"]) == ("2026-03-02T08:00:00Z", "ledger", True)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--every", "7h", "--consumer", "c"), "windows: 7h divides neither"),
        (("--every", "soon", "--consumer", "c"), "every='soon' is not a duration"),
        (("--every", "1h", "--consumer", "../c"), "consumer '../c': use up to 100 letters"),
        (("--every", "1h", "--consumer", "c", "--time-zone", "Mars/Base"), "time_zone='Mars/Base' is not a known"),
        (("--every", "1h", "--consumer", "c", "--time-zone", "GMT+8:00"), "or Etc/GMT-8, whose sign is the other"),
        (("--every", "1h", "--consumer", "c", "--to", "x.csv"), "--to goes with --next"),
        (("--every", "1h", "--consumer", "c", "--token", "3"), "--token goes with --done"),
        (("--every", "0", "--consumer", "c"), "every='0' is not above 0"),
        (
            ("--every", "1h", "--consumer", "c", "--lease", "0s"),
            "lease='0s' is not above 0: use a duration such as 90s",
        ),
        (("--every", "1h", "--consumer", "c", "--keep", "0"), "keep='0' is not above 0"),
        (("--every", "1h", "--consumer", "c", "--done"), "no window of the consumer c is open; take one with --next"),
    ],
)
def test_a_wrong_argument_is_named_before_anything_is_done(words: tuple[str, ...], said: str, table: str) -> None:
    before = content_of(Path(table))
    answer = run("windows", table, *words)
    assert answer.exit_code == 2
    assert said in answer.stderr
    assert content_of(Path(table)) == before


@pytest.mark.parametrize("file", ["{tmp}/missing/x.csv", "{tmp}/t/x.csv", "{tmp}/x.csv", "/dev/stdout.csv/x.csv"])
def test_a_file_that_cannot_be_written_is_refused_before_a_window_is_taken(
    file: str, table: str, tmp_path: Path
) -> None:
    (tmp_path / "x.csv").mkdir()
    before = content_of(Path(table))
    answer = run("windows", table, "--every", "1h", "--consumer", "c", "--next", "--to", file.format(tmp=tmp_path))
    assert answer.exit_code == 2, answer.stderr
    assert content_of(Path(table)) == before


@pytest.mark.parametrize("undone_by", ["restore", "rollback"])
def test_an_error_names_the_restore_or_rollback_that_took_a_view(undone_by: str, tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    options = {str(BUCKETS): "1", str(CLOCK_SKEW_MS): "1"}
    table = Table.create(uri, schema=SCHEMA, record_key="id", event_time="at", options=options)
    table.upsert(rows(a="08:05"))
    table.upsert(rows(a="08:20", c="10:30"))
    saved = max(instant.requested_time for instant in table.state().timeline.completed)
    assert run("savepoint", uri, saved).exit_code == 0
    table.compact(before="2026-03-02T10:00Z")
    compaction = max(instant.requested_time for instant in table.state().timeline.completed)
    verb = ("windows", uri, "--every", "1h", "--consumer", "c", "--next", "--take-over")
    assert run_json(*verb)["windows"][0]["state"] == "open"
    undone = saved if undone_by == "restore" else compaction
    assert run(undone_by, uri, undone).exit_code == 0
    undoing = next(i.requested_time for i in reversed(table.state().timeline.completed) if i.is_undoing)

    answer = run(*verb)

    assert answer.exit_code == 2
    assert f"went with the {undone_by} {undoing}, which undid {compaction}" in answer.stderr
    assert "pass `--renew`" in answer.stderr
    assert "hoodie.cleaner" not in answer.stderr
    table.compact(before="2026-03-02T10:00Z")
    assert run_json(*verb, "--renew")["windows"][0]["begin"] == "2026-03-02T08:00:00Z"


def test_a_consumer_keeps_its_windows(table: str) -> None:
    run_json("windows", table, "--every", "1h", "--consumer", "c", "--next", "--done")
    answer = run("windows", table, "--every", "30m", "--consumer", "c", "--next")
    assert answer.exit_code == 2
    assert "the consumer c has windows of 1h in UTC, not of 30m in UTC" in answer.stderr
