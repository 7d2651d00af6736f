"""A stock writer dies in the middle of a write, eventide compacts, and the writer starts again.

It cleans failed writes up EAGERly, Hudi's default for a single writer: it rolls its own write back only while no completed
commit has a later instant, so a compaction of eventide must lie before the write.

On version 6 a compaction beside the open write is refused; the next one, after the writer has started again, is not.
"""

from pathlib import Path
from typing import get_args

import pytest

from support.judge import HudiJudge
from support.run.command_line import Answer, content_of, run
from support.run.reach import reached
from support.writers.batches import Batch
from support.writers.beside import check_all_readers, wait_for
from support.writers.java_writer import JavaWriter, Steps, Unfinished

WHOLE = 3
BATCHES = [Batch(number) for number in range(WHOLE)]
METADATA_TABLE = {"0.15.0": "true", "1.0.2": "false", "1.1.1": "false", "1.2.0": "true"}
JUDGES = {"0.15.0": "judge_015", "1.0.2": "judge_102", "1.1.1": "judge_111", "1.2.0": "judge_120"}
VERSIONS = {"0.15.0": 6, "1.0.2": 8, "1.1.1": 9, "1.2.0": 9}


IN_BROAD = ("1.1.1",)


@pytest.mark.parametrize(
    "hudi", [pytest.param(hudi, marks=pytest.mark.broad if hudi in IN_BROAD else pytest.mark.proof) for hudi in JUDGES]
)
def test_a_stock_writer_that_died_continues_after_a_compaction(
    hudi: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    judge: HudiJudge = request.getfixturevalue(JUDGES[hudi])
    options = {"hoodie.metadata.enable": METADATA_TABLE[hudi]}
    dying: dict[Path, Steps] = {tmp_path / steps.replace(" ", "-"): steps for steps in get_args(Unfinished)}
    with JavaWriter(hudi, VERSIONS[hudi], [], tmp_path / "dies", options=options, dying=dying, whole=WHOLE) as writer:
        writer.kill()
    for path, steps in dying.items():
        before = content_of(path)
        answer = _compact(path)
        if hudi == "0.15.0":
            assert answer.exit_code == 4, f"{steps}: {answer.stdout}"
            assert content_of(path) == before, steps
        else:
            _check(answer, steps)

    with JavaWriter(hudi, VERSIONS[hudi], list(dying), tmp_path / "again", options=options, first=WHOLE) as writer:
        wait_for(writer, 2)
        again = writer.stop()
    for path, steps in dying.items():
        if hudi == "0.15.0":
            _check(_compact(path), steps)
        check_all_readers(path, [judge], [*BATCHES, *again], options, f"after a writer of Hudi {hudi} that died")
    reached(f"after a writer of Hudi {hudi} that died: phases in which it did", len(dying))


def _compact(path: Path) -> Answer:
    return run(
        "compact",
        path,
        "--before",
        BATCHES[-1].end_ms,
        "--engine",
        "local",
        "--output",
        "json",
        "--option",
        "eventide.pending.write.wait_ms=0",
    )


def _check(answer: Answer, steps: str) -> None:
    assert answer.exit_code == 0, f"{steps}: {answer.stderr}"
    assert answer.document["watermark_ms"] > BATCHES[0].end_ms, steps
