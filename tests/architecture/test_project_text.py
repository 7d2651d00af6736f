"""The project's text never names the machine where it was written, or the source of packages.

A mirror or a cache must do as well as the public registries, and another directory as well as this one.
Not checked: compressed files.
"""

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# In pieces, so that this file does not name them itself.
REGISTRIES = (
    "pypi" + ".org",
    "pythonhosted" + ".org",
    "repo1.maven" + ".org",
    "repo.maven.apache" + ".org",
    "registry.npmjs" + ".org",
    "crates" + ".io",
    "proxy.golang" + ".org",
    "deb.debian" + ".org",
)
MACHINE_DIRECTORIES = ("work", "root", "home")


# As .gitignore has them.
NOT_OF_THE_PROJECT = re.compile(
    r"\.venv.*|\.\w+_cache|\.hypothesis|__pycache__|build|dist|site|metastore_db|spark-warehouse"
)


def _paths() -> list[Path]:
    """What git has or would add; without git, as in a ZIP of the project, all files but those that its tools make."""
    if not (ROOT / ".git").exists():
        paths = []
        for directory, below, names in os.walk(ROOT):
            below[:] = [name for name in below if not NOT_OF_THE_PROJECT.fullmatch(name)]
            paths += [Path(directory, name) for name in names]
        return paths
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    return [ROOT / name.decode() for name in listed.stdout.split(b"\0") if name]


def _lines_with(pattern: str) -> list[str]:
    """`path: line` of each match in the project's files."""
    paths = _paths()
    assert Path(__file__) in paths
    wanted = re.compile(pattern.encode())
    return [
        f"{path.relative_to(ROOT)}: {line[:200]!r}"
        for path in paths
        if path.is_file()
        for line in path.read_bytes().splitlines()
        if wanted.search(line)
    ]


@pytest.mark.parametrize("registry", REGISTRIES)
def test_no_text_names_a_package_registry(registry: str) -> None:
    assert _lines_with(re.escape(registry)) == []


@pytest.mark.parametrize("directory", MACHINE_DIRECTORIES)
def test_no_text_names_a_directory_of_one_machine(directory: str) -> None:
    assert _lines_with(rf"(?<![\w.:{{}})>/-])/{directory}/") == []
