"""How versions of some columns merge, and where a prefix of them may be merged first: all small histories."""

import itertools
from collections.abc import Sequence

import pytest

from eventide_core.action.compaction.slice_split import carried_tombstone, judge_split
from eventide_core.errors import UnsupportedTableError
from eventide_core.table.records.key_history import KeyHistory
from eventide_core.table.records.partial_update import is_in_order
from eventide_core.table.records.record_order import MergeRule, Version
from eventide_core.table.schema.avro_schema import AvroSchema
from support.values.partial_versions import PartialVersion, latest_partial

EVENT, COMMIT = MergeRule.EVENT_TIME_ORDERING, MergeRule.COMMIT_TIME_ORDERING
COLUMNS = "xy"


def version(word: str, position: int) -> PartialVersion:
    """`U2xy` a record of ordering 2 with these columns, `D3` a delete of it, `D0` a natural delete."""
    kind, ordering, columns = word[0], int(word[1]), word[2:]
    is_delete = kind == "D"
    natural = is_delete and ordering == 0
    made = Version(None if natural else ordering, is_delete, position, not is_delete and columns != COLUMNS)
    return PartialVersion(made, dict.fromkeys(columns, position))


def versions(words: Sequence[str], start: int) -> list[PartialVersion]:
    return [version(word, start + place) for place, word in enumerate(words)]


def seen(partial: PartialVersion | None) -> dict[str, object] | None:
    return None if partial is None else {name: partial.values.get(name) for name in COLUMNS}


@pytest.mark.parametrize(
    ("rule", "words", "expected"),
    [
        (EVENT, "U1xy U2x U3y", {"x": 1, "y": 2}),
        (EVENT, "U1xy U3x U2y", {"x": 1, "y": 2}),  # what comes too late still gives what nobody has given
        (EVENT, "U1xy U3x U2x", {"x": 1, "y": 0}),
        (EVENT, "U4xy U3x", {"x": 0, "y": 0}),
        (EVENT, "U4x U3y", {"x": 0, "y": 1}),  # a base that lacks a column takes it from an older record
        (COMMIT, "U4xy U3x", {"x": 1, "y": 0}),
        (EVENT, "U1xy U2x D3", None),
        (EVENT, "U1xy D0 U2x", {"x": 2, "y": 0}),  # as in Hudi, which forgets the delete
    ],
)
def test_a_record_takes_the_columns_that_it_lacks(
    rule: MergeRule, words: str, expected: dict[str, object] | None
) -> None:
    base, *logs = versions(words.split(), 0)
    assert seen(latest_partial(rule, base, logs)) == expected


WORDS = ("U1x", "U2y", "U2xy", "U3x", "D0", "D2", "D3")


@pytest.mark.parametrize("rule", [EVENT, COMMIT])
def test_what_may_be_split_is_the_same_however_much_of_it_is_merged_first(rule: MergeRule) -> None:
    """All small histories: also where an exact cut has merged some of the versions that stay, and as of later moments."""
    checked = split = 0
    for base, length in itertools.product((None, "U1xy", "U2xy", "U2x"), (2, 3)):
        for words in itertools.product(WORDS, repeat=length):
            old = None if base is None else version(base, 0)
            logs = versions(words, 1)
            for cut in range(1, length):
                left_over = logs[cut:]
                for is_early in itertools.product((False, True), repeat=len(left_over)):
                    early = list(itertools.compress(left_over, is_early))
                    parts = [tuple(each.version for each in part) for part in (logs[:cut], left_over, early)]
                    history = KeyHistory("k", None if old is None else old.version, *parts)
                    verdict = judge_split([history], rule, (rule,), is_base_file_index=False)
                    checked += 1
                    if verdict.fallback is not None:
                        continue
                    split += 1
                    tombstone = carried_tombstone(history, rule)
                    below = [] if tombstone is None else [PartialVersion(tombstone, {})]
                    new_base = latest_partial(rule, old, logs[:cut] + early)
                    moments = range(cut, length + 1) if verdict.is_alike_in_time and not early else [length]
                    for until in moments:
                        then = seen(latest_partial(rule, new_base, below + logs[cut:until]))
                        assert then == seen(latest_partial(rule, old, logs[:until])), (base, words, cut, is_early)
    assert checked == 8624
    assert split > 3000  # a judge that refuses everything proves nothing


@pytest.mark.parametrize("words", ["U1xy U3x U2y", "U2xy D0 U2x", "U2xy U1x U3y"])
def test_what_is_out_of_order_may_differ(words: str) -> None:
    base, first, second = versions(words.split(), 0)
    assert not is_in_order(EVENT, base.version, [first.version, second.version])
    split = latest_partial(EVENT, latest_partial(EVENT, base, [first]), [second])
    assert seen(split) != seen(latest_partial(EVENT, base, [first, second]))


def test_a_default_that_is_a_value_is_refused() -> None:
    schema = '{"type": "record", "name": "r", "fields": [{"name": "%s", "type": "int"%s}]}'
    AvroSchema.of(schema % ("a", "")).refuse_defaults("trips")
    AvroSchema.of(schema % ("a", ', "default": null')).refuse_defaults("trips")
    with pytest.raises(UnsupportedTableError, match=r"trips: .*IGNORE_DEFAULTS: column a has the default 0"):
        AvroSchema.of(schema % ("a", ', "default": 0')).refuse_defaults("trips")
