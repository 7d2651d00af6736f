"""The known ways to be wrong, each switched on by a patch of the code under test, and the steps in which it shows.

The numbers are those of docs/verification.md. `is_wrong` patches; `happens` lives through a short history with a kit that
checks every promise at each step. Without the patch nothing is found, with it something is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from eventide.bootstrap import Application
from eventide.testing.crash_enumeration import Moment, StandingStill, execute, writes_of
from eventide.testing.histories import Commit, Layout, delete, put, records
from eventide.testing.living_table import LivingTable
from eventide.testing.oracle import Order
from eventide.writer import arrow_records
from eventide_adapters.format.timeline import compaction_plan as plan_avro
from eventide_adapters.storage.faulty import SimulatedCrash
from eventide_adapters.storage.memory import MemoryStorage
from eventide_core.action import quiet_moment
from eventide_core.action.pending_write import PendingWrite
from eventide_core.action.quiet_moment import QuietMoment
from eventide_core.action.slice_selection import ReaderRules, Selection, SliceFacts
from eventide_core.action.slice_split import SplitVerdict
from eventide_core.config import LinkChoice
from eventide_core.ports import NoProgress
from eventide_core.service.compaction import compact_slice, draft, planned_slices, replan, slice_facts, split_judge
from eventide_core.service.compaction import run as run_compaction
from eventide_core.service.compaction import schedule as schedule_compaction
from eventide_core.service.compaction.run import CompactionRunner
from eventide_core.service.maintenance import clean
from eventide_core.service.query.read import QueryService
from eventide_core.service.state.table import TableState
from eventide_core.service.write import instants as write_instants
from eventide_core.table.event_time import EventTimeRange
from eventide_core.table.file_name import LogFileName
from eventide_core.table.plans import CompactionPlan, PlannedOperation
from eventide_core.table.record_order import MergeRule
from eventide_core.table.slice_read import QueryPlan, SliceRead
from eventide_core.table.write_shape import WriteOperation

BASE: Commit = (put("k0", 1, "base"), put("k1", 1, "base"))
BEFORE_T: Commit = (put("k1", 2, "before T"),)
AFTER_T: Commit = (put("k0", 8, "after T"),)


@dataclass(frozen=True, slots=True)
class Mutant:
    number: str
    name: str
    is_wrong: Callable[[pytest.MonkeyPatch], None]
    happens: Callable[[], None]


def living(version: int, order: Order = Order.EVENT_TIME, link: LinkChoice = LinkChoice.COPY) -> LivingTable:
    return LivingTable(Layout(version, order), link, "mutants")


def _history(*steps: Callable[[LivingTable], None], of: Callable[[], LivingTable]) -> Callable[[], None]:
    def happens() -> None:
        table = of()
        for step in steps:
            step(table)
        table.inspect(whole=True)

    return happens


def _writes(*commits: Commit) -> Callable[[LivingTable], None]:
    def step(table: LivingTable) -> None:
        for commit in commits:
            table.write(commit)

    return step


def _compacts(cut_ms: int) -> Callable[[LivingTable], None]:
    def step(table: LivingTable) -> None:
        table.schedule(cut_ms)
        table.execute()

    return step


def _plans(cut_ms: int) -> Callable[[LivingTable], None]:
    return lambda table: table.schedule(cut_ms)


def _executes(table: LivingTable) -> None:
    table.execute()


def _cleans(table: LivingTable) -> None:
    table.clean(1)


def _compacts_while_a_write_is_pending(table: LivingTable) -> None:
    """The write was requested first, and completes last."""
    changes: Commit = (put("k0", 9, "slow"),)
    table.bench.clock.sleep(10)
    slow = _begin(table.bench.process(), changes)
    table.schedule(3)
    table.execute()
    table.bench.process().append.complete(slow)
    table.take_note(changes)
    table.inspect()


def _begin(application: Application, changes: Commit) -> PendingWrite:
    pending = application.append.begin(
        WriteOperation.UPSERT, arrow_records(application, *records(changes)), NoProgress()
    )
    application.append.heartbeats.stop(pending.instant)
    return pending


def _compacts_beside_one_who_becomes_visible_late(*, while_it_runs: bool) -> Callable[[LivingTable], None]:
    """A writer's instant is earlier than the plan's, and its file comes later: after the plan, or while that runs."""

    def step(table: LivingTable) -> None:
        changes: Commit = (put("k0", 7, "visible late"),)
        before = table.bench.moment()
        table.bench.load(before.later(2 * quiet_moment.AWAY_FROM_WRITERS_MS))
        table.schedule(3)
        planned = table.bench.moment()
        table.bench.load(before.later(5))
        late = _begin(table.bench.process(), changes)
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
            table.take_note(())
        else:
            becomes_visible()
            table.take_note(())
            table.execute()
        table.bench.process().append.complete(late)
        table.take_note(changes)
        table.inspect()

    return step


def _overlaps(table: LivingTable) -> None:
    """Two writers, one after the other in one partition, beside a third that is open all the while."""
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
    """He looked before it was made; on version 6 he appends to the slice that it takes."""
    changes: Commit = (put("k1", 9, "unaware"),)
    before = table.bench.moment().later(25)  # an instant of his own
    table.schedule(3)
    planned = table.bench.moment().later(1000)
    table.bench.load(before)
    application = table.bench.process()
    application.append.complete(_begin(application, changes))
    table.bench.load(Moment({**table.files, **planned.files}, planned.time_ms))
    table.take_note(changes)
    table.execute()


def _dies_at_every_write_of_the_execution(table: LivingTable) -> None:
    for number in range(12):
        table.execute(number)


def _no_carry(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(split_judge, "judge_split", lambda *_, **__: SplitVerdict(None, None, 0))


def _open_selection(patch: pytest.MonkeyPatch) -> None:
    real: Any = vars(draft)["select"]

    def select(facts: SliceFacts, strategy: Any, *rest: Any) -> Selection | None:
        chosen: Selection | None = real(facts, strategy, *rest)
        if chosen is None:
            return None
        early = [fact for fact in facts.logs if fact.event_times.starts_before(strategy.threshold_ms)]
        late = [fact for fact in facts.logs if fact not in early]
        return replace(chosen, facts=replace(facts, logs=(*early, *late)), count=len(early))

    patch.setattr(draft, "select", select)


def _targets_unheeded(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(clean, "links_of", lambda _: {})


def _links_to_links(patch: pytest.MonkeyPatch) -> None:
    def link(storage: MemoryStorage, source: str, target: str, *, is_symbolic: bool) -> bool:
        files = storage._files
        storage._write(files, target, b"", link_target=source)
        return is_symbolic

    patch.setattr(MemoryStorage, "link_if_absent", link)


def _named_like_a_writers_log(attribute: str) -> Callable[[pytest.MonkeyPatch], None]:
    def is_wrong(patch: pytest.MonkeyPatch) -> None:
        real: Any = vars(draft)["plan_compaction"]

        def plan(*arguments: Any) -> CompactionPlan:
            made: CompactionPlan = real(*arguments)
            return replace(made, operations=tuple(_renamed(op, attribute) for op in made.operations))

        patch.setattr(draft, "plan_compaction", plan)

    return is_wrong


def _renamed(op: PlannedOperation, attribute: str) -> PlannedOperation:
    def as_writers_do(name: str | None) -> str | None:
        return None if name is None else name.replace(".log.0_", ".log.1_")

    if attribute == "carried_name":
        return replace(op, carried_name=as_writers_do(op.carried_name))
    left_overs = tuple(replace(left, new_name=as_writers_do(left.new_name)) for left in op.left_overs)
    return replace(op, left_overs=left_overs)


def _copies_twice_in_increments(patch: pytest.MonkeyPatch) -> None:
    real = TableState.view_of

    def of_every_slice(*arguments: Any) -> Any:
        view = real(*arguments)
        every = tuple(found for slices in view.slices.values() for found in slices)
        return type("View", (), {"latest_slices": staticmethod(lambda: every)})

    patch.setattr(TableState, "view_of", of_every_slice)


def _without_left_overs(part: SliceRead) -> SliceRead:
    base = (part.base_path or "").rpartition("_")[2].removesuffix(".parquet")
    kept = tuple(log for log in part.log_paths if _instant_of(log[0]) != base)
    return replace(part, log_paths=kept)


def _instant_of(path: str) -> str:
    name = LogFileName.parse(path.rpartition("/")[2])
    assert name is not None
    return name.instant


def _query_skips_left_overs(query: str) -> Callable[[pytest.MonkeyPatch], None]:
    def is_wrong(patch: pytest.MonkeyPatch) -> None:
        real = getattr(QueryService, query)

        def asked(service: QueryService, *arguments: Any) -> QueryPlan:
            plan: QueryPlan = real(service, *arguments)
            return replace(plan, slices=tuple(_without_left_overs(part) for part in plan.slices))

        patch.setattr(QueryService, query, asked)

    return is_wrong


def _two_plans(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(schedule_compaction, "check_trigger", lambda _: None)


def _torn_copies(patch: pytest.MonkeyPatch) -> None:
    """A copy that is half there after a crash, and an executor that takes it for whole."""
    torn: list[str] = []

    def copy(storage: MemoryStorage, source: str, target: str) -> bool:
        data = storage.read(source)
        if not torn:
            torn.append(target)
            storage.put(target, data[: len(data) // 2])
            raise SimulatedCrash
        return storage.put_if_absent(target, data)

    patch.setattr(MemoryStorage, "copy_if_absent", copy)
    patch.setattr(compact_slice, "_check_size", lambda *_: None)


def _nulls_are_fresh(patch: pytest.MonkeyPatch) -> None:
    def starts_before(times: EventTimeRange, threshold_ms: int) -> bool:
        return times.min_ms is not None and times.min_ms < threshold_ms

    patch.setattr(EventTimeRange, "starts_before", starts_before)


def _one_too_early(patch: pytest.MonkeyPatch) -> None:
    real = EventTimeRange.starts_before
    patch.setattr(EventTimeRange, "starts_before", lambda times, threshold_ms: real(times, threshold_ms - 1))


def _pending_writes_unheeded(patch: pytest.MonkeyPatch) -> None:
    """Neither by who plans and executes, nor by the writer when it completes."""
    for name in ("quiet_moment", "gap_now"):
        patch.setattr(draft, name, lambda facts: QuietMoment(facts.now, is_now=True))
    _late_writes_unheeded(patch)
    patch.setattr(CompactionRunner, "_wait_for_unaware_writes", lambda *_: None)


def _late_writes_unheeded(patch: pytest.MonkeyPatch) -> None:
    """Writes with an earlier instant than the plan's that became visible after it was made."""
    patch.setattr(run_compaction, "open_at", lambda *_: ())
    _writer_unchecked(patch)


