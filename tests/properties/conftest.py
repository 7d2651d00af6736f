"""The compactions that the crash enumeration goes through, and what it reached."""

from functools import cache

import pytest

from eventide.testing.compaction_case import Case, make_case
from eventide.testing.crash_enumeration import Bench
from support.pasts.compaction_cells import CELLS, PAIRED, TALLY, Cell, params_of


@pytest.fixture(scope="module", params=params_of(CELLS))
def case(request: pytest.FixtureRequest) -> Case:
    return _case(request)


@pytest.fixture(scope="module", params=params_of(PAIRED))
def paired_case(request: pytest.FixtureRequest) -> Case:
    return _case(request)


def _case(request: pytest.FixtureRequest) -> Case:
    made = _made(request.param)
    if made is None:
        pytest.skip("the link mode is refused for this history")
    return made


@cache
def _made(cell: Cell) -> Case | None:
    """Each case once in a process: it knows by heart what it has looked at."""
    layout, history, link = cell
    return make_case(layout, history, link, Bench("crash-enumeration"), TALLY)
