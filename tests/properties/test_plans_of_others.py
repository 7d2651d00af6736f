"""Plans that another engine of Hudi scheduled and eventide runs: broken off at every write, and raced by that engine."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial

import pytest

from eventide.bootstrap import Application
from eventide.testing.checks import check_single_completion, merged_counts
from eventide.testing.compaction_case import MEANWHILE, Case
from eventide.testing.crash_enumeration import (
    LOCK_EXPIRY_MS,
    Bench,
    Moment,
    Protocol,
    StandingStill,
    crash_states,
    execute,
    faults,
    interludes,
    schedule,
    start_of,
    writes_of,
)
from eventide.testing.histories import History, Layout, Story, delete, layouts, put, write_history
from eventide.testing.observation import LOCK_PREFIX
from eventide.testing.oracle import Order
from eventide.testing.stock_engine import EngineFailedError, run_plan_as_stock, schedule_as_stock
from eventide_adapters.storage.faulty import Fault, FaultPlan, FaultyStorage, SimulatedCrash
from eventide_core.action.compaction_request import CompactionRequest
from eventide_core.config import LinkChoice
from eventide_core.errors import BusyError, EventideError, InstantNotFoundError, LockError, MissingFileError
from eventide_core.ports import NoProgress
from eventide_core.service.compaction import run_foreign
from eventide_core.service.compaction.foreign_plan import as_executed
from eventide_core.service.compaction.run_foreign import ForeignCompactionRunner
from eventide_core.table.instant import Action, Instant, State
from eventide_core.table.plans import ForeignPlan
from support.compaction_cells import TALLY, check_reach

HISTORY = History(
    "two partitions and a delete",
    (
        (put("k0", 1, "base"), put("k1", 2, "base"), put("k2", 3, "base", partition="b")),
        (put("k0", 20, "early"), put("k1", 12, "on time")),
        (put("k1", 6, "late"), put("k2", 30, "later", partition="b"), put("k3", 7, "new")),
    ),
    cut_ms=10,
)
SINCE = (put("k0", 40, "since the cut"), delete("k3", 41), put("k2", 5, "late", partition="b"))
KINDS = (
    *layouts(),
    *(replace(layout, has_metadata_table=True) for layout in layouts()[1::2]),
)


@pytest.fixture(
    scope="module", params=KINDS, ids=lambda kind: f"v{kind.version}-{kind.order.name}-{kind.has_metadata_table}"
)
def case(request: pytest.FixtureRequest) -> Case:
    return foreign_case(request.param)


def foreign_case(layout: Layout) -> Case:
    """A table with a published cut, written to since, whose slices another engine has planned to compact."""
    bench = Bench("plans-of-others")
    table = write_history(layout, HISTORY, bench.name)
    bench.load(start_of(table))
    process = bench.process()
    cut = process.scheduler.schedule(CompactionRequest(HISTORY.cut_epoch_ms, None, LinkChoice.COPY)).plan
    process.runner.execute(cut.instant, NoProgress())
    table.oracle.compact(cut.cut_ms, merged_counts(cut))
    story = Story(layout, bench.storage, bench.clock, table.oracle, 7)
    story.commit(SINCE)
    bench.clock.sleep(10)
    start = bench.moment()
    process = bench.process()
    instant = schedule_as_stock(process)
    plan = process.files.plan(process.files.config(), instant)
    assert isinstance(plan, ForeignPlan)
    executed = as_executed(process.state(), plan, 1)
    after = table.oracle.copy()
    after.compact(None, merged_counts(executed))
    assert after.snapshot() == table.oracle.snapshot()
    assert after.freshness().watermark_ms != table.oracle.freshness().watermark_ms, (
        "the watermark has nothing to follow"
    )
    TALLY.add("plans of others")
    return Case(layout, HISTORY, start, bench.moment(), executed, table.oracle, after, bench, TALLY)


def as_other(instant: str, *, takes_lock: bool = False) -> Protocol:
    """The other engine runs the plan, or gives up as Hudi does."""

    def run(application: Application) -> None:
        with suppress(EngineFailedError, LockError):
            run_plan_as_stock(application, instant, takes_lock=takes_lock)

    return run


def begun_by_other(case: Case) -> Moment:
    """The plan as another engine has begun it, and perhaps died."""
    case.bench.load(case.scheduled)
    config = case.bench.process().files.config()
    inflight = Instant(case.instant, Action.COMPACTION, State.INFLIGHT)
    case.bench.storage.put(f"{config.timeline_path}/{inflight.file_name}", b"")
    return case.bench.moment()


def take_over(instant: str) -> Protocol:
    def run(application: Application) -> None:
        application.runner.execute(instant, NoProgress(), may_take_over=True)

    return run


def test_a_plan_of_another_engine_is_run_as_that_engine_would(case: Case) -> None:
    done, status, failure = case.attempt(case.scheduled, execute(case.instant))
    assert (status, failure) == ("completed", None)
    assert not [path for path in done.files if path.startswith(".hoodie/.temp/")]
    case.bench.load(done)
    state = case.bench.process().state()
    found = state.timeline.find(case.instant)
    assert found is not None
    commit = state.commit(found)
    assert (commit.operation_type, commit.is_compacted, set(commit.extra_metadata)) == ("COMPACT", True, {"schema"})
    again, status, failure = case.attempt(done, execute(case.instant))
    assert (status, failure, again.visible) == ("completed", None, done.visible)


def test_a_plan_of_another_engine_that_dies_at_any_write_can_be_ended_by_either(case: Case) -> None:
    for number, left in crash_states(case.bench, case.scheduled, execute(case.instant)):
        TALLY.add("crash states")
        case.check(left)
        later = left.after_the_lock_expired()
        done, status, failure = case.attempt(later, execute(case.instant))
        assert (status, failure) == ("completed", None), f"write {number}"
        check_single_bases(case, done)
        done, status, failure = case.attempt(later, as_other(case.instant))
        assert (status, failure) == ("completed", None), f"write {number}"
        check_single_bases(case, done)
        written_case, written = case.with_write(later)
        _, status, failure = written_case.attempt(written, execute(case.instant))
        assert (status, failure) == ("completed", None), f"write {number}"
        TALLY.add("recoveries", 3)


def test_a_plan_of_another_engine_survives_a_failing_storage(case: Case) -> None:
    for fault, operation, left, failure in faults(case.bench, case.scheduled, execute(case.instant)):
        TALLY.add("faults")
        status = case.check(left)
        assert status == "completed" or failure is not None, f"{fault} {operation}"
        done, status, failure = case.attempt(left.after_the_lock_expired(), execute(case.instant))
        assert (status, failure) == ("completed", None), f"{fault} {operation}"
        check_single_bases(case, done)


def test_a_race_with_the_engine_that_planned_has_one_winner(case: Case) -> None:
    """The other engine shares the lock: while eventide holds it, it waits in vain, and runs the plan later."""
    for operation, left, failure, _ in interludes(
        case.bench, case.scheduled, execute(case.instant), as_other(case.instant, takes_lock=True)
    ):
        TALLY.add("interludes")
        assert failure is None or isinstance(failure, BusyError), f"{operation}: {failure!r}"
        if case.check(left) == "pending":
            TALLY.add("engines that waited in vain")
            left, status, failure = case.attempt(left, as_other(case.instant, takes_lock=True))
            assert (status, failure) == ("completed", None), operation
        check_single_bases(case, left)


def test_a_race_without_the_lock_has_one_winner_up_to_the_last_look(case: Case) -> None:
    steps = writes_of(case.bench, case.scheduled, execute(case.instant))
    locked = max(n for n, step in enumerate(steps) if (step.kind, step.path) == ("put_if_absent", LOCK_PREFIX))
    left_by = interludes(case.bench, case.scheduled, execute(case.instant), as_other(case.instant))
    for number, (operation, left, failure, _) in enumerate(left_by):
        if number > locked:
            break
        TALLY.add("interludes")
        assert failure is None or isinstance(failure, BusyError), f"{operation}: {failure!r}"
        assert case.check(left) == "completed", operation
        check_single_bases(case, left)


@pytest.mark.parametrize("waits", [0, LOCK_EXPIRY_MS], ids=["at once", "when the lock has expired"])
def test_two_processes_of_eventide_make_one_compaction_of_it(case: Case, waits: int) -> None:
    def other(_: Application) -> None:
        case.bench.clock.sleep(waits)
        execute(case.instant)(case.bench.process())

    for operation, left, failure, others_failure in interludes(
        case.bench, case.scheduled, execute(case.instant), other
    ):
        TALLY.add("interludes")
        assert failure is None or others_failure is None, f"{operation}: {failure!r} and {others_failure!r}"
        check_single_completion(left.files, case.instant)
        assert case.check(left) == "completed"


def test_a_plan_that_another_engine_has_begun_is_run_only_by_name(case: Case) -> None:
    begun = begun_by_other(case)
    left, status, failure = case.attempt(begun.later(7 * 60_000), execute(case.instant))
    assert status == "pending"
    assert isinstance(failure, BusyError)
    assert "7 minutes ago" in str(failure)
    assert left.visible == begun.visible
    for number, broken_off in crash_states(case.bench, begun, take_over(case.instant)):
        TALLY.add("crash states")
        case.check(broken_off)
        done, status, failure = case.attempt(broken_off.after_the_lock_expired(), take_over(case.instant))
        assert (status, failure) == ("completed", None), f"write {number}"
        check_single_bases(case, done)


def test_an_attempt_of_another_engine_that_died_leaves_no_second_base(case: Case) -> None:
    for number, left in crash_states(case.bench, case.scheduled, as_other(case.instant)):
        TALLY.add("crash states")
        done, status, failure = case.attempt(left.after_the_lock_expired(), take_over(case.instant))
        assert (status, failure) == ("completed", None), f"write {number}"
        check_single_bases(case, done)


def test_an_engine_that_was_alive_after_all_cannot_complete_a_second_time(case: Case) -> None:
    """It is put off before each of its writes, eventide takes its plan over, and it goes on.

    Base files that it writes after eventide's commit stay, until a person removes them: nobody could know that it lives.
    """
    if case.layout.has_metadata_table:
        return  # which it spoils
    for number, (operation, left, _, failure) in enumerate(
        interludes(case.bench, case.scheduled, as_other(case.instant), take_over(case.instant))
    ):
        assert failure is None or isinstance(failure, BusyError | MissingFileError), f"{operation}: {failure!r}"
        if number < 1:
            continue  # it had not begun
        TALLY.add("engines that woke up")
        check_single_completion(left.files, case.instant)
        named = files_of_commit(case, left)
        strays = {path for path in left.files if path.endswith(f"_{case.instant}.parquet")} - named
        files = {path: file for path, file in left.files.items() if path not in strays}
        assert case.check(replace(left, files=files)) == "completed", operation


def files_of_commit(case: Case, moment: Moment) -> set[str]:
    case.bench.load(moment)
    files = case.bench.process().files
    config = files.config()
    found = files.timeline(config).find(case.instant)
    assert found is not None
    return {stat.path for stat in files.commit(config, found).stats}


def test_an_engine_that_dies_while_it_rolls_an_attempt_back_leaves_a_plan_to_run(case: Case) -> None:
    """The attempt is eventide's, broken off. The rollback ends as Hudi's would: on version 6 writers go by the plan."""
    for number, left in crash_states(case.bench, broken_off(case), as_other(case.instant)):
        TALLY.add("crash states")
        done, status, failure = case.attempt(left.later(3_600_000), end_pending)
        if status == "pending":  # the other engine had begun the plan anew
            done, status, failure = case.attempt(done, take_over(case.instant))
        assert (status, failure) == ("completed", None), f"write {number}"
        check_single_bases(case, done)


def broken_off(case: Case) -> Moment:
    """An attempt of eventide that died right before its commit."""
    attempts = [left for _, left in crash_states(case.bench, case.scheduled, execute(case.instant))]
    return next(left for left in reversed(attempts) if case.check(left) == "pending").after_the_lock_expired()


@pytest.mark.parametrize("is_ended", [True, False], ids=["ended by eventide", "left alone"])
def test_an_engine_that_slept_in_its_rollback_removes_nothing_of_a_later_attempt(case: Case, is_ended: bool) -> None:
    """It rolls back an attempt that died, falls asleep, and wakes up when another attempt has committed, or was refused."""
    if case.layout.has_metadata_table:
        return  # which it spoils

    def others(_: Application) -> None:
        case.bench.clock.sleep(3_600_000)
        if is_ended:
            end_pending(case.bench.process())
        with suppress(InstantNotFoundError, BusyError):
            take_over(case.instant)(case.bench.process())

    left_by = interludes(case.bench, broken_off(case), as_other(case.instant), others)
    for number, (operation, left, _, failure) in enumerate(left_by):
        if number < 1 or operation.path.endswith(".commit"):
            continue  # nobody could know of its rollback; or it has looked for the inflight file, and commits
        TALLY.add("engines that woke up")
        assert failure is None, f"{operation}: {failure!r}"
        check_single_completion(left.files, case.instant)
        gone = files_of_commit(case, left) - left.files.keys()
        assert not gone, f"{operation}: {gone}"


def test_an_engine_that_begins_a_rollback_while_eventide_commits_leaves_one_base(case: Case) -> None:
    """It stands still in it, at every write, before and after eventide's last look; then somebody ends what is there."""
    steps = writes_of(case.bench, case.scheduled, execute(case.instant))
    locked = max(n for n, step in enumerate(steps) if (step.kind, step.path) == ("put_if_absent", LOCK_PREFIX))
    others = len(writes_of(case.bench, broken_off(case), as_other(case.instant)))
    for number in range(others):
        storage_of = FaultPlan(writes={number: Fault.CRASH_BEFORE})

        def begin(_: Application, plan: FaultPlan = storage_of) -> None:
            with suppress(SimulatedCrash):
                as_other(case.instant)(case.bench.process(FaultyStorage(case.bench.storage, plan)))

        case.bench.load(case.scheduled)
        failure: EventideError | None = None
        try:
            execute(case.instant)(
                case.bench.process(StandingStill(case.bench.storage, locked, partial(begin, case.bench.process())))
            )
        except EventideError as error:
            failure = error
        left = case.bench.moment()
        assert failure is None or isinstance(failure, BusyError), f"{number}: {failure!r}"
        done, status, failure = case.attempt(left.later(3_600_000), end_pending)
        if status == "pending":
            done, status, failure = case.attempt(done, take_over(case.instant))
        assert (status, failure) == ("completed", None), f"write {number}"
        check_single_bases(case, done)
        TALLY.add("rollbacks that stood still")


