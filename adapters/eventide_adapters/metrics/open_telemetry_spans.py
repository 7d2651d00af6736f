"""Traces: spans of OpenTelemetry, exported by OTLP over HTTP.

A program that has a provider of its own, such as one that `opentelemetry-instrument` starts, gets the spans there. Without
one, OpenTelemetry's variables set the destination, as they do for metrics. An error is reported by its type alone: its
message is in the log, where secrets are masked.
"""

import os
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from typing import Final

from opentelemetry import context, trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from eventide_adapters.metrics.open_telemetry import SERVICE_NAME, resource
from eventide_core.ports import NoTracer

_QUEUE_SIZE: Final = "OTEL_BSP_MAX_QUEUE_SIZE"
_SPANS_MAX: Final = 1 << 18  # all slices of the largest plan: the library drops what exceeds its default of 2,048


class OpenTelemetryTracer:
    """ports.Tracer. A thread that helps with a step has no span of its own: what it does is within the innermost one."""

    def __init__(self, tracer: trace.Tracer) -> None:
        self._tracer = tracer
        self._open: list[context.Context] = []  # the innermost last

    def __reduce__(self) -> tuple[type[NoTracer], tuple[()]]:
        return NoTracer, ()  # an executor records nothing

    @contextmanager
    def span(self, name: str, /, **attributes: str | int) -> Generator[None]:
        around = self._open[-1:]
        is_helping = bool(around) and trace.get_current_span() is trace.INVALID_SPAN
        parent = around[0] if is_helping else None
        started = self._tracer.start_as_current_span(
            name, parent, attributes=attributes, record_exception=False, set_status_on_exception=False
        )
        with started as span:
            here = context.get_current()
            if not is_helping:
                self._open.append(here)
            try:
                yield
            except BaseException as error:
                span.set_status(trace.StatusCode.ERROR, type(error).__name__)
                raise
            finally:
                if not is_helping:
                    self._open.remove(here)

    def past(self, name: str, began_ns: int, ended_ns: int, /, **attributes: str | int) -> None:
        span = self._tracer.start_span(name, attributes=attributes, start_time=began_ns)
        span.end(ended_ns)


def open_open_telemetry_tracer(*, is_exporting: bool) -> OpenTelemetryTracer:
    """The tracer of the program's provider. If it has none, `is_exporting` makes one."""
    provider = trace.get_tracer_provider()
    if is_exporting and isinstance(provider, trace.ProxyTracerProvider):
        provider = _own_provider()
    return OpenTelemetryTracer(provider.get_tracer(SERVICE_NAME))


@cache
def _own_provider() -> TracerProvider:
    provider = TracerProvider(resource=resource())  # it exports the rest as the process ends
    queued = None if _QUEUE_SIZE in os.environ else _SPANS_MAX
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(), max_queue_size=queued))
    return provider
