"""Counts and times in messages."""

import pytest

from eventide_core.errors import EventideError, counted, format_timestamp
from eventide_core.table.records.event_time import parse_threshold


@pytest.mark.parametrize(("count", "text"), [(0, "0 logs"), (1, "1 log"), (2, "2 logs"), (2000, "2,000 logs")])
def test_one_is_singular(count: int, text: str) -> None:
    assert counted(count, "log") == text


@pytest.mark.parametrize(
    ("epoch_ms", "text"),
    [
        (0, "1970-01-01T00:00:00Z"),
        (-1, "1969-12-31T23:59:59.999Z"),
        (1_795_219_200_000, "2026-11-21T00:00:00Z"),
        (1_795_219_200_120, "2026-11-21T00:00:00.120Z"),
    ],
)
def test_a_time_can_be_given_as_t_as_it_stands(epoch_ms: int, text: str) -> None:
    assert format_timestamp(epoch_ms) == text
    assert parse_threshold(text) == epoch_ms


def test_a_time_beyond_all_calendars_is_shown_in_milliseconds() -> None:
    assert format_timestamp(10**18) == str(10**18)


def test_no_time_has_a_word() -> None:
    assert (format_timestamp(None), format_timestamp(None, "never")) == ("none", "never")


def test_a_long_message_keeps_its_place_and_its_cure() -> None:
    key = "k" * 1_000_000
    shown = str(EventideError(f"row 7: key {key!r} is taken: choose another one"))
    assert len(shown) < 2100
    assert shown.startswith("row 7: key 'kkk")
    assert shown.endswith("kkk' is taken: choose another one")
    assert "... (998,04" in shown
    assert str(EventideError("x" * 2000)) == "x" * 2000
