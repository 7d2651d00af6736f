"""A small table, and the spans of what is done with it, as a program with a provider of its own gets them."""

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from eventide import Table

BEFORE = "1970-01-01T00:00:20Z"  # later than every record
ROWS = pa.table({"id": ["a", "b", "c"], "day": ["1", "2", "2"], "at": [10_000, 11_000, 12_000]})


def recorded_spans(monkeypatch: pytest.MonkeyPatch) -> InMemorySpanExporter:
    """What ends from now on, in a process whose program has a provider of its own."""
    exporter, provider = InMemorySpanExporter(), TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    return exporter


def table_of_two_slices(path: Path) -> Path:
    """A table of two slices in two partitions, with a log file each, and a metadata table. Leaves no span."""
    table = Table.create(
        str(path),
        schema=ROWS.schema,
        record_key="id",
        partition="day",
        event_time="at",
        options={"hoodie.bucket.index.num.buckets": "1"},
    )
    table.bulk_insert(ROWS)
    table.upsert(ROWS)
    return path


def paths(ended: InMemorySpanExporter) -> Mapping[str, ReadableSpan]:
    """The spans by their own names and the names of the spans around them; all belong to one trace."""
    found = ended.get_finished_spans()
    contexts = [span.get_span_context() or trace.INVALID_SPAN_CONTEXT for span in found]
    assert len({context.trace_id for context in contexts}) == 1
    by_id = {context.span_id: span for context, span in zip(contexts, found, strict=True)}

    def path(span: ReadableSpan) -> str:
        above = "" if span.parent is None else path(by_id[span.parent.span_id]) + " / "
        return above + span.name

    return {path(span): span for span in found}


def slices(ended: InMemorySpanExporter) -> list[ReadableSpan]:
    return [span for span in ended.get_finished_spans() if span.name == "merge slice"]
