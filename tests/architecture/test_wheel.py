"""The wheel, installed without Spark: its requirements suffice for reading and planning."""

import json
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from email.message import Message
from email.parser import HeaderParser
from importlib.metadata import Distribution, distribution, version
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from eventide import Table
from support.documentation.sbom import text as sbom_text
from support.pasts import golden
from support.run.child_processes import bundled_pip

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
EXTRAS = {"spark", "s3", "hdfs", "hive", "metrics"}  # those that users were promised
# Modules of what an extra brings; all others are imported without any.
OF_EXTRAS = {
    "eventide.airflow": "airflow",
    "eventide.integrations.openlineage_events": "attr",  # which OpenLineage's client brings
    "eventide.datasource.change_stream": "pyspark",
    "eventide.datasource.source": "pyspark",
    "eventide.spark.datasource_schema": "pyspark",
    "eventide.datasource.window_stream": "pyspark",
    "eventide.datasource.writers": "pyspark",
    "eventide.spark.pushed_filters": "pyspark",
    "eventide.spark.hive_catalog": "py4j",
    "eventide_adapters.metrics.open_telemetry": "opentelemetry",
    "eventide_adapters.metrics.open_telemetry_spans": "opentelemetry",
    "eventide_adapters.metrics.prometheus": "prometheus_client",
    "eventide_adapters.storage.objects.azure": "adlfs",
    "eventide_adapters.storage.objects.google": "gcsfs",
    "eventide_adapters.storage.objects.s3": "s3fs",
    "eventide_adapters.storage.objects.s3_upload": "botocore",  # which s3fs brings
}
T_MS = 1_700_002_200_000
IMPORT_ALL = """
import importlib, json, pkgutil, sys
missing = {}
for name in ("eventide_core", "eventide_adapters", "eventide"):
    for found in pkgutil.walk_packages(importlib.import_module(name).__path__, f"{name}."):
        if found.name.startswith("eventide.testing") or found.name.endswith("__main__"):
            continue
        try:
            importlib.import_module(found.name)
        except ModuleNotFoundError as error:
            missing[found.name] = error.name.partition(".")[0]
table = importlib.import_module("eventide").Table.open(sys.argv[1], {"hoodie.payload.event.time.field": "event_ts"})
plan = table.plan_compaction(before=int(sys.argv[2]))
print(json.dumps({"missing": missing, "rows": table.snapshot().to_arrow().num_rows,
    "instants": len(table.describe().state.timeline.instants), "compacted": len(plan.merged_log_files),
    "where": sys.modules["eventide"].__file__}))
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built by the backend that pyproject.toml names, without the isolation that would fetch it."""
    return _built(tmp_path_factory.mktemp("wheel"))


def _built(directory: Path, target: str = "wheel", sources: Path = ROOT) -> Path:
    words = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(directory)]
    subprocess.run(words, cwd=sources, check=True, capture_output=True)
    (made,) = directory.iterdir()
    return made


@pytest.fixture(scope="module")
def metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as content:
        (name,) = (name for name in content.namelist() if name.endswith(".dist-info/METADATA"))
        return HeaderParser().parsestr(content.read(name).decode())


@pytest.fixture(scope="module")
def installed(wheel: Path, metadata: Message, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `bin` of a new environment: the wheel, by pip, and what it says it requires, linked from this environment."""
    directory = tmp_path_factory.mktemp("environment") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(directory)], check=True)
    python = directory / "bin" / "python"
    words = [str(python), "-m", "pip", "install", "--no-index", "--no-deps", "--no-compile", "--quiet", str(wheel)]
    subprocess.run(words, env=environment() | {"PYTHONPATH": str(bundled_pip())}, check=True, capture_output=True)
    (packages,) = directory.glob("lib/python*/site-packages")
    for needed in required(metadata):
        for top in {file.parts[0] for file in needed.files or () if ".." not in file.parts}:
            target = packages / top
            if not target.exists():
                target.symlink_to(Path(str(needed.locate_file(top))))
    return directory / "bin"


def required(metadata: Message) -> list[Distribution]:
    """The distributions without which the wheel, taken with no extra, isn't installed: those it names, and theirs."""
    distributions: dict[str, Distribution] = {}
    waiting = list(metadata.get_all("Requires-Dist") or ())
    while waiting:
        one = Requirement(waiting.pop())
        name = canonicalize_name(one.name)
        if (one.marker is None or one.marker.evaluate({"extra": ""})) and name not in distributions:
            distributions[name] = distribution(name)
            waiting += distributions[name].requires or ()
    return list(distributions.values())


def environment() -> dict[str, str]:
    """Nothing by which Python would find the sources of this checkout."""
    return {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "PYSPARK", "VIRTUAL_ENV"))}


