"""Tables of version 6 that Hudi upgrades in the middle of a life with eventide.

In the table are left-overs of a partial compaction, a savepoint, archived instants, and a compaction that is planned and
has been written on top of. Hudi's upgrade renames no log, so those on top of the plan are hidden until it is run.
"""

import random
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

from eventide import Table
from eventide_core.errors import format_timestamp
from support.judge import HudiJudge, hudi_rs
from support.judge.options import (
    AVRO_LOG_BLOCKS,
    BUCKET_INDEX,
    DEFAULT_PAYLOAD,
    MERGE_ON_READ,
    NO_METADATA_TABLE,
    table_name,
    table_version,
)
from support.run.campaign import tries
from support.run.command_line import content_of, run
from support.run.reach import reached
from support.values.columns import schema_of

SCHEMA = schema_of(id=pa.string(), part=pa.string(), event_ts=pa.int64(), word=pa.string())
OPTIONS = MERGE_ON_READ | BUCKET_INDEX | AVRO_LOG_BLOCKS | DEFAULT_PAYLOAD | NO_METADATA_TABLE | table_name("upgraded")
SERVICES = {
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.cleaner.commits.retained": "1",
    "hoodie.archive.beyond.savepoint": "true",
}
NAMES = {5: "FIVE", 6: "SIX", 8: "EIGHT", 9: "NINE"}
BROAD = pytest.mark.broad
PROOF = pytest.mark.proof

Rows = Counter[tuple[object, ...]]


class Life:
    """A table that Hudi writes, and what its rows must be."""

    def __init__(self, judge: HudiJudge, path: Path) -> None:
        self.judge, self.path, self.version = judge, path, 6
        self._rows: dict[str, tuple[object, ...]] = {}

    @property
    def options(self) -> dict[str, str]:
        return OPTIONS | ({} if self.judge.version.startswith("0.") else table_version(self.version))

    @property
    def table(self) -> Table:
        return Table.open(str(self.path), SERVICES)

    def write(self, ms: int, word: str, *, first: int = 0, step: int = 1) -> None:
        """Rows of one event time; `first` and `step` choose the keys."""
        rows = [(f"k{key}", "ab"[key % 2], ms, word) for key in range(first, 24, step)]
        self._rows |= {str(row[0]): row for row in rows}
        self.judge.write(
            self.path,
            pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], schema=SCHEMA),
            options=self.options,
            mode="append" if self.path.exists() else "overwrite",
        )

    def change_version(self, version: int) -> None:
        verb = "upgrade" if version > self.version else "downgrade"
        name = f"{verb}d_to_{version}"
        self.judge.sql(f"create table {name} using hudi location '{self.path}'")
        self.judge.call(f"{verb}_table", table=name, to_version=NAMES[version])
        self.judge.sql(f"drop table {name}")
        self.version = version
        assert f"hoodie.table.version={version}\n" in (self.path / ".hoodie/hoodie.properties").read_text()

    def check(self) -> None:
        failed = [(check.name, check.findings[:2]) for check in self.table.verify(deep=True).failed]
        assert not failed, failed
        expected = Counter(self._rows.values())
        assert shown(self.judge.read(self.path)) == expected
        if self.version >= 8 or not self.table.state().timeline.pending_plans:
            # hudi-rs skips log files on top of a plan that is pending on version 6.
            assert shown(hudi_rs.read(self.path)) == expected
        assert shown(self.table.snapshot().to_arrow()) == expected
        read_optimized = shown(self.judge.read(self.path, "read_optimized"))
        assert shown(self.table.read_optimized().to_arrow()) == read_optimized
        reached("upgraded tables: rows compared", len(expected) + len(read_optimized))

    def go_on(self, ms: int) -> None:
        """Hudi writes, eventide compacts in part, archives and cleans."""
        self.write(ms, f"at version {self.version}", step=2)
        self.write(ms + 20, f"at version {self.version}, later", first=1, step=3)
        watermark_ms = self.table.compact(before=format_timestamp(ms + 10)).freshness.watermark_ms
        assert watermark_ms is not None
        assert watermark_ms >= ms + 10
        self.check()
        assert self.table.archive()
        self.check()
        self.table.clean(1)
        self.check()


