"""Tables of version 6 that live through anything, beside test_state_machine.py so that two processes share the work.

Says what it reached, and fails where that is too little to have proved anything. EVENTIDE_CAMPAIGN=n runs n times as many
examples of twenty steps, other ones at each run.
"""

import pytest

from eventide.testing.state_machine import Configuration, configurations
from support.cases.machine_run import MachineRun, params_of

pytestmark = pytest.mark.campaign

RUN = MachineRun(tuple(kind for kind in configurations() if kind.layout.version < 8))


@pytest.mark.parametrize("configuration", params_of(RUN.kinds))
def test_a_table_of_version_6_keeps_every_promise_whatever_happens_to_it(configuration: Configuration) -> None:
    RUN.of(configuration)


def test_the_machine_reached_what_it_is_for() -> None:
    RUN.tell()
