"""Compactions beside open writes, and beside other plans."""

from collections.abc import Callable
from typing import Any

import pytest

from eventide.testing.crash_enumeration import Moment, StandingStill, execute, writes_of
from eventide.testing.histories import Commit, delete, put
from eventide.testing.living_table.table import LivingTable
from eventide.testing.oracle import Order
from eventide_core.action.compaction import quiet_moment
from eventide_core.action.compaction.quiet_moment import QuietMoment
from eventide_core.action.compaction.slice_selection import SliceFacts
from eventide_core.service.compaction import completion
from eventide_core.service.compaction import run as run_compaction
from eventide_core.service.compaction.run import CompactionRunner
from eventide_core.service.compaction.scheduling import draft, planned_slices, replan, slice_facts
from eventide_core.service.compaction.scheduling import schedule as schedule_compaction
from eventide_core.table.timeline.contents.plans import CompactionPlan
from support.mutants.mutant import (
    AFTER_T,
    BASE,
    BEFORE_T,
    Mutant,
    begin,
    history,
    living,
    plans,
    writer_unchecked,
    writes,
)


def _compacts_while_a_write_is_pending(table: LivingTable) -> None:
    """The write was requested first and completes last."""
    changes: Commit = (put("k0", 9, "slow"),)
    table.bench.clock.sleep(10)
    slow = begin(table.bench.process(), changes)
    table.schedule(3)
    table.execute()
    table.bench.process().append.complete(slow)
    table.record_others(changes)
    table.inspect()


def _compacts_beside_one_who_becomes_visible_late(*, while_it_runs: bool) -> Callable[[LivingTable], None]:
    """A writer has an earlier instant than the plan, and its file appears after the plan, or during its run."""

    def step(table: LivingTable) -> None:
        changes: Commit = (put("k0", 7, "visible late"),)
        before = table.bench.moment()
        table.bench.load(before.later(2 * quiet_moment.AWAY_FROM_WRITERS_MS))
        table.schedule(3)
        planned = table.bench.moment()
        table.bench.load(before.later(5))
        late = begin(table.bench.process(), changes)
        new = {path: file for path, file in table.files.items() if path not in before.files}
        table.bench.load(planned)

        def becomes_visible() -> None:
            for path, file in new.items():
                table.bench.storage.put(path, file.data)

        if while_it_runs:
            assert table.account.plan is not None
            run = execute(table.account.plan.instant)
            steps = writes_of(table.bench, planned, run)
            base = next(number for number, step in enumerate(steps) if step.path.endswith(".parquet"))
            table.bench.load(planned)
            run(table.bench.process(StandingStill(table.bench.storage, base, becomes_visible)))
            table.record_others(())
        else:
            becomes_visible()
            table.record_others(())
            table.execute()
        table.bench.process().append.complete(late)
        table.record_others(changes)
        table.inspect()

    return step


def _overlaps(table: LivingTable) -> None:
    """Two writers, one after another in one partition, beside a third that is open all the time."""
    table.begin_write((put("k0", 9, "open", partition="b"),))
    table.write((put("k1", 2, "loses to the delete"),))
    table.schedule(3)
    table.execute()
    table.inspect(whole=True)
    table.end_write()


def _compacts_twice_in_one_gap(table: LivingTable) -> None:
    table.begin_write((put("k0", 7, "open", partition="b"),))
    table.schedule(3)
    table.execute()
    table.schedule(12)
    table.execute()
    table.inspect(whole=True)


def _is_written_by_one_who_has_not_seen_the_plan(table: LivingTable) -> None:
    """The writer loaded the timeline before the plan was made.

    On version 6, it appends to the slice that the plan compacts.
    """
    changes: Commit = (put("k1", 9, "unaware"),)
    before = table.bench.moment().later(25)  # a separate instant
    table.schedule(3)
    planned = table.bench.moment().later(1000)
    table.bench.load(before)
    application = table.bench.process()
    application.append.complete(begin(application, changes))
    table.bench.load(Moment({**table.files, **planned.files}, planned.time_ms))
    table.record_others(changes)
    table.execute()


