"""A correction with the same event time wins after an exact cut, also for a reader that groups log blocks by instant."""

from pathlib import Path

import pyarrow as pa
import pytest

from eventide import Table
from support.judge import hudi_rs
from support.small_table import HOUR_MS, LATER_MS, SCHEMA, make, seen

DAY_MS = LATER_MS - 240 * HOUR_MS
WITH_DELETES = pa.schema([*SCHEMA, pa.field("_hoodie_is_deleted", pa.bool_())])


def rows(*values: tuple[str, int, str]) -> pa.Table:
    """Rows of one partition: key, hours, and the word, which is "deleted" for a delete."""
    found = [
        {"id": key, "part": "a", "ms": DAY_MS + hours * HOUR_MS, "word": word, "_hoodie_is_deleted": word == "deleted"}
        for key, hours, word in values
    ]
    return pa.Table.from_pylist(found, schema=WITH_DELETES)


@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize(
    "commits",
    [
        [
            (("k", 1, "k1"), ("a", 1, "a1")),
            (("k", 2, "k2"), ("a", 10, "first")),
            (("k", 3, "deleted"), ("a", 10, "last")),
        ],
        [
            (("k", 1, "k1"), ("a", 1, "a1")),
            (("k", 3, "deleted"), ("a", 2, "a2")),
            (("k", 2, "late"), ("a", 10, "first")),
            (("a", 10, "last"),),
        ],
    ],
    ids=["the delete stays in its log file", "the delete is carried"],
)
def test_ties_end_alike_for_readers_that_group_blocks_by_instant(
    commits: list[tuple[tuple[str, int, str], ...]], version: int, tmp_path: Path
) -> None:
    table = make(tmp_path / "t", version)
    for commit in commits:
        table.upsert(rows(*commit))
    assert seen(hudi_rs.read(tmp_path / "t")) == seen(table.snapshot().to_arrow())
    as_before = seen(table.snapshot().to_arrow())
    assert {key: word for key, (_, word) in as_before.items()} == {"a": "last"}

    plan = table.plan_compaction(DAY_MS + 5 * HOUR_MS, cut="exact", link_mode="copy")
    assert not plan.draft.plan.fallbacks
    table.compact(plan)
    assert seen(Table.open(str(tmp_path / "t")).snapshot().to_arrow()) == as_before
    assert seen(hudi_rs.read(tmp_path / "t")) == as_before
