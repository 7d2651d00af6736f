"""Readers that group log blocks by instant see the same after a split as before it: all small histories of two keys.

Hudi 1.2.0 and hudi-rs 0.5.0 collect the blocks of each instant, and merge the groups in order of their first block. Hudi
0.15.0, 1.0.2 and 1.1.1 merge block by block (tests/conformance/test_ties_after_an_exact_cut.py).
"""

import itertools
from collections.abc import Iterator, Sequence

import pytest

from eventide_core.action.compaction.slice_split import carried_tombstone, judge_split
from eventide_core.table.records.key_history import KeyHistory
from eventide_core.table.records.record_order import MergeRule, Version, latest

pytestmark = pytest.mark.slow

Block = tuple[int, dict[str, Version]]
"""The instant, and the version of each key."""


def grouped(blocks: Sequence[Block]) -> list[Block]:
    """The blocks as a reader meets them that collects each instant's blocks."""
    first = {instant: place for place, (instant, _) in reversed(list(enumerate(blocks)))}
    return sorted(blocks, key=lambda block: first[block[0]])


def of_key(key: str, blocks: Sequence[Block]) -> tuple[Version, ...]:
    return tuple(versions[key] for _, versions in blocks if key in versions)


def histories() -> Iterator[list[Block]]:
    """Log files of one block each: `k` is written or deleted, `a` is written with ties. Of four, fewer kinds of blocks."""
    every = itertools.product(
        (None, (1, False), (2, False), (1, True), (2, True), (3, True)), (None, (1, False), (4, False))
    )
    hardest = itertools.product((None, (2, False), (3, True)), ((1, False), (4, False)))
    for count, choice in (*zip((1, 2, 3), itertools.repeat(tuple(every))), (4, tuple(hardest))):
        for words in itertools.product(choice, repeat=count):
            blocks: list[Block] = []
            for instant, pair in enumerate(words):
                keyed = zip("ka", pair, strict=True)
                versions = {key: Version(*word, 2 * instant + (key == "a")) for key, word in keyed if word is not None}
                blocks.append((instant, versions))
            yield blocks


TIMES = {"exact cut": {1: 1, 2: 2, 3: 3, 4: 4}, "by another ordering field": {1: 4, 2: 3, 3: 2, 4: 1}, "file cut": None}
"""The event times of the ordering values, if an exact cut at 4 goes by them. A file cut takes no record of a left-over."""


@pytest.mark.parametrize("rule", [MergeRule.EVENT_TIME_ORDERING, MergeRule.COMMIT_TIME_ORDERING])
@pytest.mark.parametrize("times", TIMES.values(), ids=TIMES)
def test_readers_that_group_by_instant_see_no_split(rule: MergeRule, times: dict[int, int] | None) -> None:
    base, before_t = Version(1, False, -1), 4

    def is_early(version: Version) -> bool:
        assert isinstance(version.ordering, int)
        return times is not None and times[version.ordering] < before_t

    split = carried = 0
    for blocks in histories():
        for count in range(len(blocks)):
            if times and not all(is_early(v) for _, versions in blocks[:count] for v in versions.values()):
                break  # an exact cut merges a prefix without anything after T
            merged, left = blocks[:count], blocks[count:]
            taken_early = [(i, {k: v for k, v in versions.items() if is_early(v)}) for i, versions in left]
            cases = [
                KeyHistory(key, base, of_key(key, merged), of_key(key, left), of_key(key, taken_early)) for key in "ka"
            ]
            if judge_split(cases, rule, (rule,), is_base_file_index=False).fallback is not None:
                continue
            split += 1
            tombstones = {
                case.key: tombstone for case in cases if (tombstone := carried_tombstone(case, rule)) is not None
            }
            carry = [(tombstone.position // 2, {key: tombstone}) for key, tombstone in sorted(tombstones.items())]
            carried += len(carry)
            for case in cases:
                as_before = latest(rule, base, of_key(case.key, blocks))
                new_base = latest(rule, base, case.taken)
                for reader in (grouped, list):
                    seen = latest(rule, new_base, of_key(case.key, reader([*carry, *left])))
                    assert seen == as_before, (blocks, count, case.key, reader)
    assert split > 1000
    assert (carried > 100) is (rule is MergeRule.EVENT_TIME_ORDERING)