def _writer_unchecked(patch: pytest.MonkeyPatch) -> None:
    """As one of Hudi's that is told to be alone: it looks for no conflict."""
    patch.setattr(write_instants, "check_plan", lambda *_: None)
    patch.setattr(write_instants, "check_write", lambda *_: None)


def _late_writes_unheeded_at_the_commit(patch: pytest.MonkeyPatch) -> None:
    real: Any = vars(run_compaction)["_overtaken"]
    looks: list[str] = []

    def overtaken(state: Any, plan: CompactionPlan) -> str | None:
        looks.append(plan.instant)
        found: str | None = real(state, plan) if looks.count(plan.instant) == 1 else None
        return found

    patch.setattr(run_compaction, "_overtaken", overtaken)
    _writer_unchecked(patch)


def _two_compactions_in_one_gap(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(quiet_moment, "why_not_at", lambda *_: "")
    patch.setattr(draft, "_covered", lambda *_: [])


def _logs_above_are_merged(patch: pytest.MonkeyPatch) -> None:
    """What completed after the plan's instant counts as of the old slice, also where the plan is held to it."""
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


def _plan_for_eventide_alone(patch: pytest.MonkeyPatch) -> None:
    """Written so, and read without a second look."""
    real: Any = vars(plan_avro)["_encode_operation"]

    def encode(plan: CompactionPlan, planned: PlannedOperation) -> dict[str, Any]:
        return {**real(plan, planned), "deltaFilePaths": [log.name for log in planned.compacted]}

    patch.setattr(plan_avro, "_encode_operation", encode)
    patch.setattr(plan_avro, "_check_agreement", lambda *_: None)


def _other_readers_unheeded(patch: pytest.MonkeyPatch) -> None:
    def rules(rule: MergeRule, _: object, is_base_file_index: bool, **rest: bool) -> ReaderRules:
        return ReaderRules(rule, (rule,), is_base_file_index, **rest)

    patch.setattr(slice_facts, "ReaderRules", rules)


def _first_first(patch: pytest.MonkeyPatch) -> None:
    real = compact_slice.link_left_overs

    def link(storage: Any, task: Any) -> None:
        real(storage, replace(task, left_overs=task.left_overs[::-1]))

    patch.setattr(compact_slice, "link_left_overs", link)


_PLAIN = (_writes(BASE, BEFORE_T, AFTER_T), _compacts(3))

MUTANTS = (
    Mutant(
        "1",
        "no tombstone is carried",
        _no_carry,
        _history(
            _writes(BASE, (put("k0", 1, "early"), delete("k1", 3)), (put("k1", 2, "loses to it"),)),
            _compacts(2),
            of=lambda: living(9),
        ),
    ),
    Mutant(
        "2",
        "any logs are merged, not those up to one (commit time)",
        _open_selection,
        _history(
            _writes(BASE, (put("k0", 6, "first"),), (put("k0", 2, "second"),)),
            _compacts(3),
            of=lambda: living(9, Order.COMMIT_TIME),
        ),
    ),
    Mutant(
        "2b",
        "any logs are merged, not those up to one (event time, a tie)",
        _open_selection,
        _history(
            _writes(BASE, (put("k0", 6, "first"),), (put("k1", 2, "early"), put("k0", 6, "second"))),
            _compacts(3),
            of=lambda: living(9),
        ),
    ),
    Mutant(
        "3",
        "a clean does not look at the targets of links",
        _targets_unheeded,
        _history(*_PLAIN, _writes((put("k0", 9, "more"),)), _cleans, of=lambda: living(9, link=LinkChoice.SYMLINK)),
    ),
    Mutant(
        "3b",
        "links lead to links",
        _links_to_links,
        _history(
            _writes(BASE, BEFORE_T, (put("k1", 4, "next"),), AFTER_T),
            _compacts(3),
            _compacts(5),
            of=lambda: living(9, link=LinkChoice.SYMLINK),
        ),
    ),
    Mutant(
        "4",
        "left-overs take names that writers take (version 6)",
        _named_like_a_writers_log("left_overs"),
        _history(
            _writes(BASE, BEFORE_T, AFTER_T),
            _plans(3),
            _writes((put("k0", 8, "tie"),)),
            _executes,
            of=lambda: living(6),
        ),
    ),
    Mutant(
        "5",
        "an increment shows a copy beside its original",
        _copies_twice_in_increments,
        _history(*_PLAIN, of=lambda: living(9)),
    ),
    Mutant(
        "5b",
        "an increment skips copies",
        _query_skips_left_overs("incremental"),
        _history(*_PLAIN, _writes((put("k1", 9, "more"),)), _cleans, of=lambda: living(9)),
    ),
    Mutant(
        "6",
        "two plans at a time",
        _two_plans,
        _history(_writes(BASE, BEFORE_T, AFTER_T), _plans(3), _plans(4), of=lambda: living(9)),
    ),
    Mutant(
        "7",
        "time travel skips left-overs",
        _query_skips_left_overs("as_of"),
        _history(*_PLAIN, _writes((put("k1", 9, "more"),)), of=lambda: living(9)),
    ),
    Mutant(
        "9",
        "a copy that is half there counts as whole",
        _torn_copies,
        _history(_writes(BASE, BEFORE_T, AFTER_T), _plans(3), _executes, _executes, of=lambda: living(9)),
    ),
    Mutant(
        "10",
        "an unknown event time counts as fresh",
        _nulls_are_fresh,
        _history(_writes(BASE, (delete("k0"),), AFTER_T), _compacts(3), of=lambda: living(9, Order.COMMIT_TIME)),
    ),
    Mutant(
        "11",
        "blocks of pending writes are planned over (version 6)",
        _pending_writes_unheeded,
        _history(_writes(BASE, BEFORE_T, AFTER_T), _compacts_while_a_write_is_pending, of=lambda: living(6)),
    ),
    Mutant("12", "what lies right before T is left over", _one_too_early, _history(*_PLAIN, of=lambda: living(9))),
    Mutant(
        "14",
        "logs are not looked at again after planning (version 6)",
        _logs_unsealed,
        _history(_writes(BASE, BEFORE_T, AFTER_T), _is_written_by_one_who_has_not_seen_the_plan, of=lambda: living(6)),
    ),
    Mutant(
        "15",
        "the plan lists what eventide merges alone",
        _plan_for_eventide_alone,
        _history(*_PLAIN, of=lambda: living(9)),
    ),
    Mutant(
        "readers",
        "a slice is split as the table's own order allows it, not Hudi 0.x's (version 6)",
        _other_readers_unheeded,
        _history(
            _writes(BASE, (put("k0", 9, "merged"), *BEFORE_T), (delete("k0", 8),)),
            _compacts(3),
            of=lambda: living(6),
        ),
    ),
    Mutant(
        "v8",
        "a compaction is planned across a pending write, whose log then sorts before older left-overs (version 9)",
        _pending_writes_unheeded,
        _history(
            _writes(BASE, BEFORE_T, AFTER_T),
            _compacts_while_a_write_is_pending,
            of=lambda: living(9, Order.COMMIT_TIME),
        ),
    ),
    Mutant(
        "late",
        "a write that becomes visible after the plan, with an earlier instant, is not looked for (version 9)",
        _late_writes_unheeded,
        _history(
            _writes(BASE, BEFORE_T, AFTER_T),
            _compacts_beside_one_who_becomes_visible_late(while_it_runs=False),
            of=lambda: living(9, Order.COMMIT_TIME),
        ),
    ),
    Mutant(
        "late-commit",
        "the same while the plan runs: the commit does not look again (version 9)",
        _late_writes_unheeded_at_the_commit,
        _history(
            _writes(BASE, BEFORE_T, AFTER_T),
            _compacts_beside_one_who_becomes_visible_late(while_it_runs=True),
            of=lambda: living(9, Order.COMMIT_TIME),
        ),
    ),
    Mutant(
        "gap",
        "two compactions with left-overs lie in one gap: those of the first are in the slice of the second (version 9)",
        _two_compactions_in_one_gap,
        _history(
            _writes(BASE, BEFORE_T, AFTER_T, (put("k0", 20, "later"),)),
            _compacts_twice_in_one_gap,
            of=lambda: living(9, Order.COMMIT_TIME),
        ),
    ),
    Mutant(
        "above",
        "a log that completed after the plan's instant is merged (version 9)",
        _logs_above_are_merged,
        _history(
            _writes(BASE, BEFORE_T, AFTER_T),
            _overlaps,
            of=lambda: living(9, Order.COMMIT_TIME),
        ),
    ),
    Mutant(
        "above-delete",
        "a delete is not carried below a log that completed after the plan's instant (version 9)",
        _logs_above_are_not_judged,
        _history(_writes(BASE, (delete("k1", 3), put("k0", 1, "early"))), _overlaps, of=lambda: living(9)),
    ),
    Mutant(
        "name",
        "the log of carried tombstones has a name that writers take (version 6)",
        _named_like_a_writers_log("carried_name"),
        _history(
            _writes(BASE, (put("k0", 1, "early"), delete("k1", 3)), (put("k1", 2, "loses to it"),)),
            _plans(2),
            _writes((put("k1", 3, "tie"),)),
            _executes,
            of=lambda: living(6),
        ),
    ),
    Mutant(
        "order",
        "left-overs are made the first one first (version 6)",
        _first_first,
        _history(
            _writes(BASE, BEFORE_T, AFTER_T, (put("k0", 8, "tie"),)),
            _plans(3),
            _dies_at_every_write_of_the_execution,
            of=lambda: living(6),
        ),
    ),
)
