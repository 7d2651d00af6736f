"""A plan of another engine, and what that engine and eventide do with it."""

from contextlib import suppress
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq

from eventide.bootstrap import Application
from eventide.testing.compaction_case import Case
from eventide.testing.crash_enumeration import (
    Bench,
    Moment,
    Protocol,
    start_of,
)
from eventide.testing.histories import History, Layout, Story, delete, put, write_history
from eventide.testing.inspection.checks import merged_counts
from eventide.testing.living_table.stock_engine import EngineFailedError, run_plan_as_stock, schedule_as_stock
from eventide_core.action.compaction.request import CompactionRequest
from eventide_core.config import LinkChoice
from eventide_core.errors import LockError, StorageError
from eventide_core.ports import NoProgress
from eventide_core.service.compaction.foreign_plan import as_executed
from eventide_core.table.files.file_name import BaseFileName
from eventide_core.table.timeline.contents.plans import ForeignPlan
from eventide_core.table.timeline.instant import Action, Instant, State
from support.pasts.compaction_cells import TALLY

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


def named(kind: Layout) -> str:
    return f"v{kind.version}-{kind.order.name}-{kind.has_metadata_table}"


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
        with suppress(EngineFailedError, LockError, StorageError):
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


def status_of(case: Case, moment: Moment) -> str:
    case.bench.load(moment)
    files = case.bench.process().files
    found = files.timeline(files.config()).find(case.instant)
    return "absent" if found is None else "completed" if found.is_completed else "pending"


def check_same_rows(moment: Moment, stray: str, case: Case) -> None:
    """A reader of Hudi may take either."""
    name = BaseFileName.parse(stray.rpartition("/")[2])
    assert name is not None
    (named,) = (path for path in files_of_commit(case, moment) if name.file_id in path)
    stray_rows, rows = (
        pq.read_table(pa.BufferReader(moment.files[path].data)).drop_columns(["_hoodie_file_name"])
        for path in (stray, named)
    )
    assert stray_rows.equals(rows), stray


def files_of_commit(case: Case, moment: Moment) -> set[str]:
    case.bench.load(moment)
    files = case.bench.process().files
    config = files.config()
    found = files.timeline(config).find(case.instant)
    assert found is not None
    return {stat.path for stat in files.commit(config, found).stats}


def end_pending(application: Application) -> None:
    application.pending.end(NoProgress())


def bases_of(case: Case, moment: Moment) -> list[str]:
    return [path for path in moment.files if path.endswith(f"_{case.instant}.parquet") and ".hoodie" not in path]


def without_strays(case: Case, moment: Moment) -> Moment:
    """The table without base files beside the commit's own: they hold the same rows, and nobody knows who needs them."""
    strays = set(bases_of(case, moment)) - files_of_commit(case, moment)
    for path in strays:
        TALLY.add("base files of an engine that lost")
        check_same_rows(moment, path, case)
    return replace(moment, files={path: file for path, file in moment.files.items() if path not in strays})


def check_single_bases(case: Case, moment: Moment) -> None:
    """One base file a slice: readers of Hudi do not agree on which of two counts."""
    bases = bases_of(case, moment)
    assert len(bases) == len(case.plan.operations), bases
