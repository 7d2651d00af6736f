"""Each kind of table that real Hudi writes, compacted in part: every reader continues as before, and so does Hudi.

One cell (support/pasts/matrix.py) a test. Hudi writes a base, changes with late rows, deletes, and later changes; eventide
compacts everything before the later ones, so that their logs are left over. Then Hudi continues the table: an upsert
with late rows, then a delete with a compaction and a clean, while the metadata table is compacted. It must end with the
rows that the merge mode makes of the ones before and these changes.

Filters are asked where something could prune by them: by key and partition in every cell, by other columns where the
metadata table has their statistics.

Every two kinds meet in some cell. In a campaign of n (support.run.campaign) every n + 1 do: from 6 on these are all cells
there are.
"""

from collections import Counter
from collections.abc import Mapping
from enum import StrEnum
from itertools import combinations
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from eventide import Table
from golden.histories import EPOCH_MS, Row
from golden.readings import as_json
from support.documentation.tested_grid import PARQUET, compared
from support.judge import HudiJudge, hudi_rs
from support.judge.hudi_judge import Question
from support.pasts.matrix import KEYS, Blocks, Cell, Index, KeyGenerator, Merge, Metadata, Types, Writer, covering_cells
from support.run.campaign import CAMPAIGN
from support.run.reach import reached

pytestmark = pytest.mark.proof

CELLS = covering_cells(max(CAMPAIGN, 1) + 1)
JUDGES = {"0.15.0": "judge_015", "1.0.2": "judge_102", "1.1.1": "judge_111", "1.2.0": "judge_120"}

FIRST_MS, LATER_MS, NEWEST_MS = (EPOCH_MS + seconds * 1000 for seconds in (1_000, 5_000, 9_000))
T_MS = LATER_MS
BY_LISTING = {"hoodie.metadata.enable": "false", "hoodie.enable.data.skipping": "false"}
BY_METADATA = {"hoodie.metadata.enable": "true", "hoodie.enable.data.skipping": "false"}
PRUNED = {
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.index.partition.stats.enable": "true",
    "hoodie.enable.data.skipping": "true",
}
OFTEN = {"hoodie.metadata.compact.max.delta.commits": "1"}
COMPACTED_AND_CLEANED = OFTEN | {
    "hoodie.compact.inline": "true",
    "hoodie.compact.inline.max.delta.commits": "1",
    "hoodie.clean.automatic": "true",
    "hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS",
    "hoodie.cleaner.policy": "KEEP_LATEST_FILE_VERSIONS",
    "hoodie.clean.fileversions.retained": "1",
    "hoodie.cleaner.fileversions.retained": "1",
}

META_COLUMNS = ("_hoodie_record_key", "_hoodie_partition_path")

Rows = Counter[tuple[str, ...]]


@pytest.fixture
def judge(request: pytest.FixtureRequest, cell: Cell) -> HudiJudge:
    found: HudiJudge = request.getfixturevalue(JUDGES[cell.writer.bundle])
    return found


def lay(cell: Cell, judge: HudiJudge, path: Path) -> None:
    everything, some, others = range(KEYS), (0, 1, 2, 3, 8, 9, KEYS, KEYS + 1), (0, 1, 4, 5, 6, 7, 10, 11)
    base = cell.rows(everything, 0, EPOCH_MS)
    judge.write(path, base, options=cell.options, operation="insert", mode="overwrite")
    changes = [cell.rows(some, 1, FIRST_MS), cell.rows((4, 5, 6, 7), 2, EPOCH_MS - 50_000)]  # the second are late
    judge.write(path, pa.concat_tables(changes), options=cell.options)
    judge.write(path, cell.rows((12, 13, 14, 15), 3, FIRST_MS), options=cell.options, operation="delete")
    judge.write(path, cell.rows(others, 4, LATER_MS), options=cell.options)


