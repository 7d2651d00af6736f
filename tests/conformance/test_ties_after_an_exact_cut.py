"""A correction with the same event time wins after an exact cut, also for a reader that groups log blocks by instant."""

from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest

from eventide import Table
from eventide_adapters.format.slice.merge import slice_merger
from eventide_adapters.format.slice.merge.base_merge import ChangedRows, SliceMerge
from eventide_adapters.format.slice.merge.log_fold import FoldedLogFiles
from eventide_core.action.compaction import slice_split
from eventide_core.action.compaction.slice_split import carried_tombstone
from eventide_core.table.records.key_history import KeyHistory
from eventide_core.table.records.record_order import MergeRule, Version
from eventide_core.table.records.record_shape import RecordShape
from support.judge import HudiJudge, hudi_rs
from support.tables.dated_rows import DAY_MS, rows
from support.tables.small import HOUR_MS, make, seen


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
    commits: list[tuple[tuple[str, int, str], ...]], version: int, tmp_path: Path, judge_120: HudiJudge
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
    assert seen(judge_120.read(tmp_path / "t")) == as_before


def _made_before_left_overs_kept_their_deletes(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """An exact cut as it once was: it also carries a delete that a left-over has, at that left-over's instant."""
    table.upsert(rows(("k", 1, "k1"), ("a", 1, "a1")))
    table.upsert(rows(("k", 2, "k2"), ("a", 10, "first")))
    table.upsert(rows(("k", 3, "deleted"), ("a", 10, "last")))
    as_now = carried_tombstone

    def of_all(history: KeyHistory, rule: MergeRule) -> Version | None:
        return as_now(replace(history, merged=history.taken, early=()), rule)

    def of_all_blocks(
        folded: FoldedLogFiles,
        shape: RecordShape,
        *,
        changes: ChangedRows | None,
        early_parts: int,
        meets_all_of_key: bool,
    ) -> SliceMerge:
        del early_parts
        return SliceMerge(folded, shape, changes=changes, meets_all_of_key=meets_all_of_key)

    with monkeypatch.context() as earlier:
        earlier.setattr(slice_split, "carried_tombstone", of_all)
        earlier.setattr(slice_merger, "SliceMerge", of_all_blocks)
        table.compact(table.plan_compaction(DAY_MS + 5 * HOUR_MS, cut="exact", link_mode="copy"))


@pytest.mark.broad
@pytest.mark.parametrize("version", [6, pytest.param(9, marks=pytest.mark.proof)])
def test_the_readers_that_group_blocks_by_instant_are_known(
    version: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    judge_015: HudiJudge,
    judge_102: HudiJudge,
    judge_111: HudiJudge,
    judge_120: HudiJudge,
) -> None:
    table = make(tmp_path / "t", version)
    _made_before_left_overs_kept_their_deletes(table, monkeypatch)
    judges = {judge.version: judge for judge in (judge_015, judge_102, judge_111, judge_120)}
    if version == 9:  # which these don't read
        del judges["0.15.0"], judges["1.0.2"]
    words = {name: seen(judge.read(tmp_path / "t"))["a"][1] for name, judge in judges.items()}
    words["hudi-rs"] = seen(hudi_rs.read(tmp_path / "t"))["a"][1]
    assert {name for name, word in words.items() if word == "first"} == {"1.2.0", "hudi-rs"}


@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize(("hours", "cut"), [(6, "exact"), (20, "exact"), (20, "file")])
def test_a_compaction_mends_a_slice_whose_carried_delete_ties_with_a_left_over(
    hours: int, cut: Literal["exact", "file"], version: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make(tmp_path / "t", version)
    _made_before_left_overs_kept_their_deletes(table, monkeypatch)
    expected = {"a": (DAY_MS + 10 * HOUR_MS, "last")}
    assert seen(hudi_rs.read(tmp_path / "t"))["a"][1] == "first"
    assert seen(table.snapshot().to_arrow()) == expected
    table.upsert(rows(("k", 4, "again"), ("a", 1, "late")))
    expected |= {"k": (DAY_MS + 4 * HOUR_MS, "again")}

    table.compact(table.plan_compaction(DAY_MS + hours * HOUR_MS, cut=cut, link_mode="copy"))
    assert seen(table.snapshot().to_arrow()) == expected
    assert seen(hudi_rs.read(tmp_path / "t")) == expected
    assert table.verify(deep=True).ok