def end_pending(application: Application) -> None:
    application.pending.end(NoProgress())


def test_a_writer_who_commits_beside_it_loses_nothing(case: Case) -> None:
    told: list[Case] = []

    def write(_: Application) -> None:
        alone = case.bench.moment()
        before = case.before.copy()
        Story(case.layout, case.bench.storage, case.bench.clock, before, 9).commit(MEANWHILE)
        told.append(case.told(before, alone, case.bench.moment()))

    for operation, left, failure, others_failure in interludes(
        case.bench, case.scheduled, execute(case.instant), write
    ):
        TALLY.add("interludes")
        assert (told.pop().check(left), failure, others_failure) == ("completed", None, None), operation


def test_a_compaction_before_t_goes_on_after_it(case: Case) -> None:
    done, _, _ = case.attempt(case.scheduled, execute(case.instant))
    _, failure = case.bench.attempt(done, schedule(replace(HISTORY, cut_ms=35), LinkChoice.COPY))
    assert failure is None


def check_single_bases(case: Case, moment: Moment) -> None:
    """One base file a slice: readers of Hudi do not agree on which of two counts."""
    bases = [path for path in moment.files if path.endswith(f"_{case.instant}.parquet") and ".hoodie" not in path]
    assert len(bases) == len(case.plan.operations), bases


