"""The site that `./run docs` builds: a dead link fails it, and its pages fetch nothing from other sites."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_a_dead_link_alone_fails_the_site_and_its_pages_stand_alone(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    shutil.copy(ROOT / "mkdocs.yml", tmp_path)
    with (tmp_path / "docs" / "scale.md").open("a", encoding="utf-8") as page:
        page.write("\n[dead](nowhere.md)\n")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--clean"],
        cwd=tmp_path,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 1, built.stderr
    warnings = [line for line in built.stderr.splitlines() if line.startswith("WARNING")]
    assert len(warnings) == 1, built.stderr
    assert "nowhere.md" in warnings[0]
    pages = list((tmp_path / "site").rglob("*.html"))
    assert len(pages) > 20
    fetched = re.compile(r"""(?:src=|<link[^>]*\brel="?(?:stylesheet|preconnect)[^>]*href=)"?https?://""")
    assert [page.name for page in pages if fetched.search(page.read_text(encoding="utf-8"))] == []
