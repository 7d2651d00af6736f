"""What a derived table is made of: the notes that its commits record of its sources."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from eventide.bootstrap import Application
from eventide_core.action.freshness.freshness import Freshness
from eventide_core.errors import ConfigError
from eventide_core.service.compaction.result import CompactionResult
from eventide_core.service.facts.sources import mark_derived, source_notes, watermark_with_sources
from eventide_core.service.state.table import TableState
from eventide_core.table.timeline.source_notes import SourceNote

if TYPE_CHECKING:
    from eventide.table.table import Table
    from eventide.table.window import Window

SourceState: TypeAlias = "Window | CompactionResult | Freshness"
"""How much of a source the records were made of: a window of it, a compaction of it, or its freshness before it was read."""


def notes_of(application: Application, sources: "Mapping[Table, SourceState]") -> tuple[SourceNote, ...]:
    """The notes for a write of the table, beside those that only its archived timeline still has.

    Raises ConfigError for what states nothing of how much of a source was read.
    """
    given: object = sources
    if not isinstance(given, Mapping):
        raise ConfigError(f"sources={given!r}: pass a dictionary of tables, each with how much of it was read")
    known = source_notes(application.files, TableState.load(application.files))
    earlier = {note.table: note for note in known}
    own_root = application.storage.root
    notes = (*known, *(_note(table, state, earlier, own_root) for table, state in sources.items()))
    mark_derived(application.files)  # last: what is refused writes nothing
    return notes


def _note(table: "Table", read: SourceState, earlier: Mapping[str, SourceNote], own_root: str) -> SourceNote:
    source: object = table
    if not hasattr(source, "_application"):
        raise ConfigError(f"sources: {source!r} is no table: pass what `Table.open` returns")
    root = table._application.storage.root
    if root == own_root:
        raise ConfigError(f"sources: {root} is the table itself: name the tables that its records were made of")
    if isinstance(read, Freshness):
        return SourceNote(root, None, read.watermark_ms, read.is_complete)
    if isinstance(read, CompactionResult):
        found = read.freshness
        return SourceNote(root, read.instant, _made_of(table, read.instant, found.watermark_ms), found.is_complete)
    # Imported here: most tables have no windows.
    from eventide.table.window import Window

    given: object = read
    if not isinstance(given, Window):
        raise ConfigError(
            f"sources: a {type(given).__name__} does not say how much of {root} was read: pass its window, the result of "
            "its compaction, or its freshness from before it was read"
        )
    if given.root != root:
        raise ConfigError(f"sources: the window {given} is of {given.root}, not of {root}")
    if given.is_correction and root in earlier:
        # A correction is of a window before those that were done since.
        return replace(earlier[root], instant=given.instant, noted_at="")
    return SourceNote(root, given.instant, _made_of(table, given.instant, given.end_ms))


def _made_of(table: "Table", instant: str, watermark_ms: int | None) -> int | None:
    """The lower of a watermark and of what the source itself was made of, in the view of the compaction at `instant`."""
    return watermark_with_sources(table._application.files, table.state(), instant, watermark_ms)
