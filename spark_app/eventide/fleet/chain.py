"""The chain of tables that a derived table was made of, and which one of them holds its watermark back."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from eventide.bootstrap import assemble
from eventide.formatting import sanitize
from eventide_core.action.freshness.arrival import with_arrival
from eventide_core.action.freshness.freshness import Freshness, watermark_text
from eventide_core.errors import EventideError, format_timestamp
from eventide_core.service.common.facts.arrival import source_notes
from eventide_core.service.common.state.table import TableState
from eventide_core.table.timeline.source_notes import SourceNote


@dataclass(frozen=True, slots=True)
class Link:
    """A table with its sources, each beside what was taken of it. `problem` states why the table can't be read.

    `own` is the freshness by the table's own log files, and `fresh` the one that its sources leave of it; both are None with
    a problem. `sources` are pairs of the last note of what was taken of a source, and the source as it is now; empty for a
    table that isn't derived.
    """

    uri: str
    own: Freshness | None = None
    fresh: Freshness | None = None
    sources: "tuple[tuple[SourceNote, Link], ...]" = ()
    problem: str | None = None

    @property
    def holder(self) -> str:
        """The table that holds the watermark back: the one whose own step comes next."""
        if self.fresh is None or self.own is None:
            return self.uri
        bounds = [(note, link) for note, link in self.sources if not note.is_complete]
        least = min(bounds, key=lambda one: _order(one[0].watermark_ms), default=None)
        if least is None or (
            not self.own.is_complete and _order(self.own.watermark_ms) < _order(least[0].watermark_ms)
        ):
            return self.uri
        note, source = least
        # What the source has by now was not taken of it yet.
        has_more = source.fresh is not None and _order(source.fresh.watermark_ms) > _order(note.watermark_ms)
        return self.uri if has_more else source.holder

    def lines(self, indent: str = "") -> Iterator[str]:
        """The chain as a tree, the end of it first."""
        if self.fresh is None or self.own is None:
            yield f"{indent}{self.uri}: {self.problem}"
            return
        own = f", by itself {watermark_text(self.own)}" if self.sources and self.own != self.fresh else ""
        yield f"{indent}{self.uri}: {watermark_text(self.fresh)}{own}"
        for note, source in self.sources:
            taken = "complete" if note.is_complete else format_timestamp(note.watermark_ms)
            yield f"{indent}  made up to {taken} of"
            yield from source.lines(indent + "    ")

    def to_json(self) -> dict[str, Any]:
        """The chain as plain values."""
        return {
            "uri": self.uri,
            "watermark_ms": None if self.fresh is None else self.fresh.watermark_ms,
            "own_watermark_ms": None if self.own is None else self.own.watermark_ms,
            "problem": self.problem,
            "held_back_by": self.holder,
            "sources": [
                {"taken_ms": note.watermark_ms, "instant": note.instant, **link.to_json()}
                for note, link in self.sources
            ],
        }


def chain_of(uri: str, options: Mapping[str, str], above: tuple[str, ...] = ()) -> Link:
    """The chain that ends in a table. A table that can't be read, or that is made of itself, ends its branch."""
    try:
        application = assemble(uri, options)
        root = application.storage.root
        if root in above:
            return Link(uri, problem="made of itself")
        state = TableState.load(application.files)
        own, notes = application.freshness.now(state), source_notes(application.files, state)
        sources = application.arrival.progress(state)
    except EventideError as error:
        return Link(uri, problem=sanitize(error))
    links = tuple((note, chain_of(note.table, options, (*above, root))) for note in notes)
    return Link(uri, own, with_arrival(own, sources), links)


def _order(watermark_ms: int | None) -> float:
    return float("-inf") if watermark_ms is None else watermark_ms
