"""The metrics of a table, as a collector finds them in a file."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from eventide import Table
from eventide_core.table.plans import FallbackReason
from support import golden
from support.command_line import run, run_json

T_MS = 1_700_002_200_000
SAMPLE = re.compile(r'([a-z_]+)\{table="((?:[^"\\]|\\.)*)"(?:,reason="([a-z-]+)")?\} (-?[0-9.e+]+)')


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return golden.unpack("v9_no_deletes", tmp_path)


def options(file: Path, reporter: str) -> tuple[str, ...]:
    keys = {"on": "true", "reporter.type": reporter, "reporter.file.path": str(file)}
    return tuple(word for key, value in keys.items() for word in ("--option", f"hoodie.metrics.{key}={value}"))


def samples(file: Path) -> dict[str, Any]:
    """The values by name, those with a reason by (name, reason). Raises AssertionError for a line of no known form."""
    found: dict[str, Any] = {}
    described: list[str] = []
    for line in file.read_text().splitlines():
        if line.startswith("# HELP "):
            described.append(line.split(" ")[2])
        elif not line.startswith("# TYPE "):
            match = SAMPLE.fullmatch(line)
            assert match, line
            assert match[1] == described[-1]
            found[match[1] if match[3] is None else f"{match[1]} {match[3]}"] = float(match[4])
    assert len(described) == len(set(described))
    return found


def test_a_compaction_tells_what_it_reached_and_what_waits(table: Path, tmp_path: Path) -> None:
    file = tmp_path / "trips.prom"
    words = ("--option", "hoodie.payload.event.time.field=event_ts", *options(file, "PROMETHEUS_TEXTFILE"))
    run_json("compact", table, "--before", T_MS, "--engine", "local", *words)
    told = samples(file)
    logs = [log for found in Table.open(str(table)).state().view.latest_slices() for log in found.log_files]
    assert told["eventide_ro_event_time_cut_timestamp_seconds"] == T_MS / 1000
    assert told["eventide_ro_event_time_watermark_timestamp_seconds"] == T_MS / 1000
    assert told["eventide_ro_late_records"] == 0
    assert told["eventide_ro_lag_seconds"] > 0
    assert told["eventide_log_files"] == len(logs)
    assert told["eventide_log_files_size_bytes"] == sum((table / log.path).stat().st_size for log in logs)
    assert told["eventide_log_files_min_event_time_timestamp_seconds"] >= T_MS / 1000
    assert 0 <= told["eventide_last_compaction_duration_seconds"] < 600
    assert {f"eventide_last_compaction_fallbacks {reason}" for reason in FallbackReason} <= told.keys()
    assert list(tmp_path.glob(".*.part")) == []


def test_freshness_adds_a_line_each_time(table: Path, tmp_path: Path) -> None:
    file = tmp_path / "trips.jsonl"
    for _ in range(2):
        run_json("freshness", table, *options(file, "json_lines"))
    first, second = (json.loads(line) for line in file.read_text().splitlines())
    assert first["table"] == second["table"]
    assert first["eventide_file_slices_with_log_files"] == 4
    assert "eventide_ro_event_time_watermark_timestamp_seconds" not in first  # there is none yet


def test_a_round_of_the_service_tells_too(table: Path, tmp_path: Path) -> None:
    file = tmp_path / "trips.prom"
    words = ("--rounds", "1", "--data-latency", "30m", "--engine", "local", *options(file, "PROMETHEUS_TEXTFILE"))
    assert run("serve", table, *words).exit_code == 0
    assert samples(file)["eventide_log_files"] == 0


def test_metrics_that_cannot_be_written_fail_nothing(table: Path, tmp_path: Path) -> None:
    words = options(tmp_path / "nowhere" / "trips.prom", "PROMETHEUS_TEXTFILE")
    assert run("freshness", table, *words).exit_code == 0


@pytest.mark.parametrize("reporter", ["GRAPHITE", "PROMETHEUS_TEXTFILE"])
def test_a_reporter_of_hudis_and_one_without_a_file_are_wrong_usage(reporter: str, table: Path) -> None:
    words = ("--option", "hoodie.metrics.on=true", "--option", f"hoodie.metrics.reporter.type={reporter}")
    assert run("freshness", table, *words).exit_code == 2
