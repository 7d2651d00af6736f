"""`PYTHONPATH=tests python -m benchmarks.years_on_s3`: what a commit asks of an S3 server over the life of a table.

The life is as in `benchmarks.years`, on a SeaweedFS server of this machine. Prints a row for the first hundred commits and
for each tenth of the life: the requests and the bytes of a commit with its share of the services, and the objects below
`.hoodie`.
"""

import argparse
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.years import Life, kinds_of
from eventide_adapters.storage.open import open_storage
from eventide_core.config import Options
from support.doubles.metered import Cost, requests_counted
from support.servers.s3_servers import BUCKET, S3Server, seaweedfs

_FIRST = 100  # commits: what later ones are compared with
_URI = f"s3://{BUCKET}/years"


@dataclass(frozen=True, slots=True)
class Stretch:
    """Some commits of a life: the requests and bytes of one on average, and the objects below `.hoodie` at their end."""

    until: int
    requests: float
    received: float
    sent: float
    objects: int


def live(server: S3Server, version: int, commits: int, parts: int = 10) -> Iterator[Stretch]:
    """A stretch for each part of the life, and one for its first hundred commits."""
    life = Life(_URI, open_storage(_URI, Options(server.options)), server.options)
    life.create(version)
    life.table().rebuild_metadata_table()
    for until in sorted({min(commits, _FIRST), *(commits * (part + 1) // parts for part in range(parts))}):
        count, cost = max(1, until - life.commits), Cost()
        with requests_counted(cost):
            while life.commits < until:
                life.commit()
        files = sum(kinds_of(_objects(server)).values())
        yield Stretch(until, cost.requests / count, cost.received / count, cost.sent / count, files)


def _objects(server: S3Server) -> Iterable[str]:
    """Paths in the table."""
    for page in server.client().get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix="years/"):
        for found in page.get("Contents", []):
            yield found["Key"].removeprefix("years/")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.years_on_s3", description=__doc__)
    parser.add_argument("--commits", type=int, default=2_000)
    parser.add_argument("--version", type=int, default=9, choices=(6, 8, 9), help="of the table")
    chosen = parser.parse_args()
    print("| commits | requests | received, KB | sent, KB | objects below .hoodie |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as directory, seaweedfs(Path(directory)) as server:
        for found in live(server, chosen.version, chosen.commits):
            volumes = f"{found.received / 1000:.0f} | {found.sent / 1000:.0f}"
            print(f"| {found.until:,} | {found.requests:.0f} | {volumes} | {found.objects} |", flush=True)


if __name__ == "__main__":
    main()
