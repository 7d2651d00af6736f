"""Turns of phrase that a native technical writer avoids stay out of messages, docstrings, comments and pages."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PLACES = ("core", "adapters", "spark_app", "docs", "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
AVOIDED = {
    "say what was expected, then what came": re.compile(
        r"\b(?<!there )(?<!There )(is|are|was|were) no (?!(longer|more|older|later|less|fewer|sooner|earlier)\b)\w"
    ),
    "the noun": re.compile(r"\b([Tt]hat|[Tt]hose) of\b"),
    "again": re.compile(r"\banew\b"),
    "shows, records or says": re.compile(
        r"\b(tells|told) (?!us\b|apart\b|to\b|= |is not )|doesn't tell\b|don't tell\b"
    ),
}
FINE = re.compile(r"\beventide\*\* tells you")


def _lines() -> Iterator[tuple[str, str]]:
    for place in PLACES:
        path = ROOT / place
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.suffix in (".py", ".md"):
                for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
                    yield f"{file.relative_to(ROOT)}:{number}", line


@pytest.mark.parametrize("better", AVOIDED)
def test_each_text_is_plain(better: str) -> None:
    pattern = AVOIDED[better]
    assert pattern.search("it is no number; it tells them; made anew; as is that of a table")
    assert [
        f"{place}: {line.strip()}" for place, line in _lines() if pattern.search(line) and not FINE.search(line)
    ] == []
