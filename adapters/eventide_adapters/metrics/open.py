"""Opens the sink that the options name, with Hudi's keys for metrics if Hudi has that sink.

A file of options may be shared with stock Hudi. So it is not an error to name a reporter that only Hudi has, or whose
library isn't installed: nothing is reported, and a warning is logged.
"""

from functools import cache
from importlib.util import find_spec
from secrets import token_hex
from typing import Final, assert_never

from eventide_adapters.metrics.json_lines import JsonLines
from eventide_adapters.metrics.options import (
    METRICS_CLASS,
    METRICS_FILE,
    METRICS_ON,
    METRICS_PREFIX,
    METRICS_REPORTER,
    OTLP_ENDPOINT,
    PROMETHEUS_PORT,
    PUSHGATEWAY_DELETE,
    PUSHGATEWAY_HOST,
    PUSHGATEWAY_JOB,
    PUSHGATEWAY_LABELS,
    PUSHGATEWAY_PORT,
    PUSHGATEWAY_RANDOM_JOB,
    Reporter,
)
from eventide_adapters.metrics.prometheus_textfile import PrometheusTextfile
from eventide_core.config import Options
from eventide_core.errors import ConfigError
from eventide_core.ports import MetricsSink, Unreported

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
    if isinstance(reporter, Unreported):
        return reporter
    prefix = options.get(METRICS_PREFIX)
    # Imported on use, because their libraries may not be installed.
    match reporter:
        case Reporter.PROMETHEUS_TEXTFILE:
            return PrometheusTextfile(_file(options), prefix)
        case Reporter.JSON_LINES:
            return JsonLines(_file(options), prefix)
        case Reporter.PROMETHEUS:
            from eventide_adapters.metrics.prometheus_http import PrometheusHttp

            return PrometheusHttp(options.get(PROMETHEUS_PORT), prefix)
        case Reporter.PROMETHEUS_PUSHGATEWAY:
            from eventide_adapters.metrics.prometheus_push import PushGateway

            return PushGateway(
                host=options.get(PUSHGATEWAY_HOST),
                port=options.get(PUSHGATEWAY_PORT),
                job=_job(options),
                labels=_labels(options),
                is_deleted_at_exit=options.get(PUSHGATEWAY_DELETE),
                prefix=prefix,
            )
        case Reporter.OPENTELEMETRY:
            from eventide_adapters.metrics.open_telemetry import OpenTelemetry

            return OpenTelemetry(options.get(OTLP_ENDPOINT), prefix)
        case _:
            assert_never(reporter)


def _reporter(options: Options) -> Reporter | Unreported:
    named = options.text(METRICS_REPORTER)
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
        return Unreported(f"{METRICS_REPORTER}={named} needs {missing[0]}: run `pip install 'eventide[metrics]'`")
    return reporter


def _cure() -> str:
    return f"set another {METRICS_REPORTER} ({', '.join(r.name for r in Reporter)}), or {METRICS_ON}=false"


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # a package above it
        return False


def _file(options: Options) -> str:
    path = options.get(METRICS_FILE)
    if path is None:
        raise ConfigError(
            f"{METRICS_ON} is true, but no option states where metrics go: set the file as {METRICS_FILE}"
        )
    return path


def _job(options: Options) -> str:
    job = options.get(PUSHGATEWAY_JOB)
    return f"{job}-{_suffix()}" if options.get(PUSHGATEWAY_RANDOM_JOB) else job


@cache
def _suffix() -> str:
    """The same suffix for the whole process, so that its pushes replace each other."""
    return token_hex(4)


def _labels(options: Options) -> tuple[tuple[str, str], ...]:
    """`key:value,key:value`, as in Hudi."""
    text = options.get(PUSHGATEWAY_LABELS)
    if text is None:
        return ()
    pairs = [pair.partition(":") for pair in text.split(",")]
    if not all(key.strip().isidentifier() and colon for key, colon, _ in pairs):
        raise ConfigError(f"option {PUSHGATEWAY_LABELS}={text!r} does not have the form key:value,key:value")
    return tuple((key.strip(), value.strip()) for key, _, value in pairs)
