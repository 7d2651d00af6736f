"""What a plan reads: of logs whose content is known from the timeline nothing."""

from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from eventide import Table
from eventide.bootstrap import Application, assemble
from eventide_core.action.compaction.request import CompactionRequest
from eventide_core.config import (
    BUCKETS,
    EVENT_TIME_FIELD,
    EVENT_TIME_ZONE,
    LOG_EVENT_TIMES,
    MAX_LEFT_OVERS,
    TRACK_EVENT_TIMES,
    LinkChoice,
)
from eventide_core.errors import format_timestamp
from eventide_core.service.compaction.scheduling.draft_plan import DraftPlan
from eventide_core.table.files.log_facts import LogFacts
from eventide_core.table.timeline.contents.plans import CutMode
from support.doubles.counting_storage import CountingStorage
from support.values.columns import schema_of

pytestmark = pytest.mark.slow

COLUMNS: "list[pa.Field[Any]]" = [
    pa.field("id", pa.string()),
    pa.field("part", pa.string()),
    pa.field("ms", pa.int64(), nullable=False),
]
OPTIONS: dict[str, str] = {EVENT_TIME_FIELD: "ms"}


def table_of_two_logs(path: Path, version: int = 9, options: dict[str, str] = OPTIONS) -> Table:
    table = Table.create(
        str(path),
        schema=pa.schema(COLUMNS),
        record_key="id",
        partition="part",
        event_time="ms",
        version=version,
        options={BUCKETS: 1, **options},
    )
    for ms in (1_700_000_000_000, 1_700_000_100_000, 1_700_000_200_000):
        table.upsert(pa.Table.from_pylist([{"id": "k", "part": "a", "ms": ms}], schema=pa.schema(COLUMNS)))
    return table


def plan(path: Path, options: dict[str, str] = OPTIONS) -> tuple[DraftPlan, list[str]]:
    """A plan up to between the last two logs, and the data files that it opened."""
    storage = CountingStorage(str(path))
    request = CompactionRequest(1_700_000_150_000, None, LinkChoice.AUTO)
    draft = assemble(str(path), options, storage=storage).scheduler.plan(request)
    return draft, [name for name in storage.opened if not name.startswith(".hoodie/")]


@pytest.mark.parametrize("version", [6, 9])
def test_a_plan_opens_no_log_that_eventide_wrote(version: int, tmp_path: Path) -> None:
    table_of_two_logs(tmp_path, version)
    draft, opened = plan(tmp_path, {})
    (op,) = draft.plan.operations
    assert (len(op.compacted), len(op.left_overs)) == (1, 1)
    assert opened == []


def test_a_plan_reads_the_headers_of_log_files_that_another_engine_wrote(tmp_path: Path) -> None:
    table = table_of_two_logs(tmp_path)
    assert _say_otherwise(table, tmp_path, b"eventide.writer", b"somebody.writer")
    assert set(plan(tmp_path)[1]) == _logs(table)


def test_of_each_write_of_another_engine_the_headers_of_one_log_file_are_read(tmp_path: Path) -> None:
    table = table_of_two_logs(tmp_path)
    for ms in (1_700_000_000_000, 1_700_000_100_000, 1_700_000_200_000):
        rows = [{"id": "k", "part": part, "ms": ms} for part in ("b", "c")]
        table.upsert(pa.Table.from_pylist(rows, schema=pa.schema(COLUMNS)))
    assert _say_otherwise(table, tmp_path, b"eventide.writer", b"somebody.writer")
    opened = plan(tmp_path)[1]
    of_b, of_c = ({log for log in _logs(table) if log.startswith(part)} for part in ("part=b/", "part=c/"))
    assert set(opened) == _logs(table) - of_c, "b and c were written together"
    assert len(of_b) == len(of_c) == 2


def test_stats_of_another_event_time_field_are_not_believed(tmp_path: Path) -> None:
    table = table_of_two_logs(tmp_path, 6)
    _say_otherwise(table, tmp_path, b'"eventide.event.times": "ms"', b'"eventide.event.times": "id"')
    assert set(plan(tmp_path)[1]) == _logs(table)


def test_a_log_that_grew_after_its_commit_is_opened(tmp_path: Path) -> None:
    table = table_of_two_logs(tmp_path, 6)
    first, second = sorted(_logs(table))
    with (tmp_path / first).open("ab") as log:
        log.write((tmp_path / second).read_bytes())
    assert set(plan(tmp_path)[1]) == {first}


