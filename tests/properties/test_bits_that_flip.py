"""A bit flips in a file while a service reads it, each file in turn: a typed error, or no row is lost or made up.

The bit is right when it is read again. Of the values of records Hudi's format keeps no checksum: what an ingest or a
compaction copies from data files into new ones is not flipped here (docs/verification.md says so).
"""

import pytest

from eventide.testing.crash_enumeration import Bench
from eventide.testing.histories import Layout
from eventide_adapters.storage.faulty import Fault, FaultPlan, FaultyStorage, Operation
from eventide_core.errors import EventideError
from support.pasts.served import EARLY, HEARTBEAT_EXPIRY_MS, LAYOUTS
from support.pauses.services import ACTIONS, Case, case, shown
from support.run.reach import reached

READING = ("read", "read_range", "open_input")
COPYING = ("ingest", "compact")


def flips(found: Case, action: str) -> dict[int, Operation]:
    """The first and the last time that each file is read, by number."""
    bench = Bench("bits", EARLY)
    bench.load(found.start)
    storage = FaultyStorage(bench.storage)
    found.run(bench.process(storage))
    reads = {n: r for n, r in enumerate(storage.reads) if r.kind in READING}
    ends = {*{r: n for n, r in reversed(reads.items())}.values(), *{r: n for n, r in reads.items()}.values()}
    is_data = {n: r.path.startswith("part=") for n, r in reads.items()}
    return {n: reads[n] for n in sorted(ends) if action not in COPYING or not is_data[n]}


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: f"v{layout.version}")
@pytest.mark.parametrize("action", ACTIONS)
def test_a_bit_that_flips_in_a_file_that_is_read_costs_an_error_at_most(action: str, layout: Layout) -> None:
    found = case(action, layout)
    bench = Bench("bits", EARLY)
    for number, operation in flips(found, action).items():
        bench.load(found.start)
        failure: EventideError | None = None
        try:
            found.run(bench.process(FaultyStorage(bench.storage, FaultPlan(reads={number: Fault.BIT_FLIPPED}))))
        except EventideError as error:
            failure = error
        reached("bits flipped")
        moment = bench.moment().after_the_lock_expired().later(HEARTBEAT_EXPIRY_MS)
        bench.load(moment)
        seen = shown(bench.process())
        assert seen in (found.before, found.after), f"{operation}: {failure!r}"
        if failure is not None and seen == found.before != found.after:
            found.run(bench.process())
            assert shown(bench.process()) == found.after, f"{operation}: {failure!r}"
