"""How fresh a derived table is: no fresher than what it was made of.

If a source was read without a watermark, it is unknown what is missing, so there is no watermark then.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from eventide_core.action.freshness.freshness import Freshness
from eventide_core.table.timeline.source_notes import SourceNote


def derived_freshness(own: Freshness, sources: Sequence[SourceNote]) -> Freshness:
    """The lower of a table's own freshness and that which its sources had."""
    if not sources:
        return own
    bounds = [note.watermark_ms for note in sources if not note.is_complete]
    if own.is_complete and not bounds:
        return replace(own, sources=tuple(sources))
    least = lowest(bounds if own.is_complete else [own.watermark_ms, *bounds])
    return replace(own, watermark_ms=least, is_complete=False, sources=tuple(sources))


def lowest(watermarks: Iterable[int | None]) -> int | None:
    """The least of them; None if one is None."""
    bounds = list(watermarks)
    known = [watermark for watermark in bounds if watermark is not None]
    return min(known) if known and len(known) == len(bounds) else None
