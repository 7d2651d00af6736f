"""What a plan reads: of logs whose content is known from the timeline nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

from eventide import Table
from eventide.bootstrap import assemble
from eventide_core.action.compaction_request import CompactionRequest
from eventide_core.config import BUCKETS, EVENT_TIME_FIELD, LinkChoice
from eventide_core.service.draft_plan import DraftPlan
from support.counting_storage import CountingStorage

COLUMNS: list[pa.Field[Any]] = [
    pa.field("id", pa.string()),
    pa.field("part", pa.string()),
    pa.field("ms", pa.int64(), nullable=False),
]
OPTIONS = {EVENT_TIME_FIELD: "ms"}


def table_of_two_logs(path: Path) -> Table:
    table = Table.create(
        str(path),
        schema=pa.schema(COLUMNS),
        record_key="id",
        partition="part",
        event_time="ms",
        version=9,
        options={BUCKETS: 1, **OPTIONS},
    )
    for ms in (1_700_000_000_000, 1_700_000_100_000, 1_700_000_200_000):
        table.upsert(pa.Table.from_pylist([{"id": "k", "part": "a", "ms": ms}], schema=pa.schema(COLUMNS)))
    return table


def plan(path: Path) -> tuple[DraftPlan, list[str]]:
    """A plan up to between the last two logs, and the data files that it opened."""
    storage = CountingStorage(str(path))
    request = CompactionRequest(1_700_000_150_000, None, LinkChoice.AUTO)
    draft = assemble(str(path), OPTIONS, storage=storage).scheduler.plan(request)
    return draft, [name for name in storage.opened if not name.startswith(".hoodie/")]


def test_a_plan_opens_no_log_whose_write_stat_tells_its_range_where_eventide_wrote_it(tmp_path: Path) -> None:
    table_of_two_logs(tmp_path)
    draft, opened = plan(tmp_path)
    (op,) = draft.plan.operations
    assert (len(op.compacted), len(op.remaining)) == (1, 1)
    assert opened == []


def test_a_plan_looks_at_the_headers_of_logs_that_another_engine_wrote(tmp_path: Path) -> None:
    table = table_of_two_logs(tmp_path)
    state = table.state()
    for instant in state.timeline.writes:
        file = tmp_path / state.config.timeline_path / instant.file_name
        said = file.read_bytes()
        assert b"eventide.writer" in said
        file.write_bytes(said.replace(b"eventide.writer", b"somebody.writer"))
    logs = {log.path for found in state.view.latest_slices() for log in found.log_files}
    assert set(plan(tmp_path)[1]) == logs
