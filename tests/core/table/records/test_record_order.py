"""Which version of a key wins, held to tables of outcomes that real readers were seen to show."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventide_core.table.records.record_order import MergeRule, Version, fold, latest, merge_into_base

COMMIT, EVENT = MergeRule.COMMIT_TIME_ORDERING, MergeRule.EVENT_TIME_ORDERING
OVERWRITE, DEFAULT = MergeRule.HUDI_0X_OVERWRITE_WITH_LATEST, MergeRule.HUDI_0X_DEFAULT
CUSTOM = MergeRule.HUDI_1_1_CUSTOM_PAYLOAD
RULES = st.sampled_from([rule for rule in MergeRule if rule is not MergeRule.CUSTOM])  # which doesn't order versions

records = st.builds(Version, st.integers(0, 3), st.just(False))
ordered_deletes = st.builds(Version, st.integers(0, 3), st.just(True))
natural_deletes = st.just(Version(None, True))
inserts_and_deletes = st.lists(records | ordered_deletes, max_size=6)
versions = st.lists(records | ordered_deletes | natural_deletes, max_size=6)


def _put(ordering: int) -> Version:
    return Version(ordering, False)


def _delete(ordering: int | None) -> Version:
    return Version(ordering, True)


@pytest.mark.parametrize(
    ("rule", "base", "logs", "seen"),
    [
        # A late record loses by event time, wins by commit time.
        (EVENT, None, [_put(150), _put(100)], 150),
        (COMMIT, None, [_put(150), _put(100)], 100),
        (EVENT, 100, [_put(50)], 100),
        (COMMIT, 100, [_put(50)], 50),
        # A delete with an ordering value beats an earlier event time, and loses to a later one.
        (EVENT, 100, [_put(150), _delete(200)], None),
        (EVENT, None, [_delete(200), _put(150)], None),
        (EVENT, None, [_delete(200), _put(250)], 250),
        (EVENT, 100, [_delete(50)], 100),
        # A natural delete wins over all before it, then any record takes its place and it is forgotten.
        (EVENT, 100, [_put(200), _delete(None)], None),
        (EVENT, 100, [_delete(None), _put(50)], 100),
        (EVENT, None, [_put(300), _delete(None), _put(50)], 50),
        (COMMIT, 100, [_delete(None), _put(50)], 50),
        # Hudi 0.x lets any insert beat a delete before it.
        (OVERWRITE, None, [_delete(200), _put(150)], 150),
        (DEFAULT, None, [_delete(200), _put(150)], 150),
        # The payload that overwrites looks at the ordering among logs, and never in the base.
        (OVERWRITE, 100, [_put(50)], 50),
        (OVERWRITE, 100, [_put(200), _put(150)], 200),
        (DEFAULT, 100, [_put(50)], 100),
        (DEFAULT, 100, [_delete(50)], None),
        # Hudi 1.1 of a payload under CUSTOM: any insert beats a delete before it, and the first of two deletes stays.
        (CUSTOM, None, [_delete(200), _put(150)], 150),
        (CUSTOM, 100, [_delete(200), _put(50)], 100),
        (CUSTOM, 100, [_delete(50), _delete(200)], 100),
        (CUSTOM, 100, [_delete(50), _delete(None)], 100),
        (CUSTOM, 100, [_delete(None), _delete(50)], None),
        (CUSTOM, 100, [_put(150), _delete(200)], None),
        (CUSTOM, 100, [_put(150), _delete(120)], 150),
        (CUSTOM, 100, [_delete(50)], 100),
        (CUSTOM, 100, [_delete(None), _put(50)], 100),
    ],
)
def test_a_reader_sees_the_version_that_its_rule_lets_win(
    rule: MergeRule, base: int | None, logs: list[Version], seen: int | None
) -> None:
    winner = latest(rule, None if base is None else _put(base), logs)
    assert (None if winner is None else winner.ordering) == seen


@given(st.sampled_from([EVENT, DEFAULT, OVERWRITE, CUSTOM]))
def test_on_a_tie_the_later_version_wins(rule: MergeRule) -> None:
    first, second = Version(5, False, position=1), Version(5, False, position=2)
    assert fold(rule, [first, second]) == second
    assert merge_into_base(rule, first, second) == second


@given(inserts_and_deletes)
def test_by_event_time_the_greatest_ordering_wins_and_the_last_of_equals(logs: list[Version]) -> None:
    numbered = [Version(v.ordering, v.is_delete, position=n) for n, v in enumerate(logs)]
    expected = max(numbered, key=lambda v: (v.ordering, v.position), default=None)
    assert fold(EVENT, numbered) == expected


@given(versions)
def test_by_commit_time_the_last_version_wins(logs: list[Version]) -> None:
    assert fold(COMMIT, logs) == (logs[-1] if logs else None)


@given(st.none() | records, inserts_and_deletes, st.integers(0, 6))
def test_by_event_time_compacting_a_prefix_of_records_changes_nothing(
    base: Version | None, logs: list[Version], split: int
) -> None:
    kept = [version for version in logs if not version.is_delete]
    whole = latest(EVENT, base, kept)
    compacted = latest(EVENT, base, kept[:split])
    assert latest(EVENT, compacted, kept[split:]) == whole


@given(RULES, st.none() | records, versions)
def test_a_reader_never_sees_a_delete_nor_a_version_that_nobody_wrote(
    rule: MergeRule, base: Version | None, logs: list[Version]
) -> None:
    seen = latest(rule, base, logs)
    assert seen is None or (not seen.is_delete and seen in [base, *logs])


@given(RULES, st.none() | records)
def test_a_slice_without_logs_shows_its_base(rule: MergeRule, base: Version | None) -> None:
    assert latest(rule, base, []) == base
