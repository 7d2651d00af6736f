"""Plans the repair of an archived timeline of version 8 or later that has lost a file.

Until then, neither Hudi nor eventide reads or writes the table: the manifest names the file. Another one takes its place,
with the writes of that time whose files exist. Their completion times are lost, and are replaced by the requested ones. So
the repair is planned only if that leaves each log file in its file slice.
"""

from collections.abc import Mapping
from typing import Final

from eventide_core.action.repair.rebuilt_commit import rebuilt_commit
from eventide_core.action.repair.repairs import HistoryRebuilding, Repair
from eventide_core.action.verification.facts import TableFacts
from eventide_core.action.verification.result import Finding
from eventide_core.errors import counted
from eventide_core.table.files.file_name import LogFileName
from eventide_core.table.timeline.archived_timeline import HistoryFileName
from eventide_core.table.timeline.contents.commit_metadata import CommitMetadata
from eventide_core.table.timeline.contents.plans import CompactionPlan, ForeignPlan
from eventide_core.table.timeline.file_system_view import DataFile

_LOSES: Final = (
    "what else the archived actions from {first} to {last} recorded, such as completion times, stream checkpoints and a "
    "published cut; a file that a rollback of that time left behind counts as written"
)


def repair_lost_history(facts: TableFacts, check: str, finding: Finding) -> Repair | None:
    """None if the file is none of those, or it isn't certain to which file slice a log file belongs."""
    lost = HistoryFileName.parse(finding.path.rpartition("/")[2])
    if lost is None or not facts.layout.needs_hudi_1:
        return None
    files = [file for file in facts.data_files if _is_of(facts, file, lost)]
    if any(_may_move(facts, file) for file in files):
        return None
    commits: dict[str, CommitMetadata] = {}
    for time in sorted({file.parsed.instant for file in files if file.parsed is not None}):
        metadata = rebuilt_commit(facts, time)
        if metadata is None:
            return None
        commits[time] = metadata
    action = (
        f"writes the file again, with {counted(len(commits), 'write')} of that time, from the files that they wrote"
    )
    changes = (HistoryRebuilding(finding.path, commits),)
    return Repair(
        check, finding.path, finding.problem, action, changes, _LOSES.format(first=lost.first, last=lost.last)
    )


def _is_of(facts: TableFacts, file: DataFile, lost: HistoryFileName) -> bool:
    """Whether a write that the lost file may have had wrote the data file.

    A name as of version 6 doesn't contain the write's instant.
    """
    name = file.parsed
    if name is None or not lost.may_hold(name.instant, name.instant) or facts.timeline.find(name.instant) is not None:
        return False
    return not (isinstance(name, LogFileName) and facts.is_named_by_its_slice(file))


def _may_move(facts: TableFacts, file: DataFile) -> bool:
    """Whether a log file's write may have completed after a later base file of its file group was requested.

    A compaction that merged the log file proves that it had completed before. A base file of the same instant makes the log
    file the left-over of a compaction, whose cut and links are lost.
    """
    log = file.parsed
    if not isinstance(log, LogFileName):
        return False
    group = (file.partition, log.file_id)
    bases = [base.instant for base in facts.bases_of(group) if base.instant >= log.instant]
    return bool(bases) and (log.instant in bases or file.path not in _merged(facts.plans, max(bases)))


def _merged(plans: Mapping[str, object], instant: str) -> frozenset[str]:
    """The log files that the compaction at an instant merged, as far as its plan is known."""
    plan = plans.get(instant)
    if isinstance(plan, CompactionPlan):
        return frozenset(log.path for op in plan.operations for log in op.compacted)
    return frozenset(plan.paths) if isinstance(plan, ForeignPlan) else frozenset()
