"""Real HDFS, with symbolic links and without, whose bytes go by libhdfs."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.servers.hdfs import native
from support.servers.hdfs.mini_cluster import HdfsServer
from support.servers.hdfs.native import NativeHdfs

HELD = Path(native.__file__).parent / "held_with_libhdfs.py"
TIMEOUT_SECONDS = 300


# Contents are the same with links and without: what is asked of them all is asked once.
@pytest.mark.parametrize(
    ("name", "asked"),
    [
        pytest.param("hdfs_with_symlinks", "", marks=pytest.mark.broad),
        pytest.param("hdfs", "compaction or written or replicas", marks=pytest.mark.proof),
    ],
)
def test_a_table_whose_bytes_go_by_libhdfs_is_the_same(
    name: str, asked: str, native_hdfs: NativeHdfs, request: pytest.FixtureRequest
) -> None:
    """The storage contract, and a compaction that leaves what it leaves by WebHDFS; by libhdfs's Java in another process."""
    server: HdfsServer = request.getfixturevalue(name)
    where = {
        "EVENTIDE_TEST_HDFS": server.uri,
        "EVENTIDE_TEST_HDFS_WEB": server.web_address,
        "EVENTIDE_TEST_HDFS_SYMLINKS": str(server.has_symlinks),
    }
    # Java uses the signals of a crash itself, and faulthandler would report them.
    done = subprocess.run(
        [
            sys.executable,
            *["-m", "pytest", "-q", "-p", "no:faulthandler", "-p", "no:cacheprovider"],
            str(HELD),
            "-k",
            asked,
        ],
        cwd=Path(__file__).parents[2],
        env={**os.environ, **native_hdfs.environment, **where},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-20_000:]
    assert "passed" in done.stdout
