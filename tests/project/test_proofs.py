"""What a change touches decides which proofs run before it lands."""

import re
from pathlib import Path

import pytest
import yaml

from support.run.proofs import PARTS, ROOT, arguments, part_of, touched_parts

FOUNDATIONS = (
    "core/eventide_core/service",
    "adapters/eventide_adapters/format/timeline",
    "adapters/eventide_adapters/format/slice/log_file",
    "adapters/eventide_adapters/storage",
)
MARK = re.compile(r"\bmark\.(?:proof|broad|campaign)\b|\b(?:PROOF|BROAD)\b")


@pytest.mark.parametrize("directory", FOUNDATIONS)
def test_each_module_below_the_application_has_a_proof_that_its_change_runs(directory: str) -> None:
    modules = [path.relative_to(ROOT).as_posix() for path in (ROOT / directory).rglob("*.py")]
    assert modules
    for module in modules:
        names = {part.name for part in touched_parts([module])} - {"hudi", "application"}
        assert names, module


def test_each_part_has_proofs_and_each_proof_runs_at_night() -> None:
    marked = {p.relative_to(ROOT).as_posix() for p in (ROOT / "tests").rglob("test_*.py") if MARK.search(p.read_text())}
    assert {part_of(path) for path in marked} == set(PARTS)
    nightly = yaml.safe_load((ROOT / ".github/workflows/proof.yml").read_text())["jobs"]["proof"]["strategy"]["matrix"][
        "part"
    ]
    assert nightly == [part.name for part in PARTS]


def test_a_change_runs_the_proofs_of_what_it_touches() -> None:
    assert [part.name for part in touched_parts(["docs/guide/python.md"])] == []
    assert [part.name for part in touched_parts(["tests/properties/test_repairs.py"])] == ["repairs"]
    touched = [
        part.name for part in touched_parts(["adapters/eventide_adapters/format/timeline/archived_log_writer.py"])
    ]
    assert touched == ["pauses", "exploration", "worlds", "crashes", "archive", "values", "hudi"]


def test_a_path_of_a_test_is_passed_on_to_pytest() -> None:
    assert arguments(["-k", "archive", "tests/core"]) == ["-k", "archive", "tests/core"]
    assert "tests/properties/test_schedules.py" in arguments(["exploration"])
    assert all(Path(ROOT / path).is_file() for path in arguments(["pauses", "archive"]))
