"""The site that `./run docs` builds: a dead link fails it, and its pages fetch nothing from other sites."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from eventide import Rows, Table
from eventide.options.sections import SECTIONS, options_of

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """The site of the pages with one dead link, and what its build said."""
    directory = tmp_path_factory.mktemp("site")
    shutil.copytree(ROOT / "docs", directory / "docs")
    shutil.copy(ROOT / "mkdocs.yml", directory)
    with (directory / "docs" / "scale.md").open("a", encoding="utf-8") as page:
        page.write("\n[dead](nowhere.md)\n")
    run = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--clean"],
        cwd=directory,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    return directory / "site", run


def test_a_dead_link_alone_fails_the_site_and_its_pages_stand_alone(
    built: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    site, run = built
    assert run.returncode == 1, run.stderr
    warnings = [line for line in run.stderr.splitlines() if line.startswith("WARNING")]
    assert len(warnings) == 1, run.stderr
    assert "nowhere.md" in warnings[0]
    pages = list(site.rglob("*.html"))
    assert len(pages) > 20
    fetched = re.compile(r"""(?:src=|<link[^>]*\brel="?(?:stylesheet|preconnect)[^>]*href=)"?https?://""")
    assert [page.name for page in pages if fetched.search(page.read_text(encoding="utf-8"))] == []


def test_the_search_finds_each_option_and_each_method(
    built: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    index: Any = json.loads((built[0] / "search" / "search_index.json").read_text(encoding="utf-8"))
    texts = dict.fromkeys(("reference/configuration", "python_api"), "")
    for part in index["docs"]:
        for place in texts:
            if part["location"].startswith((f"{place}.html", f"{place}_services.html")):
                texts[place] += f" {part['title']} {part['text']}"
    words = re.compile(index["config"]["separator"])
    found = set(
        words.split(re.sub("<[^>]+>", " ", texts["reference/configuration"]))
    )  # the search of the theme skips tags, too
    names = {name for _, module in SECTIONS for option in options_of(module) for name in option.names}
    assert [name for name in sorted(names) if not set(words.split(name)) <= found] == []
    methods = [name for kind in (Table, Rows) for name in dir(kind) if not name.startswith("_")]
    assert [name for name in methods if name not in texts["python_api"]] == []
