"""Partial compaction must not change what any reader sees of a key: each counterexample, and all small histories."""

import itertools

import pytest

from eventide_core.action.compaction.slice_split import carried_tombstone, judge_split
from eventide_core.table.records.key_history import KeyHistory
from eventide_core.table.records.record_order import MergeRule, Version, latest
from eventide_core.table.timeline.contents.plans import FallbackReason

EVENT, COMMIT = MergeRule.EVENT_TIME_ORDERING, MergeRule.COMMIT_TIME_ORDERING
OVERWRITE_0X, DEFAULT_0X = MergeRule.HUDI_0X_OVERWRITE_WITH_LATEST, MergeRule.HUDI_0X_DEFAULT
CUSTOM = MergeRule.HUDI_1_1_CUSTOM_PAYLOAD


def history(base: str, merged: str, left_overs: str) -> KeyHistory:
    """Versions written as in the documents: `U2` an upsert of ordering 2, `D3` a delete of it, `D0` a natural delete."""
    position = itertools.count()

    def versions(text: str) -> tuple[Version, ...]:
        return tuple(
            Version(None if word == "D0" else int(word[1:]), word[0] == "D", next(position)) for word in text.split()
        )

    first = versions(base)
    return KeyHistory("k", first[0] if first else None, versions(merged), versions(left_overs))


def judge(case: KeyHistory, rule: MergeRule, *readers: MergeRule, index: bool = False) -> FallbackReason | None:
    return judge_split([case], rule, (rule, *readers), is_base_file_index=index).fallback


def test_a_tombstone_that_a_left_over_contradicts_is_carried() -> None:
    case = history("U1", "D3", "U2")
    verdict = judge_split([case], EVENT, (EVENT,), is_base_file_index=False)
    assert (verdict.fallback, verdict.carried_tombstones) == (None, 1)
    assert carried_tombstone(case, EVENT) == case.merged[0]


def test_a_tombstone_that_nothing_contradicts_is_not_carried() -> None:
    for case in (history("U1", "D3", "U4"), history("U1", "D3", "D2"), history("U5", "D3", "U2")):
        assert carried_tombstone(case, EVENT) is None


def test_a_natural_delete_with_older_data_in_left_overs_needs_a_full_compaction() -> None:
    assert judge(history("U2", "D0", "U1"), EVENT) is FallbackReason.DELETE_REORDERED


def test_a_natural_delete_followed_by_newer_data_may_be_split() -> None:
    assert judge(history("U2", "D0", "U3"), EVENT) is None
    assert judge(history("U2", "U1", "D0"), EVENT) is None


def test_a_natural_delete_undone_within_the_left_overs_needs_a_full_compaction() -> None:
    assert judge(history("U1", "U3", "D0 U2"), EVENT) is FallbackReason.DELETE_REORDERED


def test_a_split_that_only_time_travel_to_a_left_over_would_notice_is_reported() -> None:
    """As of `U1` the base `U2` was back; a base that lies below `U1` and has lost the key would show `U1`."""
    verdict = judge_split([history("U2", "D0", "U1 U3")], EVENT, (EVENT,), is_base_file_index=False)
    assert (verdict.fallback, verdict.is_alike_in_time) == (None, False)
    plain = judge_split([history("U1", "U2", "U3 U4")], EVENT, (EVENT,), is_base_file_index=False)
    assert plain.is_alike_in_time


def test_hudi_0x_overwrite_with_latest_sees_late_data_win_after_a_split() -> None:
    assert judge(history("U1", "U3", "U2"), COMMIT, OVERWRITE_0X) is FallbackReason.LATE_RECORD_REORDERED


def test_a_reader_that_forgets_a_delete_sees_its_base_again_unless_all_is_merged() -> None:
    assert judge(history("U3", "D4", "U2"), EVENT) is None
    assert judge(history("U3", "D4", "U2"), EVENT, CUSTOM) is FallbackReason.DELETE_REORDERED
    assert judge(history("U1", "U3", "U2"), EVENT, CUSTOM, DEFAULT_0X) is None


def test_a_key_that_only_a_left_over_would_hold_is_refused_to_indexes_of_base_files() -> None:
    case = history("U1", "D0", "U3")
    assert judge(case, EVENT, index=True) is FallbackReason.KEY_LEAVES_BASE_INDEX
    assert judge(case, EVENT, index=False) is None
    assert judge(history("U1", "D0", "D0"), EVENT, index=True) is None


WORDS = ("U1", "U2", "U3", "D0", "D1", "D2", "D3")


@pytest.mark.parametrize("rule", [EVENT, COMMIT])
def test_whatever_is_judged_safe_leaves_the_snapshot_as_it_was(rule: MergeRule) -> None:
    """All histories of one key: base absent or at 1 to 3, up to three versions split anywhere, one late write after."""
    checked = split = 0
    for base in ("", "U1", "U2", "U3"):
        for length in (2, 3):
            for words in itertools.product(WORDS, repeat=length):
                for cut in range(1, length):
                    case = history(base, " ".join(words[:cut]), " ".join(words[cut:]))
                    verdict = judge_split([case], rule, (rule,), is_base_file_index=False)
                    checked += 1
                    if verdict.fallback is not None:
                        continue
                    split += 1
                    tombstone = carried_tombstone(case, rule)
                    carried = () if tombstone is None else (tombstone,)
                    new_base = latest(rule, case.base, case.merged)
                    assert latest(rule, new_base, carried + case.left_overs) == latest(
                        rule, case.base, case.merged + case.left_overs
                    ), case
    assert checked == 2940
    assert split > 2000  # most histories may be split; a judge that refuses everything proves nothing


def test_an_exact_cut_by_what_orders_the_versions_never_needs_a_full_compaction() -> None:
    """All histories of three ordered versions, at each T, with each number of logs retired that hold nothing later."""
    words = [f"{kind}{ordering}" for kind in "UD" for ordering in (1, 2, 3)]
    carried = 0
    for base, t in itertools.product(("", "U1", "U2", "U3"), (1, 2, 3, 4)):
        for logs in itertools.chain.from_iterable(itertools.product(words, repeat=count) for count in (1, 2, 3)):
            whole = history(base, "", " ".join(logs))
            before = [version.ordering is not None and version.ordering < t for version in whole.left_overs]
            for retired in range(len(list(itertools.takewhile(bool, before))) + 1):
                left_overs = whole.left_overs[retired:]
                early = tuple(v for v, is_before in zip(left_overs, before[retired:], strict=True) if is_before)
                case = KeyHistory("k", whole.base, whole.left_overs[:retired], left_overs, early)
                verdict = judge_split([case], EVENT, (EVENT,), is_base_file_index=False)
                assert verdict.fallback is None, case
                if verdict.carried_tombstones:
                    carried += 1
                    assert early, case
                    assert any(version.is_delete for version in case.taken), case
                elif not early:
                    assert verdict.is_alike_in_time, case
    assert carried > 100
