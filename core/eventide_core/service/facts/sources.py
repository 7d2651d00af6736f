"""The sources of a derived table: by its active timeline, or by the archived one if other engines wrote all of the active.

A marker states that a table has sources: without it, no archived commit is read.
"""

from eventide_core.action.freshness.freshness import Freshness, derived_freshness, lowest
from eventide_core.service.state.table import TableState
from eventide_core.service.state.table_files import TableFiles
from eventide_core.table.timeline.source_notes import SourceNote, latest_notes, notes_in

_MARKER = ".hoodie/.aux/eventide/derived"


def mark_derived(files: TableFiles) -> None:
    """States that commits of the table have notes. Call it before the first of them."""
    if files.storage.stat(_MARKER) is None:
        files.storage.put_if_absent(_MARKER, b"{}")


def source_notes(files: TableFiles, state: TableState) -> tuple[SourceNote, ...]:
    """The last note of each source; none if the table is not derived. Raises CorruptTimelineError."""
    notes = state.source_notes
    if notes or files.storage.stat(_MARKER) is None:
        return notes
    for write in state.archived_writes():
        notes = notes_in(state.commit(write).extra_metadata)
        if notes:
            return latest_notes(notes)
    return ()


def notes_as_of(state: TableState, instant: str) -> tuple[SourceNote, ...]:
    """The last note of each source from writes before an instant, which is what a view of that compaction has."""
    notes = (note for commit in state.commits.values() for note in notes_in(commit.extra_metadata))
    return latest_notes(note for note in notes if note.noted_at < instant)


def freshness_with_sources(files: TableFiles, state: TableState, own: Freshness) -> Freshness:
    """The lower of a derived table's own freshness and of that which its sources had."""
    return derived_freshness(own, source_notes(files, state))


def watermark_with_sources(files: TableFiles, state: TableState, instant: str, watermark_ms: int | None) -> int | None:
    """The lower of a view's watermark and of what the table had been made of before the compaction at that instant.

    None if the table is derived, and what that view was made of is not known.
    """
    if not source_notes(files, state):
        return watermark_ms
    notes = notes_as_of(state, instant)
    if not notes:
        return None
    return lowest([watermark_ms, *(note.watermark_ms for note in notes if not note.is_complete)])
