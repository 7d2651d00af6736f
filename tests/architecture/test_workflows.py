"""The workflows of .github: actions by digest, no kept credentials, rights only where a job needs them.

zizmor, which `./run check` runs, checks more. Not checked by either: whether a digest belongs to the version beside it.
"""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

WORKFLOWS = sorted((Path(__file__).parents[2] / ".github/workflows").glob("*.yml"))
PINNED = re.compile(r"uses: [\w./-]+@[0-9a-f]{40}  # v\d+\.\d+\.\d+")


def jobs(path: Path) -> dict[str, dict[str, Any]]:
    loaded: dict[str, dict[str, Any]] = yaml.safe_load(path.read_text())["jobs"]
    return loaded


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_each_action_is_named_by_digest_and_version(path: Path) -> None:
    lines = [line.strip() for line in path.read_text().splitlines() if "uses:" in line]
    assert lines
    assert [line for line in lines if not PINNED.fullmatch(line.removeprefix("- "))] == []


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_no_checkout_keeps_its_credentials(path: Path) -> None:
    steps = [step for job in jobs(path).values() for step in job["steps"]]
    checkouts = [step for step in steps if step.get("uses", "").startswith("actions/checkout@")]
    assert all(step["with"]["persist-credentials"] is False for step in checkouts)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_may_only_read_and_only_a_release_may_sign(path: Path) -> None:
    assert yaml.safe_load(path.read_text())["permissions"] == {"contents": "read"}
    more = {name: job["permissions"] for name, job in jobs(path).items() if "permissions" in job}
    assert not more or path.name == "release.yml"
    assert {right for rights in more.values() for right, value in rights.items() if value == "write"} <= {
        "id-token",
        "attestations",
    }
