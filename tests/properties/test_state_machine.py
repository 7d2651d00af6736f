"""Tables that live through anything, of every kind: testing/state_machine.py says how.

Says what it reached, and fails where that is too little to have proved anything. EVENTIDE_CAMPAIGN=n runs n times as many
examples of twenty steps, other ones at each run.
"""

from __future__ import annotations

import os
import zlib
from collections import Counter

import pytest

from eventide.testing.campaign import run_examples
from eventide.testing.state_machine import Configuration, configurations
from support.reach import reached

CAMPAIGN = int(os.environ.get("EVENTIDE_CAMPAIGN", "1"))
EXAMPLES = 10

# What an example must reach on average at the least; a generator that reaches less finds less.
FLOORS = {
    "execute, done": 0.5,
    "crashes": 0.5,
    "clean, done": 0.2,
    "plans with left-overs": 0.3,
    "plans with carried deletes": 0.02,
    "roll back plan, done": 0.02,
    "execute ignorantly, done": 0.02,
    "completed actions undone": 0.1,
    "restore, done": 0.05,
    "archive, done": 0.1,
}
REACH: Counter[str] = Counter()


@pytest.mark.parametrize("configuration", configurations(), ids=str)
def test_a_table_keeps_every_promise_whatever_happens_to_it(configuration: Configuration) -> None:
    # The same examples at each run, and other ones for each configuration.
    seeded = zlib.crc32(str(configuration).encode()) if CAMPAIGN == 1 else None
    # An example takes a second, so to make one smaller takes minutes: only where one asks for more of it anyway.
    run_examples(configuration, REACH, EXAMPLES * CAMPAIGN, seeded, shrinks=CAMPAIGN > 1)


def test_the_machine_reached_what_it_is_for() -> None:
    for what, count in REACH.items():
        reached(f"state machine: {what}", count)
    examples = REACH["examples"]
    if examples < len(configurations()):
        pytest.skip("not every configuration was run")
    missed = {what: REACH[what] / examples for what, floor in FLOORS.items() if REACH[what] < floor * examples}
    assert not missed, f"reached only {missed} an example, of {FLOORS}"
