"""What `./run compat` installs as lowest: every requirement of a user, at a bound that pyproject.toml names."""

import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from support.run.lower_bounds import LEFT_OUT, lower_bounds

PYPROJECT = (Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8")


def test_every_requirement_has_a_lower_bound_that_it_allows() -> None:
    project = tomllib.loads(PYPROJECT)["project"]
    extras = [
        text for name, texts in project["optional-dependencies"].items() if name not in LEFT_OUT for text in texts
    ]
    bounds = dict(line.split("==") for line in lower_bounds(PYPROJECT))
    for one in map(Requirement, [*project["dependencies"], *extras]):
        assert one.specifier.contains(bounds[one.name]), one


def test_a_requirement_without_a_bound_is_an_error() -> None:
    with pytest.raises(ValueError, match="'click' has no lower bound"):
        list(lower_bounds('[project]\ndependencies = ["click"]\noptional-dependencies = {}\n'))
