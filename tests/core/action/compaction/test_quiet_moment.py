"""Where a compaction may lie beside writers that never pause: by cases, and every short timeline against a plain model."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from itertools import product

import pytest

from eventide_core.action.compaction.quiet_moment import (
    BackdatingFacts,
    QuietMoment,
    before_open_writes,
    gap_now,
    no_quiet_moment,
    open_at,
    quiet_moment,
)
from eventide_core.table.timeline.instant import Action, Instant, State
from eventide_core.table.timeline.timeline import Timeline


def at(millisecond: int) -> str:
    return f"20260101000000{millisecond:03d}"


def write(requested: int, completed: int | None = None, action: Action = Action.DELTA_COMMIT) -> Instant:
    """Requested and completed at those milliseconds; pending where the second is None."""
    if completed is None:
        return Instant(at(requested), action, State.INFLIGHT)
    return Instant(at(requested), action, State.COMPLETED, at(completed))


def compaction(requested: int, completed: int) -> Instant:
    return write(requested, completed, Action.COMMIT)


def facts(
    instants: Iterable[Instant],
    *,
    retained: int | None = None,
    schema: int | None = None,
    logged: Iterable[int] = (),
    archived: Iterable[Instant] = (),
    put: Mapping[int, int] | None = None,
) -> BackdatingFacts:
    timeline = Timeline.of(instants).with_archived(archived)
    return BackdatingFacts(
        timeline,
        now=at(900),
        used_times=frozenset(
            [t for i in (*timeline.instants, *timeline.archived) for t in (i.requested_time, i.completion_time) if t]
            + [at(completed) for completed in (put or {}).values()]
        ),
        earliest_retained=None if retained is None else at(retained),
        schema_since="" if schema is None else at(schema),
        logged=frozenset(map(at, logged)),
        put_at={at(requested): at(completed) for requested, completed in (put or {}).items()},
    )


@pytest.mark.parametrize("moment", [quiet_moment, gap_now])
def test_where_nothing_is_pending_it_is_no_time_that_a_writer_chooses_now(
    moment: Callable[[BackdatingFacts], QuietMoment],
) -> None:
    written = facts([write(10, 20)])
    assert moment(written) == QuietMoment(at(21))
    at_rest = replace(written, now="20260101000100000")
    assert moment(at_rest) == QuietMoment("20260101000050000")
    assert moment(replace(written, now=at(21))) == QuietMoment(at(21))


def test_beside_one_writer_it_follows_the_last_completion() -> None:
    moment = quiet_moment(facts([write(10, 20), write(30, 40), write(50)]))
    assert (moment.instant, [w.requested_time for w in moment.beside]) == (at(41), [at(50)])


def test_a_completed_write_that_reaches_across_the_gap_takes_it_away() -> None:
    moment = quiet_moment(facts([write(10, 20), write(30, 60), write(50)]))
    assert (moment.instant, [w.requested_time for w in moment.beside]) == (at(21), [at(50), at(30)])


def test_writes_that_overlap_in_a_row_are_all_gone_below() -> None:
    assert quiet_moment(facts([write(10, 20), write(30, 45), write(40, 55), write(50)])).instant == at(21)


def test_a_gap_without_room_is_none() -> None:
    assert quiet_moment(facts([write(10, 20), write(30, 40), write(41)])).instant == at(21)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (facts([write(50)]), "no write has completed"),
        (facts([write(30, 60), write(50)]), "no write has completed"),
        (facts([write(10, 20), write(50)], retained=45), "next clean"),
        (facts([write(10, 20), write(50)], schema=45), "schema changed"),
        (facts([write(50), write(60, 70)], archived=[write(10, 20)]), "archived"),
        (facts([write(10, 20), compaction(25, 70), write(50)], logged=[25]), "the compaction at 20260101000000025"),
        (facts([write(10, 20), write(25, 70, Action.RESTORE), write(50)]), "the restore at 20260101000000025"),
    ],
)
def test_there_is_none(given: BackdatingFacts, why: str) -> None:
    moment = quiet_moment(given)
    assert moment.instant is None
    assert why in no_quiet_moment(moment)
    assert at(50) in no_quiet_moment(moment)


def test_a_second_compaction_in_one_gap_needs_that_the_first_left_nothing_over() -> None:
    """Its left-overs count from its completion: they would lie in the second one's slice, whose base has merged them."""
    history = [write(10, 20), compaction(21, 70), write(50)]
    assert quiet_moment(facts(history)).instant == at(22)
    assert quiet_moment(facts(history, logged=[21])).instant is None
    assert quiet_moment(facts([*history, write(80, 90), write(95)], logged=[21])).instant is None  # 50 is still open
    assert quiet_moment(facts([*history[:2], write(50, 75), write(95)], logged=[21])).instant == at(76)


def test_instants_below_the_active_timeline_are_not_taken() -> None:
    clean = write(5, 6, Action.CLEAN)
    assert "archived" in quiet_moment(facts([clean, write(30, 60), write(50)])).why_not


def test_an_archived_write_counts_as_long_as_its_logs_are_there() -> None:
    history = [write(12, 14), write(30)]
    assert quiet_moment(facts(history)).instant == at(15)
    assert quiet_moment(facts(history, archived=[write(10, 20)])).instant == at(21)


def test_on_version_6_a_plan_waits_for_a_gap() -> None:
    assert gap_now(facts([write(10, 20)])).instant == at(21)
    assert gap_now(facts([write(10, 20), write(30)])).instant is None


@pytest.mark.parametrize("action", [Action.COMMIT, Action.DELTA_COMMIT])
def test_on_version_6_a_plan_is_later_than_the_completion_of_what_names_log_files(action: Action) -> None:
    """A compaction that ran late, or a write that began a file group: Hudi 1.x counts its log files from there on."""
    late, beside = Instant(at(10), action, State.COMPLETED), Instant(at(20), Action.DELTA_COMMIT, State.COMPLETED)
    assert gap_now(facts([late, beside])).instant == at(21)
    assert gap_now(facts([late, beside], put={10: 50})).instant == at(51)
    assert before_open_writes(facts([late, beside, write(60)], put={10: 50})).instant == at(51)
    refused = before_open_writes(facts([late, beside, write(40)], put={10: 50}))
    assert refused.instant is None
    assert refused.why_not.endswith(f"at {at(10)} completed after it")


_SPANS = [None, *((r, c) for r in range(1, 6) for c in (*range(r + 1, 7), None))]


def test_it_is_the_latest_time_in_no_span_on_every_timeline_of_three_writes() -> None:
    """By a plain model: all times are tried, the latest is taken, and of a gap its first time."""
    tried = 0
    for spans in product(_SPANS, repeat=3):
        drawn = [(r * 10, None if c is None else c * 10 + 5) for r, c in filter(None, spans)]
        if len({r for r, _ in drawn}) < len(drawn) or all(c is not None for _, c in drawn):
            continue
        tried += 1
        history = [write(r, c) for r, c in drawn]
        moment = quiet_moment(facts(history)).instant
        quiet = [q for q in range(1, 100) if all(q < r or (c is not None and c < q) for r, c in drawn)]
        assert all(not open_at(Timeline.of(history), at(q)) for q in quiet)
        below = [q for q in quiet if q < min(r for r, c in drawn if c is None)]
        gap = [
            q for q in below if q > max((t for s in drawn for t in s if t is not None and t < max(below)), default=0)
        ]
        expected = gap[0] if gap and any(c is not None and c < gap[0] for _, c in drawn) else None
        assert moment == (None if expected is None else at(expected)), drawn
    assert tried > 2500
