"""Whether everything before T has come: a table is only as fresh as its sources say.

A table's files show only what has come. That nothing before T is still on its way, a source has to say. A source that
doesn't say how far it has come may have anything on its way, so there is no watermark then.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from eventide_core.action.freshness.freshness import Freshness
from eventide_core.table.timeline.source_progress import FILES, SourceProgress


def with_arrival(own: Freshness, sources: Sequence[SourceProgress]) -> Freshness:
    """The lower of a table's own freshness and of how far its sources have come."""
    if not sources:
        return own
    bounds = [(one.name, one.progress_ms) for one in sources if not one.is_complete]
    if not own.is_complete:
        bounds.insert(0, (FILES, own.watermark_ms))  # a source may have any name, also this one
    least = lowest(bound for _, bound in bounds)
    held_by = next((name for name, bound in bounds if bound == least), None)
    return replace(
        own,
        watermark_ms=least,
        files_watermark_ms=own.watermark_ms,
        is_complete=own.is_complete and not bounds,
        sources=tuple(sources),
        held_back_by=held_by,
    )


def held(watermark_ms: int | None, sources: Iterable[SourceProgress]) -> int | None:
    """The lower of a watermark and of how far sources have come; None if one of them has none."""
    return lowest([watermark_ms, *(one.progress_ms for one in sources if not one.is_complete)])


def lowest(watermarks: Iterable[int | None]) -> int | None:
    """The least of them; None if one is None."""
    bounds = list(watermarks)
    known = [watermark for watermark in bounds if watermark is not None]
    return min(known) if known and len(known) == len(bounds) else None


def vouched_ms(sources: Sequence[SourceProgress]) -> int | None:
    """The time that all sources have reached; None without a source, or if one doesn't say how far it has come."""
    return lowest(one.progress_ms for one in sources if not one.is_complete)


def silence(sources: Sequence[SourceProgress]) -> str | None:
    """Which source doesn't say how far it has come, so that no T follows the clock; None if all do."""
    silent = next((one for one in sources if one.progress_ms is None and not one.is_complete), None)
    if silent is None:
        return None
    return f"the source {silent.name} holds the cut: {silent.evidence}; {silent.cure}"
