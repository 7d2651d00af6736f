"""Names of timeline files, in both layouts, and instant times."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventide_core.errors import CorruptTimelineError
from eventide_core.table.timeline.instant import (
    Action,
    Instant,
    State,
    instant_epoch_ms,
    instant_time,
    next_instant_time,
)

times = st.integers(0, 4_102_444_800_000).map(instant_time)

T = "20261121060113021"
END = "20261121060115177"


@pytest.mark.parametrize(
    ("name", "instant"),
    [
        (f"{T}.deltacommit.requested", Instant(T, Action.DELTA_COMMIT, State.REQUESTED)),
        (f"{T}.deltacommit.inflight", Instant(T, Action.DELTA_COMMIT, State.INFLIGHT)),
        (f"{T}.deltacommit", Instant(T, Action.DELTA_COMMIT, State.COMPLETED)),
        (f"{T}_{END}.deltacommit", Instant(T, Action.DELTA_COMMIT, State.COMPLETED, END)),
        (f"{T}.commit.requested", Instant(T, Action.COMMIT, State.REQUESTED)),
        (f"{T}.inflight", Instant(T, Action.COMMIT, State.INFLIGHT)),
        (f"{T}_{END}.commit", Instant(T, Action.COMMIT, State.COMPLETED, END)),
        (f"{T}.compaction.requested", Instant(T, Action.COMPACTION, State.REQUESTED)),
        (f"{T}.compaction.inflight", Instant(T, Action.COMPACTION, State.INFLIGHT)),
        (f"{T}.replacecommit.inflight", Instant(T, Action.REPLACE_COMMIT, State.INFLIGHT)),
        ("20150101000000.clean", Instant("20150101000000", Action.CLEAN, State.COMPLETED)),
    ],
)
def test_a_timeline_file_names_an_instant_and_its_state(name: str, instant: Instant) -> None:
    assert Instant.parse(name) == instant
    assert instant.file_name == name


@pytest.mark.parametrize(
    "name",
    [
        "",
        "hoodie.properties",
        ".hoodie.properties.crc",
        f".{T}.deltacommit.crc",
        T,
        f"{T}.deltacommit.crc",
        f"{T}.deltacommit\n",
        f"{T}.unheard",
        f"{T}.deltacommit.done",
        f"{T}_{END}.deltacommit.inflight",
        f"{T[:-1]}.deltacommit",
        f"{T}0.deltacommit",
        f"{T.translate({ord('0'): 0x660})}.deltacommit",
        "archived",
        "history",
        "metadata",
    ],
)
def test_any_other_file_of_the_timeline_directory_is_passed_over(name: str) -> None:
    assert Instant.parse(name) is None


@given(times, st.sampled_from(Action), st.sampled_from(State), st.none() | times)
def test_an_instant_reads_back_from_its_file_name(
    requested: str, action: Action, state: State, completion: str | None
) -> None:
    instant = Instant(requested, action, state, completion if state is State.COMPLETED else None)
    assert Instant.parse(instant.file_name) == instant


@given(st.text())
def test_no_text_is_too_odd_for_a_timeline_directory(name: str) -> None:
    instant = Instant.parse(name)
    assert instant is None or instant.file_name == name


@given(st.integers(0, 4_102_444_800_000))
def test_an_instant_time_is_a_moment_in_milliseconds(epoch_ms: int) -> None:
    time = instant_time(epoch_ms)
    assert len(time) == 17
    assert instant_epoch_ms(time) == epoch_ms
    assert next_instant_time(time) == instant_time(epoch_ms + 1)


@given(st.integers(0, 4_102_444_800_000), st.integers(0, 4_102_444_800_000))
def test_instant_times_sort_as_moments_do(one: int, other: int) -> None:
    assert (instant_time(one) < instant_time(other)) == (one < other)


def test_an_old_instant_time_of_seconds_is_a_moment_too() -> None:
    assert instant_epoch_ms("19700101000001") == 1000


@pytest.mark.parametrize("time", ["20261399000000000", "99999999999999999", "00000000000000", "20261121250000"])
def test_digits_that_are_no_date_are_reported_as_damage_of_the_timeline(time: str) -> None:
    """They may stand in the name of any file of the timeline, and then in every question about it."""
    for ask in (instant_epoch_ms, next_instant_time):
        with pytest.raises(CorruptTimelineError, match=time):
            ask(time)


def test_after_the_last_instant_of_the_calendar_there_is_none() -> None:
    with pytest.raises(CorruptTimelineError, match="the last possible one"):
        next_instant_time("99991231235959999")