def answer(*words: object) -> str:
    done = subprocess.run(
        [str(word) for word in words], cwd="/", env=environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_wheel_has_its_metadata(metadata: Message) -> None:
    assert (metadata["Name"], metadata["Version"]) == ("eventide", version("eventide"))
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert str(metadata.get_payload()) == (ROOT / "README.md").read_text(encoding="utf-8")
    assert set(metadata.get_all("Provides-Extra") or ()) >= EXTRAS


def test_all_that_an_extra_needs_is_pinned(metadata: Message) -> None:
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    pinned = {canonicalize_name(name) for name in re.findall(r"^([A-Za-z0-9._-]+)==", lock, re.MULTILINE)}
    named = {canonicalize_name(Requirement(text).name) for text in metadata.get_all("Requires-Dist") or ()}
    # Airflow has an environment of its own, with its own constraints.
    assert named - pinned == {"apache-airflow", "acryl-datahub"}


def test_the_wheel_has_the_packages_alone(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as content:
        names = content.namelist()
    tops = {name.partition("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"eventide_core", "eventide_adapters", "eventide"}
    for package in ("eventide_core", "eventide_adapters", "eventide"):
        assert f"{package}/py.typed" in names


def test_two_builds_are_of_the_same_bytes(wheel: Path, tmp_path: Path) -> None:
    assert _built(tmp_path).read_bytes() == wheel.read_bytes()


def test_the_source_distribution_builds_the_same_wheel(wheel: Path, tmp_path: Path) -> None:
    with tarfile.open(_built(tmp_path / "sdist", "sdist")) as content:
        content.extractall(tmp_path, filter="data")
    (sources,) = tmp_path.glob("eventide-*")
    assert _built(tmp_path / "wheel", sources=sources).read_bytes() == wheel.read_bytes()


def test_it_carries_the_list_of_its_parts_and_no_data_of_tests(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as content:
        (sbom,) = (name for name in content.namelist() if ".dist-info/sboms/" in name)
        assert content.read(sbom).decode() == sbom_text(), "run python -m support.documentation.sbom"
        kinds = {Path(name).suffix for name in content.namelist() if ".dist-info/" not in name}
    named = {part["name"] for part in json.loads(sbom_text())["components"]}
    with zipfile.ZipFile(wheel) as content:
        assert {name for name in content.namelist() if name.endswith((".avsc", ".thrift"))} <= named
    assert kinds == {".py", ".typed", ".avsc", ".thrift"}


def test_its_size_is_what_the_release_notes_say(wheel: Path) -> None:
    notes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    (megabytes,) = re.findall(r"The wheel takes (\d\.\d) MB", notes)
    stated = round(float(megabytes) * 1_000_000)
    assert wheel.stat().st_size <= stated < wheel.stat().st_size + 100_000


def test_without_spark_it_reads_and_plans(installed: Path, tmp_path: Path) -> None:
    path = golden.unpack("v9_no_deletes", tmp_path)
    here = Table.open(str(path), {"hoodie.payload.event.time.field": "event_ts"})
    told = json.loads(answer(installed / "python", "-c", IMPORT_ALL, path, T_MS))
    assert told["missing"] == OF_EXTRAS
    assert Path(told["where"]).is_relative_to(installed.parent)
    assert told["rows"] == here.snapshot().to_arrow().num_rows > 0
    assert told["compacted"] == len(here.plan_compaction(before=T_MS).merged_log_files) > 0


def test_its_command_line_prints_its_version_and_plans(installed: Path, tmp_path: Path) -> None:
    assert answer(installed / "eventide", "--version").strip() == f"eventide {version('eventide')}"
    path = golden.unpack("v9_no_deletes", tmp_path)
    words = ("plan", path, "--before", T_MS, "--option", "hoodie.payload.event.time.field=event_ts", "--output", "json")
    assert json.loads(answer(installed / "eventide", *words))["operations"]
