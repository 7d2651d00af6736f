"""The options of metrics, with Hudi's keys if Hudi has them."""

from enum import StrEnum

from eventide_core.config import Options
from eventide_core.config.option import FLAG, TEXT, Option, choice, optional, whole_number
from eventide_core.errors import ConfigError

_PORT = whole_number(1, 65_535)


class Reporter(StrEnum):
    PROMETHEUS = "prometheus"
    PROMETHEUS_PUSHGATEWAY = "prometheus_pushgateway"
    OPENTELEMETRY = "opentelemetry"
    PROMETHEUS_TEXTFILE = "prometheus_textfile"
    JSON_LINES = "json_lines"


METRICS_ON = Option("hoodie.metrics.on", FLAG, False, "Turns metrics on.")
METRICS_REPORTER = Option(
    "hoodie.metrics.reporter.type",
    choice(Reporter),
    Reporter.PROMETHEUS_TEXTFILE,
    "Where metrics go. A reporter that only Hudi has is reported and gets none.",
    otherwise="prometheus_textfile where a file is given",
)
METRICS_CLASS = optional(
    "hoodie.metrics.reporter.class",
    TEXT,
    "A reporter class for Hudi. Where no reporter of eventide is given beside it, metrics go nowhere.",
)
METRICS_PREFIX = Option("hoodie.metrics.reporter.metricsname.prefix", TEXT, "eventide", "The prefix of each name.")
METRICS_FILE = optional(
    "hoodie.metrics.reporter.file.path",
    TEXT,
    "The local file of the textfile and JSON lines reporters, which need one.",
)
PROMETHEUS_PORT = Option("hoodie.metrics.prometheus.port", _PORT, 9090, "The port at which this process is scraped.")
PROMETHEUS_ADDRESS = Option(
    "eventide.metrics.prometheus.address",
    TEXT,
    "127.0.0.1",
    "The address of this machine at which it listens for that; 0.0.0.0: all of them.",
)
PUSHGATEWAY_HOST = Option("hoodie.metrics.pushgateway.host", TEXT, "localhost", "The host of the push gateway.")
PUSHGATEWAY_PORT = Option("hoodie.metrics.pushgateway.port", _PORT, 9091, "The port of the push gateway.")
PUSHGATEWAY_JOB = Option(
    "hoodie.metrics.pushgateway.job.name",
    TEXT,
    "eventide",
    "The job of the pushed metrics. With the name of the table and the labels, it makes the group.",
)
PUSHGATEWAY_LABELS = optional(
    "hoodie.metrics.pushgateway.report.labels", TEXT, "More labels of the group, as key:value,key:value."
)
PUSHGATEWAY_RANDOM_JOB = Option(
    "hoodie.metrics.pushgateway.random.job.name.suffix",
    FLAG,
    False,
    "Whether each process is a job of its own. Hudi's default is true.",
)
PUSHGATEWAY_DELETE = Option(
    "hoodie.metrics.pushgateway.delete.on.shutdown",
    FLAG,
    False,
    "Whether the group is removed when the process ends. Hudi's default is true.",
)
OTLP_ENDPOINT = optional(
    "eventide.metrics.otlp.endpoint",
    TEXT,
    "The whole URL for metrics by OTLP over HTTP.",
    otherwise="as OpenTelemetry's own variables say",
)


def metrics_file(options: Options) -> str:
    path = options.get(METRICS_FILE)
    if path is None:
        raise ConfigError(
            f"{METRICS_ON} is true, but no option states where metrics go: set the file as {METRICS_FILE}"
        )
    return path
