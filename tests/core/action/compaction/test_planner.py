"""What a plan says: selection, fallbacks, names and the choice of a link mode."""

from dataclasses import replace

import pytest

from eventide_core.action.compaction.link_choice import LinkChoiceFacts, choose_link
from eventide_core.action.compaction.planner import plan_compaction, whole_slice
from eventide_core.action.compaction.quiet_moment import BackdatingFacts
from eventide_core.action.compaction.slice_selection import (
    ReaderRules,
    Selection,
    SliceFacts,
    apply_verdict,
    needed_histories,
    needs_unique_keys,
    select,
    unjudged,
    with_doubled_key,
)
from eventide_core.action.compaction.slice_split import SplitVerdict
from eventide_core.action.compaction.strategy import EventTimeBasedCompactionStrategy
from eventide_core.config import LinkChoice
from eventide_core.errors import RefusedError
from eventide_core.table.files.file_name import BaseFileName, LogFileName
from eventide_core.table.files.file_slice import BaseFile, FileSlice, LogFile
from eventide_core.table.files.log_facts import HeaderCheck, LogFacts
from eventide_core.table.records.event_time import EventTimeRange
from eventide_core.table.records.record_order import MergeRule
from eventide_core.table.schema.avro_schema import AvroSchema
from eventide_core.table.timeline.contents.plans import FallbackReason, LinkMode
from eventide_core.table.timeline.instant import Action, Instant, State
from eventide_core.table.timeline.layout import layout_of
from eventide_core.table.timeline.timeline import Timeline

T0 = "20260101000000000"


def at(minute: int, second: int = 0) -> str:
    return f"202601010{minute // 60}{minute % 60:02d}{second:02d}000"


def delta_commit(minute: int) -> Instant:
    """A delta commit of one minute: requested at its beginning, completed half a minute later."""
    return Instant(at(minute), Action.DELTA_COMMIT, State.COMPLETED, at(minute, 30))


TIMELINE = Timeline.of([Instant(T0, Action.COMMIT, State.COMPLETED, at(0, 30)), *map(delta_commit, (1, 2, 3, 4))])


def slice_facts(*ranges: EventTimeRange, version: int = 9, **changes: object) -> SliceFacts:
    """A slice with one log a delta commit; `changes` go to the facts of the last log."""
    logs: list[LogFacts] = []
    for number, event_times in enumerate(ranges, start=1):
        instant = at(number)
        name = LogFileName("fg", instant, 1, "0-1-1") if version >= 8 else LogFileName("fg", T0, number, "0-1-1")
        log = LogFile(name, f"p/{name}", 100 * number)
        logs.append(
            LogFacts(
                log,
                event_times,
                frozenset({instant}),
                0,
                rolled_back=frozenset(),
                check=HeaderCheck.NONE,
                has_merged_block=False,
                uncompacted=event_times,
            )
        )
    logs[-1] = replace(logs[-1], **changes)  # type: ignore[arg-type]  # the test names the fields it changes
    base = BaseFile(BaseFileName("fg", "0-1-1", T0), "p/fg_0-1-1_20260101000000000.parquet", 1000)
    return SliceFacts(FileSlice("p", "fg", T0, base, tuple(fact.log_file for fact in logs)), tuple(logs))


def selected(facts: SliceFacts, threshold_ms: int) -> Selection | None:
    ranges = {fact.log_file.path: fact.event_times for fact in facts.log_facts}
    return select(facts, EventTimeBasedCompactionStrategy(threshold_ms, lambda log: ranges[log.path]), "9", TIMELINE)


FOUR = (EventTimeRange(10, 20), EventTimeRange(30, 40), EventTimeRange(110, 120), EventTimeRange(130, 140))


def selection(**changes: object) -> Selection:
    choice = selected(slice_facts(*FOUR, **changes), 100)  # type: ignore[arg-type]  # see slice_facts
    assert choice is not None
    return choice


