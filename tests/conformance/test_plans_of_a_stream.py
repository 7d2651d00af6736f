"""Asynchronous compaction of Spark Structured Streaming, killed with a plan on the timeline: eventide runs the plan.

Such a stream plans a compaction after a commit, and runs it in a thread beside its next micro-batches. Its process is
killed when the plan is there, or when the thread has begun it. In both cases, eventide makes of the plan what Hudi makes of
it on a twin, and the stream continues from its checkpoint.
"""

import json
import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pytest

from eventide import Table
from eventide_core.table.timeline.instant import Instant, State
from support.judge import HudiJudge, hudi_judge, hudi_rs
from support.run.command_line import Answer, content_of, run
from support.run.reach import reached
from support.writers.batches import SCHEMA
from support.writers.beside import check_all_readers
from support.writers.restarted_stream import RestartedStream, files_taken, wait_until

METADATA = {"hoodie.metadata.enable": "false"}
ASYNC = {
    **METADATA,
    "hoodie.datasource.compaction.async.enable": "true",
    "hoodie.compact.inline.max.delta.commits": "2",
}
COMPACTION = {"hoodie.payload.ordering.field": "event_ts", **METADATA}
FILES = 5
FILES_AFTERWARDS = 3
STARTS = 3  # of a stream that continues, whose own compaction thread may end without a word

Rows = Counter[tuple[object, ...]]


@dataclass(frozen=True, slots=True)
class Case:
    judge: str
    version: int
    killed_at: Literal["requested", "inflight"]
    """Which file of the compaction the stream is killed at."""

    def __str__(self) -> str:
        return f"{self.judge.removeprefix('judge_')}-v{self.version}-{self.killed_at}"


CASES = [
    Case("judge_015", 6, "inflight"),
    Case("judge_015", 6, "requested"),
    Case("judge_102", 8, "inflight"),
    Case("judge_111", 9, "requested"),
]


def test_a_file_that_waits_for_the_next_batch_counts_as_soon_as_that_is_completed(tmp_path: Path) -> None:
    for kind in ("commits", "offsets", "sources/0"):
        (tmp_path / kind).mkdir(parents=True)
    noted = [json.dumps({"path": name, "timestamp": 1, "batchId": number}) for number, name in enumerate("abc")]
    assert files_taken(tmp_path) == set()

    (tmp_path / "sources" / "0" / "0").write_text(f"v1\n{noted[0]}")
    (tmp_path / "offsets" / "0").write_text('v1\n{"batchWatermarkMs":0}\n{"logOffset":0}')
    (tmp_path / "commits" / "0").write_text('v1\n{"nextBatchWatermarkMs":0}')
    (tmp_path / "sources" / "0" / "1").write_text(f"v1\n{noted[1]}")
    assert files_taken(tmp_path) == {"a"}

    (tmp_path / "sources" / "0" / "2.compact").write_text("\n".join(["v1", *noted]))
    (tmp_path / "offsets" / "1").write_text('v1\n{"batchWatermarkMs":0}\n{"logOffset":2}')
    (tmp_path / "commits" / "1").write_text('v1\n{"nextBatchWatermarkMs":0}')
    assert files_taken(tmp_path) == {"a", "b", "c"}


def plans(path: Path, state: str = "requested") -> set[str]:
    """The instants of compactions that have got so far. Hudi creates a plan's file before it fills it."""
    name = f"*.compaction.{state}"
    found = [*path.glob(f".hoodie/{name}"), *path.glob(f".hoodie/timeline/{name}")]
    return {file.name.partition(".")[0] for file in found if state == "inflight" or file.stat().st_size}


def kill_with_a_plan(case: Case, hudi: str, path: Path, stream: RestartedStream) -> Instant:
    """Begins the stream, and kills its process at the sight of what the case says; the plan that it leaves."""
    for _ in range(5):  # a compaction that was completed before the process was dead is none to run
        known = plans(path, case.killed_at)
        with hudi_judge(hudi) as dying:
            stream.feed(FILES)
            stream.begin(dying, ASYNC)
            has_planned = wait_until(lambda: plans(path, case.killed_at) - known)  # noqa: B023
        if has_planned and (pending := Table.open(str(path)).state().timeline.pending_plans):
            (plan,) = pending
            return plan
    raise AssertionError("each compaction was completed before its process was dead")


