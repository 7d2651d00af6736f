"""200 random alterations, with writes, compactions in full and by exact cuts, and rollbacks: stock Hudi reads what is left.

Each history follows an oracle (`support.pasts.altered`). At its end, Hudi 1.1.1 and 1.2.0 read the oracle's rows, columns
and types, too, and the base files that eventide reads. Histories with renames are read by 1.1.1 with
schema evolution on read.
"""

from pathlib import Path

import pytest

from support.judge import HudiJudge
from support.pasts.altered import follow
from support.run.campaign import tries
from support.run.reach import reached

HISTORIES, ALTERATIONS, FIRST_SEED = 8, 25, 1000


@pytest.mark.proof
@pytest.mark.campaign
def test_stock_reads_what_histories_of_schema_changes_leave(
    tmp_path: Path, judge_111: HudiJudge, judge_120: HudiJudge
) -> None:
    for seed in range(FIRST_SEED, FIRST_SEED + tries(HISTORIES, HISTORIES)):
        path = tmp_path / f"t{seed}"
        history = follow(path, seed, alterations=ALTERATIONS)
        reached("altered histories beside stock: alterations", history.alterations)
        base = history.table.read_optimized().to_arrow().sort_by("id")
        for judge in (judge_111, judge_120):
            found = judge.read(path)
            history.check(found, history.state)
            read_optimized = judge.read(path, "read_optimized").select(base.column_names).sort_by("id")
            assert read_optimized.to_pylist() == base.to_pylist(), (seed, judge.version)
            reached(f"altered histories beside stock: rows compared with Hudi {judge.version}", found.num_rows)


@pytest.mark.proof
@pytest.mark.campaign
def test_stock_that_evolves_schemas_on_read_reads_what_histories_with_renames_leave(
    tmp_path: Path, judge_111: HudiJudge
) -> None:
    evolves = {"hoodie.schema.on.read.enable": "true"}
    for seed in range(FIRST_SEED, FIRST_SEED + tries(HISTORIES, HISTORIES)):
        path = tmp_path / f"t{seed}"
        history = follow(path, seed, alterations=ALTERATIONS, renames=True)
        reached("histories with renames beside stock: alterations", history.alterations)
        history.check(judge_111.read(path, options=evolves), history.state)
        base = history.table.read_optimized().to_arrow().sort_by("id")
        read_optimized = judge_111.read(path, "read_optimized", options=evolves).select(base.column_names).sort_by("id")
        assert read_optimized.to_pylist() == base.to_pylist(), seed