def go_on(cell: Cell, judge: HudiJudge, path: Path, before: pa.Table) -> Rows:
    """Changes the table; the rows that it must have then, without the meta columns."""
    late_ms = FIRST_MS - 100_000
    if is_merged_otherwise_by_hudi_1(cell):  # there a late row wins over what any compaction has merged, Hudi's own too
        late_ms = NEWEST_MS
    newest, late = cell.rows((0, 3, 13, KEYS, KEYS + 2), 5, NEWEST_MS), cell.rows((6, 7, 9), 6, late_ms)
    judge.write(path, pa.concat_tables([newest, late]), options=cell.options | OFTEN)
    gone = cell.rows((1, 2, 4, KEYS + 1), 7, NEWEST_MS)
    judge.write(path, gone, options=cell.options | COMPACTED_AND_CLEANED, operation="delete")

    found: dict[str, Row] = {row["id"]: row for row in before.to_pylist()}
    assert all(found[row["id"]]["event_ts"] > row["event_ts"] for row in late.to_pylist()) or late_ms == NEWEST_MS
    wins = cell.merge is Merge.COMMIT_TIME
    found |= {row["id"]: row for changes in (newest, *([late] if wins else [])) for row in changes.to_pylist()}
    for row in gone.to_pylist():
        del found[row["id"]]
    return Counter(tuple(repr(as_json(row[name])) for name in values_of(cell)) for row in found.values())


def rows(found: pa.Table, columns: list[str]) -> Rows:
    return Counter(tuple(repr(as_json(row[name])) for name in columns) for row in found.to_pylist())


def columns_of(cell: Cell) -> list[str]:
    """What is compared."""
    return [*META_COLUMNS, *values_of(cell)]


def values_of(cell: Cell) -> list[str]:
    """Of a time that partitions a table Hudi on Spark shows the partition's path; others the time."""
    by_time = {"born"} if cell.keys is KeyGenerator.TIMESTAMP else set[str]()
    return [name for name in cell.schema.names if name not in by_time]


def filters(cell: Cell) -> dict[str, pc.Expression]:
    """Conditions in Spark's SQL by which files or rows may be left out, and what they mean."""
    event_ts, val, amount = (pc.field(name) for name in ("event_ts", "val", "amount"))
    found = {"id = 'k00008'": pc.field("id") == "k00008"}
    if cell.metadata is Metadata.ALL:
        found |= {
            f"event_ts >= {LATER_MS}": event_ts >= LATER_MS,
            f"event_ts < {EPOCH_MS}": event_ts < EPOCH_MS,
            "val = 'b1-8'": val == "b1-8",
            "amount > 7.2 and amount <= 11": (amount > 7.2) & (amount <= 11),
        }
    if cell.keys in (KeyGenerator.SIMPLE, KeyGenerator.COMPLEX):
        found["part = 'b' and event_ts < 1700005000000"] = (pc.field("part") == "b") & (event_ts < 1700005000000)
    return found


def read(judge: HudiJudge, cell: Cell, path: Path) -> dict[str, pa.Table]:
    """What Hudi reads by listing alone, by query."""
    questions = {
        "snapshot": Question(path, options=BY_LISTING),
        "read-optimized": Question(path, "read_optimized", BY_LISTING),
    }
    return ask(judge, cell, questions)


def read_in_every_way(judge: HudiJudge, cell: Cell, path: Path) -> dict[str, pa.Table]:
    """What Hudi reads, by query; by the metadata table, if the cell has one, as without it."""
    questions = {
        "snapshot": Question(path, options=BY_LISTING),
        "read-optimized": Question(path, "read_optimized", BY_LISTING),
        **{condition: Question(path, options=PRUNED, where=condition) for condition in filters(cell)},
    }
    if cell.metadata is not Metadata.NONE:
        questions |= {
            "snapshot by metadata": Question(path, options=BY_METADATA),
            "read-optimized by metadata": Question(path, "read_optimized", BY_METADATA),
        }
    seen, columns = ask(judge, cell, questions), columns_of(cell)
    for query in ("snapshot", "read-optimized"):
        if cell.metadata is not Metadata.NONE:
            assert rows(seen[f"{query} by metadata"], columns) == rows(seen[query], columns), query
    for condition, meaning in filters(cell).items():
        assert rows(seen[condition], columns) == rows(seen["snapshot"].filter(meaning), columns), condition
    return seen


def ask(judge: HudiJudge, cell: Cell, questions: Mapping[str, Question]) -> dict[str, pa.Table]:
    return dict(zip(questions, judge.ask(list(questions.values()), columns_of(cell)), strict=True))


