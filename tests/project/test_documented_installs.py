"""Lines with `pip` in the documentation and in messages: what they install exists, and the quickstart's line works."""

import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
SOURCES = sorted(path for place in ("core", "adapters", "spark_app") for path in (ROOT / place).rglob("*.py"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
# A line, or a message in two parts.
INSTALL = re.compile(r"""pip install (?:--\S+ )*(?:"\s*")?'?([^\s'`]+)""")
BY_EXTRA = re.compile(r"""install_command\(['"](\w+)['"]\)""")
REQUIREMENT = re.compile(r"(?:eventide|\.|dist/(?P<wheel>eventide-[^\[]+))(?:\[(?P<extras>[\w,]+|\{\w+\})\])?")
# What `to_duckdb` and its kin need, and time zones; and the form of the messages about an extra.
OF_OTHERS = {"duckdb", "tzdata", "{package}", "{_origin()}[{extra}]"}


def _installed() -> list[tuple[str, str]]:
    """What is installed where, by every line."""
    return [
        (path.relative_to(ROOT).as_posix(), what)
        for path in (*PAGES, *SOURCES)
        for what in INSTALL.findall(path.read_text(encoding="utf-8"))
    ]


def test_whatever_a_line_installs_exists() -> None:
    lines = _installed()
    assert {"docs/guide/quickstart.md", "docs/storage.md"} <= {place for place, _ in lines}
    for place, what in lines:
        found = REQUIREMENT.fullmatch(what)
        assert found is not None or what in OF_OTHERS, (place, what)
        if found is None or (found["extras"] or "").startswith("{"):  # a message that names the one it needs
            continue
        extras = set(found["extras"].split(",")) if found["extras"] else set()
        assert extras <= set(PROJECT["optional-dependencies"]), (place, what)
        assert found["wheel"] in (None, f"eventide-{PROJECT['version']}-py3-none-any.whl"), (place, what)


def test_messages_name_extras_that_exist() -> None:
    named = {extra for path in SOURCES for extra in BY_EXTRA.findall(path.read_text(encoding="utf-8"))}
    assert {"s3", "spark", "hive"} <= named <= set(PROJECT["optional-dependencies"])


@pytest.mark.slow
def test_the_quickstarts_line_installs_a_command_that_starts(tmp_path: Path) -> None:
    """Without the packages that it depends on, which are installed here already, so without a registry."""
    (line,) = re.findall(
        r"^pip install .*$", (ROOT / "docs/guide/quickstart.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    offline = ("--quiet", "--no-index", "--no-deps", "--no-build-isolation", "--target", str(tmp_path / "env"))
    subprocess.run([sys.executable, "-m", *shlex.split(line), *offline], cwd=ROOT, check=True)
    path = tmp_path / "env"
    start = "from eventide.__main__ import main, __file__ as at; print(at); main()"
    code = f"import sys; sys.path.insert(0, {str(path)!r}); {start}"
    told = subprocess.run(
        [sys.executable, "-I", "-u", "-c", code, "--version"], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert told.stdout.splitlines() == [str(path / "eventide" / "__main__.py"), f"eventide {PROJECT['version']}"]
    assert (path / "bin" / "eventide").is_file()
