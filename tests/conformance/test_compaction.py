"""Real Hudi tables, compacted in part by eventide: every reader sees what it saw before.

For each golden table and link mode: plan at a threshold that leaves logs over, compact, then ask eventide and every judge
that could read the table before. Not checked here: what Hudi does with the table afterwards (test_hudi_continues).
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest

from eventide import Table
from eventide_core.config import PENDING_WRITE_WAIT_MS
from eventide_core.errors import BusyError, RefusedError
from eventide_core.table.timeline.contents.plans import LinkMode
from golden.histories import EPOCH_MS
from golden.readings import as_values
from support.judge import HudiJudge, hudi_rs
from support.pasts import golden
from support.run.campaign import IS_PROOF
from support.run.reach import reached
from support.tables.thresholds import dividing_plan

pytestmark = pytest.mark.campaign

Read = Callable[..., pa.Table]
Row = tuple[str, ...]

MODES_OF_TABLE = {
    "v6_no_deletes": ("copy", "hardlink"),
    "v8_commit_no_deletes": ("prefix", "copy"),
    "v9_no_deletes": ("prefix", "copy", "hardlink"),
    "v9_commit_no_deletes": ("prefix", "copy"),
    "v9_compacted": ("prefix", "copy"),
}
NOT_COMPACTABLE = {
    *("v6_inflight", "v9_inflight"),  # a dead writer's commit is pending: busy, see test_cli
    *("v6_clustering_planned", "v9_clustering_planned"),  # busy, too
    *("v6_copy_on_write", "v9_copy_on_write"),  # nothing to do, see test_copy_on_write
}
ALWAYS_IN_FULL = {
    *("v6_rolled_back", "v6_restored"),  # their logs hold rolled-back blocks
    *("v6_replaced", "v9_replaced"),  # after the clustering, every log holds a late record
}
# Readers that merge these tables by another rule than the engine that wrote them: each compaction, Hudi's own too, turns
# what they see into what the writing engine sees (docs/rfc74.md).
READS_OTHERWISE = {
    "v6_avro_owl_simple": {"1.1.1", "1.2.0", "hudi-rs"},
    "v6_ordered_deletes": {"0.15.0"},
    "v6_111_avro_bucket": {"0.15.0"},  # Hudi 1.x names the ordering field under a key that 0.15 does not know
}
# A log compaction's block hides late losers that a left-over alone shows again, in an increment.
SHOW_LATE_LOSERS = {"v6_log_compacted"}
# These show other rows in an increment than eventide does, before a compaction too: what a path encodes (Hudi 1.x), and
# fewer late losers after a clustering.
INCREMENTS_OTHERWISE = {
    "v6_encoded": {"1.1.1", "1.2.0"},
    "v6_replaced": {"0.15.0", "hudi-rs"},
    "v9_replaced": {"hudi-rs"},
    "v6_log_compacted": {"0.15.0", "1.1.1", "1.2.0", "hudi-rs"},
}
# Rows without meta fields don't say which commit wrote them: Hudi on Spark and eventide refuse increments, and hudi-rs shows
# all rows of the files that were written in between, whatever wrote them.
# Hudi on Spark fails on an increment with partial updates of older records, compacted or not.
WITHOUT_INCREMENTS = {"v9_virtual_keys", "v9_partial_updates"}

# One table of each format, rule of merging, index and history; the others, and more link modes, are broad.
BY_DEFAULT = {
    *(
        "v6_no_deletes",
        "v6_avro_owl_simple",
        "v6_ordered_deletes",
        "v6_mdt",
        "v6_grown",
        "v6_encoded",
        "v6_log_compacted",
    ),
    *("v8_commit_no_deletes", "v9_no_deletes", "v9_event_ordered_deletes", "v9_mdt", "v9_log_only", "v9_virtual_keys"),
    *("v9_120_event", "v9_parquet_event", "v9_restored"),
}


def marks_of(name: str, mode: str) -> tuple[pytest.MarkDecorator, ...]:
    return (
        ()
        if name in BY_DEFAULT and mode in (MODES_OF_TABLE.get(name, ("copy",))[0], "hardlink")
        else (pytest.mark.broad,)
    )


CASES = [
    pytest.param(name, mode, id=f"{name}-{mode}", marks=marks_of(name, mode))
    for name in golden.names()
    if name not in NOT_COMPACTABLE
    for mode in MODES_OF_TABLE.get(name, ("copy",))
]


@dataclass(frozen=True, slots=True)
class Readers:
    """The judges, each started when it is first requested."""

    request: pytest.FixtureRequest

    def __getitem__(self, judge: str) -> Read:
        if judge == "hudi-rs":
            return hudi_rs.read
        found: HudiJudge = self.request.getfixturevalue(
            {"0.15.0": "judge_015", "1.1.1": "judge_111", "1.2.0": "judge_120"}[judge]
        )
        return found.read


def rows(found: pa.Table, columns: tuple[str, ...]) -> Counter[Row]:
    return Counter(tuple(map(repr, as_values(row, columns))) for row in found.to_pylist())


def recorded(reading: golden.Reading) -> Counter[Row]:
    return Counter(tuple(repr(value) for value in row) for row in reading.rows)


@pytest.mark.parametrize(("name", "mode"), CASES)
def test_every_reader_sees_what_it_saw_before(
    name: str, mode: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    expected = golden.expected(name)
    path = golden.unpack(name, tmp_path)
    event_time = expected.options["hoodie.payload.event.time.field"]
    options = {"hoodie.payload.event.time.field": event_time}
    if "hoodie.index.type" in expected.options:
        options["hoodie.index.type"] = expected.options["hoodie.index.type"]
    table = Table.open(str(path), options)
    plan = dividing_plan(table, event_time, mode)
    result = table.compact(plan)
    assert plan.cut_ms is not None
    assert result.freshness.watermark_ms == result.freshness.cut_ms == plan.cut_ms

    config = table.state().config
    left = sum(len(operation.left_overs) for operation in plan.operations)
    assert (left == 0) == (name in ALWAYS_IN_FULL)
    if left:
        assert str(plan.draft.plan.link_mode) == mode
        reached(f"left-overs that every judge read, version {config.version}, {config.merge_rule}, {mode}", left)

    columns = expected.columns
    snapshot = rows(table.snapshot().to_arrow(), columns)
    read_optimized = rows(table.read_optimized().to_arrow(), columns)
    assert (snapshot == read_optimized) == (left == 0 and plan.draft.untouched_slices == 0)
    in_order = {row[columns.index("id")]: row for row in snapshot}
    event_column = columns.index(event_time)
    for row in in_order.values():
        if row[event_column] != "None" and int(row[event_column]) < plan.cut_ms:
            assert row in read_optimized, f"{row} lies before T and is not in the read-optimized view"

    expectation = Expectation(name, columns, snapshot, read_optimized, in_order, event_column)
    readers = Readers(request)
    asked = 0
    for reading in chosen(expected):
        if reading.judge in READS_OTHERWISE.get(name, ()):
            continue
        if reading.query == "incremental" and name in WITHOUT_INCREMENTS:
            continue
        after = rows(readers[reading.judge](path, reading.query, as_of=reading.as_of, begin=reading.begin), columns)
        asked += 1
        expectation.check(reading, after)
        if reading.judge == "hudi-rs" and reading.as_of is not None:
            continue  # by the latest schema, whereas Hudi and eventide use the schema of that time
        if reading.query == "incremental" and reading.judge in INCREMENTS_OTHERWISE.get(name, ()):
            continue
        expectation.check_ours(reading, ask(table, reading))
    assert asked >= (4 if IS_PROOF else 2)


@dataclass(frozen=True, slots=True)
class Expectation:
    """What readings of a compacted table have to be, by readings of the table before.

    `snapshot` and `read_optimized` are rows of the compacted table. `in_order` is the snapshot by the column `id`.
    """

    name: str
    columns: tuple[str, ...]
    snapshot: Counter[Row]
    read_optimized: Counter[Row]
    in_order: Mapping[str, Row]
    event_column: int

    def check(self, reading: golden.Reading, after: Counter[Row]) -> None:
        """Checks the rows that the judge of the reading returns after the compaction."""
        before = recorded(reading)
        where = (reading.judge, reading.query, reading.as_of, reading.begin)
        if reading.query == "read_optimized":
            assert after == self.read_optimized, where
        elif reading.query == "snapshot":
            assert after == before, where
        else:  # late losers may vanish; no true change is lost, none is doubled
            shown_again = after - before
            winners = [(row, self.in_order[row[self.columns.index("id")]]) for row in shown_again]
            assert self.name in SHOW_LATE_LOSERS or not shown_again, where
            assert all(is_late(row, winner, self.event_column) for row, winner in winners), where
            assert before & self.snapshot <= after, where

    def check_ours(self, reading: golden.Reading, ours: Counter[Row]) -> None:
        """Checks the rows that eventide returns after the compaction."""
        before = recorded(reading)
        where = ("eventide", reading.judge, reading.query, reading.as_of, reading.begin)
        if reading.query == "snapshot":
            assert ours == before, where
        elif reading.query == "incremental":
            assert ours <= before, where
            assert before & self.snapshot <= ours, where


def is_late(row: Row, winner: Row, event_column: int) -> bool:
    return int(row[event_column]) < int(winner[event_column])


def chosen(expected: golden.GoldenTable) -> list[golden.Reading]:
    """Of each judge the snapshot, read-optimized, and of time travels and increments the last but one.

    Of the Hudi that wrote the table, and of hudi-rs, which takes no time to ask, also the second of these. Outside a proof
    only hudi-rs is asked all that, the Hudi that wrote the table for its snapshot and one increment, and no other Hudi.
    """
    found: list[golden.Reading] = []
    for judge in sorted({reading.judge for reading in expected.readings}):
        good = [reading for reading in expected.readings if reading.judge == judge and reading.error is None]
        if judge != "hudi-rs" and not IS_PROOF:
            if judge == expected.bundle:
                found += [r for r in good if r.query == "snapshot" and r.as_of is None]
                found += [r for r in good if r.begin is not None][-2:-1]
            continue
        found += [r for r in good if r.as_of is None and r.begin is None]
        for several in ([r for r in good if r.as_of is not None], [r for r in good if r.begin is not None]):
            positions = {1, len(several) - 2} if judge in (expected.bundle, "hudi-rs") else {len(several) - 2}
            found += [several[position] for position in positions if 0 <= position < len(several)]
    return found


def ask(table: Table, reading: golden.Reading) -> Counter[Row]:
    columns = golden.expected(Path(table.uri).name).columns
    if reading.query == "incremental":
        assert reading.begin is not None
        found = table.incremental(reading.begin)
    elif reading.as_of is not None:
        found = table.as_of(reading.as_of)
    else:
        found = table.snapshot()
    return rows(found.to_arrow(), columns)


@pytest.mark.parametrize("name", sorted(READS_OTHERWISE))
def test_a_reader_with_other_merge_rules_comes_to_see_what_the_writing_engine_sees(
    name: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Only rows on which the engines differed before may change, and only to what the table's own rule says."""
    expected = golden.expected(name)
    path = golden.unpack(name, tmp_path)
    table = Table.open(str(path), {"hoodie.index.type": expected.options["hoodie.index.type"]})
    ours = rows(table.snapshot().to_arrow(), expected.columns)
    table.compact(dividing_plan(table, "event_ts", "copy"))
    for reading in expected.readings:
        if reading.judge in READS_OTHERWISE[name] and reading.query == "snapshot" and reading.as_of is None:
            before = recorded(reading)
            after = rows(Readers(request)[reading.judge](path), expected.columns)
            assert after <= before + ours
            assert before & ours <= after


@pytest.mark.parametrize(
    ("name", "action"), [("v6_clustering_planned", "replacecommit"), ("v9_clustering_planned", "clustering")]
)
def test_a_planned_clustering_makes_a_compaction_wait(name: str, action: str, tmp_path: Path) -> None:
    path = golden.unpack(name, tmp_path)
    table = Table.open(str(path), {PENDING_WRITE_WAIT_MS: "1000"})
    plan = table.plan_compaction(EPOCH_MS + 10_000_000)
    assert f"a {action} is pending" in (plan.waits_for or "")
    with pytest.raises(BusyError, match=f"a {action} is pending"):
        table.compact(plan)


def test_back_dating_is_refused_where_a_left_over_completed_before_a_merged_log(tmp_path: Path) -> None:
    path = golden.unpack("v9_event_bucket", tmp_path)
    table = Table.open(str(path))
    plan = dividing_plan(table, "event_ts", "copy")
    with pytest.raises(RefusedError, match="prefix is not possible"):
        table.plan_compaction(plan.cut_ms, link_mode="prefix")
    assert table.plan_compaction(plan.cut_ms).draft.plan.link_mode is LinkMode.COPY
