"""The account of a table: what completed, by the names on its timeline, and the oracle that is updated with it.

Only the content of a pending plan comes from eventide. The oracle checks it against the log files that it knows.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from copy import copy
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from eventide.bootstrap import Application
from eventide.testing.histories import Commit, Layout, at_epoch
from eventide.testing.inspection.checks import (
    avro_records,
    check_split,
    commits_above,
    exact_threshold,
    known_commits,
    merged_commits,
)
from eventide.testing.inspection.observation import OUTCOMES_PREFIX, BlockInstants, Files
from eventide.testing.oracle import Change, Oracle
from eventide_core.table.timeline.contents.plans import CompactionPlan, LinkMode, require_ours

_on_timeline = lru_cache(1 << 14)(re.compile(r"\.hoodie/(?:timeline/)?(\d{17})(?:_(\d{17}))?\.([a-z.]+)").fullmatch)

_PENDING = ("requested", "inflight")
_SETTLED = ({"requested", "inflight", ""}, {"requested", "inflight"})
_WITHOUT_RECORD = ("clean", "rollback", "restore", "savepoint", "indexing")


@dataclass(frozen=True, slots=True)
class Completed:
    """A write with its changes; or a compaction with its cut, what it merged, and how many log files its plan knew.

    `above` counts the known log files that completed after its instant.
    """

    instant: str
    changes: tuple[Change, ...] = ()
    cut_ms: int | None = None
    merged: Mapping[str, int] | None = None
    threshold_ms: int | None = None
    known: Mapping[str, int] = field(default_factory=dict[str, int])
    above: Mapping[str, int] = field(default_factory=dict[str, int])

    @property
    def merged_by_others(self) -> Mapping[str, int]:
        """What an engine merges that does not know left-overs: everything that completed before the plan's instant."""
        return {name: count - self.above.get(name, 0) for name, count in self.known.items()}

    def tell(self, oracle: Oracle) -> None:
        if self.merged is None:
            oracle.commit(self.instant, self.changes)
        else:
            oracle.compact(self.cut_ms, self.merged, self.threshold_ms, self.known, above=self.above)


