"""Plans the repairs of what a verification found: which files change, and what that costs.

1. The timeline comes first: while its check finds anything, it isn't known what counts as written, and nothing else is
   planned. Files that don't count come before the rest of it. What is repaired next is decided on the table as it then is.
   A compaction that has to run again isn't such a doubt: it needs its inputs, so they are repaired before it.
2. A repair takes a file away only into the backup, and makes a file only from one that holds the same: of a log file and
   its left-over, the damaged one from the one that is whole; a commit from the files that it wrote.
3. A compaction of eventide whose commit or base file is damaged is made pending again and run again, as long as all of
   its inputs exist: it makes the same files under the same names, and completes at the time that it has claimed.
4. The metadata table is rebuilt, which changes no data, once nothing else is damaged: it names what it finds.
5. Damage that this cannot repair stays, with the cure that `verify` gives.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from eventide_core.action.repair.history import repair_lost_history
from eventide_core.action.repair.rebuilt_commit import instants_in, rebuilt_commit
from eventide_core.action.repair.remerge import repair_by_merge
from eventide_core.action.repair.repairs import (
    Copying,
    Rebuilding,
    Removal,
    Repair,
    RepairPlan,
    Replacement,
    RollbackRebuilding,
    SettingsChange,
    Truncation,
    Unrepaired,
)
from eventide_core.action.verification.content import check_metadata_table
from eventide_core.action.verification.facts import TableFacts
from eventide_core.action.verification.lost_completions import LostCompletion, lost_completions
from eventide_core.action.verification.result import CheckResult, Finding, Verification
from eventide_core.action.verification.settings import changed_settings
from eventide_core.action.verification.timeline import check_timeline, inputs_of
from eventide_core.action.write.partition_forms import partition_mark
from eventide_core.errors import counted
from eventide_core.table.files.file_name import BaseFileName, LogFileName
from eventide_core.table.files.table_path import METADATA_DIRECTORY
from eventide_core.table.property_keys import ORDERING_FIELDS, PRECOMBINE_FIELD, TABLE_VERSION
from eventide_core.table.settings.metadata_table import BESIDE_REBUILD, FILES, PARTITION_STATS
from eventide_core.table.settings.properties import BACKUP_PATH
from eventide_core.table.timeline.contents.plans import CompactionPlan
from eventide_core.table.timeline.file_system_view import DataFile
from eventide_core.table.timeline.instant import Action, Instant, State

_LOST_METADATA: Final = (
    "the commit's extra metadata, such as a stream's checkpoint, and the event times in its write stats"
)
_ROWS_TODAY: Final = "the rows that readers find in the file today"
_WITH_ORDERING_FIELDS: Final = 9
_TIMELINE_FIRST: Final = "repair first what the check of the timeline found: until then, it isn't known what counts"

_Repairer = Callable[[TableFacts, str, Finding], Repair | None]


def plan_repairs(
    facts: TableFacts, verification: Verification, checks: frozenset[str], claimed: frozenset[str]
) -> RepairPlan:
    """The repairs of the findings of these checks; of all of them if none is named.

    `claimed` are the instants of compactions whose outcome eventide has claimed.
    """
    damage = _Damage(facts, verification)
    repairs: dict[str, Repair] = {}
    unrepaired: list[Unrepaired] = []
    is_timeline_in_doubt = _is_timeline_in_doubt(damage, claimed)
    for check in verification.failed:
        if (checks and check.name not in checks) or check.name == check_metadata_table.name:
            continue
        for finding in check.findings:
            if is_timeline_in_doubt and check.name not in _BEFORE_FILES:
                unrepaired.append(Unrepaired(check.name, finding.path, finding.problem, _TIMELINE_FIRST))
                continue
            repair = _repair_of(damage, check.name, finding, claimed)
            if repair is not None:
                repairs.setdefault(repair.path, repair)
            elif finding.path not in repairs:
                unrepaired.append(Unrepaired(check.name, finding.path, finding.problem, finding.cure))
    unrepaired = [one for one in unrepaired if one.path not in repairs]
    for check in verification.failed:
        if check.name == check_metadata_table.name and (not checks or check.name in checks):
            is_left = bool(unrepaired) or any(other.name not in checks for other in verification.failed if checks)
            rebuild = None if is_left else _rebuild(facts, check)
            if rebuild is None:
                unrepaired += (Unrepaired(check.name, one.path, one.problem, one.cure) for one in check.findings)
            else:
                repairs[rebuild.path] = rebuild
    return RepairPlan(tuple(repairs.values()), tuple(unrepaired))


def _is_timeline_in_doubt(damage: "_Damage", claimed: frozenset[str]) -> bool:
    """Whether the check of the timeline finds anything else than compactions that have to run again."""
    found = [f for check in damage.verification.failed if check.name == check_timeline.name for f in check.findings]
    repairs = (_repair_of(damage, check_timeline.name, finding, claimed) for finding in found)
    return any(repair is None or repair.rerun is None for repair in repairs)


def _repair_of(damage: "_Damage", check: str, finding: Finding, claimed: frozenset[str]) -> Repair | None:
    facts = damage.facts
    repair = _repair_left_over(damage, check, finding) if check in _OF_LEFT_OVERS else None
    if repair is None and check in _REPAIRERS:
        repair = _REPAIRERS[check](facts, check, finding)
    if repair is None and check in _OF_COMPACTIONS:
        repair = _repair_by_rerun(facts, check, finding, claimed) or repair_by_merge(facts, check, finding)
    return repair


def _rebuild(facts: TableFacts, check: CheckResult) -> Repair | None:
    """The rebuild of the metadata table; None beside a pending write, which may make one itself."""
    if any(pending.action not in BESIDE_REBUILD for pending in facts.timeline.pending):
        return None
    first, *others = check.findings
    problem = f"disagrees with the files: {first.path} {first.problem}"
    if others:
        problem += f", and {counted(len(others), 'more finding')}"
    made = (FILES, PARTITION_STATS, *facts.index.rebuilt)
    lost = [name for name in facts.index.partitions if name not in made]
    loses = f"{', '.join(lost)}, until Hudi makes them again" if lost else None
    action = "rebuilds the metadata table from the table's files"
    return Repair(check.name, METADATA_DIRECTORY, problem, action, (), loses, rebuilt_indexes=facts.index.rebuilt)


def _repair_timeline(facts: TableFacts, check: str, finding: Finding) -> Repair | None:
    name = finding.path.rpartition("/")[2]
    instant = Instant.parse(name)
    if facts.timeline.strays:
        # Only the next action records of an undone instant that its data files don't count.
        is_archived = instant in facts.timeline.strays and instant.requested_time not in facts.timeline.undone
        return _remove_stray(check, finding) if is_archived else None
    if finding.path in facts.unreadable:
        return repair_lost_history(facts, check, finding) or _repair_unreadable(facts, check, finding, instant)
    if instant is not None and (instant.action, instant.state) == (Action.COMPACTION, State.INFLIGHT):
        return _removal(check, finding, "moves the inflight file to the backup: it has no plan")
    if instant is not None and (lost := lost_completions(facts).get(instant.requested_time)) is not None:
        return _repair_lost_completion(facts, check, finding, lost)
    return _repair_second_completion(facts, check, finding)


def _remove_stray(check: str, finding: Finding) -> Repair:
    action = f"moves {finding.path.rpartition('/')[2]} to the backup: what was archived counts for stock Hudi again"
    return Repair(check, finding.path, finding.problem, action, (Removal(finding.path),))


def _repair_unreadable(facts: TableFacts, check: str, finding: Finding, instant: Instant | None) -> Repair | None:
    if instant is None or not instant.is_completed:
        return None
    if instant.action is Action.CLEAN:
        if facts.index.partitions:
            return None  # its readers ignore what it records of an instant that is not on the timeline
        names = [n for n in facts.timeline_names if n.startswith(f"{instant.requested_time}.clean")]
        names += [n for n in facts.timeline_names if n.startswith(f"{instant.requested_time}_") and "clean" in n]
        changes = tuple(Removal(f"{facts.timeline_path}/{n}") for n in sorted(set(names)))
        action = f"moves the clean at {instant.requested_time} to the backup: the next clean finds what it found"
        return Repair(check, finding.path, finding.problem, action, changes)
    if instant.action is Action.ROLLBACK:
        plan = Instant(instant.requested_time, Action.ROLLBACK, State.REQUESTED).file_name
        if plan not in facts.timeline_names or f"{facts.timeline_path}/{plan}" in facts.unreadable:
            return None
        action = "writes the completed rollback again, from its plan"
        return Repair(check, finding.path, finding.problem, action, (RollbackRebuilding(finding.path),))
    is_compaction = facts.plans.get(instant.requested_time) is not None
    if instant.action is not Action.DELTA_COMMIT or is_compaction:
        return None
    metadata = rebuilt_commit(facts, instant.requested_time)
    if metadata is None:
        return None
    files = counted(len(metadata.stats), "file")
    action = f"writes the commit again, from the {files} that it wrote"
    return Repair(check, finding.path, finding.problem, action, (Rebuilding(finding.path, metadata),), _LOST_METADATA)


def _repair_lost_completion(facts: TableFacts, check: str, finding: Finding, lost: LostCompletion) -> Repair | None:
    """A delta commit that others built on gets its completed file back, from its files."""
    if lost.completed_as is None or lost.pending is None or lost.pending.action is not Action.DELTA_COMMIT:
        return None
    metadata = rebuilt_commit(facts, lost.instant)
    if metadata is None:
        return None
    path = f"{facts.timeline_path}/{lost.completed_as}"
    action = f"writes the completed file again, from the {counted(len(metadata.stats), 'file')} of the write"
    loses = _LOST_METADATA
    if facts.layout.records_completion_times:
        loses += ", and its completion time: an incremental query may see the write again or miss it"
    return Repair(check, path, finding.problem, action, (Rebuilding(path, metadata),), loses)


def _repair_second_completion(facts: TableFacts, check: str, finding: Finding) -> Repair | None:
    """Of two completed files of version 6, the one of the action that was requested stays."""
    time = finding.path.rpartition("/")[2]
    states = [i for i in map(Instant.parse, facts.timeline_names) if i is not None and i.requested_time == time]
    begun = {i.action for i in states if not i.is_completed}
    completed = [i for i in states if i.is_completed]
    wrong = [i for i in completed if i.action not in begun]
    if len(completed) != 2 or len(wrong) != 1 or Action.COMPACTION in begun:
        return None
    path = f"{facts.timeline_path}/{wrong[0].file_name}"
    action = f"moves {wrong[0].file_name} to the backup: the instant was requested as another action"
    return Repair(check, path, finding.problem, action, (Removal(path),))


def _repair_slices(facts: TableFacts, check: str, finding: Finding) -> Repair | None:
    if facts.view_problem is not None:
        return None
    if finding.path not in facts.unmarked:
        return _removal(check, finding, "moves the file to the backup: no commit names it")
    partition = finding.path.rpartition("/")[0]
    times = [time for stats in facts.committed.values() for time, stat in stats if stat.partition == partition]
    times += [write.requested_time for write, stat in facts.archived.files.values() if stat.partition == partition]
    if not times:
        return None
    mark, data = partition_mark(partition, min(times))
    return Repair(check, mark, f"{partition} {finding.problem}", f"writes {mark} again", (Replacement(mark, data),))


def _repair_orphan(facts: TableFacts, check: str, finding: Finding) -> Repair | None:
    """Removes a file that no write names. Not if the commit of its instant is another's: the right one may have named it."""
    file = next(file for file in facts.data_files if file.path == finding.path)
    if facts.index.files is not None and file.path in facts.index.files:
        return None  # a write that the metadata table knows has lost its commit
    if file.path in facts.archived.returned:
        return _removal(
            check, finding, "moves the file to the backup: an archived write replaced its file group", _ROWS_TODAY
        )
    name, scan = file.parsed, facts.log_scans.get(file.path)
    if name is None:
        return None
    is_shared = isinstance(name, LogFileName) and facts.is_named_by_its_slice(file)
    times = {name.instant} if not is_shared or scan is None else {name.instant, *scan.instants}
    if not all(_is_of_itself(facts, time) for time in times):
        return None
    action = "moves the file to the backup: no write names it"
    return _removal(check, finding, action, _ROWS_TODAY)


