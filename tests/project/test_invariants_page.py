"""docs/invariants.md: what code and tests cite is there, and it says what the kit and the mutants say."""

import re
from pathlib import Path

from eventide.testing.invariants import INVARIANTS
from support.mutants import MUTANTS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "invariants.md").read_text()
CITED = re.compile(r"docs/invariants\.md, (I\d+|S\d+|step \d+|counterexample \w+)")
NUMBERED = re.compile(r"\b(I\d{1,2}|S[012]|Q\d{1,2})\b")
# Notes that are not in the project: nobody can look them up. In pieces, so that this file does not cite them itself.
ABSENT = re.compile("protocol" + r"\.md|contract" + r"\.md|house" + r"\.md|safety" + " rule")


def test_the_page_has_the_invariants_of_the_kit() -> None:
    for one in INVARIANTS:
        assert f"| {one.number} | {one.promise} | {one.counterexample} |" in PAGE


def test_the_page_has_the_counterexamples_that_mutants_repeat() -> None:
    for one in MUTANTS:
        assert f"| {one.number} | {one.name} |" in PAGE


def test_each_figure_that_plans_believe_has_one_guard() -> None:
    _, _, section = PAGE.partition("## What plans rely on\n")
    figures = re.findall(r"^\| ([^|]+) \|", section.partition("\n## ")[0], re.MULTILINE)
    assert len(figures) > 15
    assert len(figures) == len(set(figures))


def test_what_the_code_cites_is_on_the_page() -> None:
    cited = {
        found
        for directory in ("core", "adapters", "spark_app", "tests")
        for file in (ROOT / directory).rglob("*.py")
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


def test_every_number_that_is_cited_is_on_the_page() -> None:
    cited = {number for text in _texts() for number in NUMBERED.findall(text)}
    assert {"I1", "S0", "S1", "Q1"} <= cited
    defined = re.compile(r"^\| ([IQ]\d+)\b|^\*\*(S\d)\.\*\*", re.MULTILINE)
    assert cited <= {one or other for one, other in defined.findall(PAGE)}
    counterexamples = {number for text in _texts() for number in re.findall(r"\bcounterexample (\d+\w?)", text)}
    assert all(f"\n| {number} |" in PAGE for number in counterexamples)


def test_nothing_cites_notes_that_are_not_here() -> None:
    assert [text[:80] for text in _texts() if ABSENT.search(text)] == []


def _texts() -> list[str]:
    directories = ("core", "adapters", "spark_app", "tests", "docs", "examples", "benchmarks")
    files = [
        file for directory in directories for file in (ROOT / directory).rglob("*") if file.suffix in (".py", ".md")
    ]
    files += ROOT.glob("*.md")
    return [file.read_text(encoding="utf-8") for file in files]
