"""Makes a failing world smaller, as long as the same check fails: fewer storms, turns, actors and mishaps.

Each actor draws from its own seed, so the others do the same without it, only in another order. Mishaps are those that
happened, each by its actor and the number of its request.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Final, TypeVar

from eventide.testing.simulation.lot import Lot, Mishap
from eventide.testing.simulation.world import Outcome, run_world

WORLDS_MAX: Final = 150
T = TypeVar("T")


def shrunk(failed: Outcome, say: Callable[[str], None], worlds_max: int = WORLDS_MAX) -> Outcome:
    """The smallest world that was found in which the same check fails."""
    assert failed.failure is not None
    check, best, left = failed.failure.check, failed, worlds_max
    size = None
    while size != (size := _size(best)):
        for smaller in (_storms, _actors, _mishaps, _turns):
            for change in smaller(best.lot.with_mishaps(best.mishaps)):
                # What never happened isn't part of the world.
                lot = change(best.lot.with_mishaps(best.mishaps))
                if lot == best.lot:
                    continue
                if left == 0:
                    return best
                left -= 1
                outcome = run_world(lot)
                if outcome.failure is not None and outcome.failure.check == check and _size(outcome) < _size(best):
                    best = outcome
                    say(f"{len(lot.actors)} actors, {lot.storms} x {lot.turns} turns, {len(outcome.mishaps)} mishaps")
    return best


_Change = Callable[[Lot], Lot]


def _size(outcome: Outcome) -> tuple[int, ...]:
    lot = outcome.lot
    return lot.storms, len(lot.actors), len(outcome.mishaps), lot.turns


def _storms(_: Lot) -> Iterator[_Change]:
    yield lambda lot: replace(lot, storms=1)


def _actors(lot: Lot) -> Iterator[_Change]:
    for actor in lot.actors:
        yield partial(_without_actor, actor)


def _without_actor(actor: str, lot: Lot) -> Lot:
    return replace(lot, actors=tuple(other for other in lot.actors if other != actor) or lot.actors)


def _mishaps(lot: Lot) -> Iterator[_Change]:
    for gone in _parts(lot.mishaps or ()):
        yield partial(_without_mishaps, frozenset(gone))


def _without_mishaps(gone: frozenset[Mishap], lot: Lot) -> Lot:
    return lot.with_mishaps([mishap for mishap in lot.mishaps or () if mishap not in gone])


def _turns(_: Lot) -> Iterator[_Change]:
    for share in (0.25, 0.5, 0.75, 0.9):
        yield partial(_with_fewer_turns, share)


def _with_fewer_turns(share: float, lot: Lot) -> Lot:
    return replace(lot, turns=max(1, int(lot.turns * share)))


def _parts(items: Sequence[T]) -> Iterator[Sequence[T]]:
    """A half, quarters, and so on to one."""
    size = (len(items) + 1) // 2
    while items and size:
        for first in range(0, len(items), size):
            yield items[first : first + size]
        size = 0 if size == 1 else (size + 1) // 2