def _repair_doubled(facts: TableFacts, check: str, finding: Finding) -> Repair | None:
    """A log file of version 6 to which its own content was appended once more."""
    size = facts.doubled.get(finding.path)
    if size is None:
        return None
    action = f"cuts the file to {size} bytes: what follows repeats them"
    return Repair(check, finding.path, finding.problem, action, (Truncation(finding.path, size),))


def _is_of_itself(facts: TableFacts, time: str) -> bool:
    """Whether there is no such write, or its commit names files of this instant, and no others: it is not another's."""
    if facts.timeline.find(time) is None:
        return not facts.timeline.is_archived(time)
    files = {file.path: file for file in facts.data_files}
    named = (
        [files[stat.path] for stat in facts.commits[time].stats if stat.path in files] if time in facts.commits else []
    )
    own = [file for file in named if file.path not in facts.left_overs]
    return bool(own) and all(_is_of(facts, file, time) for file in own)


def _is_of(facts: TableFacts, file: DataFile, time: str) -> bool:
    """Whether the write of that time made the file. On version 6, a log file has the instant of its slice in its name."""
    name = file.parsed
    is_named_by_write = isinstance(name, BaseFileName) or facts.layout.names_logs_by_write
    return name is not None and ((is_named_by_write and name.instant == time) or time in instants_in(facts, file))


