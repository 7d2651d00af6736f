"""`--log-format json`: everything on stderr is one JSON object in a line."""

import json
import logging
import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from eventide import Table
from support.run.command_line import run

BEFORE = "1970-01-01T00:00:20Z"
JSON = ("--log-format", "json")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    rows = pa.table({"id": ["a"], "at": [10_000]})
    table = Table.create(str(tmp_path / "trips"), schema=rows.schema, record_key="id", event_time="at")
    table.bulk_insert(rows)
    table.upsert(rows)
    return tmp_path / "trips"


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_a_message_is_a_line_with_time_level_event_and_table(place: Path) -> None:
    answer = run("compact", place, "--before", BEFORE, "--engine", "local", *JSON)
    (line,) = lines(answer.stderr)
    assert list(line) == ["time", "level", "event", "table"]
    assert line["time"].endswith("Z")
    assert (line["level"], line["table"]) == ("info", str(place))
    assert line["event"] == "compacting 1 log file of 1 slice before 1970-01-01T00:00:20Z"
    assert "watermark" in answer.stdout, "the result is still text"


def test_a_part_of_a_json_result_is_a_line_too(place: Path) -> None:
    """What text output prints as soon as it is known."""
    run("compact", place, "--before", BEFORE, "--schedule-only")
    answer = run("compact", place, "--before", BEFORE, "--engine", "local", "--output", "json", *JSON)
    assert answer.exit_code == 0
    assert any(line["event"].startswith("completed the compaction at") for line in lines(answer.stderr))
    json.loads(answer.stdout)


@pytest.mark.parametrize(
    ("words", "kind", "code"),
    [
        (("show", "{}/none"), "NotAHudiTableError", 2),
        (("show", "{}", "--nothing"), "UsageError", 2),
        (("freshness", "{}", "--require", "soon"), "InvalidThresholdError", 2),
    ],
)
def test_an_error_is_a_line_with_its_type_and_exit_code(
    words: tuple[str, ...], kind: str, code: int, place: Path
) -> None:
    answer = run(*(word.format(place) for word in words), *JSON)
    (line,) = lines(answer.stderr)
    assert answer.exit_code == code
    assert (line["level"], line["type"], line["exit_code"]) == ("error", kind, code)


def test_the_stack_of_an_error_is_one_line(place: Path) -> None:
    stack, error = lines(run("show", place / "none", "--debug", *JSON).stderr)
    assert (stack["level"], error["level"]) == ("debug", "error")
    assert stack["event"].startswith("Traceback")


def test_a_warning_is_a_line_of_that_level(place: Path) -> None:
    answer = run("show", place, "--option", "hoodie.compaction.strateg=x", *JSON)
    (line,) = lines(answer.stderr)
    assert line["level"] == "warning"
    assert "hoodie.compaction.strateg" in line["event"]
    assert not line["event"].startswith("warning")


def test_records_of_loggers_and_warnings_of_libraries_are_lines(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from eventide.table.table import Table as Opened

    def noisy(_: Opened) -> None:
        logging.getLogger("library").warning("retry %d of s3://key:word@bucket", 2)
        warnings.warn("old call", FutureWarning, stacklevel=1)

    monkeypatch.setattr(Opened, "publish_metrics", noisy)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        answer = run("serve", place, "--rounds", "1", "--data-latency", "1h", "--engine", "local", *JSON)
    logged, warned = lines(answer.stderr)
    assert (logged["level"], logged["logger"]) == ("warning", "library")
    assert logged["event"].startswith("retry 2 of s3://")
    assert "word" not in logged["event"]
    assert (warned["level"], warned["event"], warned["type"]) == ("warning", "old call", "FutureWarning")


def test_no_line_contains_a_secret() -> None:
    """Neither an option's secret nor the one in the table's address."""
    answer = run("show", "s3://user:geheim@none/trips", "--option", "s3.secret=hunter22", "--debug", *JSON)
    assert answer.exit_code != 0
    assert lines(answer.stderr)
    assert "geheim" not in answer.stderr
    assert "hunter22" not in answer.stderr


def test_a_run_leaves_the_process_as_it_was(place: Path) -> None:
    before = warnings.showwarning, tuple(logging.getLogger().handlers)
    run("show", place, *JSON)
    assert (warnings.showwarning, tuple(logging.getLogger().handlers)) == before
    assert run("show", place / "none").stderr.startswith("error: ")
