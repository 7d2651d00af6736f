"""The factories of the built-in sinks, as open.py and pyproject.toml declare them. Each imports only its own library."""

from functools import cache
from secrets import token_hex

from eventide_adapters.metrics.options import (
    METRICS_FILE,
    METRICS_ON,
    METRICS_PREFIX,
    OTLP_ENDPOINT,
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
from eventide_core.errors import ConfigError
from eventide_core.ports import MetricsSink


def open_textfile(options: Options) -> MetricsSink:
    from eventide_adapters.metrics.prometheus_textfile import PrometheusTextfile

    return PrometheusTextfile(_file(options), options.get(METRICS_PREFIX))


def open_json_lines(options: Options) -> MetricsSink:
    from eventide_adapters.metrics.json_lines import JsonLines

    return JsonLines(_file(options), options.get(METRICS_PREFIX))


def open_prometheus(options: Options) -> MetricsSink:
    from eventide_adapters.metrics.prometheus_http import PrometheusHttp

    return PrometheusHttp(options.get(PROMETHEUS_ADDRESS), options.get(PROMETHEUS_PORT), options.get(METRICS_PREFIX))


def open_push_gateway(options: Options) -> MetricsSink:
    from eventide_adapters.metrics.prometheus_push import PushGateway

    return PushGateway(
        host=options.get(PUSHGATEWAY_HOST),
        port=options.get(PUSHGATEWAY_PORT),
        job=_job(options),
        labels=_labels(options),
        is_deleted_at_exit=options.get(PUSHGATEWAY_DELETE),
        prefix=options.get(METRICS_PREFIX),
    )


def open_open_telemetry(options: Options) -> MetricsSink:
    from eventide_adapters.metrics.open_telemetry import OpenTelemetry

    return OpenTelemetry(options.get(OTLP_ENDPOINT), options.get(METRICS_PREFIX))


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
    """The suffix of this process, which stays the same so that its pushes replace each other."""
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