def continue_to_the_end(hudi: str, path: Path, stream: RestartedStream) -> None:
    """Begins the stream again, as a supervisor does, until it has taken every file and has no plan pending."""

    def is_at_its_end() -> bool:
        return stream.has_taken_all() and not Table.open(str(path)).state().timeline.pending_plans

    stalled: list[str] = []
    for _ in range(STARTS):
        with hudi_judge(hudi) as continuing:
            stream.feed(FILES_AFTERWARDS)
            stream.begin(continuing, ASYNC)
            if wait_until(is_at_its_end):
                assert not (failed := continuing.end_writers()), failed
                return
            pending = Table.open(str(path)).state().timeline.pending_plans
            stalled.append(f"{stream.taken} pending: {pending} {continuing.failures()} {continuing.end_of_log()}")
            reached(f"streams of Hudi {hudi} that stalled")
    raise AssertionError("\n\n".join(["the stream does not come to its end", *stalled]))


def answers(judge: HudiJudge, path: Path) -> Iterator[tuple[str, Rows]]:
    table = Table.open(str(path))
    for query in ("snapshot", "read_optimized"):
        yield f"Hudi {query}", shown(judge.read(path, query))
        yield f"hudi-rs {query}", shown(hudi_rs.read(path, query))
    yield "eventide snapshot", shown(table.snapshot().to_arrow())
    yield "eventide read_optimized", shown(table.read_optimized().to_arrow())


def shown(found: pa.Table) -> Rows:
    return Counter(tuple(row.values()) for row in found.select(["_hoodie_commit_time", *SCHEMA.names]).to_pylist())


def compact(path: Path, *words: object) -> Answer:
    options = ("eventide.pending.write.wait_ms=0", "eventide.streams.compact=false")
    return run(
        "compact", path, *words, "--engine", "local", *(word for option in options for word in ("--option", option))
    )


@pytest.mark.proof
@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_stream_killed_at_its_compaction_continues_after_eventide_ran_it(
    case: Case, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    judge: HudiJudge = request.getfixturevalue(case.judge)
    path, twin = tmp_path / "table", tmp_path / "twin"
    stream = RestartedStream(case.version, path, tmp_path, 5 * FILES + STARTS * FILES_AFTERWARDS)
    plan = kill_with_a_plan(case, judge.version, path, stream)
    instant = plan.requested_time
    shutil.copytree(path, twin, copy_function=shutil.copy2)
    judge.run_compaction(twin, COMPACTION)

    if plan.state is State.INFLIGHT:
        before = content_of(path)
        refused = compact(path, "--before", stream.truth[0].end_ms)
        assert (refused.exit_code, content_of(path)) == (4, before)
        assert f"--execute {instant} --force" in refused.stderr, refused.stderr
    ended = compact(path, "--execute", instant, *(["--force"] if plan.state is State.INFLIGHT else []))

    assert ended.exit_code == 0, ended.stderr
    for (query, found), (_, expected) in zip(answers(judge, path), answers(judge, twin), strict=True):
        assert found == expected, f"{query}: {found - expected} instead of {expected - found}"
    assert len(list(path.glob(f"part=*/*_{instant}.parquet"))) == len(list(twin.glob(f"part=*/*_{instant}.parquet")))
    reached(f"plans of a killed stream: {plan.state}, run by eventide")

    continue_to_the_end(judge.version, path, stream)
    assert plans(path) > {instant}, "the stream planned no compaction afterwards"
    answer = compact(path, "--before", stream.truth[-1].end_ms)
    assert answer.exit_code == 0, answer.stderr
    check_all_readers(path, [judge], stream.truth, METADATA, f"a stream of Hudi {judge.version} that died")
