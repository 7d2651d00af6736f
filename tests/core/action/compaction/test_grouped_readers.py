"""Readers that group log blocks by instant see the same after a split as before it: all small histories of two keys.

hudi-rs, and Hudi's own reader where it looks for log compactions, collect the blocks of each instant, and merge the groups
in order of their first block. Others merge block by block.
"""

import itertools
from collections.abc import Iterator, Sequence

import pytest

from eventide_core.action.compaction.slice_split import carried_tombstone, judge_split
from eventide_core.table.records.key_history import KeyHistory
from eventide_core.table.records.record_order import MergeRule, Version, latest

Block = tuple[int, dict[str, Version]]
"""The instant, and the version of each key."""


def grouped(blocks: Sequence[Block]) -> list[Block]:
    """The blocks as a reader meets them that collects those of each instant."""
    first = {instant: place for place, (instant, _) in reversed(list(enumerate(blocks)))}
    return sorted(blocks, key=lambda block: first[block[0]])


def of_key(key: str, blocks: Sequence[Block]) -> tuple[Version, ...]:
    return tuple(versions[key] for _, versions in blocks if key in versions)


def histories() -> Iterator[list[Block]]:
    """Log files of one block each: `k` is written or deleted, `a` is written with ties."""
    of_k = (None, (1, False), (2, False), (1, True), (2, True), (3, True))
    of_a = (None, (1, False), (4, False))
    for count in (1, 2, 3):
        for words in itertools.product(itertools.product(of_k, of_a), repeat=count):
            blocks: list[Block] = []
            for instant, pair in enumerate(words):
                keyed = zip("ka", pair, strict=True)
                versions = {key: Version(*word, 2 * instant + (key == "a")) for key, word in keyed if word is not None}
                blocks.append((instant, versions))
            yield blocks


@pytest.mark.parametrize("rule", [MergeRule.EVENT_TIME_ORDERING, MergeRule.COMMIT_TIME_ORDERING])
def test_readers_that_group_by_instant_see_no_exact_cut(rule: MergeRule) -> None:
    base, before_t = Version(1, False, -1), 4
    split = carried = 0
    for blocks in histories():
        for count in range(len(blocks)):
            if any(v.ordering >= before_t for _, versions in blocks[:count] for v in versions.values()):
                break  # an exact cut merges a prefix without anything after T
            merged, left = blocks[:count], blocks[count:]
            taken_early = [(i, {k: v for k, v in found.items() if v.ordering < before_t}) for i, found in left]
            cases = [
                KeyHistory(key, base, of_key(key, merged), of_key(key, left), of_key(key, taken_early)) for key in "ka"
            ]
            if judge_split(cases, rule, (rule,), is_base_file_index=False).fallback is not None:
                continue
            split += 1
            tombstones = {case.key: found for case in cases if (found := carried_tombstone(case, rule)) is not None}
            carry = [(found.position // 2, {key: found}) for key, found in sorted(tombstones.items())]
            carried += len(carry)
            for case in cases:
                as_before = latest(rule, base, of_key(case.key, blocks))
                new_base = latest(rule, base, case.taken)
                for reader in (grouped, list):
                    seen = latest(rule, new_base, of_key(case.key, reader([*carry, *left])))
                    assert seen == as_before, (blocks, count, case.key, reader)
    assert split > 1000
    assert (carried > 100) is (rule is MergeRule.EVENT_TIME_ORDERING)