def shown(found: pa.Table) -> Rows:
    return Counter(tuple(row[name] for name in SCHEMA.names) for row in found.to_pylist())


def live_at_version_6(life: Life, *, is_planned_by_hudi: bool) -> str:
    """The instant of the plan that is pending at the end."""
    life.write(100, "first")
    life.write(120, "second", step=2)
    life.write(140, "third", step=3)
    compacted = life.table.compact(life.table.plan_compaction(format_timestamp(130), link_mode="copy"))
    life.table.savepoint(compacted.instant)
    life.write(160, "fourth", step=4)
    life.write(180, "fifth", step=5)
    assert life.table.archive()
    if is_planned_by_hudi:
        life.judge.schedule_compaction(life.path, OPTIONS | table_version(6))
    else:
        life.table.schedule(life.table.plan_compaction(format_timestamp(170), link_mode="copy"))
    life.write(200, "on top of the plan", first=2, step=6)
    (pending,) = life.table.state().timeline.pending_plans
    return pending.requested_time


@PROOF
@pytest.mark.parametrize(
    ("name", "is_planned_by_hudi"),
    [
        pytest.param("judge_111", False, id="1.1.1-plan of eventide"),
        pytest.param("judge_111", True, id="1.1.1-plan of Hudi"),
        pytest.param("judge_102", False, id="1.0.2-plan of eventide"),
        pytest.param("judge_120", False, id="1.2.0-plan of eventide"),
    ],
)
def test_a_table_is_upgraded_with_a_plan_pending(
    name: str, is_planned_by_hudi: bool, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    life = Life(request.getfixturevalue(name), tmp_path / "table")
    instant = live_at_version_6(life, is_planned_by_hudi=is_planned_by_hudi)

    life.change_version(8)

    hidden = shown(life.table.snapshot().to_arrow())
    assert hidden == shown(life.judge.read(life.path)), "no reader sees what lies on top of the plan"
    failed = life.table.verify(deep=True).failed
    assert [check.name for check in failed] == ["pending-plans"], [check.findings[:2] for check in failed]
    assert all(f'table.execute("{instant}")' in finding.cure for finding in failed[0].findings)
    refused = run("rollback", life.path, instant)
    assert (refused.exit_code, f"compact TABLE --execute {instant}" in refused.stderr) == (3, True), refused.stderr
    assert life.table.resume().resumed == (instant,)
    life.check()
    reached("upgraded tables: plans run after the upgrade")

    life.go_on(300)


@BROAD
def test_a_table_of_version_5_is_refused_until_hudi_has_upgraded_it(judge_015: HudiJudge, tmp_path: Path) -> None:
    """As Hudi 0.12 and 0.13 write them."""
    life = Life(judge_015, tmp_path / "table")
    life.write(100, "first")
    life.write(120, "second", step=2)
    life.change_version(5)
    before = content_of(life.path)
    for verb in (
        ["show"],
        ["plan", "--before", format_timestamp(130)],
        ["read"],
        ["compact", "--before", format_timestamp(130)],
        ["verify"],
        ["freshness"],
    ):
        answer = run(verb[0], life.path, *verb[1:])
        assert answer.exit_code == 3, answer
        assert "hoodie.table.version=5" in answer.stderr
        assert "to_version => 'SIX'" in answer.stderr
    assert content_of(life.path) == before

    life.change_version(6)

    life.table.compact(before=format_timestamp(130))
    life.check()


UP_AND_DOWN = (8, 9, 8, 6)
NEXT = {6: (8,), 8: (6, 9), 9: (8,)}


class Walk(Life):
    """A life in which each deed is checked."""

    def __init__(self, judge: HudiJudge, path: Path) -> None:
        super().__init__(judge, path)
        self.ms = 100

    def check(self) -> None:
        found = self.table.verify()
        failed = [(check.name, check.findings[:2]) for check in found.failed]
        assert not failed, failed
        unknown = [remark for check in found.checks for remark in check.remarks if "older than the archived" in remark]
        assert not unknown, unknown
        super().check()
        timeline = self.table.state().timeline
        *_, before, last = timeline.writes
        time = before.completion_time if self.version >= 8 else before.requested_time
        assert time is not None
        for mine, hudis in (
            (self.table.as_of(last.requested_time), self.judge.read(self.path, as_of=last.requested_time)),
            (self.table.incremental(time), self.judge.read(self.path, "incremental", begin=time)),
        ):
            assert shown(mine.to_arrow()) == shown(hudis)

    def write_on(self, number: int) -> None:
        self.write(self.ms, f"written {number}", step=1 + number % 3)
        self.ms += 20

    def compact(self) -> None:
        """In part, where a log is later."""
        self.table.resume()
        before = self.ms - 10
        watermark_ms = self.table.compact(before=format_timestamp(before), link_mode="copy").freshness.watermark_ms
        assert watermark_ms is not None
        assert watermark_ms >= before

    def plan(self, *, is_hudis: bool) -> None:
        if self.table.state().timeline.pending_plans:
            return
        if is_hudis:
            self.judge.schedule_compaction(self.path, self.options)
        else:
            self.table.schedule(self.table.plan_compaction(format_timestamp(self.ms - 30), link_mode="copy"))

    def save(self) -> None:
        """One savepoint at a time."""
        timeline = self.table.state().timeline
        for found in timeline.completed:
            if found.action == "savepoint":
                self.table.delete_savepoint(found.requested_time)
        self.table.savepoint(timeline.writes[-1].requested_time)

    def move(self, version: int) -> None:
        self.change_version(version)
        ended = self.table.resume()
        reached("versions up and down: plans run after a change of version", len(ended.resumed))


@PROOF
@pytest.mark.parametrize("name", ["judge_111", "judge_120"])
def test_a_life_up_and_down(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    walk = Walk(request.getfixturevalue(name), tmp_path / "table")
    for number in range(3):
        walk.write_on(number)
    for stage, version in enumerate(UP_AND_DOWN):
        walk.write_on(2)
        walk.write_on(3)
        walk.ms -= 20
        walk.compact()
        walk.ms += 20
        walk.save()
        walk.write_on(4)
        walk.write_on(5)
        walk.table.archive()
        walk.check()
        walk.plan(is_hudis=bool(stage % 2))
        walk.move(version)
        walk.write_on(7)
        walk.check()


@pytest.mark.parametrize("name", [pytest.param("judge_111", marks=PROOF), pytest.param("judge_120", marks=BROAD)])
def test_a_plan_of_eventide_stays_pending_across_a_downgrade_to_version_6(
    name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    walk = Walk(request.getfixturevalue(name), tmp_path / "table")
    walk.version = 8
    for number in range(3):
        walk.write_on(number)
    plan = walk.table.plan_compaction(format_timestamp(walk.ms - 30), link_mode="copy")
    assert any(operation.left_overs for operation in plan.operations)
    walk.table.schedule(plan)
    walk.write_on(3)

    walk.change_version(6)

    assert [pending.requested_time for pending in walk.table.state().timeline.pending_plans] == [plan.instant]
    walk.check()
    assert walk.table.resume().resumed == (plan.instant,)
    walk.write_on(4)
    walk.check()
    walk.compact()
    walk.table.archive()
    walk.write_on(5)
    walk.check()
    reached("versions up and down: plans run after a downgrade to version 6")


@PROOF
@pytest.mark.parametrize("seed", range(tries(1, 4)))
def test_a_random_walk_up_and_down(seed: int, judge_111: HudiJudge, tmp_path: Path) -> None:
    chance = random.Random(seed)
    walk = Walk(judge_111, tmp_path / "table")
    for number in range(3):
        walk.write_on(number)
    for number in range(12):
        deeds: dict[str, Callable[[], object]] = {
            "writes": partial(walk.write_on, number),
            "compacts": walk.compact,
            "saves": walk.save,
            "archives": lambda: walk.table.archive(),
            "cleans": lambda: walk.table.clean(1),
            "eventide plans": lambda: walk.plan(is_hudis=False),
            "Hudi plans": lambda: walk.plan(is_hudis=True),
            "moves": lambda: walk.move(chance.choice(NEXT[walk.version])),
        }
        name = chance.choice(list(deeds))
        deeds[name]()
        walk.write_on(number)
        walk.check()
        reached(f"versions up and down: {name}")
