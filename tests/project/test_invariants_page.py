"""docs/invariants.md: what code and tests cite is there, and it says what the kit and the mutants say."""

import re
from pathlib import Path

from eventide.testing.invariants import INVARIANTS
from support.mutants import MUTANTS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "invariants.md").read_text()
CITED = re.compile(r"docs/invariants\.md, (I\d+|S\d+|step \d+|counterexample \w+)")


def test_the_page_has_the_invariants_of_the_kit() -> None:
    for one in INVARIANTS:
        assert f"| {one.number} | {one.promise} | {one.counterexample} |" in PAGE


def test_the_page_has_the_counterexamples_that_mutants_repeat() -> None:
    for one in MUTANTS:
        assert f"| {one.number} | {one.name} |" in PAGE


def test_what_the_code_cites_is_on_the_page() -> None:
    cited = {
        found
        for folder in ("core", "adapters", "spark_app", "tests")
        for file in (ROOT / folder).rglob("*.py")
        for found in CITED.findall(file.read_text())
    }
    assert len(cited) >= 4
    for one in cited:
        kind, _, number = one.rpartition(" ")
        row = {
            "": rf"^(\| {number} \||\*\*{number}\.\*\*)",
            "step": rf"^{number}\. ",
            "counterexample": rf"^\| {number} \|",
        }[kind]
        assert re.search(row, PAGE, re.MULTILINE), one
