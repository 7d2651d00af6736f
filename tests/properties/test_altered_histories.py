"""Random histories of schema changes beside an oracle: see `support.pasts.altered`."""

from pathlib import Path

import pytest

from support.pasts.altered import follow

BY_DEFAULT, IN_BROAD, IN_ALL, STEPS = 4, 14, 200, 14


@pytest.mark.parametrize("seed", range(BY_DEFAULT))
def test_a_history_of_schema_changes_shows_what_was_written(seed: int, tmp_path: Path) -> None:
    follow(tmp_path / "t", seed, steps=STEPS)


@pytest.mark.parametrize("seed", [*range(2), *(pytest.param(seed, marks=pytest.mark.proof) for seed in range(2, 60))])
def test_a_history_with_renames_shows_what_was_written(seed: int, tmp_path: Path) -> None:
    follow(tmp_path / "t", seed, steps=STEPS, renames=True)


@pytest.mark.parametrize(
    "seed",
    [
        *(pytest.param(seed, marks=pytest.mark.broad) for seed in range(BY_DEFAULT, IN_BROAD)),
        *(pytest.param(seed, marks=pytest.mark.proof) for seed in range(IN_BROAD, IN_ALL)),
    ],
)
def test_further_histories_of_schema_changes_show_what_was_written(seed: int, tmp_path: Path) -> None:
    follow(tmp_path / "t", seed, steps=STEPS)
