"""Checks of the timeline, and of what is pending on it."""

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from eventide_core.action.verification.facts import TableFacts
from eventide_core.action.verification.lost_completions import LostCompletion, lost_completions
from eventide_core.action.verification.result import Finding, Observation, Remark, check
from eventide_core.cure import Cure
from eventide_core.errors import CorruptTimelineError
from eventide_core.table.files.file_name import LogFileName
from eventide_core.table.timeline.contents.checksums import Checksums
from eventide_core.table.timeline.contents.plans import CompactionPlan, ForeignPlan
from eventide_core.table.timeline.instant import COMPLETED_ACTION, Action, Instant, State

_RESTORE = "restore the file from a copy, which loses nothing; it states what an instant did"
_UNBEGUN = re.compile(r"(\d+)\.(?:rollback|restore)\.requested\Z", re.ASCII)
_LIKE_AN_INSTANT = re.compile(r"\d{14}", re.ASCII)
_LIKE_AN_ACTION = re.compile(r"\.(?:" + "|".join(Action) + r")(?:\.(?:requested|inflight))?\Z")
_ENDS_WITHOUT_PLAN = {
    Action.COMPACTION: "remove the file, which loses nothing: no engine can complete it",
    Action.CLEAN: None,
    Action.ROLLBACK: None,
    Action.RESTORE: "run the restore again, which plans again once the file is old: no engine can complete it",
    Action.LOG_COMPACTION: None,
    Action.CLUSTERING: None,
    Action.REPLACE_COMMIT: None,
}
"""The actions whose requested file is their plan, and the cure without it; None if it can be rolled back."""
_TEMPORARY = re.compile(r"(.+)\.[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)
"""The name under which Hudi writes a timeline file before it renames it. A writer that dies in between leaves it behind."""


@check("timeline", "I12", "each instant belongs to one action, completes once, and can be decoded")
def check_timeline(facts: TableFacts) -> Iterator[Observation]:
    """Checks the timeline.

    1. Each file that looks like an instant is one, or is about to be renamed to one.
    2. An instant is of one action and completes once, after it was requested.
    3. An inflight action has its plan.
    4. Each completed file states what its action did, and a commit of eventide agrees with its checksum.
    5. No completed file is lost, as far as other files show it.
    6. No file was put too late to count.
    """
    by_time: dict[tuple[str, bool], list[Instant]] = {}
    is_undoing = any(pending.is_undoing for pending in facts.timeline.pending)  # which removes what it undoes
    for name in facts.timeline_names:
        instant = Instant.parse(name)
        if instant in facts.timeline.strays and not is_undoing:
            yield Finding(
                f"{facts.timeline_path}/{name}",
                "doesn't count: others had undone its instant, or archived beyond it, before a paused process put the file; "
                "stock Hudi goes by it nevertheless",
                f"run {Cure.clean()}, or write: the next action of eventide removes the file, which loses nothing",
            )
        elif instant is not None:
            by_time.setdefault((instant.requested_time, instant.action is Action.SAVEPOINT), []).append(instant)
        elif (temporary := _TEMPORARY.fullmatch(name)) is not None and Instant.parse(temporary[1]) is not None:
            continue  # nobody reads it
        elif _LIKE_AN_INSTANT.match(name):
            yield Finding(
                f"{facts.timeline_path}/{name}",
                "is not an instant that Hudi knows",
                "remove it if nobody knows it: no engine reads it",
            )
        elif _LIKE_AN_ACTION.search(name):
            cure = "give the file its instant back if you know it; otherwise move it elsewhere, as Hudi can't open the table"
            yield Finding(f"{facts.timeline_path}/{name}", "is of an action, but its name has no instant", cure)
    for (time, _), states in sorted(by_time.items()):
        yield from _one_instant(facts, time, states)
    for time in sorted(facts.unplanned):
        yield Finding(
            f"{facts.timeline_path}/{time}.compaction.requested",
            "is empty: an engine requested a compaction, and hasn't written its plan",
            f"if the engine has died, run {Cure.rollback(time, force=True)}; the compaction has not created any file",
        )
    for path, why in sorted(facts.unreadable.items()):
        instant = Instant.parse(path.rpartition("/")[2])
        if instant is not None and instant.state is State.REQUESTED and instant.file_name not in facts.timeline_names:
            continue  # reported with its inflight file
        unbegun = _UNBEGUN.search(path) if "is empty" in why else None
        yield Finding(path, why, _RESTORE if unbegun is None else _remove_request(unbegun[1]))
    yield from map(partial(_lost_completion, facts), lost_completions(facts).values())
    yield from _changed_commits(facts)


def _remove_request(instant: str) -> str:
    rollback = Cure.rollback(instant, force=True)
    return f"if its engine has died, run {rollback}, which loses nothing; run a restore that has begun again instead"


def _lost_completion(facts: TableFacts, lost: LostCompletion) -> Finding:
    """A write that completed, as what others built on it shows, and that the timeline has as pending or not at all."""
    name = lost.instant if lost.pending is None else lost.pending.file_name
    state = "has no file on the timeline" if lost.pending is None else "is pending"
    verb = "completed" if lost.is_certain else "seems to have completed"
    cure = "restore its completed file from a copy"
    if lost.completed_as is not None:
        cure += f", or let {Cure.repair()} write it again"
    if lost.is_certain:
        cure += "; until then, no engine may write to the table: the next one rolls it back, and removes its rows"
    else:
        cure += f"; if it never completed, {Cure.rollback(lost.instant)} removes its files"
    return Finding(f"{facts.timeline_path}/{name}", f"{state}, but {verb}: {lost.evidence}", cure)


def _changed_commits(facts: TableFacts) -> Iterator[Observation]:
    """Commits of eventide whose extra metadata, such as the schema, is not what was written."""
    for time, commit in sorted(facts.commits.items()):
        instant = facts.timeline.find(time)
        place = f"{facts.timeline_path}/{time if instant is None else instant.file_name}"
        try:
            changed = Checksums.of(commit).changed_keys(commit)
        except CorruptTimelineError as error:
            yield Finding(place, str(error), _RESTORE)
            continue
        if changed:
            problem = f"has another {', '.join(changed)} in its extra metadata than its checksum says"
            yield Finding(place, problem, _RESTORE)


def _one_instant(facts: TableFacts, time: str, states: list[Instant]) -> Iterator[Observation]:
    place = f"{facts.timeline_path}/{time}"
    completed = [i for i in states if i.is_completed]
    actions = sorted({COMPLETED_ACTION.get(i.action, i.action) for i in states})
    if len(completed) > 1:
        names = ", ".join(i.file_name for i in completed)
        yield Finding(
            place,
            f"has completed {len(completed)} times: {names}",
            "keep the file whose data files exist, or the first of several that state the same; remove the others",
        )
    if len(actions) > 1:
        yield Finding(
            place,
            f"belongs to several actions: {', '.join(actions)}",
            "find out which one wrote the data files, and move the other away, which loses nothing",
        )
    for instant in completed:
        end = instant.completion_time
        if facts.layout.records_completion_times != (end is not None):
            problem = (
                "has no completion time" if end is None else "has a completion time, which version 6 does not support"
            )
            yield Finding(
                f"{facts.timeline_path}/{instant.file_name}", problem, "restore the file's name, which loses nothing"
            )
        elif end is not None and end < time:
            problem = f"completed at {end}, before it was requested"
            yield Finding(
                f"{facts.timeline_path}/{instant.file_name}", problem, "restore the file's name, which loses nothing"
            )
    yield from _without_plan(facts, time, states)


def _without_plan(facts: TableFacts, time: str, states: list[Instant]) -> Iterator[Observation]:
    """An inflight file whose plan, the requested file, is gone: a process put it that others had overtaken."""
    inflight = next((i for i in states if i.state is State.INFLIGHT), None)
    if (
        inflight is None
        or inflight.action not in _ENDS_WITHOUT_PLAN
        or replace(inflight, state=State.REQUESTED) in states
    ):
        return
    place = f"{facts.timeline_path}/{inflight.file_name}"
    if any(i.is_completed for i in states):
        yield Remark(f"{place} has no plan beside it, and nobody needs one: its {inflight.action} has completed")
    else:
        cure = _ENDS_WITHOUT_PLAN[inflight.action] or f"run {Cure.rollback(time, force=True)}"
        yield Finding(place, f"is an inflight {inflight.action} without a plan", cure)


@check("pending-plans", "I13", "every file that a pending compaction needs exists as planned")
def check_pending_plans(facts: TableFacts) -> Iterator[Observation]:
    for pending in facts.timeline.pending_plans:
        plan = facts.plans.get(pending.requested_time)
        if plan is None:
            if pending.action is not Action.COMPACTION:
                yield Remark(f"did not check the pending {pending.action} at {pending.requested_time}")
            continue
        cure = f"restore the file, or run {Cure.rollback(pending.requested_time)}, which removes no data"
        for path, size in (
            inputs_of(plan) if isinstance(plan, CompactionPlan) else ((path, None) for path in plan.paths)
        ):
            present = facts.sizes.get(path)
            if present is None:
                yield Finding(path, f"is missing, and the pending plan at {pending.requested_time} needs it", cure)
            elif size is not None and present != size:
                problem = f"has {present} bytes, but {size} in the pending plan at {pending.requested_time}"
                yield Finding(path, problem, cure)
        yield from _hidden_logs(facts, plan)


def _hidden_logs(facts: TableFacts, plan: CompactionPlan | ForeignPlan) -> Iterator[Observation]:
    """Logs of version 6 on top of a plan that was pending when the table was upgraded.

    From version 8 on, a log file counts when the instant in its name has completed.
    """
    if not facts.layout.names_logs_by_write or facts.timeline.shares_its_time(plan.instant):
        return
    own, groups = frozenset(plan.new_log_paths if isinstance(plan, CompactionPlan) else ()), plan.file_groups
    for file in facts.data_files:
        name, scan = file.parsed, facts.log_scans.get(file.path)
        if not isinstance(name, LogFileName) or name.instant != plan.instant or file.path in own or scan is None:
            continue
        if (file.partition, name.file_id) in groups and any(map(facts.blocks.accepts, scan.instants)):
            problem = f"was written into the slice of the pending plan at {plan.instant} before the table was upgraded"
            cure = f"{Cure.execute(plan.instant)}: no reader sees its records before"
            yield Finding(file.path, problem, cure)


def inputs_of(plan: CompactionPlan) -> Iterator[tuple[str, int | None]]:
    """The files that a compaction reads, with the sizes of log files in bytes."""
    for op in plan.operations:
        if op.base_path is not None:
            yield op.base_path, None
        yield from ((log.path, log.size) for log in (*op.compacted, *(left.log_file for left in op.left_overs)))
