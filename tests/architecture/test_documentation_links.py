"""The links of the documentation resolve: pages, headings, pictures, and the project's own files.

Not checked: addresses outside of the project.
"""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
# Files of the project in backticks, from its directory on.
FILE = re.compile(r"`((?:core|adapters|spark_app|tests|docs|examples|benchmarks)/[\w./-]*)`")
FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    text = FENCED.sub("", page.read_text(encoding="utf-8"))
    missing = [link for link in LINK.findall(text) if "://" not in link and not _leads_somewhere(page, link)]
    assert missing == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_files_that_are_named_are_there(page: Path) -> None:
    text = FENCED.sub("", page.read_text(encoding="utf-8"))
    assert [name for name in FILE.findall(text) if not (ROOT / name).exists()] == []


def test_every_page_is_in_the_map() -> None:
    text = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    linked = {(ROOT / "docs" / link.partition("#")[0]).resolve() for link in LINK.findall(text)}
    pages = {page for page in PAGES if page.parent.name != "decisions" and page.name not in ("README.md", "index.md")}
    assert pages - linked == set()


def test_no_page_has_more_than_300_lines() -> None:
    long = {
        str(page.relative_to(ROOT))
        for page in (ROOT / "docs").rglob("*.md")
        if len(page.read_text(encoding="utf-8").splitlines()) > 300
    }
    assert long == set(), "split the page by subject"


def _leads_somewhere(page: Path, link: str) -> bool:
    path, _, anchor = link.partition("#")
    target = (page.parent / path).resolve() if path else page
    return target.exists() and (not anchor or anchor in _anchors(target))


def _anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub and MkDocs make them."""
    headings = re.findall(r"^#+ (.+)$", FENCED.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}
