"""The dependency rule: application -> adapters -> core, and the core imports nothing of the outside world.

Not checked: what a module does by a function that it is handed, which is how the world comes into the core.
"""

import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).parents[2]
CORE = ROOT / "core"
TOOLS = Path(sys.executable).parent


def _core_modules() -> list[str]:
    files = sorted(CORE.rglob("*.py"))
    return [".".join(file.relative_to(CORE).with_suffix("").parts).removesuffix(".__init__") for file in files]


def test_import_contracts_hold() -> None:
    answer = subprocess.run([TOOLS / "lint-imports"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stdout + answer.stderr


def test_only_bootstrap_knows_both_a_service_and_an_adapter() -> None:
    """Imports that only name a type put nothing together, so they are left out."""
    graph = grimp.build_graph(
        "eventide_core", "eventide_adapters", "eventide", cache_dir=None, exclude_type_checking_imports=True
    )
    services = graph.find_descendants("eventide_core.service")
    adapters = graph.find_descendants("eventide_adapters")
    application = {"eventide"} | graph.find_descendants("eventide")
    knowing_both = {
        module
        for module in application
        if (imported := graph.find_modules_directly_imported_by(module)) & services and imported & adapters
    }
    assert knowing_both <= {"eventide.bootstrap"} | graph.find_descendants("eventide.bootstrap")


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Imports inside a function, and those that only name a type, count too."""
    graph = grimp.build_graph("eventide_core", "eventide_adapters", "eventide", cache_dir=None)
    imported = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    assert len(imported) > 500
    TopologicalSorter(imported).prepare()  # raises CycleError, which names the circle


def test_every_core_module_imports_with_the_standard_library_alone() -> None:
    modules = _core_modules()
    assert "eventide_core.errors" in modules
    program = "import importlib, sys\nsys.path.insert(0, sys.argv[1])\n"
    program += "for name in sys.argv[2:]: importlib.import_module(name)"
    isolated = [sys.executable, "-I", "-S", "-c", program, str(CORE), *modules]
    answer = subprocess.run(isolated, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr


def test_no_module_imports_annotations_from_the_future() -> None:
    """A name that is not defined yet is quoted."""
    folders = ("core", "adapters", "spark_app", "tests", "benchmarks", "examples")
    modules = [
        str(file)
        for folder in folders
        for file in (ROOT / folder).rglob("*.py")
        if file.read_text(encoding="utf-8").find("\nfrom __future__ import") >= 0
    ]
    assert modules == []


def test_the_core_knows_no_html() -> None:
    places = [
        file.name for file in CORE.rglob("*.py") if any(word in file.read_text() for word in ("_repr_html_", "<td"))
    ]
    assert places == []


@pytest.mark.parametrize(
    ("statement", "rule"),
    [
        ("import time", "TID251"),
        ("import os.path", "TID251"),
        ("from os import path", "TID251"),
        ("import random", "TID251"),
        ("from uuid import uuid4", "TID251"),
        ("from pathlib import Path", "TID251"),
        ("import datetime\n\nNOW = datetime.datetime.now(datetime.UTC)", "TID251"),
        ("from datetime import date\n\nTODAY = date.today()", "TID251"),
        ("import io\n\nTEXT = io.open('file').read()", "TID251"),
        ("TEXT = open('file').read()", "PTH123"),
    ],
)
def test_a_clock_a_disk_or_randomness_in_the_core_is_refused(statement: str, rule: str) -> None:
    answer = _ruff(statement, "core/eventide_core/action/example.py")
    assert answer.returncode == 1
    assert f" {rule} " in answer.stdout


def test_an_adapter_may_have_a_clock_and_a_disk() -> None:
    answer = _ruff("import os\nimport time\n\nNOW = time.time()\nHERE = os.getcwd()\n", "adapters/example.py")
    assert answer.returncode == 0, answer.stdout


def _ruff(source: str, path: str) -> subprocess.CompletedProcess[str]:
    command = [
        str(TOOLS / "ruff"),
        "check",
        "--no-cache",
        "--output-format=concise",
        "--stdin-filename",
        path,
        "-",
    ]
    return subprocess.run(command, cwd=ROOT, input=source, capture_output=True, text=True, check=False)
