"""Mutants of merging: the cut, the split of a slice, the rules of readers."""

from dataclasses import replace
from typing import Any

import pytest

from eventide.testing.histories import delete, put
from eventide.testing.oracle import Order
from eventide_core.action.compaction.slice_selection import ReaderRules, Selection, SliceFacts
from eventide_core.action.compaction.slice_split import SplitVerdict
from eventide_core.service.compaction.scheduling import draft, slice_facts, split_judge
from eventide_core.table.records.event_time import EventTimeRange
from eventide_core.table.records.record_order import MergeRule
from support.mutants.mutant import AFTER_T, BASE, BEFORE_T, PLAIN, Mutant, compacts, history, living, writes


def _no_carry(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(split_judge, "judge_split", lambda *_, **__: SplitVerdict(None, None, 0))


def _open_selection(patch: pytest.MonkeyPatch) -> None:
    real: Any = vars(draft)["select"]

    def select(facts: SliceFacts, strategy: Any, *rest: Any) -> Selection | None:
        chosen: Selection | None = real(facts, strategy, *rest)
        if chosen is None:
            return None
        early = [fact for fact in facts.log_facts if fact.event_times.starts_before(strategy.threshold_ms)]
        late = [fact for fact in facts.log_facts if fact not in early]
        return replace(chosen, facts=replace(facts, log_facts=(*early, *late)), count=len(early))

    patch.setattr(draft, "select", select)


def _nulls_are_fresh(patch: pytest.MonkeyPatch) -> None:
    def starts_before(times: EventTimeRange, threshold_ms: int) -> bool:
        return times.min_ms is not None and times.min_ms < threshold_ms

    patch.setattr(EventTimeRange, "starts_before", starts_before)


def _one_too_early(patch: pytest.MonkeyPatch) -> None:
    real = EventTimeRange.starts_before
    patch.setattr(EventTimeRange, "starts_before", lambda times, threshold_ms: real(times, threshold_ms - 1))


def _other_readers_ignored(patch: pytest.MonkeyPatch) -> None:
    def rules(rule: MergeRule, _: object, is_base_file_index: bool, **rest: Any) -> ReaderRules:
        return ReaderRules(rule, (rule,), is_base_file_index, **rest)

    patch.setattr(slice_facts, "ReaderRules", rules)


MUTANTS = (
    Mutant(
        "1",
        "no tombstone is carried",
        _no_carry,
        history(
            writes(BASE, (put("k0", 1, "early"), delete("k1", 3)), (put("k1", 2, "loses to it"),)),
            compacts(2),
            of=lambda: living(9),
        ),
    ),
    Mutant(
        "2",
        "any log files are merged, not a closed prefix (commit time)",
        _open_selection,
        history(
            writes(BASE, (put("k0", 6, "first"),), (put("k0", 2, "second"),)),
            compacts(3),
            of=lambda: living(9, Order.COMMIT_TIME),
        ),
    ),
    Mutant(
        "2b",
        "any log files are merged, not a closed prefix (event time, a tie)",
        _open_selection,
        history(
            writes(BASE, (put("k0", 6, "first"),), (put("k1", 2, "early"), put("k0", 6, "second"))),
            compacts(3),
            of=lambda: living(9),
        ),
    ),
    Mutant(
        "10",
        "an unknown event time counts as fresh",
        _nulls_are_fresh,
        history(writes(BASE, (delete("k0"),), AFTER_T), compacts(3), of=lambda: living(9, Order.COMMIT_TIME)),
    ),
    Mutant("12", "records right before T are left over", _one_too_early, history(*PLAIN, of=lambda: living(9))),
    Mutant(
        "readers",
        "a slice is split by the table's own order, and Hudi 0.x's order is ignored (version 6)",
        _other_readers_ignored,
        history(
            writes(BASE, (put("k0", 9, "merged"), *BEFORE_T), (delete("k0", 8),)),
            compacts(3),
            of=lambda: living(6),
        ),
    ),
)
