"""The hours in which a table of a fleet may be compacted."""

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventide_core.action.fleet.daily_window import DailyWindow
from eventide_core.errors import ConfigError

NIGHT = DailyWindow.parse("22:00-06:00", ZoneInfo("Europe/Berlin"))


def ms(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp() * 1000)


@pytest.mark.parametrize(
    ("at", "is_open"),
    [
        ("2026-11-21T21:59:59+01:00", False),
        ("2026-11-21T22:00:00+01:00", True),
        ("2026-11-22T05:59:59+01:00", True),
        ("2026-11-22T06:00:00+01:00", False),
    ],
)
def test_a_window_over_midnight_is_that_of_its_zone(at: str, is_open: bool) -> None:
    assert NIGHT.is_open(ms(at)) == is_open


def test_a_window_names_its_next_opening_and_its_next_close() -> None:
    noon = ms("2026-11-21T12:00:00+01:00")
    assert NIGHT.opens_at(noon) == ms("2026-11-21T22:00:00+01:00")
    assert NIGHT.closes_at(NIGHT.opens_at(noon)) == ms("2026-11-22T06:00:00+01:00")


@pytest.mark.parametrize("text", ["22-06", "24:00-06:00", "22:00-06:60", "06:00-06:00", ""])
def test_another_form_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="window"):
        DailyWindow.parse(text)


@given(st.integers(0, 1439), st.integers(1, 1439), st.integers(0, 10**10))
def test_a_window_is_open_between_its_opening_and_its_close(start: int, length: int, second: int) -> None:
    window = DailyWindow(start, (start + length) % 1440)
    now_ms = second * 1000
    opens, closes = window.opens_at(now_ms), window.closes_at(now_ms)
    assert window.is_open(now_ms) == (closes < opens)
    assert window.is_open(opens)
    assert not window.is_open(closes)
    assert window.share_of_day == length / 1440
