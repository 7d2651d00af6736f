"""OpenLineage events of compactions, as a receiver over HTTP gets them."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from eventide import BusyError, EngineError, Table
from eventide.integrations.openlineage_events import dataset_of
from eventide_core.ports import NoProgress
from eventide_core.service.compaction.run import CompactionRunner
from support.tables.small import LATER_MS, SOON, make, rows

ON = {**SOON, "eventide.openlineage.namespace": "lake"}


@pytest.fixture
def received(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[dict[str, Any]]]:
    """The events of a receiver that OpenLineage's own variable names."""
    events: list[dict[str, Any]] = []

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            events.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Receiver) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        monkeypatch.setenv("OPENLINEAGE_URL", f"http://127.0.0.1:{server.server_port}")
        yield events
        server.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eventide.integrations.lineage._pause.until", 0.0)


def _table(path: Path) -> Table:
    table = make(path, 9)
    table.upsert(rows(("k0", -9, "base"), ("k1", -9, "base")))
    table.upsert(rows(("k0", -8, "newer")))
    return Table.open(table.uri, ON)


def test_a_compaction_starts_and_completes_with_its_freshness(tmp_path: Path, received: list[dict[str, Any]]) -> None:
    table = _table(tmp_path / "t")
    result = table.compact(before=LATER_MS)
    started, completed = received
    assert [started["eventType"], completed["eventType"]] == ["START", "COMPLETE"]
    assert started["run"]["runId"] == completed["run"]["runId"]
    assert completed["job"]["namespace"] == "lake"
    assert completed["job"]["name"] == f"compact {tmp_path / 't'}"
    for event in received:
        assert event["run"]["facets"]["eventide_compaction"]["instant"] == result.instant
        for side in ("inputs", "outputs"):
            assert [(found["namespace"], found["name"]) for found in event[side]] == [("file", str(tmp_path / "t"))]
    (output,) = completed["outputs"]
    fresh = output["facets"]["eventide_freshness"]
    assert (fresh["watermarkMs"], fresh["cutMs"], fresh["lateRecords"], fresh["unknownEventTimeRecords"]) == (
        result.freshness.watermark_ms,
        result.freshness.cut_ms,
        0,
        0,
    )
    assert fresh["watermark"].endswith("Z")
    assert output["facets"]["version"]["datasetVersion"] == result.instant
    assert output["outputFacets"]["outputStatistics"]["rowCount"] == result.metrics["records_written"] > 0


def test_without_the_option_nothing_is_sent(tmp_path: Path, received: list[dict[str, Any]]) -> None:
    Table.open(_table(tmp_path / "t").uri, SOON).compact(before=LATER_MS)
    assert received == []


def test_what_is_reached_already_is_no_run(tmp_path: Path, received: list[dict[str, Any]]) -> None:
    table = _table(tmp_path / "t")
    table.compact(before=LATER_MS)
    received.clear()
    assert table.compact(before=LATER_MS).is_already_reached
    assert received == []


def test_a_round_of_the_service_reports_its_compaction(tmp_path: Path, received: list[dict[str, Any]]) -> None:
    table = Table.open(_table(tmp_path / "t").uri, {**ON, "hoodie.compaction.event.time.threshold": str(LATER_MS)})
    done = table.service().round(NoProgress())
    assert [event["eventType"] for event in received] == ["START", "COMPLETE"]
    assert received[1]["run"]["facets"]["eventide_compaction"]["instant"] == done.compacted


def test_a_pending_compaction_that_the_next_run_completes_is_reported(
    tmp_path: Path, received: list[dict[str, Any]]
) -> None:
    table = _table(tmp_path / "t")
    instant = table.schedule(table.plan_compaction(LATER_MS)).instant
    assert table.resume().resumed == (instant,)
    (completed,) = received
    assert (completed["eventType"], completed["run"]["facets"]["eventide_compaction"]["instant"]) == (
        "COMPLETE",
        instant,
    )


@pytest.mark.parametrize(
    ("error", "state"),
    [
        (EngineError("the disk is gone"), "FAIL"),
        (ValueError("odd"), "FAIL"),
        (BusyError("another process"), "ABORT"),
        (KeyboardInterrupt(), "ABORT"),
    ],
)
def test_an_attempt_that_ends_early_says_why(
    error: BaseException,
    state: str,
    tmp_path: Path,
    received: list[dict[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise error

    table = _table(tmp_path / "t")
    monkeypatch.setattr(CompactionRunner, "execute", fail)
    with pytest.raises(type(error)):
        table.compact(before=LATER_MS)
    assert [event["eventType"] for event in received] == ["START", state]
    assert received[1]["run"]["facets"]["errorMessage"]["message"] == (str(error) or "KeyboardInterrupt")
    assert "eventide_freshness" not in received[1]["outputs"][0].get("facets", {})


@pytest.mark.parametrize(("pause", "warnings"), [(60, 1), (0, 2)])
def test_a_receiver_that_fails_costs_a_warning_and_no_compaction(
    pause: int, warnings: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The client tries each event for seconds, so none is tried for a while after one that failed."""
    table = _table(tmp_path / "t")
    monkeypatch.setattr("eventide.integrations.lineage.PAUSE_SECONDS", pause)
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT__TYPE", "file")
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT__LOG_FILE_PATH", str(tmp_path / "no" / "such" / "directory" / "events"))
    assert table.compact(before=LATER_MS).metrics["operations"] == 1
    assert caplog.text.count("an OpenLineage event was not sent") == warnings


def test_a_client_that_cannot_start_costs_a_warning_and_no_compaction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    table = _table(tmp_path / "t")
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT__TYPE", "pigeon")
    assert table.compact(before=LATER_MS).metrics["operations"] == 1
    assert "no OpenLineage events are sent" in caplog.text


@pytest.mark.parametrize(
    ("root", "dataset"),
    [
        ("file:///lake/trips", ("file", "/lake/trips")),
        ("s3a://bucket/lake/trips/", ("s3://bucket", "lake/trips")),
        ("s3://key:secret@bucket/trips", ("s3://bucket", "trips")),
        ("hdfs://name:8020/lake/trips", ("hdfs://name:8020", "/lake/trips")),
        ("abfss://container@account.dfs.core.windows.net/t", ("abfss://container@account.dfs.core.windows.net", "t")),
    ],
)
def test_tables_have_the_names_of_openlineages_conventions(root: str, dataset: tuple[str, str]) -> None:
    assert dataset_of(root) == dataset