def _repair_left_over(damage: "_Damage", check: str, finding: Finding) -> Repair | None:
    """Of a log file and its copy, the one that is whole is copied over the other; a wrong link becomes a copy."""
    pair = damage.pairs.get(finding.path)
    if pair is None:
        return None
    copy, original, size = pair
    whole = [path for path in (original, copy) if damage.is_whole(path, size)]
    if len(whole) != 1:
        return None  # neither, or nobody knows which
    broken = copy if whole[0] == original else original
    what = "the log file that it is of" if broken == copy else "a left-over that is its copy"
    problem = finding.problem if broken == finding.path else "is damaged"
    return Repair(check, broken, problem, f"copies {whole[0]}, {what}", (Copying(broken, whole[0]),))


@dataclass(frozen=True)  # without slots: what follows from the facts is cached
class _Damage:
    """The facts, and what the checks found in them."""

    facts: TableFacts
    verification: Verification

    @cached_property
    def pairs(self) -> Mapping[str, tuple[str, str, int]]:
        """By the path of either: a left-over of a plan, the log file that it is of, and their size in bytes."""
        plans = (plan for plan in self.facts.plans.values() if isinstance(plan, CompactionPlan))
        pairs = [
            (path, left.log_file.path, left.log_file.size)
            for plan in plans
            for op in plan.operations
            for path, left in op.linked.items()
        ]
        return {path: pair for pair in pairs for path in pair[:2]}

    def _has_its_checksum(self, path: str) -> bool:
        """True if the checksum matches, or is unknown."""
        recorded = self.facts.recorded_checksums.get(path)
        if recorded is None or self.facts.records is None or path not in self.facts.records.checksums:
            return True
        return self.facts.records.checksums[path] == recorded[2]

    @cached_property
    def _blamed(self) -> frozenset[str]:
        """The files that a check could not read, or not to their end."""
        checks = ("committed-files", "log-blocks", "records-readable", "links")
        return frozenset(f.path for check in self.verification.failed if check.name in checks for f in check.findings)

    def is_whole(self, path: str, size: int) -> bool:
        """Whether the log file has its size, isn't a link, and nothing is found wrong with it.

        If a commit records its checksum, and records were read, that decides.
        """
        if self.facts.sizes.get(path) != size or path in self._blamed or not self._has_its_checksum(path):
            return False
        scan = self.facts.log_scans.get(path)
        if scan is None or scan.problem is not None or any(block.is_torn for block in scan.blocks):
            return False
        return not any(file.path == path and file.link_target is not None for file in self.facts.listing)


