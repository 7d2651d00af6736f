"""How far a source of a table has come, and by which evidence."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from eventide_core.errors import format_timestamp

FILES: Final = "files"
"""What an answer rests on if no source vouches for it."""


@dataclass(frozen=True, slots=True)
class SourceProgress:
    """Everything of the source `name` before `progress_ms` has come, by its `evidence`; None: nothing shows how far.

    `kind` is what it is: stated, table, or the kind of an adapter. `idle_since_ms` is when it was last heard of; None if it
    has never been, or if nothing shows when. `is_complete`: any T has come. `cure` says what would change it.
    """

    name: str
    kind: str
    progress_ms: int | None
    evidence: str
    idle_since_ms: int | None = None
    is_complete: bool = False
    cure: str = ""

    @property
    def progress_text(self) -> str:
        """The progress for people."""
        return "complete" if self.is_complete else format_timestamp(self.progress_ms)

    def going_on(self, now_ms: int, idle_ms: int) -> "SourceProgress":
        """The progress if silence of at most `idle_ms` counts as progress: since then, it went on as fast as the clock."""
        if not idle_ms or self.progress_ms is None or self.idle_since_ms is None:
            return self
        silent_ms = max(0, now_ms - self.idle_since_ms)
        if silent_ms > idle_ms:
            return replace(self, evidence=f"{self.evidence}; silent for longer than counts as progress")
        evidence = f"{self.evidence}; its silence since then counts as progress"
        return replace(self, progress_ms=self.progress_ms + silent_ms, evidence=evidence)


def basis_of(sources: Sequence[SourceProgress]) -> str:
    """On what a watermark rests: the table's "files" alone, or also "sources", which say how far they have come."""
    return "sources" if sources else FILES
