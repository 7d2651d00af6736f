"""A standalone cluster of two workers that have eventide from the driver alone, one of which dies."""

import json
import os
import shutil
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from eventide import Table
from eventide_core.config import BUCKETS
from support.processes import cluster_driver
from support.run.real_parts import require_or_skip
from support.servers.server_process import ServerUnavailableError
from support.servers.spark_servers import spark_cluster
from support.values.columns import schema_of

SCHEMA = schema_of(id=pa.string(), at=pa.timestamp("us", tz="UTC"))
T = "2026-03-01T12:00:00Z"
BEGIN_SECONDS = 300

pytestmark = pytest.mark.real


def written(path: Path) -> Table:
    """A table of eight slices, each with a log that is before T and one that isn't."""
    schema = SCHEMA
    table = Table.create(str(path), schema=schema, record_key="id", event_time="at", options={BUCKETS: "8"})
    for hour, numbers in ((8, range(300)), (9, range(400)), (14, range(200, 600))):
        at = datetime(2026, 3, 1, hour, tzinfo=UTC)
        table.upsert(pa.table({"id": [f"k{n}" for n in numbers], "at": [at] * len(numbers)}, schema=schema))
    return table


def rows(found: pa.Table) -> list[dict[str, Any]]:
    return found.select(["id", "at"]).sort_by("id").to_pylist()


@pytest.mark.proof
def test_a_compaction_continues_when_a_worker_dies(tmp_path: Path) -> None:
    table = written(tmp_path / "table")
    twin = Table.open(str(shutil.copytree(tmp_path / "table", tmp_path / "twin")))
    servers, directory, temporary = (tmp_path / name for name in ("servers", "directory", "temporary"))
    for made in (servers, directory, temporary):
        made.mkdir()
    try:
        with spark_cluster(servers) as cluster:
            own = {"PYTHONPATH": str(Path(__file__).parents[2]), "TMPDIR": str(temporary)}
            driver = subprocess.Popen(
                [sys.executable, cluster_driver.__file__, cluster.master, table.uri, T, str(directory)],
                env=os.environ | cluster.environment | own,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            deadline = time.monotonic() + BEGIN_SECONDS
            # Each worker has one core: two tasks that wait are one on each.
            while len(list(directory.iterdir())) < 2 and driver.poll() is None and time.monotonic() < deadline:
                time.sleep(0.05)
            is_pending = not table.freshness().watermark_ms
            cluster.kill_a_worker()
            (directory / "release").touch()
            stdout, stderr = driver.communicate(timeout=BEGIN_SECONDS)
    except ServerUnavailableError as missing:
        require_or_skip(f"a Spark cluster does not start here: {missing}")
    assert driver.returncode == 0, stderr[-4000:]
    answer = json.loads(stdout.rpartition("ANSWER")[2])
    done = twin.compact(twin.plan_compaction(before=T))
    assert is_pending
    assert len(list(directory.glob("done-*"))) > 8  # what the dead worker had done was done again
    assert answer["compacted"] == done.metrics["log_files_compacted"] == 8
    assert answer["sound"]
    assert rows(table.snapshot().to_arrow()) == rows(twin.snapshot().to_arrow())
    assert rows(table.read_optimized().to_arrow()) == rows(twin.read_optimized().to_arrow())
    assert answer["rows"] == 600
    assert answer["left"] == []
