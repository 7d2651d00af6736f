"""The last measured values of one or more tables, in the form that Prometheus' library collects."""

from collections.abc import Iterator, Sequence

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from eventide_core.table.catalog.metric import Metric


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
