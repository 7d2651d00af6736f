"""Processes that fall asleep past their lease, before any of their operations, while others act: every order harms nobody.

testing/schedules/pauses.py says how, and support/pauses/explored.py what: readers see the acknowledged rows and no others
whenever everybody is asleep, dead or done, and then others can go on. A schedule that is found wrong is done once
more for real, in threads and under the file lock, and printed.
"""

from functools import partial
from itertools import combinations_with_replacement

import pytest

from eventide.testing.schedules.pauses import Counted, Dying, at_changes
from support.pasts.served import LAYOUTS
from support.pauses.explored import KINDS, Search, explore, replayed, scene
from support.run.reach import reached

pytestmark = [pytest.mark.campaign, pytest.mark.slow]

AWAKE = Dying.NOBODY
PAUSED = partial(Search, dying=AWAKE, is_for_stock=True)

SLICES = {
    "plan": PAUSED(("write", "go on"), 1),
    "execute": PAUSED(("execute", "undo"), 1),
    "compact": PAUSED(("execute", "undo"), 1),
    "foreign": PAUSED(("execute", "write"), 1),
    "write": PAUSED(("undo", "write"), 1),
    "clean": PAUSED(("clean", "save"), 1),
    "undo": PAUSED(("undo", "write"), 1),
    "archive": PAUSED(("archive", "write"), 1),
    "save": PAUSED(("clean", "write"), 1),
    "restore": PAUSED(("write",), 1),
}
"""Of each kind of process, what takes seconds."""

DEEP = {
    "a compaction whose plan others ran": ("execute", PAUSED(("execute", "go on"), 2)),
    "an attempt at a plan of another engine that others ran": ("foreign", PAUSED(("execute", "go on"), 2)),
    "a write that a rollback overtakes": ("write+undo", PAUSED()),
    "a savepoint whose files others clean": ("save", PAUSED(("go on",), 2)),
    "a plan that writers follow when it is withdrawn": ("plan", PAUSED(("write",), 1)),
    "a plan that others run before it is withdrawn": (
        "plan",
        PAUSED(("execute", "go on"), 3, naps=2, at=at_changes),
    ),
    "a restore that was decided on before others wrote": ("restore", PAUSED(("write",), 2)),
    "a write that dies with a late log file": ("write", Search(("undo",), 1, dying=Dying.ANYWHERE)),
    "an attempt that dies with a late base file": ("foreign", Search(("execute",), 1, dying=Dying.ANYWHERE)),
    "a clean that dies with a late request": ("clean", Search(("go on",), 1, dying=Dying.ANYWHERE)),
    "a rollback that dies with a late request": ("undo", Search(("go on",), 1, dying=Dying.ANYWHERE)),
}
"""Schedules that were wrong once, each with the smallest search that has it."""

LONG = ("a write that a rollback overtakes", "a plan that others run before it is withdrawn")
OF_ANY_KIND = ("write", "undo", "execute", "end", "compact", "clean", "archive", "go on", "save", "restore")
WHOLE = Search(OF_ANY_KIND, 2)
DEAD = Search(("write", "undo", "execute", "go on"), 1, dying=Dying.ANYWHERE)
PAIR = Search(("go on",), 1, at=at_changes)


def check(kind: str, layout_number: int, search: Search) -> None:
    here, counted = scene(kind, LAYOUTS[layout_number]), Counted()
    wrong = explore(here, search, counted)
    if wrong is not None:
        again = replayed(here, search, wrong.found)
        pytest.fail(f"{wrong}\nfor real: {again}", pytrace=False)
    what = f"pauses: {kind}, v{LAYOUTS[layout_number].version}, {', '.join(search.others)} at most {search.most_others}"
    for name in ("situations", "worlds", "judged"):
        reached(f"{what}: {name}", getattr(counted, name))
    assert counted.judged > 3


@pytest.mark.parametrize("number", [0, 1], ids=["v6", "v9"])
@pytest.mark.parametrize("kind", SLICES)
def test_a_process_that_falls_asleep_anywhere_harms_nobody(kind: str, number: int) -> None:
    check(kind, number, SLICES[kind])


@pytest.mark.parametrize("number", [0, 1], ids=["v6", "v9"])
@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.proof if name in LONG else ()) for name in DEEP])
def test_a_schedule_that_was_wrong_harms_nobody(name: str, number: int) -> None:
    kind, search = DEEP[name]
    check(kind, number, search)


@pytest.mark.proof
@pytest.mark.parametrize("number", [0, 1], ids=["v6", "v9"])
@pytest.mark.parametrize("kind", KINDS)
def test_two_actions_of_any_kind_come_between_any_two_operations(kind: str, number: int) -> None:
    """The sleeper may also never wake up: every state in which it sleeps is judged."""
    check(kind, number, WHOLE)


@pytest.mark.proof
@pytest.mark.parametrize("number", [0, 1], ids=["v6", "v9"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_process_that_wakes_up_and_dies_anywhere_harms_nobody(kind: str, number: int) -> None:
    """Readers and others are right in every state, such as right after a late put."""
    check(kind, number, DEAD)


@pytest.mark.proof
@pytest.mark.parametrize("number", [0, 1], ids=["v6", "v9"])
@pytest.mark.parametrize("kinds", list(combinations_with_replacement(KINDS, 2)), ids="+".join)
def test_two_processes_fall_asleep_and_a_third_acts(kinds: tuple[str, str], number: int) -> None:
    check("+".join(kinds), number, PAIR)
