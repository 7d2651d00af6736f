"""The example of a foreign job runs as it stands, and is the same job wherever the table lies."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from eventide import Table
from support.pasts import golden
from support.tables.backends import backend, upload

pytestmark = pytest.mark.slow

JOB = Path(__file__).parents[2] / "examples" / "trips_job" / "job.py"
RUN_AT = "2023-11-14T23:20:04+00:00"  # half an hour after a time that divides the golden table's logs


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("local", marks=pytest.mark.proof),
        pytest.param("moto", marks=pytest.mark.broad),
        pytest.param("hdfs_with_symlinks", marks=pytest.mark.proof),
    ],
)
def test_a_foreign_job_compacts_wherever_its_table_lies(
    name: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    there = backend(name, request, tmp_path)
    upload(golden.unpack("v6_no_deletes", tmp_path / "golden"), there.storage)
    rows = Table.open(str(tmp_path / "golden" / "v6_no_deletes")).snapshot().to_arrow().num_rows
    settings = tmp_path / "settings.toml"
    settings.write_text("[storage]\n" + "".join(f'"{key}" = "{value}"\n' for key, value in there.options.items()))
    done = subprocess.run(
        [sys.executable, str(JOB), there.uri, RUN_AT, str(settings)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    report = json.loads(done.stdout)
    assert report["link_mode"] == there.link_mode
    assert report["snapshot_rows"] == rows
    assert 0 < report["read_optimized_rows"] <= rows
    for secret in (value for key, value in there.options.items() if "secret" in key):
        assert secret not in done.stderr
