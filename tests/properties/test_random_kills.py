"""Ingest, compact, serve and clean in real processes, killed at random: no row is lost or doubled, the next run continues.

Where a kill strikes is drawn from the number of the kill; what the rows must be is kept in a dictionary.
"""

import random
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from eventide import Table
from eventide_core.config import HEARTBEAT_INTERVAL_MS
from eventide_core.table.files.file_name import BaseFileName, LogFileName
from support.faults.killed import run_until_killed
from support.run.campaign import tries
from support.run.command_line import run_json
from support.run.reach import reached
from support.tables.small import OPTIONS, SERVE, make, rows, seen

pytestmark = pytest.mark.slow

KILLS = tries(test=1, proof=1)  # of each verb on each table version
KILLS_OF_COMPACT = tries(test=6, proof=25)  # on each of the two table versions
KEYS = 8
# As long as a dead process of another machine is taken to be alive: one of this machine is known to be dead at once.
SLOW_HEARTS = ("--option", f"{HEARTBEAT_INTERVAL_MS}=600000")
Truth = dict[str, tuple[int, str]]


class Pipeline:
    """A table that is written, served and cleaned by the command line, and the rows that it must have."""

    def __init__(self, path: Path, version: int) -> None:
        self.path = path / "table"
        self.source = path / "rows.parquet"
        self.table = make(self.path, version)
        self.truth: Truth = {}
        self.chance = random.Random(version)
        self._batches = 0

    def ingest(self) -> tuple[tuple[object, ...], Truth]:
        """The words of an ingest of new, late and tied rows, and what the table's rows are once it has completed."""
        self._batches += 1
        drawn = {
            f"k{self.chance.randrange(KEYS)}": (self.chance.randrange(-9, 6), f"{self._batches}.{n}") for n in range(4)
        }
        batch = rows(*((key, *value) for key, value in drawn.items()))
        pq.write_table(batch, self.source)
        after = dict(self.truth)
        for key, row in seen(batch).items():
            after[key] = max(after.get(key, row), row, key=lambda one: one[0])
        return ("ingest", self.path, self.source, *OPTIONS), after

    def write(self) -> None:
        words, after = self.ingest()
        run_json(*words)
        self.truth = after
        self.check()

    def serve(self) -> dict[str, Any]:
        document: dict[str, Any] = run_json(*self.words_of_serve)
        return document

    @property
    def words_of_serve(self) -> tuple[object, ...]:
        return ("serve", self.path, "--rounds", 1, *SERVE[:-2], *OPTIONS)

    @property
    def words_of_clean(self) -> tuple[object, ...]:
        return ("clean", self.path, "--retain-commits", 1, *OPTIONS)

    def check(self) -> None:
        assert seen(self.table.snapshot().to_arrow()) == self.truth

    def check_nothing_is_left(self) -> None:
        """After a clean: nothing pending, and no file, mark or lock of what died."""
        run_json(*self.words_of_clean)
        self.check()
        state = self.table.state()
        assert state.timeline.pending == ()
        assert run_json(*self.words_of_clean, "--dry-run")["deleted"] == []
        hoodie = self.path / ".hoodie"
        left = [found for name in (".temp", ".heartbeat", "lock") for found in _files(hoodie / name)]
        assert left == [], left
        if state.config.layout.names_logs_by_write:
            # On version 6 a log keeps the blocks of a failed write, rolled back by a block behind them, as in Hudi.
            known = {i.requested_time for i in state.timeline.completed} | {
                i.requested_time for i in state.archive.writes("", "9")
            }
            strays = [file.path for file in state.listing if _instant(file.name) not in known | {None}]
            assert strays == [], strays


def _files(path: Path) -> list[Path]:
    return [path] if path.is_file() else [found for found in path.rglob("*") if found.is_file()]


def _instant(name: str) -> str | None:
    found = LogFileName.parse(name) or BaseFileName.parse(name)
    return None if found is None else found.instant


@pytest.fixture(params=[pytest.param(6, marks=pytest.mark.broad), 9])
def pipeline(request: pytest.FixtureRequest, tmp_path: Path) -> Pipeline:
    made = Pipeline(tmp_path, request.param)
    for _ in range(2):
        made.write()
    return made


