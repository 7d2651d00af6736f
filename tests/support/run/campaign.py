"""The size of the campaigns, in one variable.

    EVENTIDE_CAMPAIGN   set by               what is tried
    0                   ./run test, default   what finds most bugs per second; the same in each run
    1                   ./run proof           every campaign in full; the same in each run
    n                   you                   n times as much, with other examples in each run

A test that belongs to a campaign is marked with `campaign`; `./run proof` runs only these. A test that only a campaign
can afford is also marked with `proof`, and is skipped if EVENTIDE_CAMPAIGN is 0.

A test that tries one more combination of versions and settings than `./run test` is marked with `broad`. `./run test
broad`, which continuous integration runs, selects only these. `./run proof` includes them.
"""

import os

import pytest

CAMPAIGN = int(os.environ.get("EVENTIDE_CAMPAIGN", "0"))

IS_PROOF = CAMPAIGN > 0
IS_REPEATED = CAMPAIGN <= 1
"""The same examples in each run."""


def tries(test: int, proof: int) -> int:
    """The number of examples: in `./run test`, and in `./run proof`. A longer campaign tries n times the latter."""
    return CAMPAIGN * proof or test


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "campaign: tries more in ./run proof, which runs these alone")
    config.addinivalue_line("markers", "broad: one more combination: part of ./run test broad and of ./run proof")
    config.addinivalue_line("markers", "proof: too long for ./run test, part of ./run proof")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if IS_PROOF:
        return
    names = {"proof"} if "broad" in str(config.getoption("markexpr")) else {"proof", "broad"}
    left_out = [item for item in items if any(item.get_closest_marker(name) for name in names)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not any(item.get_closest_marker(name) for name in names)]
