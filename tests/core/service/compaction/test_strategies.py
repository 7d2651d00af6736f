"""Compactions by Hudi's other strategies and triggers: what they do to the rows, and what stays true of the cut."""

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest

from eventide import Table
from eventide_core.config import BUCKETS
from eventide_core.errors import ConfigError, NothingToDoError, format_timestamp
from golden.histories import PLAIN
from support.pasts import golden
from support.run.command_line import content_of, run_json

pytestmark = pytest.mark.slow

T = "2023-11-14T22:50Z"
T_MS = 1_700_002_200_000
STRATEGY = "hoodie.compaction.strategy"
TRIGGER = "hoodie.compact.inline.trigger.strategy"
MAX_COMMITS = "hoodie.compact.inline.max.delta.commits"
REGEX = "hoodie.compaction.partition.path.regex"
ALWAYS = {TRIGGER: "NUM_COMMITS", MAX_COMMITS: "0"}
EVENT_TIME_IN_A = {
    STRATEGY: "EventTimeBasedCompactionStrategy,PartitionRegexBasedCompactionStrategy",
    REGEX: "part=a",
}


@pytest.fixture(params=["v6_no_deletes", "v9_no_deletes"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(golden.unpack(request.param, tmp_path))


Row = tuple[object, ...]


def rows(path: str, query: str = "snapshot") -> Counter[Row]:
    table = Table.open(path)
    table_rows = (table.snapshot() if query == "snapshot" else table.read_optimized()).to_arrow(PLAIN.names)
    return Counter(tuple(row.values()) for row in table_rows.to_pylist())


def event_ms(row: Row) -> int:
    value = row[PLAIN.names.index("event_ts")]
    assert isinstance(value, int)
    return value


def hidden(path: str) -> Counter[Row]:
    """What a read-optimized query does not show."""
    return rows(path) - rows(path, "read_optimized")


def check_freshness(path: str) -> int | None:
    """The watermark, which no row that the read-optimized query hides lies before."""
    watermark_ms = Table.open(path).freshness().watermark_ms
    assert watermark_ms is None or all(event_ms(row) >= watermark_ms for row in hidden(path))
    return watermark_ms


def _append(path: str, row: dict[str, object]) -> None:
    """One more delta commit, by a writer of the table."""
    Table.open(path, {BUCKETS: 2}).upsert(pa.Table.from_pylist([row], schema=PLAIN))


def test_a_strategy_without_event_time_compacts_whole_slices_and_publishes_no_cut(path: str) -> None:
    before = rows(path)
    table = Table.open(path, {STRATEGY: "LogFileNumBasedCompactionStrategy", **ALWAYS})
    plan = table.plan_compaction()
    assert plan.operations
    assert all(operation.left_overs == () for operation in plan.operations)
    counts = [len(operation.compacted) for operation in plan.operations]
    assert counts == sorted(counts, reverse=True)
    result = table.compact(plan)
    assert (result.freshness.cut_ms, result.freshness.watermark_ms) == (None, None)
    assert rows(path) == rows(path, "read_optimized") == before
    assert Table.open(path).freshness().cut_ms is None


def test_the_published_cut_stays_true_under_compactions_by_other_strategies(path: str) -> None:
    before = rows(path)
    table = Table.open(path)
    table.compact(table.plan_compaction(T))
    assert hidden(path)
    in_b = Table.open(path, {STRATEGY: "PartitionRegexBasedCompactionStrategy", REGEX: "part=b", **ALWAYS})
    plan = in_b.plan_compaction()
    assert {operation.partition for operation in plan.operations} == {"part=b"}
    assert (plan.cut_ms, plan.predicted_watermark_ms) == (None, T_MS)
    result = in_b.compact(plan)
    assert (result.freshness.cut_ms, result.freshness.watermark_ms) == (T_MS, T_MS)
    assert check_freshness(path) == T_MS
    assert {row[1] for row in hidden(path)} == {"a"}
    later = Table.open(path).plan_compaction(T_MS + 1_500_000)
    assert later.operations
    Table.open(path).compact(later)
    assert check_freshness(path) == T_MS + 1_500_000
    assert rows(path) == before


def test_slices_that_a_bound_leaves_out_hold_the_cut_back_until_they_are_compacted(path: str) -> None:
    before = rows(path)
    bounded = Table.open(path, EVENT_TIME_IN_A)
    plan = bounded.plan_compaction(T)
    assert {operation.partition for operation in plan.operations} == {"part=a"}
    left_out = [event_ms(row) for row in hidden(path) if row[1] == "b"]
    assert plan.cut_ms is not None
    assert plan.cut_ms <= min(left_out) < T_MS
    assert any("leaves out" in note for note in plan.to_json()["notes"])
    result = bounded.compact(plan)
    assert result.freshness.cut_ms == result.freshness.watermark_ms == plan.cut_ms == check_freshness(path)
    assert rows(path) == before
    # Asked again, the bound leaves out what lies before the published cut's own plan, too: still no further than that.
    table = Table.open(path)
    table.compact(table.plan_compaction(T))
    assert check_freshness(path) == T_MS
    assert rows(path) == before


def test_a_bounded_plan_without_a_new_promise_publishes_no_cut_and_the_old_one_stays(path: str) -> None:
    table = Table.open(path)
    earliest = min(event_ms(row) for row in hidden(path) if row[1] == "b")
    assert earliest < T_MS
    table.compact(table.plan_compaction(earliest))
    assert Table.open(path).freshness().cut_ms == earliest
    # A late record in b, committed after the cut: a plan that leaves it out cannot publish the cut again.
    late = {"id": "k00001", "part": "b", "event_ts": earliest - 60_000, "val": "late", "amount": 0.0}
    _append(path, late)
    bounded = Table.open(path, EVENT_TIME_IN_A)
    plan = bounded.plan_compaction(T)
    assert plan.operations
    assert plan.cut_ms is None
    assert plan.idle is None
    assert any(f"{format_timestamp(earliest)} stays" in note for note in plan.to_json()["notes"])
    result = bounded.compact(plan)
    assert result.freshness.cut_ms == earliest
    assert result.freshness.watermark_ms == earliest - 60_000


def test_a_trigger_that_is_not_due_is_reported_and_nothing_is_written(path: str) -> None:
    options = {STRATEGY: "UnBoundedCompactionStrategy", MAX_COMMITS: "8"}
    table = Table.open(path, options)
    plan = table.plan_compaction()
    # Hudi 0.15 wrote the base by a delta commit, 1.1.1 by a commit, which Hudi takes for a compaction.
    count, since = (7, "first delta commit") if "v6" in path else (6, "commit")
    first = table.state().timeline.writes[0].requested_time
    assert plan.idle == f"NUM_COMMITS is not due: {count} of 8 delta commits since the {since} at {first}"
    content = content_of(Path(path))
    with pytest.raises(NothingToDoError, match="of 8"):
        table.compact(plan)
    words = [word for key, value in options.items() for word in ("--option", f"{key}={value}")]
    answer = run_json("compact", path, "--engine", "local", *words)
    assert (answer["instant"], answer["state"], answer["metrics"]) == (None, "idle", {})
    assert answer["idle"] == plan.idle
    assert run_json("compact", path, "--schedule-only", *words)["state"] == "idle"
    assert content_of(Path(path)) == content
    done = run_json("compact", path, "--engine", "local", *words, "--option", f"{MAX_COMMITS}=6")
    assert done["state"] == "completed"
    assert "0 of 6" in run_json("compact", path, "--engine", "local", *words, "--option", f"{MAX_COMMITS}=6")["idle"]
    nothing = run_json("compact", path, "--engine", "local", *words, "--option", f"{MAX_COMMITS}=0")
    assert nothing["idle"] == "UnBoundedCompactionStrategy finds nothing to compact"


def test_a_t_in_words_asks_no_trigger_and_needs_a_strategy_that_knows_event_time(path: str) -> None:
    never = {TRIGGER: "NUM_COMMITS", MAX_COMMITS: "1000"}
    assert Table.open(path, never).plan_compaction(T).idle is None
    by_option = Table.open(path, {**never, "hoodie.compaction.event.time.threshold": T})
    assert "NUM_COMMITS is not due" in str(by_option.plan_compaction().idle)
    with pytest.raises(ConfigError, match="ignores event times"):
        Table.open(path, {STRATEGY: "UnBoundedCompactionStrategy"}).plan_compaction(T)