def link_facts(choice: LinkChoice = LinkChoice.AUTO, /, **changes: object) -> LinkChoiceFacts:
    facts = LinkChoiceFacts(
        choice,
        is_exclusive=False,
        has_symlinks=False,
        has_server_copies=False,
        layout=layout_of(9),
        moment=at(9),
        back=BackdatingFacts(TIMELINE, at(9), frozenset()),
    )
    bounds = ("timeline", "used_times", "earliest_retained", "schema_since")
    back = {name: changes.pop(name) for name in bounds if name in changes}
    facts = replace(facts, back=replace(facts.back, **back))  # type: ignore[arg-type]  # the test names what it changes
    return replace(facts, **changes)  # type: ignore[arg-type]  # as above


ROWS = AvroSchema.of('{"type":"record","name":"r","fields":[]}')


def test_a_slice_with_nothing_before_t_is_left_alone() -> None:
    assert selected(slice_facts(*FOUR), 5) is None


def test_the_logs_before_t_are_compacted_and_the_rest_remains() -> None:
    chosen = selection()
    assert (len(chosen.compacted), len(chosen.left_overs), chosen.fallback) == (2, 2, None)


def test_a_log_compaction_is_never_parted_from_what_it_merged() -> None:
    chosen = selection(has_merged_block=True)
    assert chosen.fallback is FallbackReason.LOG_COMPACTION
    assert not chosen.left_overs
    among_the_merged = selected(slice_facts(*FOUR[:2], EventTimeRange(30, 40), has_merged_block=True), 100)
    assert among_the_merged is not None
    assert among_the_merged.fallback is None


def test_the_blocks_of_one_instant_are_never_parted() -> None:
    """Readers that group blocks by instant would meet the left-overs in another order."""
    chosen = selection(instants=frozenset({at(1), at(4)}))
    assert (len(chosen.compacted), chosen.fallback) == (4, FallbackReason.DIVIDED_WRITE)
    assert at(1) in chosen.reason
    among_the_left_overs = selection(instants=frozenset({at(3), at(4)}))
    assert (len(among_the_left_overs.compacted), among_the_left_overs.fallback) == (2, None)


def test_a_write_whose_log_files_follow_one_another_may_be_divided() -> None:
    chosen = selection(instants=frozenset({at(2)}))
    assert chosen.fallback is FallbackReason.DIVIDED_WRITE  # log 4, after log 3 of another write
    next_one = selected(slice_facts(*FOUR[:2], EventTimeRange(30, 40), instants=frozenset({at(2)})), 25)
    assert next_one is not None
    assert next_one.fallback is None


def test_a_rollback_block_anywhere_in_the_slice_forces_a_full_compaction() -> None:
    chosen = selection(rolled_back=frozenset({"0"}))
    assert (len(chosen.compacted), chosen.fallback) == (4, FallbackReason.ROLLBACK_BLOCK)


def test_a_block_of_an_instant_that_never_completed_forces_a_full_compaction() -> None:
    chosen = selection(instants=frozenset({at(4), at(5)}))
    assert (len(chosen.compacted), chosen.fallback) == (4, FallbackReason.UNCOMMITTED_BLOCK)
    assert at(5) in chosen.reason


def test_key_histories_are_asked_for_only_where_algebra_does_not_answer() -> None:
    event_rule, commit_rule = MergeRule.EVENT_TIME_ORDERING, MergeRule.COMMIT_TIME_ORDERING
    event = ReaderRules(event_rule, (event_rule,), is_base_file_index=False)
    commit = ReaderRules(commit_rule, (commit_rule,), is_base_file_index=False)
    commit_simple = ReaderRules(commit_rule, (commit_rule,), is_base_file_index=True)
    overwrite = MergeRule.HUDI_0X_OVERWRITE_WITH_LATEST
    commit_v6 = ReaderRules(overwrite, (overwrite, commit_rule), is_base_file_index=False)
    with_delete = selection(delete_count=1)
    assert needed_histories(selection(), event) is None
    assert needed_histories(with_delete, event) is True
    assert needed_histories(with_delete, commit) is None
    assert needed_histories(with_delete, commit_simple) is True
    assert needed_histories(selection(), commit_v6) is False
    filling = replace(event, takes_columns=True)
    assert needed_histories(selection(), filling) is False
    partial = replace(commit, takes_columns=True)
    assert needed_histories(selection(), partial) is None
    assert needed_histories(with_delete, partial) is True
    full = with_delete.in_full(FallbackReason.ROLLBACK_BLOCK, "")
    assert needed_histories(full, event) is None


