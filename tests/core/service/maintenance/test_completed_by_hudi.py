"""A clean of eventide that Hudi completed, although others need all of its files by then."""

import os
import shutil
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest

from eventide import Table
from eventide.bootstrap import assemble
from eventide_core.table.timeline.instant import Action, next_instant_time
from support.tables.append import START_MS, make, rows

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("version", [6, 9])
def test_nothing_is_recorded_of_a_clean_that_has_nothing_left_to_remove(version: int, tmp_path: Path) -> None:
    """A plan without files would make every clean of Hudi fail, if its process died before it completes it."""
    path, cleaned = tmp_path / "t", tmp_path / "cleaned"
    table = make(path, version)
    for ms in range(3):
        table.upsert(rows(("k0", "a", ms, "x")))
        table.compact(before=START_MS + 100 + ms)
    shutil.copytree(path, cleaned)
    done = Table.open(str(cleaned)).clean(1)
    assert done.deleted
    assert done.instant is not None
    for write in table.state().timeline.writes:
        table.savepoint(write.requested_time)

    files = assemble(str(cleaned), {}).files
    plan = files.clean_plan(files.config(), done.instant)
    (partition,) = plan.deleted
    nothing = f"{UUID(int=0)}-0_0-0-0_{done.instant}.parquet"
    by_hudi = files.codec.encode_clean(replace(plan, deleted={partition: (nothing,)}))
    name = f"{done.instant}.clean" if version == 6 else f"{done.instant}_{next_instant_time(done.instant)}.clean"
    (late,) = cleaned.glob(".hoodie/**/*.clean.requested")
    timeline = path / late.parent.relative_to(cleaned)
    shutil.copy(late, timeline)
    (timeline / f"{done.instant}.clean.inflight").touch()
    (timeline / name).write_bytes(by_hudi)
    heartbeat = path / ".hoodie/.heartbeat" / done.instant
    heartbeat.parent.mkdir(exist_ok=True)
    heartbeat.touch()
    os.utime(heartbeat, (0, 0))

    assert not table.clean(1).deleted
    assert [i.requested_time for i in table.state().timeline.instants if i.action is Action.CLEAN] == [done.instant]
    assert table.verify(deep=True).ok
