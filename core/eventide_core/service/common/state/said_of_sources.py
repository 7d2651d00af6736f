"""What the commits of a table say of its sources: notes of a derived table, and statements of how far a source has come."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from eventide_core.table.files.slice_read import BlockFilter
from eventide_core.table.timeline.contents.commit_metadata import CommitMetadata
from eventide_core.table.timeline.instant import Instant
from eventide_core.table.timeline.source_notes import SourceNote, latest_notes, notes_in, texts_of
from eventide_core.table.timeline.source_statements import (
    Statement,
    last_statements,
    statements_in,
    texts_of_statements,
)


@dataclass(frozen=True, slots=True)
class Said:
    """`notes` has the last note of each table, `statements` the last statement of each other source."""

    notes: tuple[SourceNote, ...]
    statements: tuple[Statement, ...]

    @property
    def by_name(self) -> dict[str, Statement]:
        """The statements by the names of their sources."""
        return {one.name: one for one in self.statements}

    @property
    def texts(self) -> dict[str, str]:
        """All of it as extra metadata of a later commit, which repeats it."""
        return texts_of(self.notes) | texts_of_statements(self.statements)


def said_by(
    commits: Mapping[str, CommitMetadata], writes: Iterable[Instant], blocks: BlockFilter, before: str = ""
) -> Said:
    """What the commits say that completed before an instant; with an empty one, all of them.

    What a write said that was rolled back doesn't count, whoever repeats it.
    """
    completed = {write.requested_time: write.completion_time or write.requested_time for write in writes}

    def counts(time: str) -> bool:
        return blocks.accepts(time) and (not before or completed.get(time, time) < before)

    notes = (note for commit in commits.values() for note in notes_in(commit.extra_metadata))
    stated = (one for time, commit in commits.items() for one in statements_in(time, commit.extra_metadata))
    return Said(
        latest_notes(note for note in notes if counts(note.noted_at)),
        last_statements((one for one in stated if counts(one.stated_at)), completed),
    )
