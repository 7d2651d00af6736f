"""Prometheus' HTTP endpoint: exists as long as the process, and has the last measurement of each of its tables.

It is useful for a process that stays, such as `eventide serve`. As in Hudi, there is one server per port for all tables
of a process.
"""

import threading
from collections.abc import Sequence
from dataclasses import dataclass

from prometheus_client import start_http_server

from eventide_adapters.metrics.prometheus_samples import LatestSamples
from eventide_core.errors import StorageError
from eventide_core.table.catalog.metric import Metric

_endpoints: dict[tuple[str, int], LatestSamples] = {}
_opening = threading.Lock()


@dataclass(frozen=True, slots=True)
class PrometheusHttp:
    """ports.MetricsSink over an endpoint of this process at `port`.

    `address` is the one of the machine's addresses that is listened on, or 0.0.0.0 for all of them. The name of each sample
    is `prefix`, an underscore, and the metric's name.
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
