"""Services whose clock has jumped back or far ahead, jumps while they run, or stands still so that instants tie.

Instants are taken above all that exist, whatever the clock says. Whether another process lives is judged by the clock, so
what died may be undone late; but no row is lost or made up, and the same again, by a right clock, ends what was begun.
"""

from dataclasses import dataclass, field

import pytest

from eventide.testing.crash_enumeration import Bench
from eventide.testing.histories import Layout, ManualClock
from eventide_core.config import LOCK_EXPIRE_MINUTES
from eventide_core.errors import BusyError, EventideError
from support.pasts.served import EARLY, HEARTBEAT_EXPIRY_MS, LAYOUTS
from support.pauses.services import ACTIONS, case, ingest, shown
from support.run.reach import reached

DAY_MS = 86_400_000
TEN_YEARS_MS = 3_650 * DAY_MS
JUMPS = {
    "back by a day": (-DAY_MS,),
    "ten years ahead": (TEN_YEARS_MS,),
    "to and fro": (0, -DAY_MS, TEN_YEARS_MS, 5, -5),
    "nowhere, so that all instants tie": (0,),
}


@dataclass(slots=True)
class JumpingClock(ManualClock):
    """Adds one of the jumps after the other to the time, each time it is asked."""

    jumps: tuple[int, ...] = (0,)
    asked: int = field(default=0)

    def now_ms(self) -> int:
        self.asked += 1
        return max(0, self.time_ms + self.jumps[self.asked % len(self.jumps)])


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: f"v{layout.version}")
@pytest.mark.parametrize("jump", JUMPS)
@pytest.mark.parametrize("action", ACTIONS)
def test_a_clock_that_jumps_costs_an_error_at_most(action: str, jump: str, layout: Layout) -> None:
    found = case(action, layout)
    # With a lock that expires a clock that is ahead gets no further than to that.
    bench = Bench("clocks", {**EARLY, LOCK_EXPIRE_MINUTES: "0"})
    bench.load(found.start)
    right, bench.clock = bench.clock, JumpingClock(bench.clock.time_ms, JUMPS[jump])
    failure: EventideError | None = None
    try:
        found.run(bench.process())
    except EventideError as error:
        failure = error
    if failure is not None:
        assert isinstance(failure, BusyError), repr(failure)
        assert (action, jump) == ("restore", "back by a day"), "what has died seems to be alive"
    reached(f"clocks that jumped {jump}")
    bench.clock = right
    bench.load(bench.moment().after_the_lock_expired().later(HEARTBEAT_EXPIRY_MS))
    seen = shown(bench.process())
    assert seen in (found.before, found.after)
    if failure is not None and seen == found.before != found.after:
        found.run(bench.process())
    assert shown(bench.process()) == found.after, repr(failure)
    before = times(bench)
    ingest(bench.process())
    new = times(bench)[len(before) :]
    assert new, "a later write has later times, and none that was there"
    assert min(new) > max(before)
    assert len(set(times(bench))) == len(before) + len(new)


def times(bench: Bench) -> list[str]:
    """All times that completed actions say, in order; a savepoint has its commit's."""
    timeline = bench.process().state().timeline
    return sorted({time for i in timeline.completed for time in (i.requested_time, i.completion_time) if time})
