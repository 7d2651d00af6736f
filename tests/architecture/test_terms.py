"""Each term of the RFC, and its code, is two clicks from the README."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LINK = re.compile(r"\[[^\]]*\]\(([^)\s#]+\.md)[^)]*\)")
FILE = re.compile(r"`((?:core|adapters|spark_app)/[\w./]+\.py)`")


def pages_within(clicks: int) -> set[Path]:
    """README and the pages that so many links lead to."""
    pages = {ROOT / "README.md"}
    for _ in range(clicks):
        pages |= {
            (page.parent / link).resolve()
            for page in pages
            for link in LINK.findall(page.read_text(encoding="utf-8"))
            if "://" not in link
        }
    return pages


@pytest.mark.parametrize("term", ["left-over", "cut", "watermark", "quiet moment", "symlink", "rollback of links"])
def test_a_term_and_its_code_are_two_clicks_from_the_readme(term: str) -> None:
    rows = [
        line
        for page in pages_within(2)
        for line in page.read_text(encoding="utf-8").splitlines()
        if line.startswith("|") and f"**{term}**" in line
    ]
    files = {name for row in rows for name in FILE.findall(row)}
    assert files, f"no page explains {term} in a table and names its code"
    assert [name for name in files if not (ROOT / name).is_file()] == []
    stems = {
        "left-over": "LeftOver",
        "cut": "CutMode",
        "quiet moment": "class QuietMoment",
        "rollback of links": "class CompactionRollback",
    }
    stem = stems.get(term, term)
    assert any(stem in (ROOT / name).read_text(encoding="utf-8") for name in files)
