"""docs/stability.md: each promise names its test, and what a release promised by name is still there."""

import re
import tomllib
from pathlib import Path

import pytest

from support.documentation.interface import interface, kept
from support.pasts.releases import DIRECTORY

ROOT = Path(__file__).parents[2]
PAGES = ("docs/stability.md", "docs/threat_model.md")
RELEASES = sorted(path.parent.name for path in DIRECTORY.glob("*/interface.json"))
TEST = re.compile(r"`(tests/[\w/]+\.py)(?:::(\w+))?`")


@pytest.mark.parametrize("page", PAGES)
def test_each_line_of_a_table_names_a_test_that_exists(page: str) -> None:
    lines = re.findall(r"^\|(?! *[-|]).*\|$", (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE)
    promises = [line for line in lines if not line.endswith("| test |")]
    assert len(promises) > 10
    assert [line for line in promises if not TEST.search(line)] == []


@pytest.mark.parametrize("page", PAGES)
def test_each_test_that_a_page_names_is_defined(page: str) -> None:
    for path, name in TEST.findall((ROOT / page).read_text(encoding="utf-8")):
        source = (ROOT / path).read_text(encoding="utf-8")
        assert "def test_" in source or "class Test" in source, path
        assert not name or f"def {name}(" in source, f"{path}::{name}"


@pytest.mark.parametrize("release", RELEASES)
def test_python_names_and_parameters_of_a_release_are_there(release: str) -> None:
    now = interface()["python"]
    for name, functions in kept(release)["python"].items():
        assert name in now, name
        for function, parameters in functions.items():
            assert set(parameters) <= set(now[name].get(function, ())), f"{name}.{function}"
            assert function in now[name], f"{name}.{function}"


@pytest.mark.parametrize("release", RELEASES)
def test_verbs_and_flags_of_a_release_are_there(release: str) -> None:
    now = interface()["verbs"]
    missing = {verb: set(flags) - set(now.get(verb, ())) for verb, flags in kept(release)["verbs"].items()}
    assert {verb: flags for verb, flags in missing.items() if flags or verb not in now} == {}


@pytest.mark.parametrize("release", RELEASES)
def test_errors_of_a_release_keep_their_exit_codes(release: str) -> None:
    promised = kept(release)["exit_codes"]
    assert promised == {name: code for name, code in interface()["exit_codes"].items() if name in promised}


@pytest.mark.parametrize("release", RELEASES)
def test_errors_of_a_release_are_caught_as_what_they_were(release: str) -> None:
    now = interface()["error_bases"]
    for name, bases in kept(release)["error_bases"].items():
        assert set(bases) <= set(now[name]), name


@pytest.mark.parametrize("release", RELEASES)
def test_options_of_a_release_are_there(release: str) -> None:
    assert set(kept(release)["options"]) - set(interface()["options"]) == set()


@pytest.mark.parametrize("release", RELEASES)
def test_json_fields_of_a_release_are_there_with_no_other_type(release: str) -> None:
    now = interface()["json"]
    for name, fields in kept(release)["json"].items():
        for field, kinds in fields.items():
            assert set(now[name][field]) <= set(kinds), f"{name}: {field}"


def test_the_supported_pythons_are_those_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = re.findall(r"Python :: (3\.\d+)", "\n".join(project["classifiers"]))
    assert project["requires-python"] == f">={named[0]}"
    assert f"| Python {', '.join(named)} |" in (ROOT / "docs/stability.md").read_text(encoding="utf-8")