def agreed(seen: Mapping[str, pa.Table], cell: Cell, path: Path) -> tuple[Rows, Rows]:
    """Snapshot and read-optimized, after all readers have been seen to agree."""
    columns = columns_of(cell)
    snapshot, read_optimized = rows(seen["snapshot"], columns), rows(seen["read-optimized"], columns)
    compared(cell, f"Hudi {cell.writer.bundle} on Spark")
    table = opened(cell, path)
    ours, ours_optimized = table.snapshot().to_arrow(), table.read_optimized().to_arrow()
    assert rows(ours, columns) == snapshot
    assert rows(ours_optimized, columns) == read_optimized
    compared(cell, "eventide")
    if cell.keys is not KeyGenerator.TIMESTAMP:  # its column holds a time, of which the path shows the day
        assert as_plain_parquet(table, columns) == read_optimized
        compared(cell, PARQUET)
    every = [*META_COLUMNS, *cell.schema.names]
    if not is_merged_otherwise_by_hudi_1(cell):
        assert rows(hudi_rs.read(path), every) == rows(ours, every)
    assert rows(hudi_rs.read(path, "read_optimized"), every) == rows(ours_optimized, every)
    compared(cell, "hudi-rs")
    return snapshot, read_optimized


def as_plain_parquet(table: Table, columns: list[str]) -> Rows:
    """The rows of the latest base files, by pyarrow alone; Hudi and eventide name the fields within lists differently."""
    bases = [found.base_file.path for found in table.state().view.latest_slices() if found.base_file is not None]
    found = (pq.read_table(Path(table.uri) / base, partitioning=None) for base in bases)
    return sum((rows(part, columns) for part in found), Rows())


def is_merged_otherwise_by_hudi_1(cell: Cell) -> bool:
    """Hudi 1.x and hudi-rs read such a table of 0.15 in commit order, 0.15 by the ordering field among its logs."""
    return cell.writer.version == 6 and cell.merge is Merge.COMMIT_TIME


def opened(cell: Cell, path: Path) -> Table:
    return Table.open(
        str(path),
        {"hoodie.index.type": cell.options["hoodie.index.type"], "hoodie.payload.event.time.field": "event_ts"},
    )


@pytest.mark.parametrize("cell", CELLS, ids=str)
def test_a_cell_of_the_matrix_is_read_alike_and_continues(cell: Cell, tmp_path: Path, judge: HudiJudge) -> None:
    path = tmp_path / cell.name
    lay(cell, judge, path)
    before, read_optimized_before = agreed(read(judge, cell, path), cell, path)

    table = opened(cell, path)
    plan = table.plan_compaction(T_MS)
    left_overs = sum(len(operation.left_overs) for operation in plan.operations)
    assert left_overs > 0, f"nothing is left over: {[(op.fallback, op.reason) for op in plan.operations]}"
    table.compact(plan)
    seen = read_in_every_way(judge, cell, path)
    snapshot, read_optimized = agreed(seen, cell, path)
    assert snapshot == before
    assert read_optimized_before != read_optimized != snapshot
    event_column = columns_of(cell).index("event_ts")
    assert all(row in read_optimized for row in snapshot if int(row[event_column]) < T_MS)
    assert table.freshness().watermark_ms == T_MS

    old = {file for file in path.rglob("*.parquet") if ".hoodie" not in file.parts}
    expected = go_on(cell, judge, path, seen["snapshot"])
    seen = read_in_every_way(judge, cell, path)
    assert rows(seen["snapshot"], values_of(cell)) == expected
    after, compacted = agreed(seen, cell, path)
    assert after == compacted
    assert any(not file.exists() for file in old)
    reached("matrix: cells")
    reached(f"matrix: left-overs, version {cell.writer.version}, {plan.draft.plan.link_mode}", left_overs)
    reached(f"matrix: metadata tables updated, {cell.metadata}", cell.metadata is not Metadata.NONE)
    reached(f"matrix: cells with {cell.types} types in {cell.blocks} blocks")


def test_the_cells_cover_every_pair_of_kinds() -> None:
    kinds: tuple[type[StrEnum], ...] = (Writer, KeyGenerator, Types, Blocks, Index, Merge, Metadata)
    found = {pair for cell in CELLS for pair in combinations([repr(kind) for kind in kinds_of(cell)], 2)}
    wanted = {(repr(one), repr(other)) for first, second in combinations(kinds, 2) for one in first for other in second}
    assert wanted - found == {(repr(Index.RECORD), repr(Metadata.NONE))}
    reached("matrix: cells in all", len(CELLS))


def kinds_of(cell: Cell) -> tuple[StrEnum, ...]:
    return (cell.writer, cell.keys, cell.types, cell.blocks, cell.index, cell.merge, cell.metadata)
