"""How often a compaction is drafted: once, and again under the lock only if the table is another one by then."""

import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from eventide import Table
from eventide.bootstrap import assemble
from eventide_core.action.compaction.request import CompactionRequest
from eventide_core.config import STRATEGY, LinkChoice
from eventide_core.errors import ConfigError, format_timestamp
from eventide_core.ports import Lease, TableLock
from eventide_core.service.compaction.scheduling.draft import CompactionDrafter
from eventide_core.service.compaction.scheduling.draft_plan import DraftPlan
from eventide_core.service.compaction.scheduling.schedule import CompactionScheduler
from support.run.command_line import run_json
from support.servers.s3_servers import S3Server
from support.tables.append import ROWS, SCHEMA, START_MS, filled, rows, seen

pytestmark = pytest.mark.slow

T_MS = START_MS + 50
T = format_timestamp(T_MS)
REQUEST = CompactionRequest(T_MS, None, LinkChoice.AUTO)
LATE = ("k9", "a", 40, "late")
ROWS_WITH_LATE = sorted((*ROWS, LATE))


def logged(path: Path, version: int = 9) -> Table:
    """A table of ROWS, all of them in base files and in log files."""
    table = filled(path, version)
    table.upsert(rows(*ROWS))
    return table


@pytest.fixture
def drafts(monkeypatch: pytest.MonkeyPatch) -> list[DraftPlan]:
    """What is drafted from now on."""
    made: list[DraftPlan] = []
    draft = CompactionDrafter.draft

    def counted(drafter: CompactionDrafter, *args: Any, **kwargs: Any) -> DraftPlan:
        made.append(draft(drafter, *args, **kwargs))
        return made[-1]

    monkeypatch.setattr(CompactionDrafter, "draft", counted)
    return made


@dataclass
class Late:
    """A lock, before whose first lease something else happens."""

    lock: TableLock
    meanwhile: Callable[[], object]
    is_over: bool = False

    def acquire(self) -> Lease:
        if not self.is_over:
            self.is_over = True
            self.meanwhile()
        return self.lock.acquire()


def scheduler(path: Path, meanwhile: Callable[[], object]) -> CompactionScheduler:
    """A scheduler that gets its lock only after something else has happened."""
    own = assemble(str(path), {}).scheduler
    return replace(own, lock=Late(own.lock, meanwhile))


@pytest.mark.parametrize("version", [6, 8, 9])
def test_the_command_line_drafts_a_compaction_once(version: int, tmp_path: Path, drafts: list[DraftPlan]) -> None:
    logged(tmp_path, version)
    document = run_json("compact", tmp_path, "--before", T, "--engine", "local")
    assert document["state"] == "completed"
    assert [draft.plan.instant for draft in drafts] == [document["instant"]]


@pytest.mark.parametrize("version", [6, 8, 9])
def test_compact_drafts_once_with_a_plan_and_without(version: int, tmp_path: Path, drafts: list[DraftPlan]) -> None:
    table = logged(tmp_path, version)
    first = table.compact(before=T)
    assert [draft.plan.instant for draft in drafts] == [first.instant]
    table.upsert(rows(LATE))
    plan = table.plan_compaction(T_MS + 1)
    assert table.compact(plan).instant == plan.instant
    assert len(drafts) == 2
    assert sorted(row["id"] for row in table.read_optimized().to_arrow().to_pylist()) == ["k0", "k1", "k2", "k9"]


@pytest.mark.parametrize("version", [6, 8, 9])
def test_a_write_before_the_lock_is_in_the_plan(version: int, tmp_path: Path, drafts: list[DraftPlan]) -> None:
    table = logged(tmp_path, version)
    draft = scheduler(tmp_path, lambda: table.upsert(rows(LATE))).schedule(REQUEST)
    assert len(drafts) == 2
    assert draft.plan == drafts[1].plan
    logs = {log.path for file_slice in table.state().view.latest_slices() for log in file_slice.log_files}
    assert {log.path for op in draft.plan.operations for log in op.compacted} == logs
    table.execute(draft.plan.instant)
    assert seen(table) == ROWS_WITH_LATE
    assert table.verify(deep=True).ok


