"""Which sink the options ask for, by Hudi's keys for metrics where it has one."""

from enum import StrEnum

from eventide_adapters.metrics.json_lines import JsonLines
from eventide_adapters.metrics.prometheus_textfile import PrometheusTextfile
from eventide_core.config import METRICS_FILE, METRICS_ON, METRICS_PREFIX, METRICS_REPORTER, Options
from eventide_core.errors import ConfigError
from eventide_core.ports import MetricsSink

PREFIX_DEFAULT = "eventide"


class Reporter(StrEnum):
    PROMETHEUS_TEXTFILE = "prometheus_textfile"
    JSON_LINES = "json_lines"


def open_sink(options: Options) -> MetricsSink | None:
    """The sink; None where metrics are off, as they are by default. Raises ConfigError, for Hudi's own reporters too."""
    if not options.flag(METRICS_ON):
        return None
    reporter = options.choice(METRICS_REPORTER, Reporter.PROMETHEUS_TEXTFILE)
    path = options.text(METRICS_FILE)
    if path is None:
        raise ConfigError(f"{METRICS_ON} is true, and nothing says where metrics go: give the file as {METRICS_FILE}")
    prefix = options.text(METRICS_PREFIX) or PREFIX_DEFAULT
    return PrometheusTextfile(path, prefix) if reporter is Reporter.PROMETHEUS_TEXTFILE else JsonLines(path, prefix)