@dataclass(slots=True)
class Account:
    """`plan` is the pending plan; `last_plan` is the plan that completed last."""

    layout: Layout
    blocks: BlockInstants = field(default_factory=BlockInstants)
    completed: list[Completed] = field(default_factory=list[Completed])
    rolled_back: set[str] = field(default_factory=set[str])
    plan: CompactionPlan | None = None
    last_plan: CompactionPlan | None = None
    oracle: Oracle = field(init=False)
    _planned: Completed | None = None
    _plan_bytes: bytes = b""
    _since_plan: set[str] = field(default_factory=set[str])
    _archived: set[str] = field(default_factory=set[str])
    _looked_at: Files = field(default_factory=dict[str, Any])

    def __post_init__(self) -> None:
        self.oracle = self._new_oracle()

    @property
    def instants(self) -> frozenset[str]:
        """The instants that have completed, and were not undone."""
        return frozenset(event.instant for event in self.completed)

    def copy(self) -> "Account":
        other = copy(self)
        other.completed, other.rolled_back = list(self.completed), set(self.rolled_back)
        other.oracle, other._archived = self.oracle.copy(), set(self._archived)
        return other

    def keep(
        self, application: Application, files: Files, changes: Commit, *, archives: bool, as_stock: bool
    ) -> Collection[str]:
        """Reads the timeline after a step that wrote these changes. Returns the completed instants that were undone."""
        shown = completed_instants(files)
        if self.plan is not None:
            for path, match in _timeline(files):
                if (match[1], match[3]) == (self.plan.instant, "compaction.requested"):
                    self._read_plan(application, files, path, is_alone=not changes)  # it may have been planned again
        known = self.instants
        gone = known - self._archived - shown
        if archives:
            self._archived |= gone
            gone = frozenset()
        if gone:
            # Any action ends an archival that was interrupted.
            archive = application.files.archive(application.files.config())
            archived = frozenset(instant for instant in gone if archive.find(instant) is not None)
            self._archived |= archived
            gone -= archived
        if gone:
            self.rolled_back |= gone
            self.completed = [event for event in self.completed if event.instant not in gone]
            self.oracle = self._new_oracle()
            for event in self.completed:
                event.tell(self.oracle)
        for instant in sorted(shown - known):
            event = self._event(application, files, instant, changes, as_stock=as_stock)
            self.completed.append(event)
            self._since_plan.add(instant)
            event.tell(self.oracle)
        self._look_for_plan(application, files, is_alone=not changes)
        self._looked_at = files
        return gone

    @property
    def archived(self) -> Collection[str]:
        """The instants that have left the active timeline for the archived one."""
        return self._archived

    def would_show(self, changes: Commit) -> bool:
        """Whether readers would notice the pending compaction if this were written before it ends.

        A late record may meet a delete that the compaction forgets, as all of Hudi's do. Then nothing is guaranteed.
        """
        if self._planned is None:
            return False
        later = self.oracle.copy()
        later.commit("9" * 17, [at_epoch(change) for change in changes])
        alone = later.snapshot()
        in_full = later.copy()
        self._planned.tell(later)
        in_full.compact(None, self._planned.merged_by_others, known=self._planned.known, above=self._planned.above)
        return not alone == later.snapshot() == in_full.snapshot()

    def _new_oracle(self) -> Oracle:
        return Oracle(self.layout.order, self.layout.buckets)

    def _event(
        self, application: Application, files: Files, instant: str, changes: Commit, *, as_stock: bool
    ) -> Completed:
        files_of_timeline = {path.rpartition("/")[2]: path for path, _ in _timeline(files)}
        if f"{instant}.compaction.requested" in files_of_timeline and (
            self.plan is None or self.plan.instant != instant
        ):
            # Planned and run in one step, and it follows a plan that was run in the same step, or was rolled back.
            if self.plan is not None and self.plan.instant not in completed_instants(files):
                self.rolled_back.add(self.plan.instant)
            self._read_plan(
                application, files, files_of_timeline[f"{instant}.compaction.requested"], is_alone=not changes
            )
        planned, plan = self._planned, self.plan
        if planned is None or plan is None or instant != planned.instant:
            return Completed(instant, tuple(at_epoch(change) for change in changes))
        self.last_plan = None if as_stock else plan
        if not as_stock:
            return planned
        merged = planned.merged if plan.link_mode is LinkMode.PREFIX else planned.merged_by_others
        assert merged is not None
        return Completed(instant, merged=merged, known=merged)

    def _look_for_plan(self, application: Application, files: Files, *, is_alone: bool) -> None:
        """Reads the pending plan, which may differ from an earlier plan with the same instant."""
        shown = completed_instants(files)
        pending = {
            match[1]: path
            for path, match in _timeline(files)
            if match[3] == "compaction.requested" and match[1] not in shown | self._archived
        }
        if self.plan is not None and self.plan.instant not in {*pending, *shown}:
            self.rolled_back.add(self.plan.instant)
        if not pending:
            self.plan = self._planned = None
            return
        if len(pending) > 1:
            # A completed compaction that is being rolled back is pending until the rollback ends.
            pending = {instant: path for instant, path in pending.items() if instant not in _being_rolled_back(files)}
        assert len(pending) == 1, f"I8, two plans are pending at once: {sorted(pending)}"
        ((_, path),) = pending.items()
        self._read_plan(application, files, path, is_alone=is_alone)

    def _read_plan(self, application: Application, files: Files, path: str, *, is_alone: bool) -> None:
        instant = path.rpartition("/")[2].partition(".")[0]
        if self.plan is None or self.plan.instant != instant or files[path].data != self._plan_bytes:
            is_again = self.plan is not None and self.plan.instant == instant
            if not is_again:
                self._since_plan = set()
            self._plan_bytes = files[path].data
            config = application.files.config()
            self.plan = require_ours(application.files.plan(config, instant))
            # A completed compaction is pending again while it is being undone: others have written since.
            self._planned = self._planning(self.plan, files, is_alone=is_alone and instant not in self.rolled_back)

    def is_overtaken(self, plan: str) -> bool:
        """Whether a later compaction has completed: then a paused process put the plan, and it has to be rolled back."""
        return any(event.merged is not None and event.instant > plan for event in self.completed)

    def _planning(self, plan: CompactionPlan, files: Files, *, is_alone: bool) -> Completed:
        """The result of the plan's completion. If nothing was written since the plan was made, no query may change.

        One round of the service may plan again what is pending, run it, and clean what it merged: then the files of the last
        look have the log files.
        """
        there = {**self._looked_at, **files}
        merged = merged_commits(plan, self.oracle, there, self.blocks)
        planned = Completed(
            plan.instant,
            cut_ms=plan.cut_ms,
            merged=merged,
            threshold_ms=exact_threshold(plan),
            known=known_commits(plan, merged, self.oracle, there, self.blocks),
            above=commits_above(plan, self.oracle, there, self.blocks, self._since_plan),
        )
        if is_alone:
            after = self.oracle.copy()
            planned.tell(after)
            assert plan.cut_ms is not None
            later = completed_after(files, plan.instant) | self._since_plan
            check_split(self.oracle, after, merged, plan.cut_ms, self.layout.reader_orders, later)
        return planned


