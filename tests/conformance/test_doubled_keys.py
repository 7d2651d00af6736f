"""A key that stands twice in a base file, as `insert` writes it: no compaction changes the rows that any reader shows.

Stock Hudi merges by positions from version 8 on if its index looks up keys in base files, otherwise by keys, and then with
the first of the rows alone.
"""

import shutil
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest

from eventide import Table
from eventide.rows.given import CutName
from eventide_core.table.timeline.contents.plans import FallbackReason
from support.judge import HudiJudge
from support.judge.options import (
    BUCKET_INDEX,
    EVENT_TIME_ORDERING,
    MERGE_ON_READ,
    NO_METADATA_TABLE,
    SIMPLE_INDEX,
    table_name,
    table_version,
)
from support.run.command_line import run_json
from support.tables.dated_rows import DAY_MS, rows
from support.tables.small import HOUR_MS, SCHEMA, SOON

ONE_BUCKET = BUCKET_INDEX | {"hoodie.bucket.index.num.buckets": "1"}


def words(found: pa.Table) -> Counter[tuple[str, str]]:
    return Counter((row["id"], row["word"]) for row in found.to_pylist())


@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize("cut", ["exact", "file"])
def test_a_delete_of_a_doubled_key_is_applied_once(cut: CutName, version: int, tmp_path: Path) -> None:
    path = tmp_path / "t"
    options: dict[str, object] = {**SOON, "hoodie.index.type": "SIMPLE", "hoodie.combine.before.insert": "false"}
    table = Table.create(
        str(path), schema=SCHEMA, record_key="id", partition="part", event_time="ms", version=version, options=options
    )
    table.insert(rows(("k1", 1, "first"), ("k1", 2, "second"), ("k2", 1, "two")))
    table.upsert(rows(("k2", 9, "two again"), ("k1", 3, "deleted")))
    table.upsert(rows(("k2", 10, "and again"), ("k1", 4, "deleted")))
    before = words(table.snapshot().to_arrow())
    assert before == {("k1", "second"): 1, ("k2", "and again"): 1}

    plan = table.plan_compaction(DAY_MS + 7 * HOUR_MS // 2, cut=cut)
    assert plan.draft.plan.fallbacks == {FallbackReason.DOUBLED_KEY: 1}
    table.compact(plan)
    assert words(Table.open(str(path)).snapshot().to_arrow()) == before
    assert words(Table.open(str(path)).read_optimized().to_arrow()) == before


@pytest.mark.broad
@pytest.mark.parametrize("bundle", ["judge_111", pytest.param("judge_120", marks=pytest.mark.proof)])
@pytest.mark.parametrize(
    ("version", "index", "left"),
    [(9, SIMPLE_INDEX, 4), (9, ONE_BUCKET, 5), (6, SIMPLE_INDEX, 5)],
    ids=["9 by positions", "9 by keys", "6 by keys"],
)
def test_stock_shows_the_same_rows_before_and_after_a_compaction(
    version: int, index: dict[str, str], left: int, bundle: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    judge: HudiJudge = request.getfixturevalue(bundle)
    path = tmp_path / "t"
    options = MERGE_ON_READ | index | NO_METADATA_TABLE | table_version(version) | EVENT_TIME_ORDERING
    options |= table_name("t") | {"hoodie.combine.before.insert": "false"}
    options |= {key: "ms" for key, value in options.items() if value == "event_ts"}
    written = [rows(*commit).select(SCHEMA.names) for commit in COMMITS]
    judge.write(path, written[0], options=options, operation="insert", mode="overwrite")
    for number, commit in enumerate(written[1:]):
        judge.write(path, commit, options=options, operation="delete" if number == 1 else "upsert")
    before = words(judge.read(path))
    assert before.total() == left
    assert words(Table.open(str(path)).snapshot().to_arrow()) == before

    for cut in ("exact", "file"):
        copy = Path(shutil.copytree(path, tmp_path / cut))
        run_json("compact", copy, "--before", DAY_MS + 5 * HOUR_MS, "--cut", cut, "--engine", "local")
        assert words(judge.read(copy)) == before
        assert words(Table.open(str(copy)).snapshot().to_arrow()) == before


COMMITS = (
    (("k0", 1, "old"), ("k1", 1, "a"), ("k1", 2, "b"), ("k2", 1, "a"), ("k2", 3, "b"), ("k3", 1, "old")),
    (("k0", 1, "late"), ("k0", 10, "new"), ("k3", 100, "new")),
    (("k1", 5, "gone"),),
    (("k2", 2, "between"), ("k3", 101, "newest")),
)