def _attempts_are_all_one(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(run_foreign, "next_attempt", lambda *_: 1)


def _earlier_bases_stay(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(run_foreign, "other_bases", lambda *_: ())


def _the_inflight_file_is_not_looked_at(patch: pytest.MonkeyPatch) -> None:
    """Whether the plan has completed is."""

    def is_ended(runner: ForeignCompactionRunner, plan: ForeignPlan, *_: object) -> bool:
        found = runner.files.timeline(runner.files.config()).find(plan.instant)
        return found is not None and found.is_completed

    patch.setattr(ForeignCompactionRunner, "_is_ended", is_ended)


def _the_base_files_are_not_looked_at(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ForeignCompactionRunner, "_check_made", lambda *_: None)


def _a_rollback_under_way_is_not_looked_at(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ForeignCompactionRunner, "_check_neighbours", lambda *_: None)


def _the_markers_stay(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(run_foreign, "remove_tree", lambda *_: None)


def _the_outcome_is_not_claimed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(run_foreign, "claim_outcome", lambda _, wanted: wanted)


def _the_metadata_table_keeps_what_an_earlier_attempt_told_it(patch: pytest.MonkeyPatch) -> None:
    real = ForeignCompactionRunner._put_inflight

    def put(runner: ForeignCompactionRunner, *arguments: object) -> None:
        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(type(runner.metadata), "revert", lambda *_: None)
            real(runner, *arguments)  # type: ignore[arg-type]

    patch.setattr(ForeignCompactionRunner, "_put_inflight", put)


BROKEN: tuple[tuple[Callable[[pytest.MonkeyPatch], None], int, bool, Callable[[Case], None]], ...] = (
    (
        _attempts_are_all_one,
        9,
        False,
        partial(test_an_engine_that_slept_in_its_rollback_removes_nothing_of_a_later_attempt, is_ended=True),
    ),
    (
        _a_rollback_under_way_is_not_looked_at,
        9,
        False,
        partial(test_an_engine_that_slept_in_its_rollback_removes_nothing_of_a_later_attempt, is_ended=False),
    ),
    (_earlier_bases_stay, 9, False, test_an_attempt_of_another_engine_that_died_leaves_no_second_base),
    (_the_inflight_file_is_not_looked_at, 6, False, test_a_race_with_the_engine_that_planned_has_one_winner),
    (
        _the_base_files_are_not_looked_at,
        6,
        False,
        test_an_engine_that_begins_a_rollback_while_eventide_commits_leaves_one_base,
    ),
    (_the_markers_stay, 6, False, test_a_plan_of_another_engine_is_run_as_that_engine_would),
    (
        _the_outcome_is_not_claimed,
        9,
        False,
        partial(test_two_processes_of_eventide_make_one_compaction_of_it, waits=LOCK_EXPIRY_MS),
    ),
    (
        _the_metadata_table_keeps_what_an_earlier_attempt_told_it,
        9,
        True,
        test_an_engine_that_dies_while_it_rolls_an_attempt_back_leaves_a_plan_to_run,
    ),
)


@pytest.mark.parametrize(
    ("is_wrong", "version", "has_metadata_table", "finds_it"), BROKEN, ids=lambda given: getattr(given, "__name__", "")
)
def test_each_rule_for_a_plan_of_another_engine_is_needed(
    is_wrong: Callable[[pytest.MonkeyPatch], None],
    version: int,
    has_metadata_table: bool,
    finds_it: Callable[[Case], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    layout = Layout(version, Order.EVENT_TIME, has_metadata_table=has_metadata_table)
    case = foreign_case(layout)
    with monkeypatch.context() as patch:
        is_wrong(patch)
        with pytest.raises((AssertionError, EventideError)):
            finds_it(case)


def test_the_enumeration_reached_what_it_is_for() -> None:
    check_reach({"plans of others": 6, "crash states": 100, "interludes": 300, "faults": 300})
