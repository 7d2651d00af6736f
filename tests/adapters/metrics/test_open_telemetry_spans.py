"""The trace of a compaction, as OpenTelemetry's library and a receiver of OTLP get it."""

import os
import pickle
import subprocess
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from eventide import BusyError, Table
from eventide_adapters.metrics import open as opening
from eventide_adapters.metrics.open_telemetry_spans import OpenTelemetryTracer
from eventide_core.ports import NoProgress, NoTracer
from support.servers.trace_collector import trace_collector
from support.tables.traced import BEFORE, paths, recorded_spans, slices, table_of_two_slices


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> InMemorySpanExporter:
    return recorded_spans(monkeypatch)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return table_of_two_slices(tmp_path / "trips")


def test_a_compaction_is_one_trace_of_its_steps(place: Path, spans: InMemorySpanExporter) -> None:
    result = Table.open(str(place)).compact(before=BEFORE)
    found = paths(spans)
    assert set(found) >= {
        "compact / schedule / wait for the lock",
        "compact / resume",
        "compact / execute / own / wait for the lock",
        "compact / execute / begin / wait for the lock",
        "compact / execute / merge / merge slice",
        "compact / execute / commit / wait for the lock",
        "compact / execute / commit / metadata table: prepare",
        "compact / execute / commit / metadata table: write",
        "compact / execute / commit / metadata table: compact",
    }
    assert found["compact"].attributes == {"table": place.as_uri()}
    assert found["compact / execute"].attributes == {"instant": result.instant}


def test_each_slice_of_a_trace_says_what_it_merged_and_when(place: Path, spans: InMemorySpanExporter) -> None:
    result = Table.open(str(place)).compact(before=BEFORE)
    found: list[Mapping[str, Any]] = [span.attributes or {} for span in slices(spans)]
    assert sorted(one["partition"] for one in found) == ["day=1", "day=2"]
    assert sorted(one["rows"] for one in found) == [1, 2]
    assert sum(one["log_records"] for one in found) == 3
    for one in found:
        (base,) = (place / one["partition"]).glob(f"{one['file_group']}*_{result.instant}.parquet")
        assert base.stat().st_size == one["bytes_written"]
    whole = paths(spans)["compact"]
    for span in slices(spans):
        assert (whole.start_time or 0) <= (span.start_time or 0) < (span.end_time or 0) <= (whole.end_time or 0)


def test_a_round_of_the_service_is_one_trace_of_its_steps(place: Path, spans: InMemorySpanExporter) -> None:
    options = {
        "hoodie.compact.inline.max.delta.commits": "1",
        "hoodie.compaction.event.time.data.latency.seconds": "3600",
    }
    Table.open(str(place), options).service().round(NoProgress())
    steps = [path for path in paths(spans) if path.startswith("round / step: ") and path.count("/") == 1]
    assert {path.removeprefix("round / step: ") for path in steps} >= {"compact", "clean", "archive", "freshness"}


def test_a_span_that_fails_has_the_type_of_the_error_alone(place: Path, spans: InMemorySpanExporter) -> None:
    tracer = Table.open(str(place))._application.tracer
    with pytest.raises(BusyError), tracer.span("outer"), tracer.span("inner"):
        raise BusyError("s3://key:secret@bucket is busy")
    for span in spans.get_finished_spans():
        assert (span.status.status_code, span.status.description) == (trace.StatusCode.ERROR, "BusyError")
        assert not span.events
    with tracer.span("next"):
        pass
    assert spans.get_finished_spans()[-1].parent is None


def test_a_span_is_in_none_that_another_thread_has_left(place: Path, spans: InMemorySpanExporter) -> None:
    tracer = Table.open(str(place))._application.tracer
    other = ExitStack()
    with ThreadPoolExecutor(1) as thread:
        with tracer.span("first"):
            for name in ("of another thread", "its step"):
                thread.submit(other.enter_context, tracer.span(name)).result()
        thread.submit(other.close).result()
    with tracer.span("next"):
        pass
    assert [span.name for span in spans.get_finished_spans() if span.parent is None] == ["first", "next"]


def test_the_steps_of_a_program_are_within_its_own_span(place: Path, spans: InMemorySpanExporter) -> None:
    with trace.get_tracer_provider().get_tracer("pipeline").start_as_current_span("job"):
        Table.open(str(place)).plan_compaction(before=BEFORE)
    assert "job / plan" in paths(spans)


def test_a_tracer_that_goes_to_an_executor_records_nothing_there() -> None:
    tracer = OpenTelemetryTracer(trace.get_tracer_provider().get_tracer("eventide"))
    assert isinstance(pickle.loads(pickle.dumps(tracer)), NoTracer)


@pytest.mark.parametrize("exporter", [None, "none"])
def test_no_trace_is_made_unless_something_asks_for_it(exporter: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "opentelemetry.trace")
    if exporter is not None:
        monkeypatch.setenv("OTEL_TRACES_EXPORTER", exporter)
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
    assert isinstance(opening.open_tracer(), NoTracer)


def test_a_missing_library_turns_traces_off_with_one_warning(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(opening, "find_spec", lambda _: None)
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "otlp")
    assert isinstance(opening.open_tracer(), NoTracer)
    assert isinstance(opening.open_tracer(), NoTracer)
    assert caplog.text.count("no traces are sent") == 1
    assert "[metrics]" in caplog.text


@pytest.fixture
def collector() -> Iterator[tuple[int, list[ExportTraceServiceRequest]]]:
    with trace_collector() as found:
        yield found


def test_a_command_sends_its_trace_to_a_receiver(
    place: Path, collector: tuple[int, list[ExportTraceServiceRequest]]
) -> None:
    port, taken = collector
    environment = {**os.environ, "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{port}"}
    command = [sys.executable, "-m", "eventide", "compact", str(place), "--before", BEFORE, "--engine", "local"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    sent = [resource for request in taken for resource in request.resource_spans]
    assert {
        value.value.string_value for one in sent for value in one.resource.attributes if value.key == "service.name"
    } == {"eventide"}
    found = [span for one in sent for scope in one.scope_spans for span in scope.spans]
    (root,) = [span for span in found if not span.parent_span_id]
    assert root.name == "eventide compact"
    assert {span.name for span in found} >= {"schedule", "execute", "merge slice", "commit", "wait for the lock"}
    assert len({span.trace_id for span in found}) == 1