def test_an_exact_cut_by_the_ordering_field_needs_no_histories_and_may_carry_deletes() -> None:
    rule = MergeRule.EVENT_TIME_ORDERING
    ordered = ReaderRules(rule, (rule,), is_base_file_index=False, orders_by_event_time=True)
    exact = replace(selection(delete_count=1), threshold_ms=25)
    assert exact.early == ()
    assert needed_histories(exact, ordered) is None
    assert unjudged(exact, ordered) == exact
    with_early = replace(exact, threshold_ms=1000)
    assert with_early.early
    assert unjudged(with_early, ordered).carried_tombstones == 1
    for rules in (
        replace(ordered, orders_by_event_time=False),
        replace(ordered, is_base_file_index=True),
        replace(ordered, readers=(rule, MergeRule.HUDI_0X_DEFAULT)),
    ):
        assert needed_histories(with_early, rules) is True
    assert needed_histories(replace(with_early, threshold_ms=None), ordered) is True


def test_a_split_that_merges_deletes_or_leaves_positions_needs_unique_keys() -> None:
    rule = MergeRule.EVENT_TIME_ORDERING
    by_keys = ReaderRules(rule, (rule,), is_base_file_index=True)
    by_positions = replace(by_keys, reads_positions=True)
    assert not needs_unique_keys(selection(), by_keys)
    assert needs_unique_keys(selection(delete_count=1), by_keys)
    assert needs_unique_keys(selection(), by_positions)
    assert not needs_unique_keys(selection().in_full(FallbackReason.ROLLBACK_BLOCK, ""), by_positions)

    chosen = with_doubled_key(selection(), "k7")
    assert (chosen.fallback, chosen.left_overs) == (FallbackReason.DOUBLED_KEY, ())
    assert "'k7'" in chosen.reason
    split = selection()
    beside = with_doubled_key(replace(split, facts=replace(split.facts, above=1)), "k7")
    assert beside.has_to_wait


def test_a_verdict_becomes_a_fallback_that_names_the_key() -> None:
    chosen = apply_verdict(selection(), SplitVerdict(FallbackReason.DELETE_REORDERED, "k7", 0))
    assert (chosen.fallback, len(chosen.left_overs)) == (FallbackReason.DELETE_REORDERED, 0)
    assert "'k7'" in chosen.reason


def test_auto_back_dates_between_merged_logs_and_left_overs() -> None:
    decision = choose_link([selection()], link_facts())
    assert decision.mode is LinkMode.PREFIX
    assert at(2, 30) < decision.instant <= at(3)


def test_a_back_dated_instant_is_never_one_that_was_used() -> None:
    first = choose_link([selection()], link_facts()).instant
    second = choose_link([selection()], link_facts(used_times=frozenset({first}))).instant
    assert second > first


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"schema_since": at(3)}, "the schema changed at"),
        ({"layout": layout_of(6)}, "by name"),
        ({"earliest_retained": at(3)}, "next clean"),
        ({"timeline": Timeline.of([*TIMELINE.instants[3:]])}, "archived"),
        (
            {"timeline": Timeline.of([*TIMELINE.instants, Instant(at(1, 10), Action.DELTA_COMMIT, State.INFLIGHT)])},
            "was open at",
        ),
    ],
)
def test_auto_copies_where_back_dating_is_not_safe(changes: dict[str, object], why: str) -> None:
    facts = link_facts(LinkChoice.AUTO, **changes)
    if "archived" in why:  # the archived commits still have their completion times, or the view would refuse
        archived = facts.back.timeline.with_archived(TIMELINE.instants[:3])
        facts = replace(facts, back=replace(facts.back, timeline=archived))
    decision = choose_link([selection()], facts)
    assert decision.mode is LinkMode.COPY
    assert decision.instant == at(9)
    assert why in decision.reason


