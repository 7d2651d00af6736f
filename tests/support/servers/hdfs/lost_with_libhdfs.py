"""Sends and reads a file by libhdfs while DataNodes stop: `python lost_with_libhdfs.py PICKLED_REPLICATED_HDFS`.

A process of its own for tests/adapters/storage/hdfs/test_lost_data_nodes.py, because libhdfs's Java ends with its process.
"""

import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

from eventide_adapters.storage.hdfs.config import BYTES
from eventide_adapters.storage.hdfs.libhdfs import LibHdfs
from eventide_adapters.storage.open import open_storage
from eventide_core.config import Options
from support.servers.hdfs.replicated import BLOCK_BYTES, DATA, Midway, ReplicatedHdfs


def main(cluster: ReplicatedHdfs) -> None:
    settings = {BYTES: "libhdfs", "dfs.replication": "3", "dfs.blocksize": str(BLOCK_BYTES)}
    storage = open_storage(f"{cluster.server.uri}/lake/by_libhdfs", Options(cluster.server.options | settings))
    _send_midway(lambda: cluster.stop(cluster.web_ports()[0]))
    output = storage.open_output("file")
    output.write(DATA)
    assert output.commit()
    assert len(cluster.web_ports()) == 2, "no DataNode was stopped while the file was sent"
    with storage.open_input("file") as stream:
        first = stream.read(len(DATA) // 3)
        cluster.stop(cluster.web_ports()[0])
        assert first + stream.read() == DATA


def _send_midway(lose: Callable[[], None]) -> None:
    write = LibHdfs.write

    def write_midway(self: LibHdfs, path: str, content: BinaryIO, size: int) -> None:
        watched: Any = Midway(content, lose)
        write(self, path, watched, size)

    LibHdfs.write = write_midway  # type: ignore[method-assign]


if __name__ == "__main__":
    found: ReplicatedHdfs = pickle.loads(Path(sys.argv[1]).read_bytes())
    try:
        main(found)
    finally:
        found.start_again()
