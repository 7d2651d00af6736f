"""Reads beside a stock writer that compacts, cleans and archives with each of its commits.

In `./run test` on 1.2.0 (version 9), in `./run proof` on all. Not checked here: the rows (test_beside_writers).
"""

import threading
from itertools import count
from pathlib import Path

import pytest

from eventide import Table
from support.cases.reads_beside import read_beside
from support.judge import HudiJudge
from support.judge.options import ARCHIVED_EARLY
from support.run.campaign import tries
from support.writers.batches import Batch, table_of
from support.writers.spark_writers import write_options

JUDGES = {"0.15.0": "judge_015", "1.0.2": "judge_102", "1.1.1": "judge_111", "1.2.0": "judge_120"}
VERSIONS = {"0.15.0": 6, "1.0.2": 8, "1.1.1": 9, "1.2.0": 9}
SERVICES = ARCHIVED_EARLY | {
    "hoodie.metadata.enable": "false",
    "hoodie.compact.inline": "true",
    "hoodie.clean.automatic": "true",
}


@pytest.mark.campaign
@pytest.mark.parametrize(
    "hudi", [pytest.param(hudi, marks=[pytest.mark.broad if hudi == "1.2.0" else pytest.mark.proof]) for hudi in JUDGES]
)
def test_processes_beside_the_services_of_hudi_end_as_they_should(
    hudi: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    judge: HudiJudge = request.getfixturevalue(JUDGES[hudi])
    path = tmp_path / "table"
    options = write_options(judge, VERSIONS[hudi], SERVICES)
    batches = map(Batch, count())
    judge.write(path, table_of(next(batches)), options=options)
    Table.open(str(path)).compact(before=Batch(0).end_ms)  # so that there is a watermark
    made: list[Batch] = []
    failures: list[BaseException] = []
    is_over = threading.Event()

    def write() -> None:
        try:
            while not is_over.is_set():
                batch = next(batches)
                judge.write(path, table_of(batch), options=options)
                made.append(batch)
        except BaseException as failure:
            failures.append(failure)

    def rounds() -> int:
        assert not failures, failures
        return len(made)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        read_beside(path, rounds, tries(5, 30), f"a writer of Hudi {hudi} with its services")
    finally:
        is_over.set()
        writer.join()
    assert not failures, failures
    state = Table.open(str(path)).state()
    assert state.timeline.start is not None
    assert len(state.timeline.writes) < len(made), "instants have been archived"
