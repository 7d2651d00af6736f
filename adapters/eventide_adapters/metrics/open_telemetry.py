"""OpenTelemetry: gauges, exported by OTLP over HTTP each time the table is measured.

OpenTelemetry's variables set the destination, headers, certificates, and time limits (`OTEL_EXPORTER_OTLP_*`,
`OTEL_RESOURCE_ATTRIBUTES`, `OTEL_SERVICE_NAME`). Only the endpoint is also an option.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader, MetricExportResult, MetricsData
from opentelemetry.sdk.resources import OTELResourceDetector, Resource

from eventide_adapters.metrics.options import METRICS_PREFIX, OTLP_ENDPOINT
from eventide_core.config import Options
from eventide_core.errors import StorageError
from eventide_core.table.catalog.metric import Metric

SERVICE_NAME: Final = "eventide"
_UNITS: Final = {"seconds": "s", "bytes": "By"}


@dataclass(frozen=True, slots=True)
class OpenTelemetry:
    """ports.MetricsSink over OTLP. `endpoint` is the whole URL for metrics; None leaves it to the variables.

    The name of each gauge is `prefix`, an underscore, and the metric's name.
    """

    endpoint: str | None
    prefix: str

    def write(self, table: str, at_ms: int, metrics: Sequence[Metric]) -> None:  # noqa: ARG002
        # The library sets the time. The export is explicit, because the library's periodic reader does not report
        # failures.
        exporter = OTLPMetricExporter(endpoint=self.endpoint)
        try:
            data = self._data(table, metrics)
            if exporter.export(data) is not MetricExportResult.SUCCESS:
                raise StorageError(
                    "the OpenTelemetry receiver rejected the metrics: the library's own message states the reason"
                )
        finally:
            exporter.shutdown()

    def _data(self, table: str, metrics: Sequence[Metric]) -> MetricsData:
        reader = InMemoryMetricReader()
        provider = MeterProvider([reader], resource(), shutdown_on_exit=False)
        meter = provider.get_meter(SERVICE_NAME)
        for metric in metrics:
            name = metric.sample_name(self.prefix)
            unit = _UNITS.get(name.rpartition("_")[2], "1")
            reason = {} if metric.reason is None else {"reason": metric.reason}
            # A repeated name returns the same gauge.
            meter.create_gauge(name, unit, metric.about).set(metric.value, {"table": table, **reason})
        data = reader.get_metrics_data()
        provider.shutdown()
        assert data is not None
        return data


def resource() -> Resource:
    """What metrics and spans are of: this service, unless OpenTelemetry's variables say otherwise."""
    return Resource({"service.name": SERVICE_NAME}).merge(OTELResourceDetector().detect())


def open_open_telemetry(options: Options) -> OpenTelemetry:
    return OpenTelemetry(options.get(OTLP_ENDPOINT), options.get(METRICS_PREFIX))