@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.filterwarnings("ignore::eventide.rows.ordering_warnings.OrderingWarning")
def test_what_write_stats_tell_of_a_log_is_what_its_blocks_hold(version: int, tmp_path: Path) -> None:
    """Of each kind of event time, of nulls, of deletes with and without an ordering value."""
    times: dict[str, tuple[Any, list[Any]]] = {
        "number": (pa.int64(), [1_700_000_100_000, 1_700_000_000, 1_700_000_200_000_000, 3]),
        "maybe": (pa.int64(), [1_700_000_100_000, 1_700_000_000, None, 3]),
        "moment": (pa.timestamp("us", "UTC"), [datetime(2026, 1, day, tzinfo=UTC) for day in (3, 1, 2, 4)]),
        "day": (pa.date32(), [date(2026, 1, day) for day in (3, 1, 2, 4)]),
        "text": (pa.string(), ["2026-01-03T00:00Z", "2026-01-01T00:00Z", "2026-01-02T00:00+02:00", "1700000000000"]),
    }
    for name, (kind, values) in times.items():
        schema = pa.schema([pa.field("id", pa.string()), pa.field("at", kind), pa.field("no", pa.int64())])
        stats: dict[str, str] = {LOG_EVENT_TIMES: "false", BUCKETS: "1"}
        path = str(tmp_path / name)
        by = "no" if None in values else "at"
        zone = {str(EVENT_TIME_ZONE): "Europe/Berlin"} if name == "day" else {}
        table = Table.create(
            path, schema=schema, record_key="id", ordering=by, event_time="at", version=version, options=stats | zone
        )
        for number, value in enumerate([*values, values[0]]):
            rows = [{"id": "a", "at": value, "no": number}, {"id": f"b{number}", "at": values[1], "no": 0}]
            table.upsert(pa.Table.from_pylist(rows, schema=schema))
        table.delete(pa.Table.from_pylist([{"id": "b1", "at": values[3], "no": 9}], schema=schema))
        table.delete(pa.table({"id": ["b3"]}))
        logs = _facts(assemble(path, stats), is_told=False)
        told = _facts(assemble(path, stats), is_told=True)
        assert told == logs
        assert len(told) == 6
        assert sum(fact.delete_count for fact in told.values()) == 2


@pytest.mark.parametrize("version", [6, 9])
def test_a_compaction_records_the_actual_content_of_a_left_over(version: int, tmp_path: Path) -> None:
    """Of logs that no writer described, with deletes and without, and those whose time is not known."""
    silent: dict[str, str] = {LOG_EVENT_TIMES: "false", TRACK_EVENT_TIMES: "false", BUCKETS: "1", MAX_LEFT_OVERS: "9"}
    schema, path = schema_of(id=pa.string(), at=pa.int64()), str(tmp_path)
    table = Table.create(path, schema=schema, record_key="id", event_time="at", version=version, options=silent)
    for at in (1, 10, 20, 30):
        table.upsert(pa.Table.from_pylist([{"id": f"{at} {n}", "at": at + n} for n in range(3)], schema=schema))
    table.delete(pa.Table.from_pylist([{"id": "20 0", "at": 40}, {"id": "20 1", "at": 41}], schema=schema))
    table.delete(pa.table({"id": ["30 0"]}))
    table.upsert(pa.Table.from_pylist([{"id": "1 0", "at": 50}], schema=schema))
    table.compact(table.plan_compaction(format_timestamp(25), cut=CutMode.EXACT, link_mode=LinkChoice.COPY))
    logs = _facts(assemble(path, silent), is_told=False)
    application = assemble(path, silent, storage=(storage := CountingStorage(path)))
    told = _facts(application, is_told=True)
    assert [*map(_content, told.values())] == [*map(_content, logs.values())]
    assert sum(fact.delete_count for fact in told.values()) == 3
    unknown = {path for path, fact in told.items() if fact.event_times.unknown_records}
    assert 0 < len(unknown) < len(told)
    assert {name for name in storage.opened if ".log." in name} == unknown


def _content(fact: LogFacts) -> tuple[Any, ...]:
    """What does not depend on where the log stands, and what became of its records."""
    return fact.log_file, fact.event_times, fact.delete_count, fact.rolled_back, fact.has_merged_block


def _facts(application: Application, *, is_told: bool) -> dict[str, LogFacts]:
    """The facts of all logs, with the timeline's help, or by their content alone."""
    state = application.state()
    logs = [log for file_slice in state.view.latest_slices() for log in file_slice.log_files]
    asked = state if is_told else replace(state, commits={})
    shape = state.shape("at")
    return application.freshness.facts.read(asked, shape, logs, are_stats_proof=False)


def _logs(table: Table) -> set[str]:
    return {log.path for file_slice in table.state().view.latest_slices() for log in file_slice.log_files}


def _say_otherwise(table: Table, path: Path, said: bytes, otherwise: bytes) -> bool:
    """Changes what the commits say. Whether all of them said it."""
    state, all_said = table.state(), True
    for instant in state.timeline.writes:
        file = path / state.config.timeline_path / instant.file_name
        all_said = all_said and said in file.read_bytes()
        file.write_bytes(file.read_bytes().replace(said, otherwise))
    return all_said
