"""The trace of a compaction as a picture: `python -m support.documentation.trace_picture` writes it for docs/metrics.md.

The table is made for it: 40 slices with a log file each, of which one has most of the rows.
"""

import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from xml.sax.saxutils import escape

import pyarrow as pa
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from eventide import Table

PICTURE = Path(__file__).parents[3] / "docs/guide/images/trace.svg"
SLICES, ROWS, MOST_ROWS = 40, 2_000, 400_000
_WIDTH, _LEFT, _ROW, _TOP = 760, 210, 16, 34
_SHOWN_SLICES = 12  # the longest ones
_COLORS = {"merge slice": "#1f6f8b", "own": "#c8553d", "wait for the lock": "#c8553d"}


def traced_compaction(directory: Path) -> list[ReadableSpan]:
    """The spans of a compaction of a table that is made below the directory."""

    def rows(word: str) -> pa.Table:
        partitions = [f"{n:02}" for n in range(SLICES) for _ in range(MOST_ROWS if n == SLICES // 2 else ROWS)]
        keys = [f"k{n}" for n in range(len(partitions))]
        at = [1_700_000_000_000 + n for n in range(len(keys))]
        return pa.table({"id": keys, "day": partitions, "at": at, "word": [word] * len(keys)})

    table = Table.create(
        str(directory / "trips"),
        schema=rows("").schema,
        record_key="id",
        partition="day",
        event_time="at",
        options={"hoodie.bucket.index.num.buckets": "1"},
    )
    table.bulk_insert(rows("first"))
    table.upsert(rows("later"))
    exporter, provider = InMemorySpanExporter(), TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    Table.open(table.uri).compact(before=1_700_000_000_000 + 10**9)
    return list(exporter.get_finished_spans())


def lines(spans: Iterable[ReadableSpan]) -> Iterator[tuple[int, ReadableSpan]]:
    """The spans in the order of a tree, each with its depth; of the slices only the longest."""
    children: dict[int | None, list[ReadableSpan]] = {}
    for span in spans:
        children.setdefault(None if span.parent is None else span.parent.span_id, []).append(span)

    def below(parent: int | None, depth: int) -> Iterator[tuple[int, ReadableSpan]]:
        found = sorted(children.get(parent, ()), key=_begin)
        longest = sorted((s for s in found if s.name == "merge slice"), key=_duration)[-_SHOWN_SLICES:]
        for span in found:
            if span.name != "merge slice" or span in longest:
                yield depth, span
                context = span.get_span_context()
                assert context is not None
                yield from below(context.span_id, depth + 1)

    return below(None, 0)


def picture(spans: Iterable[ReadableSpan]) -> str:
    """A bar for each span, over the time since the first one began."""
    shown = list(lines(spans))
    begin, end = min(_begin(span) for _, span in shown), max(_begin(span) + _duration(span) for _, span in shown)
    per_ns = (_WIDTH - _LEFT - 60) / (end - begin)
    height = _TOP + _ROW * len(shown) + 12
    title = (
        f"A compaction of {SLICES} slices, {(end - begin) / 1e9:.2f} s: steps, and the {_SHOWN_SLICES} longest slices"
    )
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" font-family="sans-serif" font-size="10">',
        f'<rect width="{_WIDTH}" height="{height}" fill="#fff"/>',
        f'<text x="8" y="18" font-size="12">{title}</text>',
    ]
    for number, (depth, span) in enumerate(shown):
        y = _TOP + _ROW * number
        x, width = _LEFT + (_begin(span) - begin) * per_ns, max(1.0, _duration(span) * per_ns)
        partition = (span.attributes or {}).get("partition")
        name = span.name if partition is None else f"{span.name} {partition}"
        parts.append(f'<text x="{8 + 10 * depth}" y="{y + 10}">{escape(name)}</text>')
        color = _COLORS.get(span.name, "#8fa3ad")
        parts.append(f'<rect x="{x:.1f}" y="{y + 2}" width="{width:.1f}" height="{_ROW - 5}" fill="{color}"/>')
        parts.append(f'<text x="{x + width + 4:.1f}" y="{y + 10}" fill="#555">{_duration(span) / 1e6:,.0f} ms</text>')
    return "\n".join([*parts, "</svg>", ""])


def _begin(span: ReadableSpan) -> int:
    assert span.start_time is not None
    return span.start_time


def _duration(span: ReadableSpan) -> int:
    assert span.end_time is not None
    return span.end_time - _begin(span)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        PICTURE.write_text(picture(traced_compaction(Path(scratch))), encoding="utf-8")
