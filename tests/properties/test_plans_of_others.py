"""Plans that another engine of Hudi scheduled and eventide runs: interrupted at every write, and raced by that engine."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial

import pytest

from eventide.bootstrap import Application
from eventide.testing.compaction_case import MEANWHILE, Case
from eventide.testing.crash_enumeration import (
    LOCK_EXPIRY_MS,
    StandingStill,
    crash_states,
    execute,
    faults,
    interludes,
    schedule,
    writes_of,
)
from eventide.testing.histories import Layout, Story, layouts
from eventide.testing.inspection.checks import check_single_completion
from eventide.testing.inspection.observation import LOCK_PREFIX
from eventide.testing.oracle import Order
from eventide.testing.schedules.exploration import Explored, Schedules, in_words
from eventide_adapters.storage.faulty import Fault, FaultPlan, FaultyStorage, SimulatedCrash
from eventide_core.config import LinkChoice
from eventide_core.errors import BusyError, EventideError, InstantNotFoundError, MissingFileError
from eventide_core.service.compaction import completion, run_foreign
from eventide_core.service.compaction.run_foreign import ForeignCompactionRunner
from eventide_core.table.files.file_group_write import HEARTBEATS
from eventide_core.table.timeline.contents.checksums import CHECKSUMS_KEY
from eventide_core.table.timeline.contents.plans import ForeignPlan
from eventide_core.table.timeline.instant import Action, Instant, State
from support.pasts.compaction_cells import TALLY, check_reach
from support.pasts.plans_of_others import (
    HISTORY,
    as_other,
    bases_of,
    begun_by_other,
    check_single_bases,
    end_pending,
    files_of_commit,
    foreign_case,
    named,
    status_of,
    take_over,
    without_strays,
)
from support.run.campaign import IS_PROOF

pytestmark = pytest.mark.slow

KINDS = (
    *layouts(),
    *(replace(layout, has_metadata_table=True) for layout in layouts()[1::2]),
)


def marks_of(kind: Layout) -> tuple[pytest.MarkDecorator, ...]:
    if kind.order is not Order.EVENT_TIME:
        return (pytest.mark.proof,)
    return () if kind.version == 9 else (pytest.mark.broad,)


RACES = [
    pytest.param(
        kind,
        takes_lock,
        marks=pytest.mark.broad if takes_lock and kind.version >= 8 else pytest.mark.proof,
        id=f"{named(kind)}-{'one lock' if takes_lock else 'no lock'}",
    )
    for kind in KINDS
    for takes_lock in (True, False)
    # An engine that fails at its commit spoils the metadata table. From version 8 on, without a lock, an engine that looks
    # between eventide's inflight file and its completed file may complete the plan a second time.
    if not kind.has_metadata_table and (takes_lock or kind.version < 8) and (kind.order is Order.EVENT_TIME or IS_PROOF)
]


@pytest.fixture(
    scope="module",
    params=[pytest.param(kind, id=named(kind), marks=marks_of(kind)) for kind in KINDS],
)
def case(request: pytest.FixtureRequest) -> Case:
    return foreign_case(request.param)


def test_a_plan_of_another_engine_is_run_as_that_engine_would(case: Case) -> None:
    done, status, failure = case.attempt(case.scheduled, execute(case.instant))
    assert (status, failure) == ("completed", None)
    assert not [path for path in done.files if path.startswith(".hoodie/.temp/")]
    case.bench.load(done)
    state = case.bench.process().state()
    found = state.timeline.find(case.instant)
    assert found is not None
    commit = state.commit(found)
    assert (commit.operation_type, commit.is_compacted) == ("COMPACT", True)
    assert set(commit.extra_metadata) == {"schema", CHECKSUMS_KEY}
    again, status, failure = case.attempt(done, execute(case.instant))
    assert (status, failure, again.visible) == ("completed", None, done.visible)


def test_a_plan_of_another_engine_that_dies_at_any_write_can_be_ended_by_either(case: Case) -> None:
    """The other engine may leave the files of the dead run beside its own; the next run of eventide removes them."""
    for number, left in crash_states(case.bench, case.scheduled, execute(case.instant)):
        TALLY.add("crash states")
        case.check(left)
        later = left.after_the_lock_expired()
        done, status, failure = case.attempt(later, execute(case.instant))
        assert (status, failure) == ("completed", None), f"write {number}"
        check_single_bases(case, done)
        done, failure = case.bench.attempt(later, as_other(case.instant))
        assert failure is None, f"write {number}"
        assert case.check(without_strays(case, done)) == "completed", f"write {number}"
        swept, status, failure = case.attempt(done.later(3_600_000), end_pending)
        assert (status, failure) == ("completed", None), f"write {number}"
        check_single_bases(case, swept)
        assert not [path for path in swept.files if path.startswith(f"{HEARTBEATS}/{case.instant}")], f"write {number}"
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


def test_a_race_without_the_lock_has_one_winner_up_to_the_inflight_file(case: Case) -> None:
    steps = writes_of(case.bench, case.scheduled, execute(case.instant))
    begun = next(n for n, step in enumerate(steps) if step.path.endswith(f"{case.instant}.compaction.inflight"))
    left_by = interludes(case.bench, case.scheduled, execute(case.instant), as_other(case.instant))
    for number, (operation, left, failure, _) in enumerate(left_by):
        if number > begun:
            break
        TALLY.add("interludes")
        assert failure is None or isinstance(failure, BusyError), f"{operation}: {failure!r}"
        assert case.check(left) == "completed", operation
        check_single_bases(case, left)


@pytest.mark.parametrize(("case", "takes_lock"), RACES, indirect=["case"])
def test_whatever_order_two_engines_act_in_the_plan_is_completed_once(case: Case, takes_lock: bool) -> None:
    """Either stops up to three times, before any of its operations, and continues when the other has stopped or ended."""
    explored = Explored()
    actors = (execute(case.instant), as_other(case.instant, takes_lock=takes_lock))
    for end in Schedules(case.bench, case.scheduled, actors).all(explored, 3):
        TALLY.add("orders of two engines")
        where = f"{in_words(end.order)}: {end.failures}"
        assert all(failure is None or isinstance(failure, BusyError) for failure in end.failures), where
        if status_of(case, end.moment) == "pending":
            TALLY.add("engines that waited in vain")
            continue
        check_single_completion(end.moment.files, case.instant)
        assert files_of_commit(case, end.moment) <= end.moment.files.keys(), where
        assert case.check(without_strays(case, end.moment)) == "completed", where


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


def test_an_attempt_of_another_engine_that_died_leaves_no_second_base(case: Case) -> None:
    for number, left in crash_states(case.bench, case.scheduled, as_other(case.instant)):
        TALLY.add("crash states")
        done, status, failure = case.attempt(left.after_the_lock_expired(), take_over(case.instant))
        assert (status, failure) == ("completed", None), f"write {number}"
        check_single_bases(case, done)


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


def test_an_engine_that_was_alive_after_all_cannot_complete_a_second_time(case: Case) -> None:
    """It is put off before each of its writes, eventide takes its plan over, and it continues.

    Base files that it writes after eventide's commit stay, until the user removes them: nobody could know that it
    lives.
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
        assert case.check(without_strays(case, left)) == "completed", operation