def completed_instants(files: Files) -> frozenset[str]:
    """The writes and compactions that the active timeline shows as completed."""
    return frozenset(instant for instant, _, _ in completed_files(files))


def completed_files(files: Files) -> Iterator[tuple[str, str, str]]:
    """Instant, completion time, and path of each of them. On version 6, the instant stands for the completion time."""
    for path, match in _timeline(files):
        if match[3] in ("commit", "deltacommit"):
            yield match[1], match[2] or match[1], path


def completed_after(files: Files, time: str) -> frozenset[str]:
    """The writes and compactions that completed after a time; on version 6, without completion times, that began later."""
    return frozenset(
        match[1]
        for _, match in _timeline(files)
        if match[3] in ("commit", "deltacommit") and (match[2] or match[1]) > time
    )


def savepointed_instants(files: Files) -> frozenset[str]:
    return frozenset(match[1] for _, match in _timeline(files) if match[3] == "savepoint")


def pending_instants(files: Files, action: str = "") -> frozenset[str]:
    """The actions that have begun and not ended. They exclude other actions until they end or are undone."""
    begun = {match[1] for _, match in _timeline(files) if match[3].endswith(_PENDING) and match[3].startswith(action)}
    ended = {match[1] for _, match in _timeline(files) if not match[3].endswith(_PENDING)}
    return frozenset(begun - ended)


def _being_rolled_back(files: Files) -> frozenset[str]:
    """The instants whose rollback has begun but not ended."""
    begun = pending_instants(files, "rollback")
    plans = [
        files[path].data for path, match in _timeline(files) if match[1] in begun and match[3] == "rollback.requested"
    ]
    return frozenset(record["instantToRollback"]["commitTime"] for data in plans for record in avro_records(data))


def _timeline(files: Files) -> Iterator[tuple[str, re.Match[str]]]:
    """The files of the timeline that count: none that an archival or a rollback has left, or a paused process put late."""
    there = [(path, match) for path in files if (match := _on_timeline(path)) is not None]
    states: dict[str, set[str]] = {}
    for _, match in there:
        states.setdefault(match[1], set()).add(_state(match[3]))
    for path, match in there:
        of_instant = states[match[1]]
        is_in_doubt = of_instant not in _SETTLED and not match[3].startswith(_WITHOUT_RECORD)
        # On version 6, writers append to the slices of a plan until it is gone.
        is_followed = path.count("/") == 1 and match[3].startswith("compaction") and "" not in of_instant
        is_undone = not is_followed and _is_undone(files, match[1])
        if not (is_in_doubt and ("requested" not in of_instant or is_undone)):
            yield path, match


def _state(action: str) -> str:
    return next((state for state in _PENDING if action.endswith(state)), "")


def _is_undone(files: Files, instant: str) -> bool:
    """By eventide's own records: an outcome without a completion time, or a mark."""
    for record in (instant, f"{instant}.write"):
        outcome = files.get(f"{OUTCOMES_PREFIX}{record}.outcome")
        if (outcome is not None and b"null" in outcome.data) or f"{OUTCOMES_PREFIX}{record}.undone" in files:
            return True
    return False
