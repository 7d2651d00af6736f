"""What helps against a lost or damaged data file, and what it costs."""

from typing import Final

from eventide_core.action.verification.facts import TableFacts
from eventide_core.errors import counted
from eventide_core.table.files.file_name import BaseFileName, LogFileName

_COPY: Final = "restore the file from a copy, which loses nothing"
_SHOWN: Final = 3


def restore_cure(facts: TableFacts, path: str) -> str:
    """Restores the file, or the table to the latest savepoint before the file; names the commits that the latter loses."""
    name = path.rpartition("/")[2]
    parsed = BaseFileName.parse(name) or LogFileName.parse(name)
    times = [time for time, _ in facts.committed.get(path, ())] or ([parsed.instant] if parsed is not None else [])
    if not times:
        return f"{_COPY}; or the table to a savepoint from before the damage, which loses every commit since"
    savepoint = max((saved for saved in facts.removals.saved if saved < min(times)), default=None)
    if savepoint is None:
        return f"{_COPY}; no savepoint is older than the file"
    writes = sorted(i.requested_time for i in facts.timeline.writes if i.requested_time not in facts.plans)
    lost = [time for time in writes if time > savepoint]
    shown = ", ".join(lost[:_SHOWN]) + (f", ... {lost[-1]}" if len(lost) > _SHOWN else "")
    return f"{_COPY}; or the table to the savepoint {savepoint}, which loses {counted(len(lost), 'commit')}: {shown}"
