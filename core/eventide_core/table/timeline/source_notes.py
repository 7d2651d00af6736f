"""What a derived table was made of, as the commits of its writes record it. Only this module reads and writes it.

    hoodie.eventide.source.<number>   JSON: table, instant, watermark_ms, is_complete, noted_at

Each write and compaction of eventide repeats the notes that it finds, so that the last ones stay on the active timeline.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass

from eventide_core.errors import CorruptTimelineError

SOURCE_PREFIX = "hoodie.eventide.source."


@dataclass(frozen=True, slots=True)
class SourceNote:
    """A source as it was read. `table` is its URI, `instant` the commit whose view was read, if known.

    Everything before `watermark_ms` that had been committed in the source is in the derived table; None: nothing is known
    to be, or, if `is_complete`, everything is. `noted_at` is the instant of the derived table's write.
    """

    table: str
    instant: str | None
    watermark_ms: int | None
    is_complete: bool = False
    noted_at: str = ""


def texts_of(notes: Iterable[SourceNote]) -> dict[str, str]:
    """The notes as extra metadata of a commit."""
    return {f"{SOURCE_PREFIX}{number}": json.dumps(asdict(note)) for number, note in enumerate(notes)}


def notes_in(extra_metadata: Mapping[str, str]) -> tuple[SourceNote, ...]:
    """The notes of a commit. Raises CorruptTimelineError."""
    notes: list[SourceNote] = []
    for key, text in extra_metadata.items():
        if key.startswith(SOURCE_PREFIX):
            try:
                notes.append(_checked(SourceNote(**json.loads(text))))
            except (ValueError, TypeError, RecursionError):
                raise CorruptTimelineError(
                    f"a commit has {key}={text[:80]!r}, which isn't a note of a source"
                ) from None
    return tuple(notes)


def latest_notes(notes: Iterable[SourceNote]) -> tuple[SourceNote, ...]:
    """The last note of each source, by its table."""
    last: dict[str, SourceNote] = {}
    for note in notes:
        if note.table not in last or note.noted_at >= last[note.table].noted_at:
            last[note.table] = note
    return tuple(last[table] for table in sorted(last))


def _checked(note: SourceNote) -> SourceNote:
    kinds: tuple[tuple[object, type], ...] = (
        *((text, str) for text in (note.table, note.noted_at, note.instant or "")),
        (0 if note.watermark_ms is None else note.watermark_ms, int),
        (note.is_complete, bool),
    )
    if any(type(value) is not kind for value, kind in kinds):
        raise ValueError
    return note
