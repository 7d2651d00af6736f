"""Version 6: a process that was paused puts its plan when others have planned or compacted: the plan is rolled back.

Its plan stays when it wakes up, because writers of version 6 may follow it by then.
"""

from collections.abc import Callable
from dataclasses import replace

import pytest

from eventide.rows.writer import arrow_records
from eventide.testing.crash_enumeration import Bench, pending_plan
from eventide.testing.histories import EPOCH_MS, put, records
from eventide.testing.oracle import Change
from eventide_core.action.compaction.request import CompactionRequest
from eventide_core.config import LinkChoice
from eventide_core.errors import BusyError, RefusedError
from eventide_core.ports import NoProgress
from eventide_core.table.settings.write_shape import WriteOperation
from eventide_core.table.timeline.contents.plans import require_ours
from support.faults.damages import table_to_damage
from support.pasts.served import rows

pytestmark = pytest.mark.slow

REQUEST = CompactionRequest(EPOCH_MS + 25, None, LinkChoice.COPY)


def _before_its_plan_is_put(*changed: Change) -> tuple[Bench, str, bytes]:
    """A table, and the plan that a paused process has yet to put: its instant and its content. First changes rows."""
    bench, moment, _ = table_to_damage(6, LinkChoice.COPY)
    bench.load(moment)
    if changed:
        _write(bench, *changed)
    bench.process().scheduler.schedule(REQUEST)
    instant = pending_plan(bench.process()).instant
    path = f".hoodie/{instant}.compaction.requested"
    plan = bench.storage.read(path)
    bench.storage.delete(path)
    bench.clock.time_ms += 600_000
    return bench, instant, plan


def _put(bench: Bench, instant: str, plan: bytes) -> None:
    assert bench.storage.put_if_absent(f".hoodie/{instant}.compaction.requested", plan)


def _write(bench: Bench, *changed: Change) -> None:
    incoming = arrow_records(bench.process(), *records(changed or (put("k0", 30, "new"),)))
    bench.process().append.write(WriteOperation.UPSERT, incoming, NoProgress())


def _is_left(bench: Bench, instant: str) -> bool:
    return any(instant in name for name in bench.storage.dump() if ".aux/eventide/" not in name)


def _check(bench: Bench) -> None:
    assert {row[1] for row in rows(bench.process())} >= {"k0", "k1", "k2", "k3", "k4"}
    assert bench.process().verifier.verify(is_deep=True, progress=NoProgress()).ok


def test_a_plan_put_after_others_compacted_is_rolled_back_and_its_time_reached() -> None:
    bench, late, plan = _before_its_plan_is_put()
    draft = bench.process().scheduler.schedule(REQUEST)
    done = bench.process().runner.execute(draft.plan.instant, NoProgress())
    _put(bench, late, plan)
    result = bench.process().runner.execute(late, NoProgress())
    assert result.is_already_reached
    assert result.instant == done.instant
    assert not _is_left(bench, late)
    _check(bench)


def test_a_plan_put_beside_a_later_one_is_rolled_back_and_the_later_one_runs() -> None:
    bench, late, plan = _before_its_plan_is_put()
    later = bench.process().scheduler.schedule(REQUEST).plan.instant
    _put(bench, late, plan)
    with pytest.raises(BusyError, match=late):
        bench.process().runner.execute(later, NoProgress())
    with pytest.raises(BusyError, match=rf'execute\("{later}"\)'):
        bench.process().runner.execute(late, NoProgress())
    assert not _is_left(bench, late)
    assert bench.process().runner.execute(later, NoProgress()).instant == later
    _check(bench)


def test_a_table_service_ends_a_late_plan_by_itself() -> None:
    bench, late, plan = _before_its_plan_is_put()
    _write(bench)
    later = bench.process().scheduler.schedule(REQUEST).plan.instant
    _put(bench, late, plan)
    ended = bench.process().pending.end_compactions(NoProgress())
    assert (ended.rolled_back, ended.resumed) == ((late,), (later,))
    assert not _is_left(bench, late)
    _check(bench)