def _repair_by_rerun(facts: TableFacts, check: str, finding: Finding, claimed: frozenset[str]) -> Repair | None:
    """The compaction that wrote a damaged base file, or whose commit is damaged, runs again."""
    name = finding.path.rpartition("/")[2]
    base, instant = BaseFileName.parse(name), Instant.parse(name)
    time = base.instant if base is not None else instant.requested_time if instant is not None else None
    plan = facts.plans.get(time or "")
    completed = facts.timeline.find(time or "")
    if (
        not isinstance(plan, CompactionPlan)
        or completed is None
        or not completed.is_completed
        or plan.instant not in claimed
    ):
        return None
    if not _can_run_again(facts, plan):
        return None
    commit = f"{facts.timeline_path}/{completed.file_name}"
    changes = [Removal(commit)]
    if base is not None and finding.path in facts.sizes:
        changes.append(Removal(finding.path))
    action = f"makes the compaction at {plan.instant} pending and runs it again: all of its inputs exist"
    return Repair(check, finding.path, finding.problem, action, tuple(changes), rerun=plan.instant)


def _can_run_again(facts: TableFacts, plan: CompactionPlan) -> bool:
    """Whether all inputs are as planned, all writes are known, and nothing was compacted on top of it."""
    if facts.timeline.pending_plans or lost_completions(facts):
        return False
    for path, size in inputs_of(plan):
        if path not in facts.sizes or size not in (None, facts.sizes[path]) or path in facts.bases.problems:
            return False
        if size is not None and not facts.is_readable(path):
            return False
    return not any(base.instant > plan.instant for group in plan.file_groups for base in facts.bases_of(group))


