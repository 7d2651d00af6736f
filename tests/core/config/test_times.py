"""Durations and time zones, as users write them."""

from datetime import UTC
from pathlib import Path

import pytest

from eventide_core.config import duration_of, duration_seconds, zone_of
from eventide_core.errors import ConfigError

SOURCES = ("core", "adapters", "spark_app")


@pytest.mark.parametrize(("text", "seconds"), [("0", 0), ("90s", 90), ("1d12h", 129_600), ("1", None), ("", None)])
def test_a_duration_has_units_unless_it_is_nothing(text: str, seconds: int | None) -> None:
    assert duration_seconds(text) == seconds


@pytest.mark.parametrize("text", ["1 hour", "-5m", "1w", None, 60])
def test_what_is_no_duration_is_refused_with_one_that_is(text: object) -> None:
    with pytest.raises(ConfigError, match=r"^every=.* is not a duration such as 90s, 30m, 2h or 1d$"):
        duration_of(text, "every=")


@pytest.mark.parametrize(
    ("name", "cure"),
    [
        ("Mars", "use a name such as Europe/Berlin; if the machine has no time zones, run `pip install tzdata`"),
        ("", "use a name such as Europe/Berlin"),
        ("../UTC", "use a name such as Europe/Berlin"),
        ("Europe", "use a name such as Europe/Berlin"),
        ("GMT+8:00", "use a name such as Asia/Kolkata, or Etc/GMT-8, whose sign is the other way round"),
        ("utc+08", "or Etc/GMT-8,"),
        ("-0500", "or Etc/GMT+5,"),
        ("+05:30", "it is an offset; use a name such as Asia/Kolkata"),
        ("-13:00", "it is an offset; use a name such as Asia/Kolkata"),
        ("GMT+0:00", "use UTC"),
    ],
)
def test_what_is_no_zone_is_refused_with_its_cure(name: str, cure: str) -> None:
    with pytest.raises(ConfigError) as refused:
        zone_of(name, "time_zone=")
    said = str(refused.value)
    assert said.startswith(f"time_zone={name!r} is not a known time zone: ")
    assert cure in said


def test_zones_are_names() -> None:
    assert zone_of("UTC", "") is UTC
    assert str(zone_of("Etc/GMT-8", "")) == "Etc/GMT-8"


def test_zones_are_read_in_one_place() -> None:
    root = Path(__file__).parents[3]
    reading = [path for name in SOURCES for path in (root / name).rglob("*.py") if "ZoneInfo(" in path.read_text()]
    assert [path.name for path in reading] == ["times.py"]
