"""What writers of a living table state of a source that advances, stops, goes back, and lies; and what the gate may say.

Reads the commits by itself: it shares no code with what it checks.
"""

import json
import zlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from eventide.bootstrap import Application
from eventide.testing.histories import EPOCH_MS
from eventide.testing.inspection.checks import avro_records
from eventide.testing.inspection.observation import Files
from eventide.testing.living_table.account import completed_files, pending_instants
from eventide_core.service.common.state.table import TableState
from eventide_core.table.timeline.source_progress import SourceProgress

SOURCE = "orders"
_KEY = f"eventide.source.{SOURCE}.watermark"
_LIE = "soon"


@dataclass(slots=True)
class Statements:
    """`made` has what each commit states, by its instant, with the order of their completion."""

    number: int = 0
    made: dict[str, tuple[str, str | None]] = field(default_factory=dict[str, tuple[str, str | None]])

    def next(self) -> Mapping[str, str]:
        """What the next write states: a later T, an earlier one, none, or a text that isn't a T."""
        self.number += 1
        later_ms, choice = 1000 * self.number, zlib.crc32(b"%d" % self.number) % 6
        if choice in (0, 1):
            return {}
        return {SOURCE: _LIE if choice == 2 else str(EPOCH_MS + (later_ms // 2 if choice == 3 else later_ms))}

    def look(self, files: Files) -> None:
        for instant, completed, path in completed_files(files):
            if instant not in self.made:
                data = files[path].data
                metadata = json.loads(data) if data.startswith(b"{") else avro_records(data)[0]
                self.made[instant] = completed, (metadata["extraMetadata"] or {}).get(_KEY)

    def check(self, application: Application, state: TableState, files: Files, there: Collection[str]) -> None:
        """The gate goes by the last statement of the commits that are `there`. One that is being undone is in doubt."""
        self.look(files)
        if pending_instants(files, "rollback") or pending_instants(files, "restore"):
            return
        stated = [(*self.made[instant], instant) for instant in there if instant in self.made]
        last = max(
            ((completed, instant, text) for completed, text, instant in stated if text is not None), default=None
        )
        progress = application.arrival.progress(state)
        expected = [] if last is None else [None if last[2] == _LIE else int(last[2])]
        assert [one.progress_ms for one in progress] == expected, f"the sources say {_shown(progress)}, not {last}"


def _shown(progress: Collection[SourceProgress]) -> list[str]:
    return [f"{one.name} {one.progress_ms}: {one.evidence}" for one in progress]