@pytest.mark.parametrize("version", [6, 9])
def test_a_plan_in_hand_is_put_as_it_is(version: int, tmp_path: Path, drafts: list[DraftPlan]) -> None:
    table = logged(tmp_path, version)
    plan = table.plan_compaction(T)
    assert table.schedule(plan).instant == plan.instant
    assert len(drafts) == 1


@pytest.mark.parametrize("version", [6, 9])
def test_a_plan_in_hand_is_made_again_after_a_write(version: int, tmp_path: Path, drafts: list[DraftPlan]) -> None:
    table = logged(tmp_path, version)
    plan = table.plan_compaction(T)
    table.upsert(rows(LATE))
    table.execute(table.schedule(plan))
    assert len(drafts) == 2
    assert len(drafts[1].plan.paths) > len(drafts[0].plan.paths)
    assert seen(table) == ROWS_WITH_LATE


def test_a_plan_in_hand_is_made_again_if_t_follows_the_clock(tmp_path: Path, drafts: list[DraftPlan]) -> None:
    table = logged(tmp_path)
    made = table.schedule(table.plan_compaction(data_latency_seconds=1))
    assert len(drafts) == 2
    assert made.cut_ms == drafts[1].plan.cut_ms
    assert drafts[0].plan.cut_ms is not None
    assert made.cut_ms is not None
    assert drafts[0].plan.cut_ms <= made.cut_ms


def test_a_file_that_grows_before_the_lock_makes_another_draft(tmp_path: Path, drafts: list[DraftPlan]) -> None:
    """As an interrupted append leaves one on version 6: the timeline stays the same."""
    table = logged(tmp_path, 6)
    (log, *_) = (log for file_slice in table.state().view.latest_slices() for log in file_slice.log_files)
    torn = (tmp_path / log.path).read_bytes()[:20]

    def append() -> None:
        with (tmp_path / log.path).open("ab") as file:
            file.write(torn)

    scheduler(tmp_path, append).schedule(REQUEST)
    assert len(drafts) == 2
    assert drafts[0].state.timeline == drafts[1].state.timeline


def test_a_plan_of_another_table_is_made_again(tmp_path: Path, drafts: list[DraftPlan]) -> None:
    other, table = logged(tmp_path / "other"), logged(tmp_path / "table")
    made = table.schedule(other.plan_compaction(T))
    assert len(drafts) == 2
    own = {
        log.path for file_slice in Table.open(table.uri).state().view.latest_slices() for log in file_slice.log_files
    }
    assert made.merged_log_files == own


def test_a_plan_of_other_options_is_made_again(tmp_path: Path) -> None:
    """Options may refuse it, or leave out what it includes."""
    table = logged(tmp_path)
    plan = table.plan_compaction(T)
    by_size = Table.open(table.uri, {STRATEGY: "LogFileSizeBasedCompactionStrategy"})
    with pytest.raises(ConfigError, match="ignores event times"):
        by_size.schedule(plan)
    assert table.schedule(plan).instant == plan.instant


@pytest.mark.parametrize("version", [6, 9])
def test_a_draft_whose_instant_others_planned_and_rolled_back_is_made_again(version: int, moto: S3Server) -> None:
    """On an object store: the timeline is as it was, and only the record of the end says that the instant is undone."""
    uri = moto.uri(uuid.uuid4().hex)
    words: dict[str, Any] = {"record_key": "id", "partition": "part", "event_time": "ms", "version": version}
    table = Table.create(uri, schema=SCHEMA, options=moto.options, **words)
    for ms in (1, 2):
        table.upsert(rows(("k0", "a", ms, "word")))
    plan = table.plan_compaction(START_MS + 9)
    other = Table.open(uri, moto.options)
    undone = other.schedule(other.plan_compaction(START_MS + 9)).instant
    other.rollback(undone)
    assert undone == plan.instant
    put = table.schedule(plan)
    assert put.instant > undone
    assert table.resume().resumed == (put.instant,)
    assert seen(table) == [("k0", "a", 2, "word")]
