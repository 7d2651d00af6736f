"""The packages of each release, built from its commit."""

import json
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from support.pasts.releases import RELEASES, ROOT
from support.run.real_parts import require_or_skip


@pytest.fixture(scope="session", params=RELEASES, ids=lambda release: release.name)
def packages(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The packages of a release, from the wheel of the commit that made its tables."""
    commit = str(json.loads((request.param / "expected.json").read_text())["commit"])
    directory = tmp_path_factory.mktemp("release")
    archive = directory / "source.zip"
    words = ["git", "archive", "--format=zip", "-o", str(archive), commit]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False) if shutil.which("git") else None
    if done is None or done.returncode != 0:
        require_or_skip(
            f"git has no commit {commit}, which made the tables of {request.param.name}, as in a clone without history"
        )
    with zipfile.ZipFile(archive) as source:
        source.extractall(directory / "source")
    words = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(directory)]
    subprocess.run(words, cwd=directory / "source", check=True, capture_output=True)
    (wheel,) = directory.glob("*.whl")
    with zipfile.ZipFile(wheel) as built:
        built.extractall(directory / "packages")
    return directory / "packages"
