"""Prometheus' push gateway: each push replaces the previous values of a table.

By default, the values stay when the process ends, so that the next scrape still finds a scheduled compaction. Hudi's
defaults differ: it removes the values and gives each run a separate job name. Options select that behavior here.
"""

import atexit
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from http.client import HTTPException
from types import MappingProxyType
from typing import Final

from prometheus_client import delete_from_gateway, push_to_gateway

from eventide_adapters.metrics.prometheus_samples import LatestSamples
from eventide_core.errors import StorageError
from eventide_core.table.catalog.metric import Metric

_TIMEOUT_SECONDS: Final = 10


@dataclass(frozen=True, slots=True)
class PushGateway:
    """ports.MetricsSink over a push gateway: `job`, `labels` and the table are the group that a push replaces.

    `host` is where the gateway listens on `port`; before an `@`, it may contain a user and password, which no message shows.
    The name of each sample is `prefix`, an underscore, and the metric's name. With `is_deleted_at_exit` the group is removed
    when the process ends.
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
            push_to_gateway(
                self._address, self.job, samples.registry(), dict(self._group(table)), timeout=_TIMEOUT_SECONDS
            )
        except (OSError, HTTPException) as error:
            host = self.host.rpartition("@")[2]
            raise StorageError(f"push gateway {host}:{self.port} rejected the metrics: {error}") from error

    def delete(self, table: str) -> None:
        """Removes the pushed metrics of a table. Ignores an unreachable gateway."""
        with suppress(OSError, HTTPException):
            delete_from_gateway(self._address, self.job, dict(self._group(table)), timeout=_TIMEOUT_SECONDS)

    @property
    def _address(self) -> str:
        return f"{self.host}:{self.port}"

    def _group(self, table: str) -> Mapping[str, str]:
        return MappingProxyType({**dict(self.labels), "table": table})


@cache
def _delete_at_exit(gateway: PushGateway, table: str) -> None:
    atexit.register(gateway.delete, table)
