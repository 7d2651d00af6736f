"""Opens the sink that the options name, with Hudi's keys for metrics if Hudi has that sink, and the tracer.

A file of options may be shared with stock Hudi. So it is not an error to name a reporter that only Hudi has, or whose
library isn't installed: nothing is reported, and a warning is logged.
"""

import logging
import os
import sys
from functools import cache
from importlib.util import find_spec
from typing import Final, cast

from eventide_adapters.entry_points import Adapter, Adapters
from eventide_adapters.extras import install_command
from eventide_adapters.metrics.options import METRICS_CLASS, METRICS_FILE, METRICS_ON, METRICS_REPORTER, Reporter
from eventide_core.config import Options
from eventide_core.ports import MetricsSink, NoTracer, Tracer, Unreported

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


_TRACES_EXPORTER: Final = "OTEL_TRACES_EXPORTER"
_TRACES: Final = (_TRACES_EXPORTER, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_LOG: Final = logging.getLogger("eventide.traces")


def open_tracer() -> Tracer:
    """The tracer, as OpenTelemetry's variables or the surrounding program have it. Without both, nothing is imported."""
    is_exporting = any(map(os.environ.get, _TRACES)) and os.environ.get(_TRACES_EXPORTER) != "none"
    if not is_exporting and "opentelemetry.trace" not in sys.modules:
        return NoTracer()
    missing = _missing(Reporter.OPENTELEMETRY)
    if missing:
        _warn_once(f"no traces are sent, because {missing[0]} isn't installed: run `{install_command('metrics')}`")
        return NoTracer()
    from eventide_adapters.metrics.open_telemetry_spans import open_open_telemetry_tracer

    return open_open_telemetry_tracer(is_exporting=is_exporting)


@cache
def _warn_once(sentence: str) -> None:
    _LOG.warning(sentence)


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
    missing = _missing(reporter)
    if missing:
        return Unreported(f"{METRICS_REPORTER}={named} needs {missing[0]}: run `{install_command('metrics')}`")
    return Adapter(reporter, METRICS.built_in[reporter])


def _cure() -> str:
    return f"set another {METRICS_REPORTER} ({', '.join(r.name for r in Reporter)}), or {METRICS_ON}=false"


def _missing(reporter: Reporter) -> list[str]:
    return [name for name in _LIBRARIES.get(reporter, ()) if not _is_installed(name)]


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # a package above it
        return False