def test_auto_copies_if_a_left_over_of_another_slice_completed_before_a_merged_log() -> None:
    behind = selected(slice_facts(EventTimeRange(10, 20), EventTimeRange(110, 120)), 100)
    ahead = selected(slice_facts(EventTimeRange(10, 20), EventTimeRange(30, 40), EventTimeRange(50, 60)), 100)
    assert behind is not None and ahead is not None  # noqa: PT018 - one condition: both have something to compact
    assert choose_link([behind, ahead], link_facts()).mode is LinkMode.COPY
    with pytest.raises(RefusedError, match="prefix is not possible"):
        choose_link([behind, ahead], link_facts(LinkChoice.PREFIX))


def test_tombstones_to_carry_rule_back_dating_out() -> None:
    decision = choose_link([apply_verdict(selection(), SplitVerdict(None, None, 2))], link_facts())
    assert decision.mode is LinkMode.COPY


def test_symbolic_links_need_a_declaration_and_a_storage_that_has_them() -> None:
    with pytest.raises(RefusedError, match="exclusive"):
        choose_link([selection()], link_facts(LinkChoice.SYMLINK, has_symlinks=True))
    with pytest.raises(RefusedError, match="doesn't support symbolic links"):
        choose_link([selection()], link_facts(LinkChoice.SYMLINK, is_exclusive=True))
    able = link_facts(LinkChoice.SYMLINK, is_exclusive=True, has_symlinks=True, has_server_copies=True)
    assert choose_link([selection()], able).mode is LinkMode.SYMLINK


@pytest.mark.parametrize("is_exclusive", [True, False])
@pytest.mark.parametrize("has_symlinks", [True, False])
@pytest.mark.parametrize("has_server_copies", [True, False])
def test_auto_links_where_all_resolve_links_and_copies_would_cross_the_network(
    is_exclusive: bool, has_symlinks: bool, has_server_copies: bool
) -> None:
    facts = link_facts(
        is_exclusive=is_exclusive,
        has_symlinks=has_symlinks,
        has_server_copies=has_server_copies,
        layout=layout_of(6),
    )
    links = is_exclusive and has_symlinks and not has_server_copies
    assert choose_link([selection()], facts).mode is (LinkMode.SYMLINK if links else LinkMode.COPY)
    back_dated = replace(facts, layout=layout_of(9))
    assert choose_link([selection()], back_dated).mode is LinkMode.PREFIX


def test_version_6_left_overs_have_version_0_and_rising_tokens_below_tombstones() -> None:
    chosen = selected(slice_facts(*FOUR, version=6), 100)
    assert chosen is not None
    decision = choose_link([chosen], link_facts(LinkChoice.COPY))
    plan = plan_compaction([apply_verdict(chosen, SplitVerdict(None, None, 1))], decision, ROWS, layout_of(6))
    (operation,) = plan.operations
    names = [LogFileName.parse(name) for name in operation.new_log_names]
    assert [(n.version, n.write_token) for n in names if n] == [(0, "00000-0-1"), (0, "00001-0-1"), (0, "00002-0-1")]
    assert [n.reader_order for n in names if n] == sorted(n.reader_order for n in names if n)


def test_left_overs_of_version_9_bear_the_compaction_instant_and_count_from_1() -> None:
    plan = plan_compaction([selection()], choose_link([selection()], link_facts(LinkChoice.COPY)), ROWS, layout_of(9))
    (operation,) = plan.operations
    names = [LogFileName.parse(name) for name in operation.new_log_names]
    assert [(n.instant, n.version) for n in names if n] == [(at(9), 1), (at(9), 2)]
    assert plan.bytes_copied == 300 + 400
    assert plan.bytes_read == 1000 + 100 + 200


def test_a_re_plan_of_whole_slices_names_other_base_files_and_leaves_nothing_over() -> None:
    facts = slice_facts(*FOUR)
    first = plan_compaction([selection()], choose_link([selection()], link_facts(LinkChoice.COPY)), ROWS, layout_of(9))
    second = whole_slice(facts.file_slice, first.instant, "0-1-0", "changed", FallbackReason.CHANGED_AFTER_PLANNING)
    assert second.new_base_name != first.operations[0].new_base_name
    assert [log.path for log in second.compacted] == [fact.log_file.path for fact in facts.log_facts]
    assert second.new_log_names == ()
