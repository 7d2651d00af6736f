"""Tables in the shape of Flink's state index: slices of logs alone, in file groups whose ids are UUIDs without a number."""

from pathlib import Path

import pytest

from eventide import Table
from eventide_core.errors import UnsupportedTableError
from eventide_core.table.files.bucket import is_flink_file_id
from support.judge import HudiJudge
from support.run.command_line import content_of
from support.writers.batches import table_of
from support.writers.beside import check_all_readers, wait_for
from support.writers.java_writer import JavaWriter

JUDGES = {"0.15.0": "judge_015", "1.1.1": "judge_111"}


@pytest.mark.broad
@pytest.mark.parametrize(("hudi", "version"), [("0.15.0", 6), ("1.1.1", 9)])
def test_a_table_of_flinks_state_is_compacted_in_part_and_written_by_flink_alone(
    hudi: str, version: int, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    judge: HudiJudge = request.getfixturevalue(JUDGES[hudi])
    path, options = tmp_path / "table", {"hoodie.metadata.enable": "false"}
    with JavaWriter(hudi, version, [path], tmp_path / "writer", options=options, is_flink_state=True) as writer:
        wait_for(writer, 4)
        truth = writer.stop()
    table = Table.open(str(path))
    slices = [file_slice for group in table.describe().state.view.slices.values() for file_slice in group]
    assert all(is_flink_file_id(found.file_id) and found.base_file is None for found in slices)

    plan = table.plan_compaction(truth[0].end_ms)
    assert sum(len(operation.left_overs) for operation in plan.operations) > 0
    table.compact(plan)
    before = content_of(path)
    with pytest.raises(UnsupportedTableError, match="is of Flink's state index"):
        table.upsert(table_of(truth[0]))
    assert content_of(path) == before
    check_all_readers(path, [judge], truth, options, f"a table of Flink's state, Hudi {hudi}")
