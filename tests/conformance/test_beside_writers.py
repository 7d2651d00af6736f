"""Beside stock writers that never pause, `compact` does its work, disturbs no writer, and no row is lost or doubled.

In `./run test broad` two combinations, in `./run proof` (EVENTIDE_CAMPAIGN=1) all, with more calls: on 0.15.0 (table
version 6), 1.0.2 (8), 1.1.1 and 1.2.0 (9), with Hudi's metadata table and without.
"""

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import pytest

from support.judge import HudiJudge
from support.run.campaign import IS_PROOF
from support.run.reach import reached
from support.writers.beside import check_all_readers, compact_beside, stock_rollbacks
from support.writers.java_writer import JavaWriter
from support.writers.spark_writers import OCC, NonBlockingWriters, OverlappingWriters, StreamWriter

CALLS = 20
CALLS_BY_DEFAULT = 8
HOLD_SECONDS = 2.0
JUDGES = {"0.15.0": "judge_015", "1.0.2": "judge_102", "1.1.1": "judge_111", "1.2.0": "judge_120"}
VERSIONS = {"0.15.0": 6, "1.0.2": 8, "1.1.1": 9, "1.2.0": 9}
BROAD = {
    ("a stream", "1.2.0", True),
    ("non-blocking writers", "1.1.1", False),
}
PAIRS = ("overlapping writers", "non-blocking writers")
KINDS = ("a stream", *PAIRS, "a Java client")
NOT_THERE = {
    # The Java client that runs on 1.0.2 is 1.0.1's, whose metadata table does not run on 1.0.2's classes.
    ("a Java client", "1.0.2", True),
    # Hudi 1.0 introduced this kind of concurrency control.
    ("non-blocking writers", "0.15.0", False),
    ("non-blocking writers", "0.15.0", True),
}
ALL = [one for one in itertools.product(KINDS, JUDGES, (False, True)) if one not in NOT_THERE]
COMBINATIONS = [
    pytest.param(
        *one,
        id=f"{one[0]}, {one[1]}, metadata table {'on' if one[2] else 'off'}",
        marks=[pytest.mark.campaign, pytest.mark.broad if one in BROAD else pytest.mark.proof],
    )
    for one in ALL
]


@pytest.mark.parametrize(("kind", "hudi", "has_metadata_table"), COMBINATIONS)
def test_compact_does_its_work_beside(
    kind: str, hudi: str, has_metadata_table: bool, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    judge: HudiJudge = request.getfixturevalue(JUDGES[hudi])
    wanted = CALLS if IS_PROOF else CALLS_BY_DEFAULT
    path = tmp_path / "table"
    metadata = {"hoodie.metadata.enable": str(has_metadata_table).lower()}
    with _writer(kind, judge, path, tmp_path, metadata) as writer:
        calls = compact_beside(path, writer, wanted, _options(kind, hudi))
        truth = writer.stop()

    words = f"beside {kind} of Hudi {hudi}, metadata table {'on' if has_metadata_table else 'off'}"
    conflicts = stock_rollbacks(path)
    reached(f"{words}: calls of compact that did their work, of {wanted}", calls.worked)
    reached(f"{words}: conflicts of writers", conflicts)
    reached(f"{words}: commits that one waited for, at most", max(calls.waited, default=0))
    reached(f"{words}: commits that the watermark was behind T, at most", max(calls.behind, default=0))
    reached(f"{words}: commits while one went on, at most", max(calls.lasted))
    reached(f"{words}: commits of the writer", len(truth))
    check_all_readers(path, [judge], truth, metadata, words)
    assert not conflicts
    assert not calls.refused, calls
    if kind in PAIRS:
        # After the commit of one, while the other is open, the latest quiet moment may be the one of the last call.
        reached(f"{words}: calls of compact that found nothing new, of {wanted}", calls.idle)
        assert calls.worked + calls.idle == wanted, calls
        assert calls.worked >= wanted // 2, calls
        assert max(calls.waited) <= 2 * 2, calls  # two commits of each
        assert max(calls.behind) <= 3, calls  # one may commit again and again while the other is at one write
    else:
        assert calls.worked == wanted, calls
        assert max(calls.behind) <= 1, calls
        if VERSIONS[hudi] == 6:
            # A plan waits for a gap between two writes. On a busy machine, it can miss several.
            assert median(calls.waited) <= 2, calls
        else:
            assert max(calls.waited) <= 2, calls


def _options(kind: str, hudi: str) -> dict[str, str]:
    """Of `compact`: on version 6 writers that overlap leave no gap, and a plan lies before the open ones."""
    if kind == "a stream":
        return {"eventide.streams.compact": "false"}
    is_without_gaps = kind == "overlapping writers" and VERSIONS[hudi] == 6
    return {"eventide.table.exclusive": "true"} if is_without_gaps else {}


@contextmanager
def _writer(
    kind: str, judge: HudiJudge, path: Path, scratch: Path, options: dict[str, str]
) -> Iterator[StreamWriter | OverlappingWriters | JavaWriter]:
    version = VERSIONS[judge.version]
    if options["hoodie.metadata.enable"] == "true":
        # Hudi asks for it: beside others who commit to the metadata table a writer shares the lock.
        options = {**OCC, **options}
    match kind:
        case "a stream":
            with StreamWriter(judge, version, path, scratch, options=options) as writer:
                yield writer
        case "overlapping writers":
            with OverlappingWriters(judge, version, path, scratch, options=options) as pair:
                yield pair
        case "non-blocking writers":
            with NonBlockingWriters(judge, version, path, scratch, options=options) as pair:
                yield pair
        case _:
            with JavaWriter(
                judge.version, version, [path], scratch / "writer", options=options, hold=HOLD_SECONDS
            ) as client:
                yield client
