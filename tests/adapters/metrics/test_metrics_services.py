"""Metrics over the network: a real scrape, a real push, a real receiver of OpenTelemetry, each by HTTP in this process."""

import re
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from urllib.request import urlopen

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)
from prometheus_client.parser import text_string_to_metric_families

from eventide import Table
from eventide_core.table.timeline.contents.plans import FallbackReason
from support.pasts import golden
from support.run.command_line import run, run_json
from support.servers.server_process import free_ports

T_MS = 1_700_002_200_000
FIELD = ("--option", "hoodie.payload.event.time.field=event_ts")
DOCUMENTED = Path(__file__).parents[3] / "docs" / "metrics.md"
# By the clock.
MOVING = {"eventide_measured_timestamp_seconds", "eventide_ro_lag_seconds"}

Samples = dict[tuple[str, str], float]


@dataclass
class Receiver:
    """What came by POST, PUT or DELETE: method, path, body. Answers with `status`."""

    port: int
    taken: list[tuple[str, str, bytes]] = field(default_factory=list)
    status: int = 200


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    class Handler(BaseHTTPRequestHandler):
        def _take(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            told.taken.append((self.command, self.path, body))
            self.send_response(told.status)
            self.send_header("Content-Type", "application/x-protobuf")
            self.end_headers()
            self.wfile.write(ExportMetricsServiceResponse().SerializeToString())

        do_POST = do_PUT = do_DELETE = _take  # noqa: N815  # as the library wants it

        def log_message(self, format: str, *args: object) -> None:
            """Says nothing."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        told = Receiver(server.server_port)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        yield told
        server.shutdown()
        thread.join()


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return golden.unpack("v9_no_deletes", tmp_path)


def words(**keys: object) -> tuple[str, ...]:
    """Options of metrics by the ends of their keys, with `_` for a dot."""
    named = {f"hoodie.metrics.{key.replace('_', '.')}": value for key, value in {"on": "true", **keys}.items()}
    return tuple(part for key, value in named.items() for part in ("--option", f"{key}={value}"))


def samples(text: str) -> Samples:
    """The values by name and reason; each is of the table."""
    values = {}
    for family in text_string_to_metric_families(text):
        assert family.type == "gauge"
        for sample in family.samples:
            assert sample.labels["table"] == "v9_no_deletes"
            values[sample.name, sample.labels.get("reason", "")] = float(sample.value)
    return values


def scraped(port: int) -> Samples:
    with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        return samples(answer.read().decode())


def standing(values: Samples) -> Samples:
    return {name: value for name, value in values.items() if name[0] not in MOVING}


def by_textfile(table: Path, tmp_path: Path) -> Samples:
    """The same values from a textfile, without any library; what they are, test_metrics asks the table's files."""
    file = tmp_path / "trips.prom"
    run_json("freshness", table, *FIELD, *words(reporter_type="PROMETHEUS_TEXTFILE", reporter_file_path=file))
    return samples(file.read_text())


def test_a_scrape_finds_every_metric_that_is_documented(table: Path, tmp_path: Path) -> None:
    (port,) = free_ports(1)
    reporter = words(reporter_type="PROMETHEUS", prometheus_port=port)
    service = (*FIELD, "--engine", "local", "--data-latency", "30m", "--rounds", 1)
    assert run("serve", table, *service, *reporter).exit_code == 0
    scrape = scraped(port)
    assert standing(scrape) == standing(by_textfile(table, tmp_path))
    section = DOCUMENTED.read_text().split("## Metrics", 1)[1].split("\n## ", 1)[0]
    rows = section.split("| name | meaning |", 1)[1].splitlines()
    documented = {name for row in rows for name in re.findall(r"`([a-z_]+)`", row.split("|")[1] if "|" in row else "")}
    # Every event time has been compacted, so that none is the least of those in log files.
    absent = {"log_files_min_event_time_timestamp_seconds"}
    # The table has no metadata table.
    absent |= {name for name in documented if name.startswith("metadata_table_")}
    assert {f"eventide_{name}" for name in documented - absent} == {name for name, _ in scrape}
    assert {reason for name, reason in scrape if name == "eventide_last_compaction_fallbacks"} == set(FallbackReason)


def test_one_endpoint_has_all_tables_of_its_process_as_they_were_last(table: Path, tmp_path: Path) -> None:
    (port,) = free_ports(1)
    options = {
        "hoodie.metrics.on": "true",
        "hoodie.metrics.reporter.type": "PROMETHEUS",
        "hoodie.metrics.prometheus.port": port,
        "hoodie.payload.event.time.field": "event_ts",
    }
    opened = Table.open(str(table), options)
    opened.publish_metrics()
    before = scraped(port)
    assert ("eventide_ro_event_time_watermark_timestamp_seconds", "") not in before
    opened.compact(opened.plan_compaction(before=T_MS))
    after = scraped(port)
    assert after["eventide_ro_event_time_watermark_timestamp_seconds", ""] == T_MS / 1000
    assert after["eventide_log_files", ""] < before["eventide_log_files", ""]
    other = Table.open(str(golden.unpack("v9_null_event_time", tmp_path / "other")), options)
    other.publish_metrics()
    with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        text = answer.read().decode()
    assert text.count("# TYPE eventide_log_files gauge") == 1


@pytest.mark.parametrize(("address", "answers"), [(None, False), ("0.0.0.0", True)])
def test_the_endpoint_listens_on_other_addresses_only_if_told(address: str | None, answers: bool, table: Path) -> None:
    (port,) = free_ports(1)
    options = words(reporter_type="PROMETHEUS", prometheus_port=port)
    if address is not None:
        options = (*options, "--option", f"eventide.metrics.prometheus.address={address}")
    assert run("freshness", table, *options).exit_code == 0
    assert scraped(port)
    with socket.socket() as client:  # 127.0.0.2 is this machine, too, but not the address of the endpoint
        assert (client.connect_ex(("127.0.0.2", port)) == 0) is answers


def test_a_port_that_is_taken_fails_nothing(table: Path, caplog: pytest.LogCaptureFixture) -> None:
    with socket.socket() as taken:
        taken.bind(("0.0.0.0", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert run("freshness", table, *words(reporter_type="PROMETHEUS", prometheus_port=port)).exit_code == 0
    assert f"cannot open an endpoint for metrics at 127.0.0.1:{port}" in caplog.text
    assert run("freshness", table, *words(reporter_type="PROMETHEUS", prometheus_port=70_000)).exit_code == 2


def test_a_push_replaces_the_group_of_the_table(table: Path, tmp_path: Path, receiver: Receiver) -> None:
    keys = {"pushgateway_host": "127.0.0.1", "pushgateway_port": receiver.port, "pushgateway_job_name": "lake"}
    reporter = words(reporter_type="PROMETHEUS_PUSHGATEWAY", **keys, pushgateway_report_labels="region:north,team:data")
    told = run_json("compact", table, "--before", T_MS, "--engine", "local", *FIELD, *reporter)
    assert told["watermark_ms"] == T_MS
    ((method, path, body),) = receiver.taken
    assert (method, path) == ("PUT", "/metrics/job/lake/region/north/table/v9_no_deletes/team/data")
    assert standing(samples(body.decode())) == standing(by_textfile(table, tmp_path))


def test_a_receiver_of_open_telemetry_gets_the_same(
    table: Path, tmp_path: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=test")
    endpoint = ("--option", f"eventide.metrics.otlp.endpoint=http://127.0.0.1:{receiver.port}/v1/metrics")
    run_json(
        "compact",
        table,
        "--before",
        T_MS,
        "--engine",
        "local",
        *FIELD,
        *words(reporter_type="opentelemetry"),
        *endpoint,
    )
    ((method, path, body),) = receiver.taken
    assert (method, path) == ("POST", "/v1/metrics")
    (resource,) = ExportMetricsServiceRequest.FromString(body).resource_metrics
    said = {a.key: a.value.string_value for a in resource.resource.attributes}
    assert (said["service.name"], said["deployment.environment"]) == ("eventide", "test")
    values: Samples = {}
    for metric in resource.scope_metrics[0].metrics:
        suffix = metric.name.rpartition("_")[2]
        assert metric.unit == {"seconds": "s", "bytes": "By"}.get(suffix, "1")
        for point in metric.gauge.data_points:
            attributes = {a.key: a.value.string_value for a in point.attributes}
            assert attributes.pop("table") == "v9_no_deletes"
            value = point.as_double if point.WhichOneof("value") == "as_double" else point.as_int
            values[metric.name, attributes.pop("reason", "")] = float(value)
            assert attributes == {}
    assert standing(values) == standing(by_textfile(table, tmp_path))


@pytest.mark.parametrize("reporter", ["PROMETHEUS_PUSHGATEWAY", "OPENTELEMETRY"])
def test_a_service_that_refuses_metrics_fails_nothing(
    reporter: str, table: Path, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    receiver.status = 400
    where = words(reporter_type=reporter, pushgateway_host="127.0.0.1", pushgateway_port=receiver.port)
    endpoint = ("--option", f"eventide.metrics.otlp.endpoint=http://127.0.0.1:{receiver.port}/v1/metrics")
    assert run("freshness", table, *where, *endpoint).exit_code == 0
    assert len(receiver.taken) == 1
    assert "no metrics were written" in caplog.text