def _removal(check: str, finding: Finding, action: str, loses: str | None = None) -> Repair:
    return Repair(check, finding.path, finding.problem, action, (Removal(finding.path),), loses)


def _repair_settings(facts: TableFacts, check: str, finding: Finding) -> Repair | None:
    """The backup of the settings is copied, or the values that a commit of eventide records are written again."""
    path = finding.path
    if facts.settings_problem is not None:
        action = "copies hoodie.properties.backup, which readers use already"
        return Repair(check, path, finding.problem, action, (Copying(path, BACKUP_PATH),))
    values = changed_settings(facts)
    if not values or facts.unreadable:  # a commit that can't be read may state other values
        return None
    if int(facts.settings[TABLE_VERSION]) < _WITH_ORDERING_FIELDS and ORDERING_FIELDS in values:
        values = {PRECOMBINE_FIELD if key == ORDERING_FIELDS else key: value for key, value in values.items()}
    stated = ", ".join(f"{key}={value or ''}" for key, value in sorted(values.items()))
    action = f"sets {stated}, as a commit of eventide records it"
    loses = "a change of these settings that someone made on purpose"
    return Repair(check, path, finding.problem, action, (SettingsChange(path, values),), loses)


_REPAIRERS: Mapping[str, _Repairer] = {
    "settings": _repair_settings,
    "record-keys": _repair_settings,
    "timeline": _repair_timeline,
    "file-slices": _repair_slices,
    "orphan-files": _repair_orphan,
    "log-blocks": _repair_doubled,
}
_BEFORE_FILES: Final = frozenset(("settings", check_timeline.name))
"""The checks whose repairs change no data file, and show what counts."""
_OF_COMPACTIONS: Final = frozenset(
    ("timeline", "committed-files", "base-files", "records-readable", "compactions", "freshness")
)
_OF_LEFT_OVERS: Final = frozenset(
    (
        "committed-files",
        "pending-plans",
        "savepoints",
        "links",
        "left-over-copies",
        "left-over-bytes",
        "checksums",
        "log-blocks",
        "records-readable",
    )
)
