"""Plans to make a lost or damaged base file of another engine's compaction again, from the file slice that it merged.

The plan of the compaction names these files. The new base file has the path and the rows of the lost one, but
another size, which the commit records. A compaction of eventide runs again instead, and writes the same bytes.
"""

from dataclasses import replace

from eventide_core.action.repair.repairs import Remerging, Repair
from eventide_core.action.verification.facts import TableFacts
from eventide_core.action.verification.lost_completions import lost_completions
from eventide_core.action.verification.result import Finding
from eventide_core.errors import counted
from eventide_core.table.files.file_name import BaseFileName
from eventide_core.table.timeline.contents.plans import ForeignOperation, ForeignPlan


def repair_by_merge(facts: TableFacts, check: str, finding: Finding) -> Repair | None:
    """None if the file is none of those, or the slice that it was merged from isn't whole.

    Repairs all of the compaction's base files that are known to be damaged at once, because each changes its commit.
    """
    name = BaseFileName.parse(finding.path.rpartition("/")[2])
    time = "" if name is None else name.instant
    plan, commit, completed = facts.plans.get(time), facts.commits.get(time), facts.timeline.find(time)
    if not isinstance(plan, ForeignPlan) or commit is None or completed is None or not completed.is_completed:
        return None
    if lost_completions(facts):
        return None
    others = (stat.path for stat in commit.stats if stat.path in facts.missing or stat.path in facts.bases.problems)
    damaged = sorted({finding.path, *others})
    operations = {path: op for path in damaged if (op := _operation(facts, plan, path)) is not None}
    if finding.path not in operations:
        return None
    again = Remerging(
        tuple(operations),
        replace(plan, operations=tuple(operations.values())),
        f"{facts.timeline_path}/{completed.file_name}",
        commit,
    )
    files = counted(len(operations), "base file")
    action = f"merges {files} of the compaction at {time} again: the file slices before it are whole"
    loses = "statistics in the commit of that compaction that no reader needs"
    return Repair(check, next(iter(operations)), finding.problem, action, (again,), loses)


def _operation(facts: TableFacts, plan: ForeignPlan, path: str) -> ForeignOperation | None:
    """The operation that wrote the base file, if all of its inputs are whole and nothing was compacted on top of it."""
    directory, _, file = path.rpartition("/")
    name = BaseFileName.parse(file)
    if name is None:
        return None
    operations = [op for op in plan.operations if (op.partition, op.file_id) == (directory, name.file_id)]
    later = max(facts.known_bases.get((directory, name.file_id), {}), default="") > name.instant
    if len(operations) != 1 or later:
        return None
    (op,) = operations
    is_whole = all(log in facts.sizes and facts.is_readable(log) for log in op.log_paths)
    if op.base_path is not None and (op.base_path not in facts.sizes or op.base_path in facts.bases.problems):
        return None
    return op if is_whole else None
