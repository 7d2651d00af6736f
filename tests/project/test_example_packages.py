"""The example package of a storage, installed as pip installs it, is found by the command line and by Python."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.run.child_processes import bundled_pip

ROOT = Path(__file__).parents[2]
LIFE = """
import sys
import pyarrow as pa
from eventide import Table
from eventide_adapters.storage.open import open_storage
from eventide_core.config import Options
rows = pa.table({"id": ["a", "b"], "at": [1_700_000_000_000, 1_700_000_000_001]})
uri = "lake+memory://bucket/trips"
table = Table.create(uri, schema=rows.schema, record_key="id", event_time="at")
table.upsert(rows)
table.upsert(rows.slice(1))
table.compact(before="2024-01-01T00:00Z")
assert Table.open(uri).read_optimized().to_arrow().num_rows == 2
assert table.verify().ok
"""


@pytest.mark.slow
def test_the_example_of_a_storage_works_as_an_installed_package(tmp_path: Path) -> None:
    target = tmp_path / "env"
    offline = ("--quiet", "--no-index", "--no-deps", "--no-build-isolation", "--target", str(target))
    with_pip = {**os.environ, "PYTHONPATH": os.pathsep.join([str(bundled_pip()), *sys.path])}
    example = str(ROOT / "examples" / "fsspec_store")
    subprocess.run([sys.executable, "-m", "pip", "install", example, *offline], env=with_pip, check=True)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(target), *sys.path])}
    subprocess.run([sys.executable, "-c", LIFE], env=environment, check=True)
    checked = subprocess.run(
        [sys.executable, "-m", "eventide", "storage", "check", "lake+memory://bucket", "--output", "json"],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(checked.stdout)["ok"]
