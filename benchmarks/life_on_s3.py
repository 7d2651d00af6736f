"""`python -m benchmarks.life_on_s3`: the requests of a table's life of 33 commands on S3.

Each command is one of the command line, as a scheduler runs it, on a table of two partitions in a server of Moto in this
process, which counts what arrives. `--packages DIR` runs the commands of another checkout instead, such as an earlier
commit's: so this file imports nothing of the tests.
"""

import argparse
import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

BUCKET = "lake"
TABLE = f"s3://{BUCKET}/trips"
DAY_MS, FIRST_MS = 86_400_000, 1_772_409_600_000  # 2026-03-02T00:00Z
SOURCES = ("core", "adapters", "spark_app")
KINDS = ("LIST", "GET", "HEAD", "PUT", "DELETE", "POST", "of hoodie.properties", "of the lock", "all")


class _Quiet(WSGIRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_request(self, code: object = "-", size: object = "-") -> None:
        pass


class Server:
    """Moto's S3, and the requests that it got, by kind and by what they are of."""

    def __init__(self) -> None:
        self.counted: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._app = DomainDispatcherApplication(create_backend_app)
        self._server = make_server("127.0.0.1", 0, self._answer, threaded=True, request_handler=_Quiet)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def _answer(self, environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        name = environ["PATH_INFO"].rpartition("/")[2]
        is_listing = "list-type" in parse_qs(environ.get("QUERY_STRING", ""))
        kinds = {"all", "LIST" if is_listing else environ["REQUEST_METHOD"]}
        if name == "hoodie.properties":
            kinds.add("of hoodie.properties")
        elif name == "lock" or name.startswith(("lock.", "table_lock")):
            kinds.add("of the lock")
        with self._lock:
            self.counted.update(kinds)
        answered: Iterable[bytes] = self._app(environ, start)
        return answered


def commands(files: Path) -> Iterator[tuple[str, ...]]:
    """A life of 33 commands: three days of reports, each compacted, read, kept and cleaned up after."""
    yield (
        "ingest",
        TABLE,
        _rows(files, 0),
        "--create",
        *["--record-key", "trip", "--partition", "city", "--event-time", "at"],
    )
    for day in range(3):
        before = str(FIRST_MS + (day + 1) * DAY_MS)
        for number in range(1, 5):
            yield "ingest", TABLE, _rows(files, 10 * day + number)
        yield "plan", TABLE, "--before", before
        yield "compact", TABLE, "--before", before, "--engine", "local"
        yield "freshness", TABLE, "--require", before
        yield "read", TABLE, "--query", "read_optimized", "--all"
        yield "tag", TABLE, f"day-{day}"
        yield "update", TABLE, "--where", "trip = 't1'", "--set", "fare = fare + 1"
    yield "clean", TABLE, "--retain-commits", "1"
    yield "verify", TABLE


def _rows(files: Path, number: int) -> str:
    """A report: two trips that are there, and a new one."""
    path = files / f"{number}.json"
    at = FIRST_MS + (number // 10) * DAY_MS + (number % 10) * 3_600_000
    rows = ((f"t{trip}", "Oslo" if trip % 2 else "Lima", trip + at % 1000 / 10) for trip in (1, 2, number + 3))
    path.write_text("".join(json.dumps({"trip": t, "city": c, "at": at, "fare": f}) + "\n" for t, c, f in rows))
    return str(path)


def live(server: Server) -> dict[str, Counter[str]]:
    """The requests of each verb in this process. Each command opens the table by itself."""
    from eventide.cli.app import eventide

    asked: dict[str, Counter[str]] = {}
    with tempfile.TemporaryDirectory() as scratch:
        for words in commands(Path(scratch)):
            server.counted.clear()
            with contextlib.redirect_stdout(io.StringIO()):
                try:
                    eventide.main([*words, "--quiet"])
                except SystemExit as ended:
                    if ended.code:
                        raise
            asked.setdefault(words[0], Counter()).update({**server.counted, "commands": 1})
    return asked


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.life_on_s3", description=__doc__)
    parser.add_argument("--packages", type=Path, help="a checkout of eventide, whose commands are run")
    chosen = parser.parse_args()
    if chosen.packages is not None:
        path = os.pathsep.join([*(str(chosen.packages / source) for source in SOURCES), str(Path(__file__).parents[1])])
        run = [sys.executable, "-m", "benchmarks.life_on_s3"]
        raise SystemExit(subprocess.run(run, env={**os.environ, "PYTHONPATH": path}, check=False).returncode)
    server = Server()
    os.environ.update(AWS_ACCESS_KEY_ID="life", AWS_SECRET_ACCESS_KEY="life", AWS_DEFAULT_REGION="us-east-1")
    os.environ.update(AWS_ENDPOINT_URL=server.url)
    import botocore.session

    botocore.session.get_session().create_client("s3").create_bucket(Bucket=BUCKET)
    asked = live(server)
    asked["all"] = sum(asked.values(), Counter())
    sys.stdout.write(f"| verb | commands | {' | '.join(KINDS)} |\n|{'---|' * (len(KINDS) + 2)}\n")
    for verb, counted in asked.items():
        cells = (f"{counted[kind]:,}" for kind in ("commands", *KINDS))
        sys.stdout.write(f"| {' | '.join((verb, *cells))} |\n")


if __name__ == "__main__":
    main()
