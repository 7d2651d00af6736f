"""Three S3 servers from the package registry: two that support `If-None-Match`, and one that ignores it."""

import json
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import botocore.session
from botocore.config import Config

from support.servers.server_process import ServerUnavailableError, free_ports, server

MOTO = Path(__file__).parent / "one_at_a_time.py"

BUCKET = "lake"
ACCESS_KEY = "eventide-tests"
SECRET_KEY = "the-secret-of-the-tests"


@dataclass(frozen=True, slots=True)
class S3Server:
    """A server with an empty bucket."""

    name: str
    endpoint: str

    @property
    def options(self) -> dict[str, str]:
        """The options with which eventide uses it."""
        return {
            "fs.s3a.endpoint": self.endpoint,
            "fs.s3a.endpoint.region": "us-east-1",
            "fs.s3a.access.key": ACCESS_KEY,
            "fs.s3a.secret.key": SECRET_KEY,
        }

    def uri(self, place: str) -> str:
        return f"s3://{BUCKET}/{place}"

    def client(self) -> Any:
        """A separate client, for access that bypasses the adapter."""
        return _client(self.endpoint)


@cache
def _client(endpoint: str) -> Any:
    return botocore.session.Session().create_client(
        "s3",
        endpoint_url=endpoint,
        region_name="us-east-1",
        aws_access_key_id=ACCESS_KEY,
        aws_secret_access_key=SECRET_KEY,
        config=Config(s3={"addressing_style": "path"}),
    )


@contextmanager
def moto(directory: Path) -> Iterator[S3Server]:
    """Moto, in Python; keeps objects in memory."""
    (port,) = free_ports(1)
    with _serve("moto", [sys.executable, str(MOTO), str(port)], port, directory) as found:
        yield found


@contextmanager
def seaweedfs(directory: Path) -> Iterator[S3Server]:
    """SeaweedFS, in Go: master, volume, filer and S3 in one process."""
    master, volume, filer, s3 = free_ports(4, 10_000)  # where it listens for gRPC
    user = {"accessKey": ACCESS_KEY, "secretKey": SECRET_KEY}
    actions = ["Admin", "Read", "Write", "List", "Tagging"]
    config = directory / "s3.json"
    config.write_text(json.dumps({"identities": [{"name": "tests", "credentials": [user], "actions": actions}]}))
    (directory / "data").mkdir()
    command = [_program("weed"), "-logtostderr=true", "server", f"-dir={directory / 'data'}"]
    command += ["-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-master.telemetry=false"]
    command += ["-master.volumeSizeLimitMB=64", "-volume.max=20", f"-master.port={master}", f"-volume.port={volume}"]
    command += [f"-filer.port={filer}", "-s3", f"-s3.port={s3}", f"-s3.config={config}"]
    command += ["-s3.port.iceberg=0", "-s3.port.lance=0", "-s3.iam=false"]
    with _serve("seaweedfs", command, s3, directory) as found:
        yield found


@contextmanager
def rclone(directory: Path) -> Iterator[S3Server]:
    """rclone's S3 server, which answers every conditional create with success."""
    (port,) = free_ports(1)
    (directory / "data").mkdir()
    command = [_program("rclone"), "serve", "s3", "--addr", f"127.0.0.1:{port}", "--config", str(directory / "none")]
    command += ["--auth-key", f"{ACCESS_KEY},{SECRET_KEY}", str(directory / "data")]
    with _serve("rclone", command, port, directory) as found:
        yield found


@contextmanager
def _serve(name: str, command: Sequence[str], port: int, directory: Path) -> Iterator[S3Server]:
    found = S3Server(name, f"http://127.0.0.1:{port}")
    with server(command, directory / "log", _takes_a_bucket(found)):
        yield found


def _takes_a_bucket(found: S3Server) -> Callable[[], bool]:
    """Whether the server has the bucket and accepts an object. Some servers listen long before they can do that."""

    def is_ready() -> bool:
        try:
            urllib.request.urlopen(found.endpoint, timeout=1).close()
        except urllib.error.HTTPError as answer:
            answer.close()
        except OSError:
            return False
        client = found.client()
        try:
            client.create_bucket(Bucket=BUCKET)
            client.put_object(Bucket=BUCKET, Key="ready", Body=b"ready")
            client.delete_object(Bucket=BUCKET, Key="ready")
        except client.exceptions.ClientError:
            return False
        return True

    return is_ready


def _program(name: str) -> str:
    program = Path(sys.executable).parent / name
    if not program.exists():
        raise ServerUnavailableError(f"{name} is not installed beside {sys.executable}")
    return str(program)