def test_a_plan_that_its_engine_unscheduled_meanwhile_leaves_nothing_behind(case: Case) -> None:
    """As `compaction unschedule` of Hudi, which takes back what nobody has begun. Version 6: the logs name the slice."""
    if case.layout.version < 8:
        return

    def unschedule(_: Application) -> None:
        directory = case.bench.process().files.config().timeline_path
        requested, inflight = (
            f"{directory}/{Instant(case.instant, Action.COMPACTION, state).file_name}"
            for state in (State.REQUESTED, State.INFLIGHT)
        )
        if case.bench.storage.stat(inflight) is None:
            case.bench.storage.delete(requested)

    ends = set[str]()
    for operation, left, failure, _ in interludes(case.bench, case.scheduled, execute(case.instant), unschedule):
        ends.add(status := status_of(case, left))
        if status == "absent":
            assert isinstance(failure, BusyError | InstantNotFoundError), f"{operation}: {failure!r}"
            assert not bases_of(case, left), operation
            done, failure = case.bench.attempt(left, end_pending)
            assert (failure, done.visible) == (None, left.visible), operation
        else:
            assert (status, case.check(left), failure) == ("completed", "completed", None), operation
    assert ends == {"absent", "completed"}


def test_an_engine_that_dies_while_it_rolls_an_attempt_back_leaves_a_plan_to_run(case: Case) -> None:
    """The attempt is eventide's, interrupted. The rollback ends as Hudi's would: on version 6 writers go by the plan."""
    attempts = [left for _, left in crash_states(case.bench, case.scheduled, execute(case.instant))]
    begun = next(left for left in reversed(attempts) if case.check(left) == "pending")
    for number, left in crash_states(case.bench, begun.after_the_lock_expired(), as_other(case.instant)):
        TALLY.add("crash states")
        done, failure = case.bench.attempt(left.later(3_600_000), end_pending)
        if (
            isinstance(failure, BusyError) or status_of(case, done) == "pending"
        ):  # the other engine had begun the plan again
            done, failure = case.bench.attempt(done, take_over(case.instant))
        assert failure is None, f"write {number}"
        assert case.check(without_strays(case, done)) == "completed", f"write {number}"