def _only_in_part_a(bench: Bench, instant: str) -> None:
    """Leaves out what a plan has in other partitions, as another strategy would."""
    files, path = bench.process().files, f".hoodie/{instant}.compaction.requested"
    plan = require_ours(files.plan(files.config(), instant))
    operations = tuple(op for op in plan.operations if op.partition == "part=a")
    assert len(operations) < len(plan.operations)
    bench.storage.put(path, files.codec.encode_plan(replace(plan, operations=operations, cut_ms=None)))


def _followed(act: Callable[[Bench, str], None]) -> tuple[Bench, str, str]:
    """A late plan of two file groups, of which a writer has followed one: the table, it, and a later plan.

    Others `act` on the later plan before.
    """
    bench, late, plan = _before_its_plan_is_put(put("k2", 5, "in a log", partition="b"))
    later = bench.process().scheduler.schedule(REQUEST).plan.instant
    act(bench, later)
    _put(bench, late, plan)
    _write(bench, put("k2", 7, "followed", partition="b"))
    with pytest.raises(RefusedError, match="would be lost"):
        bench.process().rollback.undo(late)
    return bench, late, later


def _compacted_partitions(bench: Bench, instant: str) -> set[str]:
    paths = (file.path for file in bench.process().state().listing if instant in file.path)
    return {path.partition("/")[0] for path in paths if path.endswith(".parquet")}


def _check_followed(bench: Bench) -> None:
    assert ("part=b", "k2", EPOCH_MS + 7, "followed") in {row[:4] for row in rows(bench.process())}
    _check(bench)


def _complete_in_part_a(bench: Bench, instant: str) -> None:
    _only_in_part_a(bench, instant)
    bench.process().runner.execute(instant, NoProgress())


def _begin_in_part_a(bench: Bench, instant: str) -> None:
    _only_in_part_a(bench, instant)
    assert bench.storage.put_if_absent(f".hoodie/{instant}.compaction.inflight", b"")


@pytest.mark.parametrize("act", [_complete_in_part_a, _begin_in_part_a])
def test_a_late_plan_with_a_log_file_runs_without_what_others_compact(
    act: Callable[[Bench, str], None],
) -> None:
    """Its log file is in the new slice of the plan, so the plan can't be rolled back."""
    bench, late, later = _followed(act)
    result = bench.process().runner.execute(late, NoProgress())
    assert result.instant == late
    assert result.freshness.cut_ms == EPOCH_MS + 10  # the last one: this plan guarantees no time any more
    assert _compacted_partitions(bench, late) == {"part=b"}
    if act is _begin_in_part_a:
        bench.process().runner.execute(later, NoProgress())
    assert _compacted_partitions(bench, later) == {"part=a"}
    _check_followed(bench)


def test_a_late_plan_with_a_log_file_runs_before_a_later_one_that_nobody_began() -> None:
    bench, late, later = _followed(_only_in_part_a)
    with pytest.raises(BusyError, match=rf'execute\("{late}"\)'):
        bench.process().runner.execute(later, NoProgress())
    result = bench.process().runner.execute(late, NoProgress())
    assert result.freshness.cut_ms == REQUEST.threshold_ms
    assert _compacted_partitions(bench, late) == {"part=a", "part=b"}
    bench.process().runner.execute(later, NoProgress())
    assert _compacted_partitions(bench, later) == {"part=a"}
    _check_followed(bench)


def test_two_late_plans_lose_nothing_that_a_writer_has_put_between_them() -> None:
    """The later plan was made before the log file that is in the new slice of the earlier one."""
    bench, late, plan = _before_its_plan_is_put()
    later = bench.process().scheduler.schedule(REQUEST).plan.instant
    path = f".hoodie/{later}.compaction.requested"
    other = bench.storage.read(path)
    bench.storage.delete(path)
    _put(bench, late, plan)
    _write(bench, put("k0", 37, "between"))
    assert bench.storage.put_if_absent(path, other)
    for instant in (late, later):
        bench.process().runner.execute(instant, NoProgress())
    assert ("part=a", "k0", EPOCH_MS + 37, "between") in {row[:4] for row in rows(bench.process())}
    _check(bench)
