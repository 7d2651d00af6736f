"""Prometheus, by its own library: an endpoint of this process that is scraped, or pushes to its push gateway."""

import atexit
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from http.client import HTTPException
from secrets import token_hex
from typing import Final

from prometheus_client import CollectorRegistry, delete_from_gateway, push_to_gateway, start_http_server
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from eventide_adapters.metrics.options import (
    METRICS_PREFIX,
    PROMETHEUS_ADDRESS,
    PROMETHEUS_PORT,
    PUSHGATEWAY_DELETE,
    PUSHGATEWAY_HOST,
    PUSHGATEWAY_JOB,
    PUSHGATEWAY_LABELS,
    PUSHGATEWAY_PORT,
    PUSHGATEWAY_RANDOM_JOB,
)
from eventide_core.config import Options
from eventide_core.errors import ConfigError, StorageError
from eventide_core.table.catalog.metric import Metric

_TIMEOUT_SECONDS: Final = 10


class LatestSamples(Collector):
    """The last measurement of each table: one gauge per name, with the labels `table` and, if there is one, `reason`.

    A scrape on another thread sees either all values of one measurement or all of the previous one.
    """

    def __init__(self) -> None:
        self._tables: dict[tuple[str, str], tuple[Metric, ...]] = {}

    def put(self, prefix: str, table: str, metrics: Sequence[Metric]) -> None:
        self._tables = {**self._tables, (prefix, table): tuple(metrics)}

    def registry(self) -> CollectorRegistry:
        """A registry that collects only these."""
        registry = CollectorRegistry()
        registry.register(self)
        return registry

    def collect(self) -> Iterator[GaugeMetricFamily]:
        gauges: dict[str, GaugeMetricFamily] = {}
        for (prefix, table), metrics in self._tables.items():
            for metric in metrics:
                name = metric.sample_name(prefix)
                labels = ("table",) if metric.reason is None else ("table", "reason")
                values = (table,) if metric.reason is None else (table, metric.reason)
                gauges.setdefault(name, GaugeMetricFamily(name, metric.about, labels=labels)).add_metric(
                    values, metric.value
                )
        yield from gauges.values()


_endpoints: dict[tuple[str, int], LatestSamples] = {}
_opening = threading.Lock()


@dataclass(frozen=True, slots=True)
class PrometheusHttp:
    """ports.MetricsSink over an endpoint of this process at `port`, with the last measurement of each of its tables.

    It exists as long as the process, which is useful for one that stays, such as `eventide serve`. As in Hudi, there is one
    server per port for all tables of a process. `address` is the one of the machine's addresses that is listened on, or
    0.0.0.0 for all of them. The name of each sample is `prefix`, an underscore, and the metric's name.
    """

    address: str
    port: int
    prefix: str

    def write(self, table: str, at_ms: int, metrics: Sequence[Metric]) -> None:  # noqa: ARG002
        # A scrape has its own time.
        self._endpoint().put(self.prefix, table, metrics)

    def _endpoint(self) -> LatestSamples:
        """Listens from the first call on. Raises StorageError if another process uses the port."""
        with _opening:
            samples = _endpoints.get((self.address, self.port))
            if samples is None:
                samples = LatestSamples()
                try:
                    start_http_server(self.port, self.address, registry=samples.registry())
                except OSError as error:
                    raise StorageError(
                        f"cannot open an endpoint for metrics at {self.address}:{self.port}: {error.strerror or error}"
                    ) from error
                _endpoints[self.address, self.port] = samples
            return samples


@dataclass(frozen=True, slots=True)
class PushGateway:
    """ports.MetricsSink over a push gateway: `job`, `labels` and the table are the group that a push replaces.

    `host` is where the gateway listens on `port`; before an `@`, it may contain a user and password, which no message shows.
    The name of each sample is `prefix`, an underscore, and the metric's name. With `is_deleted_at_exit` the group is removed
    when the process ends. By default, the values stay, so that the next scrape still finds a scheduled compaction. Hudi's
    defaults differ: it removes the values and gives each run a separate job name.
    """

    host: str
    port: int
    job: str
    labels: tuple[tuple[str, str], ...]
    is_deleted_at_exit: bool
    prefix: str

    def write(self, table: str, at_ms: int, metrics: Sequence[Metric]) -> None:  # noqa: ARG002
        # The gateway adds the time of the push.
        samples = LatestSamples()
        samples.put(self.prefix, table, metrics)
        if self.is_deleted_at_exit:
            _delete_at_exit(self, table)
        try:
            push_to_gateway(self._address, self.job, samples.registry(), self._group(table), timeout=_TIMEOUT_SECONDS)
        except (OSError, HTTPException) as error:
            host = self.host.rpartition("@")[2]
            raise StorageError(f"push gateway {host}:{self.port} rejected the metrics: {error}") from error

    def delete(self, table: str) -> None:
        """Removes the pushed metrics of a table. Ignores an unreachable gateway."""
        with suppress(OSError, HTTPException):
            delete_from_gateway(self._address, self.job, self._group(table), timeout=_TIMEOUT_SECONDS)

    @property
    def _address(self) -> str:
        return f"{self.host}:{self.port}"

    def _group(self, table: str) -> dict[str, str]:
        return {**dict(self.labels), "table": table}


@cache
def _delete_at_exit(gateway: PushGateway, table: str) -> None:
    atexit.register(gateway.delete, table)


def open_prometheus(options: Options) -> PrometheusHttp:
    return PrometheusHttp(options.get(PROMETHEUS_ADDRESS), options.get(PROMETHEUS_PORT), options.get(METRICS_PREFIX))


def open_push_gateway(options: Options) -> PushGateway:
    return PushGateway(
        host=options.get(PUSHGATEWAY_HOST),
        port=options.get(PUSHGATEWAY_PORT),
        job=_job(options),
        labels=_labels(options),
        is_deleted_at_exit=options.get(PUSHGATEWAY_DELETE),
        prefix=options.get(METRICS_PREFIX),
    )


def _job(options: Options) -> str:
    job = options.get(PUSHGATEWAY_JOB)
    return f"{job}-{token_hex(4)}" if options.get(PUSHGATEWAY_RANDOM_JOB) else job


def _labels(options: Options) -> tuple[tuple[str, str], ...]:
    """`key:value,key:value`, as in Hudi."""
    text = options.get(PUSHGATEWAY_LABELS)
    if text is None:
        return ()
    pairs = [pair.partition(":") for pair in text.split(",")]
    if not all(key.strip().isidentifier() and colon for key, colon, _ in pairs):
        raise ConfigError(f"option {PUSHGATEWAY_LABELS}={text!r} does not have the form key:value,key:value")
    return tuple((key.strip(), value.strip()) for key, _, value in pairs)