def test_another_engines_rollback_that_takes_eventides_files_too_ends_in_one_commit(case: Case) -> None:
    """One engine has begun the plan beside eventide and died; the next one rolls that back by all markers, and dies, too."""
    steps = writes_of(case.bench, case.scheduled, execute(case.instant))
    locked = max(n for n, step in enumerate(steps) if (step.kind, step.path) == ("put_if_absent", LOCK_PREFIX))
    for death in range(16):

        def rolls_back(death: int = death) -> None:
            storage = case.bench.storage
            config = case.bench.process().files.config()
            inflight = Instant(case.instant, Action.COMPACTION, State.INFLIGHT)
            storage.put_if_absent(f"{config.timeline_path}/{inflight.file_name}", b"")
            with suppress(SimulatedCrash):
                dying = FaultyStorage(storage, FaultPlan(writes={death: Fault.CRASH_BEFORE}))
                as_other(case.instant)(case.bench.process(dying))

        case.bench.load(case.scheduled)
        failure: EventideError | None = None
        try:
            execute(case.instant)(case.bench.process(StandingStill(case.bench.storage, locked, rolls_back)))
        except EventideError as error:
            failure = error
        assert failure is None or isinstance(failure, BusyError), f"{death}: {failure!r}"
        done, failure = case.bench.attempt(case.bench.moment().later(3_600_000), end_pending)
        if isinstance(failure, BusyError) or status_of(case, done) == "pending":
            done, failure = case.bench.attempt(done, take_over(case.instant))
        assert failure is None, f"{death}: {failure!r}"
        assert case.check(without_strays(case, done)) == "completed", f"write {death}"
        TALLY.add("rollbacks that took files along")


def test_a_writer_that_commits_beside_it_loses_nothing(case: Case) -> None:
    told: list[Case] = []

    def write(_: Application) -> None:
        alone = case.bench.moment()
        before = case.before.copy()
        Story(case.layout, case.bench.storage, case.bench.clock, before, 9).commit(MEANWHILE)
        told.append(case.having(before, alone, case.bench.moment()))

    for operation, left, failure, others_failure in interludes(
        case.bench, case.scheduled, execute(case.instant), write
    ):
        TALLY.add("interludes")
        assert (told.pop().check(left), failure, others_failure) == ("completed", None, None), operation


def test_a_compaction_before_t_continues_after_it(case: Case) -> None:
    done, _, _ = case.attempt(case.scheduled, execute(case.instant))
    _, failure = case.bench.attempt(done, schedule(replace(HISTORY, cut_ms=35), LinkChoice.COPY))
    assert failure is None


def _earlier_bases_stay(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(run_foreign, "other_bases", lambda *_: ())


def _the_base_files_are_not_looked_at(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ForeignCompactionRunner, "check_made", lambda *_: None)


def _the_markers_stay_at_the_commit(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ForeignCompactionRunner, "remove_markers_of", lambda *_: None)


def _what_another_engine_has_begun_is_not_looked_at(patch: pytest.MonkeyPatch) -> None:
    """Whether the plan has completed is."""

    def is_ended(runner: ForeignCompactionRunner, plan: ForeignPlan, *_: object) -> bool:
        found = runner.files.timeline(runner.files.config()).find(plan.instant)
        return found is not None and found.is_completed

    patch.setattr(ForeignCompactionRunner, "is_ended", is_ended)


def _the_outcome_is_not_claimed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(completion, "claim_outcome", lambda _, wanted: wanted)


BROKEN: tuple[tuple[Callable[[pytest.MonkeyPatch], None], int, Callable[[Case], None]], ...] = (
    (_earlier_bases_stay, 9, test_an_attempt_of_another_engine_that_died_leaves_no_second_base),
    (
        _the_base_files_are_not_looked_at,
        6,
        test_another_engines_rollback_that_takes_eventides_files_too_ends_in_one_commit,
    ),
    (
        _the_markers_stay_at_the_commit,
        6,
        partial(test_whatever_order_two_engines_act_in_the_plan_is_completed_once, takes_lock=False),
    ),
    (
        _what_another_engine_has_begun_is_not_looked_at,
        6,
        test_a_race_without_the_lock_has_one_winner_up_to_the_inflight_file,
    ),
    (
        _the_outcome_is_not_claimed,
        9,
        partial(test_two_processes_of_eventide_make_one_compaction_of_it, waits=LOCK_EXPIRY_MS),
    ),
)


@pytest.mark.parametrize(("is_wrong", "version", "finds_it"), BROKEN)
def test_each_rule_for_a_plan_of_another_engine_is_needed(
    is_wrong: Callable[[pytest.MonkeyPatch], None],
    version: int,
    finds_it: Callable[[Case], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    case = foreign_case(Layout(version, Order.EVENT_TIME))
    with monkeypatch.context() as patch:
        is_wrong(patch)
        with pytest.raises((AssertionError, EventideError)):
            finds_it(case)


def test_the_enumeration_reached_what_it_is_for() -> None:
    check_reach({"plans of others": 6, "crash states": 100, "interludes": 250, "faults": 150})