def strike(pipeline: Pipeline, changes: int, *words: object) -> bool:
    """Whether a run was killed, in front of a random one of its changes: of so many, or a few more."""
    return run_until_killed(pipeline.chance.randint(1, changes + changes // 8), *words) is None


def test_a_killed_ingest_is_visible_whole_or_not_at_all_and_the_next_one_continues(pipeline: Pipeline) -> None:
    words, after = pipeline.ingest()
    changes = run_until_killed(0, *words)
    assert changes is not None
    pipeline.truth = after
    killed = 0
    while killed < KILLS:
        words, after = pipeline.ingest()
        if strike(pipeline, changes, *words):
            killed += 1
            if seen(pipeline.table.snapshot().to_arrow()) == after:
                pipeline.truth = after
            pipeline.check()
        else:
            pipeline.truth = after
        pipeline.write()
        pipeline.check_nothing_is_left()
    reached("kills of ingest", killed)


def test_a_killed_service_loses_and_duplicates_nothing_and_the_next_round_continues(pipeline: Pipeline) -> None:
    changes = run_until_killed(0, *pipeline.words_of_serve)
    assert changes is not None
    killed = 0
    while killed < KILLS:
        pipeline.write()
        words, after = pipeline.ingest()
        if strike(pipeline, changes, *words):  # a dead write, too, for the service to roll back
            pipeline.truth = after if seen(pipeline.table.snapshot().to_arrow()) == after else pipeline.truth
        else:
            pipeline.truth = after
        while killed < KILLS and strike(pipeline, changes, *pipeline.words_of_serve):
            killed += 1
            pipeline.check()
            if pipeline.chance.random() < 0.5:  # else what ends it is killed, too
                break
        document = pipeline.serve()
        assert document["troubles"] == []
        pipeline.check()
        optimized = seen(pipeline.table.read_optimized().to_arrow())
        before_cut = {key: row for key, row in pipeline.truth.items() if row[0] < document["cut_ms"]}
        assert before_cut.items() <= optimized.items()
        pipeline.check_nothing_is_left()
    reached("kills of the table service", killed)


def test_a_killed_clean_takes_nothing_that_is_needed_and_the_next_ends_it(pipeline: Pipeline) -> None:
    def fill() -> None:
        """Gives the next clean something to do: a slice that a newer one has taken the place of."""
        for _ in range(2):
            pipeline.write()
            table = Table.open(str(pipeline.path), pipeline.table.options)
            table.compact(table.plan_compaction(data_latency_seconds=0))

    fill()
    changes = run_until_killed(0, *pipeline.words_of_clean)
    assert changes is not None
    killed = 0
    while killed < KILLS:
        fill()
        if strike(pipeline, changes, *pipeline.words_of_clean):
            killed += 1
            pipeline.check()
        pipeline.check_nothing_is_left()
    reached("kills of clean", killed)


@pytest.mark.campaign
def test_a_compact_that_is_killed_again_and_again_is_ended_by_the_same_command(pipeline: Pipeline) -> None:
    """What a cron job of `compact` alone does: nobody looks at the table between two runs."""
    killed = left_pending = 0
    changes: int | None = None
    while killed < KILLS_OF_COMPACT:
        pipeline.write()
        threshold_ms = time.time_ns() // 1_000_000
        words = ("compact", pipeline.path, "--before", threshold_ms, "--engine", "local", *OPTIONS, *SLOW_HEARTS)
        if changes is None:
            changes = run_until_killed(0, *words)
            assert changes is not None
            continue
        while killed < KILLS_OF_COMPACT and strike(pipeline, changes, *words):
            killed += 1
            pipeline.check()
            left_pending += bool(pipeline.table.state().timeline.pending_plans)
        document = run_json(*words)
        pipeline.check()
        assert document["watermark_ms"] >= threshold_ms
        optimized = seen(pipeline.table.read_optimized().to_arrow())
        assert {key: row for key, row in pipeline.truth.items() if row[0] < threshold_ms}.items() <= optimized.items()
        assert pipeline.table.state().timeline.pending == ()
        assert run_json(*words)["already_reached"]
    pipeline.check_nothing_is_left()
    assert left_pending
    reached("kills of compact", killed)
    reached("kills of compact that left a plan for the next run", left_pending)
