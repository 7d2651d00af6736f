"""Tables of version 8 and 9 that live through anything: testing/state_machine.py says how.

Says what it reached, and fails where that is too little to have proved anything. EVENTIDE_CAMPAIGN=n runs n times as many
examples of twenty steps, other ones at each run.
"""

from collections import Counter
from typing import Any

import pytest

from eventide.testing.histories import Layout, put
from eventide.testing.oracle import Order
from eventide.testing.state_machine import Configuration, Other, Verb, configurations, table_machine
from eventide_core.config import LinkChoice
from eventide_core.table.timeline.contents.plans import CutMode
from support.cases.machine_run import MachineRun, params_of

pytestmark = pytest.mark.campaign

RUN = MachineRun(tuple(kind for kind in configurations() if kind.layout.version >= 8))


@pytest.mark.parametrize("configuration", params_of(RUN.kinds))
def test_a_table_keeps_every_promise_whatever_happens_to_it(configuration: Configuration) -> None:
    RUN.of(configuration)


def test_the_machine_reached_what_it_is_for() -> None:
    RUN.tell()


@pytest.mark.parametrize("before", range(4, 9))
def test_a_compaction_that_wakes_up_when_its_files_are_cleaned_takes_its_plan_back(before: int) -> None:
    """Before write 6, its inflight file: it reads texts for their times then, and stays behind with an error."""
    texts = Layout(9, Order.COMMIT_TIME, has_text_times=True)
    machine: Any = table_machine(Configuration(texts, LinkChoice.COPY, CutMode.EXACT, ("a",)), Counter())()
    for number in range(4):
        machine.commit((put("k0", number, f"word {number}", partition="a"), put("k1", -number, "word", partition="a")))
    changes = (put("k0", -1, "beyond", partition="a"), put("k2", -4, "beyond", partition="a"))
    machine.pause(Verb.EXECUTE, before, [Other.GO_BEYOND, Other.CLEAN], changes, 3)
    machine.commit((put("k2", 0, "afterwards", partition="a"),))
    machine.teardown()
