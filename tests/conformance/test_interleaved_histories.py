"""Eventide and stock Hudi take turns on one table, and after every turn all readers agree with the oracle (I11).

A history is drawn from its seed: the kind of table, who makes each move, and what it is. Writes have late, tied and null
event times; plans are made by one engine and executed by another; writers and executions of eventide die in the middle.
"""

import os
from pathlib import Path

import pytest

from support.judge import HudiJudge
from support.run.campaign import IS_PROOF, IS_REPEATED, tries
from support.run.reach import reached
from support.turns.campaign import Campaign

pytestmark = pytest.mark.campaign

FIRST_SEED = int(os.environ.get("EVENTIDE_SEED", "0"))
AT_ONCE = 8 if IS_PROOF else 4
TURNS = 5 if IS_REPEATED else 8


def test_hudi_rs_agrees_with_the_oracle_after_every_turn_of_eventide_alone(tmp_path: Path) -> None:
    _live(Campaign({}, tmp_path), "eventide alone")


@pytest.mark.broad
def test_all_readers_see_the_same_after_every_turn_of_eventide_and_hudi(
    tmp_path: Path, request: pytest.FixtureRequest, judge_015: HudiJudge, judge_111: HudiJudge, judge_120: HudiJudge
) -> None:
    judges = [judge_015, judge_111, judge_120]
    if IS_PROOF:  # the few histories of other runs have no table of version 8
        judges.append(request.getfixturevalue("judge_102"))
    _live(Campaign({judge.version: judge for judge in judges}, tmp_path), "taking turns")


def _live(campaign: Campaign, what: str) -> None:
    for number in range(tries(test=1, proof=1)):
        first = FIRST_SEED + number * AT_ONCE
        campaign.live(range(first, first + AT_ONCE), TURNS)
    for reach, times in campaign.reached.items():
        reached(f"{what}: {reach}", times)
    assert not campaign.failures, "\n\n".join(campaign.failures)
