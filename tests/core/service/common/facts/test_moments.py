"""Moments on the timeline of a table whose instants are local times."""

import re
from dataclasses import dataclass, replace
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from eventide_core.errors import InstantNotFoundError
from eventide_core.service.common.facts.moments import (
    differing_clocks,
    epoch_ms_of,
    local_instant_time,
    moment_as_instant,
)
from eventide_core.service.common.facts.planning import instant_beyond
from eventide_core.table.settings.table_config import TableConfig
from eventide_core.table.timeline.observed_offset import ObservedOffset
from eventide_core.table.timeline.timeline import Timeline
from support.doubles.clocks import ManualClock

TEXT = "hoodie.table.name=trips\nhoodie.table.version=6\nhoodie.table.type=MERGE_ON_READ\nhoodie.table.recordkey.fields=id\n"
LOCAL = TableConfig.parse(TEXT, "/t")
UTC = TableConfig.parse(TEXT + "hoodie.table.timeline.timezone=UTC\n", "/t")
HOUR = 3_600_000
OSLO = ZoneInfo("Europe/Oslo")


@dataclass
class ZonedClock(ManualClock):
    zone: ZoneInfo = OSLO

    def local_offset_ms(self, epoch_ms: int, /) -> int:
        offset = datetime.fromtimestamp(epoch_ms / 1000, self.zone).utcoffset()
        assert offset is not None
        return int(offset.total_seconds()) * 1000


def at(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp() * 1000)


def seen(offset_ms: int, time: str = "2026-11-21T06:00Z") -> Timeline:
    return replace(Timeline.of([]), offset=ObservedOffset(offset_ms, at(time)))


NOTHING_SEEN = Timeline.of([])


@pytest.mark.parametrize("timeline", [NOTHING_SEEN, seen(HOUR)])
@pytest.mark.parametrize(
    ("moment", "instant"),
    [
        ("2026-11-21T06:01:13Z", "20261121070113000"),
        ("2026-07-21T06:01:13Z", "20260721080113000"),
        ("2026-03-29T00:59:59.999Z", "20260329015959999"),  # the clock is set from 2 to 3
        ("2026-03-29T01:00Z", "20260329030000000"),
        ("2026-10-24T23:59:59.999Z", "20261025015959999"),  # the clock is set from 3 back to 2
        ("2026-10-25T02:00Z", "20261025030000000"),
    ],
)
def test_a_moment_is_found_by_the_clock_of_its_day(timeline: Timeline, moment: str, instant: str) -> None:
    assert moment_as_instant(LOCAL, timeline, at(moment), ZonedClock()) == instant
    assert epoch_ms_of(LOCAL, timeline, instant, ZonedClock()) == at(moment)
    assert local_instant_time(LOCAL, timeline, at(moment), ZonedClock()) == instant


@pytest.mark.parametrize("moment", ["2026-10-25T00:00Z", "2026-10-25T00:30Z", "2026-10-25T01:59:59.999Z"])
def test_an_hour_that_a_clock_change_repeats_is_refused(moment: str) -> None:
    with pytest.raises(InstantNotFoundError, match=r"a clock change repeats.*Hudi's digits"):
        moment_as_instant(LOCAL, NOTHING_SEEN, at(moment), ZonedClock())
    assert moment_as_instant(UTC, NOTHING_SEEN, at(moment), ZonedClock()).startswith("202610250")


def test_a_moment_is_refused_where_the_writers_clock_is_another_one() -> None:
    writers = seen(-8 * HOUR)
    with pytest.raises(InstantNotFoundError, match=re.escape("at UTC-08:00, while this process is at UTC+01:00")):
        moment_as_instant(LOCAL, writers, at("2026-11-21T06:01Z"), ZonedClock())
    assert moment_as_instant(UTC, writers, at("2026-11-21T06:01Z"), ZonedClock()) == "20261121060100000"
    assert differing_clocks(UTC, writers, ZonedClock()) is None
    assert differing_clocks(LOCAL, seen(2 * HOUR, "2026-07-21T06:00Z"), ZonedClock()) is None, "the same zone in July"


def test_a_new_instant_follows_the_clock_of_the_writers() -> None:
    clock = ZonedClock(at("2026-11-21T06:01Z"))
    assert instant_beyond(seen(-8 * HOUR), (), LOCAL, clock) == "20261120220100000"
    assert instant_beyond(seen(9 * HOUR), (), LOCAL, clock) == "20261121150100000"
    assert instant_beyond(NOTHING_SEEN, (), LOCAL, clock) == "20261121070100000"
    later = Timeline.of_file_names(["20261120230000000.deltacommit"])
    assert instant_beyond(replace(later, offset=seen(-8 * HOUR).offset), (), LOCAL, clock) == "20261120230000001"
