"""Opens the sink that the options name, with Hudi's keys for metrics if Hudi has that sink.

A file of options may be shared with stock Hudi. So it is not an error to name a reporter that only Hudi has, or whose
library isn't installed: nothing is reported, and a warning is logged.
"""

from importlib.util import find_spec
from typing import Final, cast

from eventide_adapters.entry_points import Adapter, Adapters
from eventide_adapters.extras import install_command
from eventide_adapters.metrics.options import METRICS_CLASS, METRICS_FILE, METRICS_ON, METRICS_REPORTER, Reporter
from eventide_core.config import Options
from eventide_core.ports import MetricsSink, Unreported

METRICS: Final = Adapters(
    "eventide.metrics",
    {
        Reporter.PROMETHEUS: "eventide_adapters.metrics.prometheus:open_prometheus",
        Reporter.PROMETHEUS_PUSHGATEWAY: "eventide_adapters.metrics.prometheus:open_push_gateway",
        Reporter.OPENTELEMETRY: "eventide_adapters.metrics.open_telemetry:open_open_telemetry",
        Reporter.PROMETHEUS_TEXTFILE: "eventide_adapters.metrics.local_files:open_textfile",
        Reporter.JSON_LINES: "eventide_adapters.metrics.local_files:open_json_lines",
    },
)
"""The sinks by the name of their reporter. A factory gets the options."""

_HUDI_REPORTERS: Final = ("graphite", "inmemory", "jmx", "datadog", "console", "cloudwatch", "m3", "slf4j")

_LIBRARIES: Final = {
    Reporter.PROMETHEUS: ("prometheus_client",),
    Reporter.PROMETHEUS_PUSHGATEWAY: ("prometheus_client",),
    Reporter.OPENTELEMETRY: ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http"),
}


def open_sink(options: Options) -> MetricsSink | Unreported | None:
    """The sink; None if metrics are off, as they are by default. Raises ConfigError for a value that cannot be read."""
    if not options.get(METRICS_ON):
        return None
    reporter = _reporter(options)
    return reporter if isinstance(reporter, Unreported) else cast(MetricsSink, reporter.load()(options))


def _reporter(options: Options) -> Adapter | Unreported:
    named = options.text(METRICS_REPORTER)
    of_package = None if named is None or named.lower() in (*Reporter, *_HUDI_REPORTERS) else METRICS.find(named)
    if of_package is not None:
        return of_package
    own_class = options.get(METRICS_CLASS)
    is_ours = named is not None and named.lower() in list(Reporter)
    if own_class is not None and not is_ours:
        return Unreported(f"{METRICS_CLASS}={own_class} is a Java class; {_cure()}")
    if named is not None and named.lower() in _HUDI_REPORTERS:
        return Unreported(f"{METRICS_REPORTER}={named} is a reporter that only Hudi has; {_cure()}")
    if named is None and options.get(METRICS_FILE) is None:
        return Unreported(f"no option states where metrics go; {_cure()}")
    reporter = options.get(METRICS_REPORTER)
    missing = [name for name in _LIBRARIES.get(reporter, ()) if not _is_installed(name)]
    if missing:
        return Unreported(f"{METRICS_REPORTER}={named} needs {missing[0]}: run `{install_command('metrics')}`")
    return Adapter(reporter, METRICS.built_in[reporter])


def _cure() -> str:
    return f"set another {METRICS_REPORTER} ({', '.join(r.name for r in Reporter)}), or {METRICS_ON}=false"


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # a package above it
        return False
