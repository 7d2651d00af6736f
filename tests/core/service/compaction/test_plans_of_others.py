"""What another engine has planned: who runs it, what is waited for, and what is said of it."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from eventide.bootstrap import Application
from eventide.testing.crash_enumeration import LOCK_EXPIRY_MS, OPTIONS, Bench
from eventide.testing.histories import EPOCH_MS, Layout, ManualClock, Story, put
from eventide.testing.living_table.stock_engine import schedule_as_stock
from eventide.testing.oracle import Order
from eventide_adapters.storage.memory import MemoryStorage
from eventide_core.action.compaction.request import CompactionRequest
from eventide_core.config import FOREIGN_PLANS, PENDING_WRITE_WAIT_MS, LinkChoice
from eventide_core.errors import BusyError, PlanMismatchError, RefusedError
from eventide_core.ports import NoProgress
from eventide_core.service.compaction.foreign_plan import Attempt, as_executed, claim_attempt, other_bases
from eventide_core.table.files.file_group_write import heartbeat_path
from eventide_core.table.timeline.contents.plans import ForeignOperation, ForeignPlan
from eventide_core.table.timeline.file_system_view import DataFile

C = "20991121000000000"
PLAN = ForeignPlan(C, (ForeignOperation("p", "f1", "1", "p/f1_0-0-0_20990101000000000.parquet", ()),))
LATER = CompactionRequest(EPOCH_MS + 10, None, LinkChoice.AUTO)


class EndingClock(ManualClock):
    """At the first sleep another engine ends what it is at."""

    def __init__(self, bench: Bench, path: str) -> None:
        super().__init__(bench.clock.time_ms)
        self._bench, self._path = bench, path

    def sleep(self, milliseconds: int) -> None:
        super().sleep(milliseconds)
        self._bench.storage.delete(self._path)


def table(options: Mapping[str, str] | None = None, version: int = 9) -> Bench:
    bench = Bench("others", {**OPTIONS, **(options or {})})
    story = Story.begin(Layout(version, Order.EVENT_TIME), bench.storage, bench.clock)
    story.commit((put("k0", 1, "base"), put("k1", 2, "base", partition="b")))
    story.commit((put("k0", 5, "early"), put("k1", 6, "early", partition="b")))
    bench.clock.sleep(10)
    return bench


def bases(*tokens: str, file_id: str = "f1", partition: str = "p", instant: str = C) -> list[DataFile]:
    return [DataFile(partition, f"{partition}/{file_id}_{token}_{instant}.parquet", 1) for token in tokens]


@pytest.mark.parametrize("attempt", [Attempt(1), Attempt(7, is_taken_over=True)])
def test_an_inflight_file_states_the_attempt(attempt: Attempt) -> None:
    assert Attempt.decode(attempt.encode(), "file") == attempt


@pytest.mark.parametrize("data", [b"", b"{}", b"null", b"[]", b"\xff", b'{"eventide.attempt": "1"}', b"[" * 100_000])
def test_an_inflight_file_of_another_engine_states_none(data: bytes) -> None:
    assert Attempt.decode(data, "file") is None


def claimed(listing: list[DataFile], claims: MemoryStorage | None = None) -> int:
    return claim_attempt(claims or MemoryStorage.from_dump("attempts", {}), listing, PLAN)


def test_an_attempt_takes_a_number_that_no_base_file_of_the_instant_has() -> None:
    assert claimed([]) == 1
    assert claimed(bases("0-0-0")) == 1
    assert claimed(bases("0-1-0", "0-71-104")) == 72
    assert claimed(bases("0-9-0", file_id="f2") + bases("0-9-0", instant="20981121000000000")) == 1


def test_two_attempts_never_have_the_same_number() -> None:
    """The first one is paused before it has made a base file."""
    claims = MemoryStorage.from_dump("attempts", {})
    assert [claimed([], claims) for _ in range(3)] == [1, 2, 3]


def test_base_files_of_other_attempts_are_those_of_the_plans_slices_alone() -> None:
    mine, other = bases("0-2-0", "0-1-0")
    elsewhere = bases("0-1-0", partition="q")
    assert other_bases([mine, other, *elsewhere], PLAN.instant, PLAN.file_groups, [mine.path]) == (other.path,)


def test_a_plan_whose_files_are_gone_is_not_run() -> None:
    bench = table()
    instant = schedule_as_stock(bench.process())
    process = bench.process()
    plan = process.files.plan(process.files.config(), instant)
    assert isinstance(plan, ForeignPlan)
    gone = plan.operations[0].log_paths[0]
    state = process.state()
    left = replace(state, listing=tuple(file for file in state.listing if file.path != gone))
    with pytest.raises(PlanMismatchError, match=f"{gone}, which the plan at {instant} of another engine merges"):
        as_executed(left, plan, 1)


def test_what_hudi_planned_is_run_before_anything_new_is_planned() -> None:
    bench = table()
    instant = schedule_as_stock(bench.process())
    process = bench.process()
    assert process.pending.has_any()
    assert process.pending.end(NoProgress()).resumed == (instant,)
    assert process.scheduler.plan(LATER).plan.instant > instant


def test_what_hudi_planned_is_left_alone_where_the_options_say_so() -> None:
    bench = table({FOREIGN_PLANS: "false", PENDING_WRITE_WAIT_MS: "2000"})
    instant = schedule_as_stock(bench.process())
    process, began = bench.process(), bench.clock.now_ms()
    assert process.pending.end(NoProgress()).resumed == ()
    assert bench.clock.now_ms() == began + 2000
    with pytest.raises(BusyError, match=rf'a compaction is pending at {instant}.*execute\("{instant}"\)'):
        process.scheduler.schedule(LATER)
    assert process.runner.execute(instant, NoProgress()).instant == instant, "by name it is run all the same"


def test_what_hudi_has_begun_is_waited_for_and_then_named_with_what_a_person_can_do() -> None:
    bench = table({PENDING_WRITE_WAIT_MS: "2000"})
    instant = schedule_as_stock(bench.process())
    bench.storage.put(f".hoodie/timeline/{instant}.compaction.inflight", b"")
    process, began = bench.process(), bench.clock.now_ms()
    with pytest.raises(
        BusyError, match=rf'started the compaction at {instant} 0 minutes ago.*execute\("{instant}", force=True\)'
    ):
        process.pending.end(NoProgress())
    assert bench.clock.now_ms() == began + 2000


def test_files_of_a_dead_run_beside_the_commit_go_and_those_of_a_live_one_stay() -> None:
    bench = table()
    instant = schedule_as_stock(bench.process())
    bench.process().runner.execute(instant, NoProgress())
    (base, *_) = sorted(path for path in bench.storage.dump() if path.endswith(f"_{instant}.parquet"))
    stray = base.replace("-1-0_", "-2-0_")
    assert stray != base
    bench.storage.put(stray, bench.storage.read(base))
    bench.storage.put(heartbeat_path(instant), b"")
    whole = bench.storage.dump().keys()

    assert not bench.process().pending.has_any()
    bench.process().pending.end(NoProgress())
    assert bench.storage.dump().keys() == whole

    bench.clock.sleep(LOCK_EXPIRY_MS)
    assert bench.process().pending.has_any()
    bench.process().pending.end(NoProgress())
    assert whole - bench.storage.dump().keys() == {stray, heartbeat_path(instant)}
    assert not bench.process().pending.has_any()


def test_a_plan_that_has_not_completed_is_not_what_another_engine_has_run_since() -> None:
    bench = table({FOREIGN_PLANS: "false", PENDING_WRITE_WAIT_MS: "0"})
    instant = schedule_as_stock(bench.process())
    bench.storage.put(heartbeat_path(instant), b"")
    bench.clock.sleep(LOCK_EXPIRY_MS)
    whole = bench.storage.dump().keys()
    bench.process().pending.end(NoProgress())
    assert bench.storage.dump().keys() == whole


@pytest.mark.parametrize("version", [6, 9])
def test_only_on_version_6_hudis_plan_waits_for_a_write_that_may_not_have_seen_it(version: int) -> None:
    bench = table({PENDING_WRITE_WAIT_MS: "2000"}, version)
    instant = schedule_as_stock(bench.process())
    directory = bench.process().files.config().timeline_path
    write = f"{directory}/{int(instant) - 1}.deltacommit.inflight"
    bench.storage.put(write, b"")
    before, began = bench.moment(), bench.clock.now_ms()
    if version == 6:
        with pytest.raises(BusyError, match=f"requested at {int(instant) - 1} has not completed"):
            bench.process().runner.execute(instant, NoProgress())
        assert bench.clock.now_ms() - began == 2000
        assert bench.storage.dump().keys() == before.files.keys()
        bench.clock = EndingClock(bench, write)
    assert bench.process().runner.execute(instant, NoProgress()).instant == instant
    assert bench.clock.now_ms() - began < 3000


def test_a_plan_of_hudi_is_not_run_beside_a_rollback() -> None:
    bench = table()
    instant = schedule_as_stock(bench.process())
    for state in ("requested", "inflight"):
        bench.storage.put(f".hoodie/timeline/{C}.rollback.{state}", b"")
    with pytest.raises(BusyError, match=f"a rollback is in progress at {C}"):
        bench.process().runner.execute(instant, NoProgress())


def test_a_plan_of_hudi_that_a_run_of_eventide_has_begun_is_gone_on_with() -> None:
    bench = table({PENDING_WRITE_WAIT_MS: "0"})
    instant = schedule_as_stock(bench.process())
    bench.storage.put(f".hoodie/timeline/{instant}.compaction.inflight", Attempt(3).encode())
    assert bench.process().pending.end(NoProgress()).resumed == (instant,)
    bases = [path for path in bench.storage.dump() if path.endswith(f"-3-0_{instant}.parquet")]
    assert len(bases) == 2


@pytest.mark.parametrize("action", ["logcompaction", "clustering"])
def test_a_foreign_action_is_waited_for_and_no_message_suggests_to_run_it(action: str) -> None:
    bench = table({PENDING_WRITE_WAIT_MS: "3000"})
    path = f".hoodie/timeline/{C}.{action}.requested"
    bench.storage.put(path, b"")
    process, began = bench.process(), bench.clock.now_ms()
    process.pending.end(NoProgress())
    assert bench.clock.now_ms() == began + 3000
    for ask in (lambda: process.scheduler.schedule(LATER), lambda: process.runner.execute(C, NoProgress())):
        with pytest.raises(
            BusyError, match=f"a {action} is pending at {C}.*only the engine that planned it can run it"
        ) as busy:
            ask()
        assert "--execute" not in str(busy.value)


@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize("states", [("requested",), ("requested", "inflight")])
@pytest.mark.parametrize("action", ["logcompaction", "clustering"])
def test_a_dead_engines_plan_that_blocks_is_undone_by_the_command_in_the_message(
    action: str, states: tuple[str, ...], version: int
) -> None:
    bench = table({PENDING_WRITE_WAIT_MS: "0"}, version=version)
    directory = ".hoodie" if version == 6 else ".hoodie/timeline"
    name = "replacecommit" if action == "clustering" and version == 6 else action
    for state in states:
        bench.storage.put(f"{directory}/{C}.{name}.{state}", b"")
    if name == "replacecommit" and states == ("requested",):
        pytest.skip("an insert overwrite, which blocks no plan")
    with pytest.raises(BusyError, match=rf'`table.rollback\("{C}", force=True\)`, which loses no row'):
        bench.process().scheduler.schedule(LATER)
    bench.process().rollback.undo(C, force=True)
    assert bench.process().scheduler.schedule(LATER).idle is None


def test_it_continues_as_soon_as_the_other_engine_has_finished() -> None:
    bench = table({PENDING_WRITE_WAIT_MS: "60000"})
    path = f".hoodie/timeline/{C}.clustering.requested"
    bench.storage.put(path, b"")
    began = bench.clock.now_ms()
    bench.clock = EndingClock(bench, path)
    bench.process().pending.end(NoProgress())
    assert bench.clock.now_ms() - began < 1000
    assert bench.process().scheduler.plan(LATER).idle is None


def test_an_undo_on_version_6_keeps_a_plan_that_writers_go_by() -> None:
    bench = table(version=6)
    instant = schedule_as_stock(bench.process())
    with pytest.raises(RefusedError, match=rf'table.execute\("{instant}"\)'):
        rollback(bench.process(), instant)


def rollback(application: Application, instant: str) -> None:
    application.rollback.undo(instant)
