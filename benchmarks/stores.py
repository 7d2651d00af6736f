"""`PYTHONPATH=tests python -m benchmarks.stores`: a compaction on a server of each store, beside the plain transfer.

The servers run on this machine, so their processor time is in both. The transfer downloads the base files and log files,
and then uploads as many bytes as the compaction wrote, with the same storage (benchmarks.slow_store). The two take turns.
Prints a row for each store: the least wall time of each, and their ratio.
"""

import argparse
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from benchmarks.growth import Point, grow
from benchmarks.slow_store import data_files, transfer
from eventide import Table
from eventide.bootstrap import assemble
from eventide_adapters.storage.local import LocalStorage
from eventide_adapters.storage.open import open_storage
from eventide_core.config import Options
from eventide_core.ports import Storage
from support.servers import cloud_servers, s3_servers
from support.servers.cloud_servers import CloudServer
from support.servers.hdfs import mini_cluster
from support.servers.s3_servers import S3Server
from support.tables.backends import upload

Opened = Callable[[], Storage]
"""Opens a new place."""

Store = Callable[[Path], AbstractContextManager[Opened]]


@contextmanager
def local(directory: Path) -> Iterator[Opened]:
    yield lambda: LocalStorage(directory / uuid.uuid4().hex)


@contextmanager
def hdfs(directory: Path) -> Iterator[Opened]:
    with mini_cluster.hdfs(directory) as server:
        yield lambda: open_storage(f"{server.uri}/lake/{uuid.uuid4().hex}", Options(server.options))


def _of(start: Callable[[Path], AbstractContextManager[S3Server | CloudServer]]) -> Store:
    @contextmanager
    def opened(directory: Path) -> Iterator[Opened]:
        with start(directory) as server:
            yield lambda: open_storage(server.uri(uuid.uuid4().hex), Options(server.options))

    return opened


STORES: dict[str, Store] = {
    "local": local,
    "moto": _of(s3_servers.moto),
    "seaweedfs": _of(s3_servers.seaweedfs),
    "fake_gcs": _of(cloud_servers.fake_gcs),
    "azurite": _of(cloud_servers.azurite),
    "hdfs": hdfs,
}


def measured(opened: Opened, table: Path, rounds: int) -> tuple[float, float]:
    """The least seconds of a compaction, and of the transfer of its bytes."""
    compactions: list[float] = []
    transfers: list[float] = []
    for number in range(rounds + 1):
        storage = opened()
        upload(table, storage)
        assert storage.capabilities  # what trying it out costs is paid once a process
        before = data_files(storage)
        options = {"hoodie.parquet.compression.codec": "zstd"}
        application = assemble(storage.root, options, storage=storage)
        began = time.monotonic()
        Table(storage.root, options, application).compact(data_latency_seconds=0)
        compacted = time.monotonic()
        written = [size for path, size in data_files(storage).items() if path not in before]
        slices: dict[str, list[str]] = {}
        for path in before:
            slices.setdefault(path.rpartition("/")[2].lstrip(".").partition("_")[0], []).append(path)
        transferring = time.monotonic()
        transfer(storage, list(slices.values()), written)
        if number:  # the first one loads the libraries, and does not count
            compactions.append(compacted - began)
            transfers.append(time.monotonic() - transferring)
    return min(compactions), min(transfers)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.stores", description=__doc__)
    parser.add_argument("--records", type=int, default=200_000)
    parser.add_argument("--slices", type=int, default=2)
    parser.add_argument("--logs", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("stores", nargs="*", default=list(STORES), help=", ".join(STORES))
    said = parser.parse_args()
    print("| store | compaction, s | transfer, s | ratio |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as place:
        table = Path(place, "table")
        grow(table, Point(records=said.records, slices=said.slices, logs=said.logs, share=0.05))
        for name in said.stores:
            directory = Path(place, name)
            directory.mkdir()
            with STORES[name](directory) as opened:
                compaction, moved = measured(opened, table, said.rounds)
            print(f"| {name} | {compaction:.2f} | {moved:.2f} | {compaction / moved:.1f} |", flush=True)


if __name__ == "__main__":
    main()
