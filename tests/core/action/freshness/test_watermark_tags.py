"""Tags by watermark: one at each boundary that the watermark passes, the latest ones retained."""

from datetime import UTC, datetime
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventide_core.action.compaction.threshold_alignment import Alignment
from eventide_core.action.freshness.watermark_tags import TagSchedule, boundary_in, plan_tags, remark_of
from eventide_core.errors import ConfigError

DAY_MS = 86_400_000
DAILY = TagSchedule(Alignment(86_400), "%Y-%m-%d", 2)


def ms(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp() * 1000)


def test_the_last_boundary_that_the_watermark_has_passed_is_tagged_once() -> None:
    plan = plan_tags(DAILY, ms("2026-11-21T15:00+00:00"), {})
    assert (plan.name, plan.boundary_ms) == ("2026-11-21", ms("2026-11-21T00:00+00:00"))
    tagged = {"2026-11-21": ms("2026-11-21T00:00+00:00")}
    assert plan_tags(DAILY, ms("2026-11-21T23:59+00:00"), tagged).name is None
    assert plan_tags(DAILY, ms("2026-11-22T00:00+00:00"), tagged).name == "2026-11-22"


def test_a_late_record_that_lowers_the_watermark_makes_no_tag() -> None:
    assert plan_tags(DAILY, ms("2026-11-19T15:00+00:00"), {"2026-11-21": ms("2026-11-21T00:00+00:00")}).name is None


def test_nothing_is_tagged_before_the_first_watermark() -> None:
    assert plan_tags(DAILY, None, {}).name is None


def test_midnight_is_that_of_the_zone() -> None:
    berlin = TagSchedule(Alignment(86_400, ZoneInfo("Europe/Berlin")), "%Y-%m-%d", None)
    plan = plan_tags(berlin, ms("2026-11-20T23:00+00:00"), {})
    assert (plan.name, plan.boundary_ms) == ("2026-11-21", ms("2026-11-20T23:00+00:00"))


@given(st.lists(st.integers(0, 40 * DAY_MS), max_size=30), st.integers(1, 5), st.sampled_from([3600, 21_600, 86_400]))
def test_every_life_has_each_boundary_once_in_order_and_retains_the_latest(
    watermarks: list[int], retained: int, seconds: int
) -> None:
    schedule = TagSchedule(Alignment(seconds), "%Y-%m-%dT%H:%M%z", retained)
    tagged: dict[str, int] = {}
    made: list[int] = []
    for watermark in watermarks:
        changes = plan_tags(schedule, watermark, tagged)
        if changes.boundary_ms is not None and changes.name is not None:
            assert changes.boundary_ms == schedule.alignment.floor(watermark)
            assert changes.name not in tagged
            tagged[changes.name] = changes.boundary_ms
            made.append(changes.boundary_ms)
        for name in changes.expired:
            del tagged[name]
        assert sorted(tagged.values()) == made[-retained:]
        assert not made or made[-1] >= max(map(schedule.alignment.floor, watermarks[: watermarks.index(watermark) + 1]))
    assert all(one < other for one, other in pairwise(made))


def test_a_pattern_that_names_two_boundaries_alike_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"hoodie\.eventide\.tag\.name='%Y-%m-%d' names several tags alike"):
        TagSchedule(Alignment(3600), "%Y-%m-%d", None)
    TagSchedule(Alignment(3600, UTC), "%Y-%m-%d/%H", None)


@given(st.integers(-(10**15), 10**15))
def test_a_tags_boundary_is_in_its_remarks(boundary: int) -> None:
    assert boundary_in(remark_of(boundary)) == boundary


@pytest.mark.parametrize("remarks", ["", "end of day", "eventide.tag.watermark=", "eventide.tag.watermark=soon", "7"])
def test_a_tag_of_a_person_is_none_by_watermark(remarks: str) -> None:
    assert boundary_in(remarks) is None
