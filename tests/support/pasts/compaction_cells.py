"""The compactions of the crash enumeration: each history in both versions and orders, and in each possible link mode.

support.run.campaign: EVENTIDE_CAMPAIGN=n adds n - 1 random histories in each layout and link mode.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import pytest
from _pytest.mark import ParameterSet

from eventide.testing.crash_enumeration import Tally
from eventide.testing.histories import Commit, History, Layout, delete, layouts, put
from eventide.testing.named_histories import named_histories
from eventide.testing.oracle import Change, Order
from eventide_core.config import LinkChoice
from support.run.campaign import CAMPAIGN
from support.run.reach import reached

TALLY = Tally()

Cell = tuple[Layout, History, LinkChoice]


def cells() -> Iterator[Cell]:
    """Layouts, histories and link modes: each history in both versions and orders, with each possible link mode."""
    late, carried, natural, in_time = named_histories()
    for layout in layouts(has_block_event_times=False):
        yield layout, late, LinkChoice.COPY
        if layout.version >= 8:
            yield layout, late, LinkChoice.PREFIX
    for layout in layouts(has_block_event_times=True):
        if layout.order is Order.EVENT_TIME:
            yield layout, carried, LinkChoice.COPY
            yield layout, natural, LinkChoice.HARDLINK
            yield replace(layout, has_metadata_table=True), late, LinkChoice.COPY
    yield layouts()[3], in_time, LinkChoice.AUTO
    yield layouts()[2], natural, LinkChoice.PREFIX
    for number in range(CAMPAIGN - 1):
        for layout in layouts(has_block_event_times=number % 2 == 0):
            for link in (LinkChoice.COPY, LinkChoice.HARDLINK, LinkChoice.PREFIX):
                yield layout, random_history(number), link


def random_history(seed: int) -> History:
    """Up to five commits over three keys and few event times, so that keys and event times collide."""
    chance = random.Random(seed)

    def change(key: str, number: int) -> Change:
        kind = chance.random()
        if number and kind < 0.12:
            return delete(key)
        ms = chance.randint(1, 6)
        return delete(key, ms) if number and kind < 0.3 else put(key, ms, f"{key} of {number}")

    commits: list[Commit] = [(put("k0", 2, "base"), put("k1", 3, "base"))]
    for number in range(1, chance.randint(4, 6)):
        keys = chance.sample(["k0", "k1", "k2"], chance.randint(1, 2))
        commits.append(tuple(change(key, number) for key in keys))
    return History(f"random {seed}", tuple(commits), cut_ms=chance.randint(2, 5))


def cell_name(layout: Layout, history: History, link: LinkChoice) -> str:
    kind = f"v{layout.version}-{layout.order.name}{'-metadata table' if layout.has_metadata_table else ''}"
    return f"{kind}-{history.name}-{link}"


CELLS = tuple(cells())
# One of each history, of each link mode, of a metadata table, and of both ways to slice.
BY_DEFAULT = {
    "v6-EVENT_TIME-late data and ties-copy",
    "v6-EVENT_TIME-deletes in natural order-hardlink",
    "v9-COMMIT_TIME-late data and ties-prefix",
    "v9-EVENT_TIME-late data and ties-copy",
    "v9-EVENT_TIME-a delete that must be carried-copy",
    "v9-EVENT_TIME-metadata table-late data and ties-copy",
}
IN_BROAD = {
    "v6-HUDI_0X_OVERWRITE-late data and ties-copy",
    "v6-EVENT_TIME-a delete that must be carried-copy",
    "v9-EVENT_TIME-late data and ties-prefix",
    "v9-EVENT_TIME-a delete in natural order that two left-overs follow-auto",
}
# The cells that also get every second crash: one for each layout's slicing, and every cell in a campaign.
PAIRED = CELLS if CAMPAIGN > 1 else tuple(cell for cell in CELLS if "late" in cell[1].name)[1:4:2]


def params_of(cells: Sequence[Cell]) -> list[ParameterSet]:
    """The cells as parameters of a fixture."""
    return [pytest.param(cell, id=name, marks=_marks_of(name)) for cell in cells for name in (cell_name(*cell),)]


def _marks_of(name: str) -> tuple[pytest.MarkDecorator, ...]:
    if name in BY_DEFAULT:
        return ()
    return (pytest.mark.broad if name in IN_BROAD else pytest.mark.proof,)


def check_reach(floors: Mapping[str, int]) -> None:
    """Reports what was reached, and fails if that is too little for a proof."""
    for what in floors:
        reached(f"crash enumeration: {what}", TALLY.counts[what])
    missed = {what: TALLY.counts[what] for what, floor in floors.items() if TALLY.counts[what] < floor}
    assert not missed, f"reached only {missed}, of {floors}"
