"""The compactions that the crash enumeration goes through, and what it reached."""

from __future__ import annotations

import pytest

from eventide.testing.compaction_case import Case, make_case
from eventide.testing.crash_enumeration import Bench
from support.compaction_cells import CELLS, PAIRED, TALLY, cell_name


@pytest.fixture(scope="module", params=CELLS, ids=[cell_name(*cell) for cell in CELLS])
def case(request: pytest.FixtureRequest) -> Case:
    return _case(request)


@pytest.fixture(scope="module", params=PAIRED, ids=[cell_name(*cell) for cell in PAIRED])
def paired_case(request: pytest.FixtureRequest) -> Case:
    return _case(request)


def _case(request: pytest.FixtureRequest) -> Case:
    layout, history, link = request.param
    made = make_case(layout, history, link, Bench("crash-enumeration"), TALLY)
    if made is None:
        pytest.skip(f"link mode {link} is refused for this history")
    return made