def _two_plans(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(schedule_compaction, "check_trigger", lambda _: None)


def _pending_writes_ignored(patch: pytest.MonkeyPatch) -> None:
    """Neither planning and execution nor the completion of the write consider pending writes."""
    for name in ("quiet_moment", "gap_now"):
        patch.setattr(draft, name, lambda facts: QuietMoment(facts.now))
    _late_writes_ignored(patch)
    patch.setattr(CompactionRunner, "wait_for_unaware_writes", lambda *_: None)


def _late_writes_ignored(patch: pytest.MonkeyPatch) -> None:
    """Writes with an earlier instant than the plan's that became visible after the plan was made."""
    patch.setattr(completion, "open_at", lambda *_: ())
    writer_unchecked(patch)


def _late_writes_ignored_at_the_commit(patch: pytest.MonkeyPatch) -> None:
    real: Any = vars(run_compaction)["why_overtaken"]
    looks: list[str] = []

    def overtaken(state: Any, plan: CompactionPlan) -> str | None:
        looks.append(plan.instant)
        found: str | None = real(state, plan) if looks.count(plan.instant) == 1 else None
        return found

    patch.setattr(run_compaction, "why_overtaken", overtaken)
    writer_unchecked(patch)


def _two_compactions_in_one_gap(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(quiet_moment, "why_not_at", lambda *_: "")
    patch.setattr(draft, "covered_logs", lambda *_: [])


def _logs_above_are_merged(patch: pytest.MonkeyPatch) -> None:
    """Treats what completed after the plan's instant as part of the old slice, also when the plan is checked."""
    for module in (draft, replan, slice_facts, planned_slices):
        patch.setattr(module, "is_in_new_slice", lambda *_: False)


def _logs_above_are_not_judged(patch: pytest.MonkeyPatch) -> None:
    real: Any = vars(slice_facts)["SliceFacts"]

    def facts(file_slice: Any, logs: Any, above: int) -> SliceFacts:
        made: SliceFacts = real(file_slice, logs[: len(logs) - above])
        return made

    patch.setattr(slice_facts, "SliceFacts", facts)


def _logs_unsealed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(run_compaction, "is_as_planned", lambda *_: True)


MUTANTS = (
    Mutant(
        "6",
        "two compactions are planned at the same time",
        _two_plans,
        history(writes(BASE, BEFORE_T, AFTER_T), plans(3), plans(4), of=lambda: living(9)),
    ),
    Mutant(
        "11",
        "a plan ignores blocks of pending writes (version 6)",
        _pending_writes_ignored,
        history(writes(BASE, BEFORE_T, AFTER_T), _compacts_while_a_write_is_pending, of=lambda: living(6)),
    ),
    Mutant(
        "14",
        "log files are not checked again after the plan (version 6)",
        _logs_unsealed,
        history(writes(BASE, BEFORE_T, AFTER_T), _is_written_by_one_who_has_not_seen_the_plan, of=lambda: living(6)),
    ),
    Mutant(
        "v8",
        "a compaction is planned across a pending write, whose log then sorts before older left-overs (version 9)",
        _pending_writes_ignored,
        history(
            writes(BASE, BEFORE_T, AFTER_T),
            _compacts_while_a_write_is_pending,
            of=lambda: living(9, Order.COMMIT_TIME),
        ),
    ),
    Mutant(
        "late",
        "a write that becomes visible after the plan, with an earlier instant, is ignored (version 9)",
        _late_writes_ignored,
        history(
            writes(BASE, BEFORE_T, AFTER_T),
            _compacts_beside_one_who_becomes_visible_late(while_it_runs=False),
            of=lambda: living(9, Order.COMMIT_TIME),
        ),
    ),
    Mutant(
        "late-commit",
        "the same while the plan runs: the commit does not check again (version 9)",
        _late_writes_ignored_at_the_commit,
        history(
            writes(BASE, BEFORE_T, AFTER_T),
            _compacts_beside_one_who_becomes_visible_late(while_it_runs=True),
            of=lambda: living(9, Order.COMMIT_TIME),
        ),
    ),
    Mutant(
        "gap",
        "two compactions with left-overs are in one gap: the left-overs of the first are in the second's slice (version 9)",
        _two_compactions_in_one_gap,
        history(
            writes(BASE, BEFORE_T, AFTER_T, (put("k0", 20, "later"),)),
            _compacts_twice_in_one_gap,
            of=lambda: living(9, Order.COMMIT_TIME),
        ),
    ),
    Mutant(
        "above",
        "a log file that completed after the plan's instant is merged (version 9)",
        _logs_above_are_merged,
        history(
            writes(BASE, BEFORE_T, AFTER_T),
            _overlaps,
            of=lambda: living(9, Order.COMMIT_TIME),
        ),
    ),
    Mutant(
        "above-delete",
        "a delete is not carried below a log file that completed after the plan's instant (version 9)",
        _logs_above_are_not_judged,
        history(writes(BASE, (delete("k1", 3), put("k0", 1, "early"))), _overlaps, of=lambda: living(9)),
    ),
)
