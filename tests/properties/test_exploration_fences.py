"""Each rule that makes a paused process harmless, taken out: the exploration of pauses finds a schedule that is wrong."""

from functools import cache

import pytest

from eventide.testing.schedules.pauses import Counted
from support.pasts.served import LAYOUTS
from support.pauses.explored import Search, Wrong, explore, scene
from support.pauses.fences import FENCES, Fence
from support.run.reach import reached

pytestmark = [pytest.mark.campaign, pytest.mark.slow]
_FAST = FENCES[:2]


def _explored(fence: Fence) -> Wrong | None:
    (layout,) = (layout for layout in LAYOUTS if layout.version == fence.version)
    return explore(scene(fence.kind, layout), fence.search, Counted())


@cache
def _holds(fence_of: tuple[str, int, Search]) -> bool:
    kind, version, search = fence_of
    (layout,) = (layout for layout in LAYOUTS if layout.version == version)
    return explore(scene(kind, layout), search, Counted()) is None


@pytest.mark.parametrize(
    "fence", [pytest.param(f, id=str(f), marks=() if f in _FAST else pytest.mark.proof) for f in FENCES]
)
def test_a_rule_that_is_taken_out_is_missed(fence: Fence, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _holds((fence.kind, fence.version, fence.search)), "nothing is wrong with it"
    with monkeypatch.context() as patch:
        fence.remove(patch)
        wrong = _explored(fence)
    assert wrong is not None, f"nothing is wrong without: {fence}"
    reached(f"without: {fence}: {wrong.problem}"[:150])
