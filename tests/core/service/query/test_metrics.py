"""The metrics of a table, as a collector finds them in a file."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from eventide import Table
from eventide.integrations import metrics
from eventide_adapters.metrics.local_files import PrometheusTextfile
from eventide_core.action.compaction.backlog import Backlog
from eventide_core.service.common.facts.compaction_history import KeptBytes
from eventide_core.service.query.metrics import table_metrics
from eventide_core.table.settings.metadata_table import MetadataTableStatus
from eventide_core.table.timeline.contents.plans import FallbackReason
from eventide_core.table.timeline.instant import instant_epoch_ms
from support.pasts import golden
from support.run.command_line import run, run_json
from support.tables.small import LATER_MS, make, rows

pytestmark = pytest.mark.slow

T_MS = 1_700_002_200_000
SAMPLE = re.compile(r'([a-z_]+)\{table="((?:[^"\\]|\\.)*)"(?:,reason="([a-z-]+)")?\} (-?[0-9.e+]+)')


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return golden.unpack("v9_no_deletes", tmp_path)


def to_file(file: Path, reporter: str = "PROMETHEUS_TEXTFILE") -> tuple[str, ...]:
    keys = {"on": "true", "reporter.type": reporter, "reporter.file.path": str(file)}
    return tuple(word for key, value in keys.items() for word in ("--option", f"hoodie.metrics.{key}={value}"))


def samples(file: Path) -> dict[str, Any]:
    """The values by name, those with a reason by (name, reason). Raises AssertionError for a line of no known form."""
    values: dict[str, Any] = {}
    described: list[str] = []
    for line in file.read_text().splitlines():
        if line.startswith("# HELP "):
            described.append(line.split(" ")[2])
        elif not line.startswith("# TYPE "):
            match = SAMPLE.fullmatch(line)
            assert match, line
            assert match[1] == described[-1]
            values[match[1] if match[3] is None else f"{match[1]} {match[3]}"] = float(match[4])
    assert len(described) == len(set(described))
    return values


def test_a_compaction_reports_what_it_reached_and_what_waits(table: Path, tmp_path: Path) -> None:
    file = tmp_path / "trips.prom"
    words = ("--option", "hoodie.payload.event.time.field=event_ts", *to_file(file))
    run_json("compact", table, "--before", T_MS, "--engine", "local", *words)
    told = samples(file)
    logs = [log for file_slice in Table.open(str(table)).state().view.latest_slices() for log in file_slice.log_files]
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
        run_json("freshness", table, *to_file(file, "json_lines"))
    first, second = (json.loads(line) for line in file.read_text().splitlines())
    assert first["table"] == second["table"]
    assert first["eventide_file_slices_with_log_files"] == 4
    assert "eventide_ro_event_time_watermark_timestamp_seconds" not in first  # there is none yet


def test_the_state_of_the_metadata_table_is_reported() -> None:
    logs = Backlog(file_slices=0, log_files=0, bytes=0, min_event_time_ms=None)

    def in_berlin(instant: str) -> int:
        return instant_epoch_ms(instant) - 3_600_000

    def told(status: MetadataTableStatus | None) -> dict[str, float]:
        metrics = table_metrics(None, logs, KeptBytes(0, 0), (), status, 0, moment_of=in_berlin)
        return {metric.name: metric.value for metric in metrics if metric.name.startswith("metadata_table")}

    assert told(None) == {}
    assert told(MetadataTableStatus(("files",), 7, None)) == {
        "metadata_table_partitions": 1,
        "metadata_table_delta_commits": 7,
    }
    suffixed = MetadataTableStatus(("column_stats", "files"), 1, "20260101000000000001")
    assert told(suffixed)["metadata_table_last_compaction_timestamp_seconds"] == 1_767_225_600 - 3_600
    assert str(suffixed) == "column_stats, files; 1 delta commit since its last compaction at 20260101000000000001"


def test_carried_tombstones_are_counted_as_long_as_a_slice_has_them(tmp_path: Path) -> None:
    file = tmp_path / "trips.prom"
    keys = {"on": "true", "reporter.type": "PROMETHEUS_TEXTFILE", "reporter.file.path": str(file)}
    made = make(tmp_path / "t", 9)
    table = Table.open(made.uri, {**made.options, **{f"hoodie.metrics.{key}": value for key, value in keys.items()}})
    table.upsert(rows(("k0", -9, "base"), ("k2", -9, "base")))
    table.delete(rows(("k2", -3, "gone")))
    table.upsert(rows(("k0", 9, "stays"), ("k2", -5, "older than the delete")))
    result = table.compact(table.plan_compaction(data_latency_seconds=1800, cut="exact"))
    carried = result.metrics["carried_tombstones"], samples(file)["eventide_last_compaction_carried_tombstones"]
    assert carried == (1, 1)
    logs = {path.name: path.stat().st_size for path in (tmp_path / "t").rglob(".*.log.*")}
    links = table.state().commits[result.instant].extra_metadata["eventide.symlink.operations"]
    made_by_it = {stat.path.rpartition("/")[2] for stat in table.state().commits[result.instant].stats} & logs.keys()
    (tombstones,) = made_by_it - {path.rpartition("/")[2] for path in json.loads(links)}
    assert samples(file)["eventide_carried_tombstones_bytes"] == logs[tombstones] > 0
    table.compact(table.plan_compaction(before=LATER_MS))
    assert samples(file)["eventide_carried_tombstones_bytes"] == 0


def test_a_round_of_the_service_reports_too(table: Path, tmp_path: Path) -> None:
    file = tmp_path / "trips.prom"
    words = ("--rounds", "1", "--data-latency", "30m", "--engine", "local", *to_file(file))
    assert run("serve", table, *words).exit_code == 0
    assert samples(file)["eventide_log_files"] == 0


def test_metrics_that_cannot_be_written_fail_nothing(table: Path, tmp_path: Path) -> None:
    words = to_file(tmp_path / "nowhere" / "trips.prom")
    assert run("freshness", table, *words).exit_code == 0


@pytest.mark.parametrize("words", [("hoodie.metrics.reporter.type=PROMETHEUS_TEXTFILE",), ("hoodie.metrics.on=yes",)])
def test_a_reporter_without_its_file_and_a_bad_value_are_wrong_usage(words: tuple[str, ...], table: Path) -> None:
    options = [part for word in ("hoodie.metrics.on=true", *words) for part in ("--option", word)]
    assert run("freshness", table, *options).exit_code == 2


@pytest.mark.parametrize(
    "words",
    [(), ("hoodie.metrics.reporter.type=GRAPHITE",), ("hoodie.metrics.reporter.class=com.example.Own",)],
    ids=["nothing said", "a reporter that only Hudi has", "a class"],
)
def test_options_shared_with_hudi_are_reported_once_and_fail_nothing(
    words: tuple[str, ...], table: Path, caplog: pytest.LogCaptureFixture
) -> None:
    metrics._warn_once.cache_clear()  # pyright: ignore[reportPrivateUsage]  # other tests may have said the same
    options = [part for word in ("hoodie.metrics.on=true", *words) for part in ("--option", word)]
    for _ in range(2):
        assert run("freshness", table, *options).exit_code == 0
    assert run("show", table, *options).exit_code == 0
    (told,) = caplog.messages
    assert "set another hoodie.metrics.reporter.type" in told


def test_a_completed_compaction_is_returned_although_its_reporter_fails(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def breaks(*_: object) -> None:
        raise RuntimeError("a mistake of a library's")

    monkeypatch.setattr(PrometheusTextfile, "write", breaks)
    words = ("--option", "hoodie.payload.event.time.field=event_ts", *to_file(tmp_path / "trips.prom"))
    told = run_json("compact", table, "--before", T_MS, "--engine", "local", *words)
    assert told["watermark_ms"] == T_MS
    assert "a mistake of a library's" in caplog.text
