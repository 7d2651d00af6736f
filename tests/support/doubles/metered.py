"""Measures the cost of an operation on a storage: calls of the port, requests and bytes."""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPResponse
from typing import Any, BinaryIO

import pytest
from azure.core.pipeline.transport import AioHttpTransport
from gcsfs.core import GCSFileSystem
from s3fs import S3FileSystem

from eventide_core.access.files import discard, info_of_file, remove_tree
from eventide_core.ports import Capability, FileInfo, KeyedFiles, OutputFile, Storage


@dataclass(slots=True)
class Cost:
    """Calls of the storage port by name, and the requests to servers with the bytes of files in them."""

    calls: Counter[str] = field(default_factory=Counter[str])
    requests: int = 0
    received: int = 0
    sent: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def request(self, received: int, sent: int) -> None:
        with self.lock:
            self.requests += 1
            self.received += received
            self.sent += sent


@dataclass(frozen=True, slots=True)
class MeteredStorage:
    """ports.Storage that counts the calls of another storage."""

    inner: Storage
    cost: Cost

    @property
    def root(self) -> str:
        return self.inner.root

    @property
    def is_remote(self) -> bool:
        return self.inner.is_remote

    @property
    def capabilities(self) -> Capability:
        return self.inner.capabilities

    def _count(self, call: str) -> Storage:
        with self.cost.lock:
            self.cost.calls[call] += 1
        return self.inner

    def list(self, directory: str) -> tuple[FileInfo, ...]:
        return self._count("list").list(directory)

    def stat(self, path: str) -> FileInfo | None:
        return self._count("stat").stat(path)

    def read(self, path: str) -> bytes:
        return self._count("read").read(path)

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        return self._count("read_range").read_range(path, offset, length)

    def open_input(self, path: str) -> BinaryIO:
        return self._count("open_input").open_input(path)

    def open_output(self, path: str) -> OutputFile:
        return self._count("open_output").open_output(path)

    def put(self, path: str, data: bytes) -> None:
        self._count("put").put(path, data)

    def put_if_absent(self, path: str, data: bytes) -> bool:
        return self._count("put_if_absent").put_if_absent(path, data)

    def copy_if_absent(self, source: str, target: str) -> bool:
        return self._count("copy_if_absent").copy_if_absent(source, target)

    def link_if_absent(self, source: str, target: str, *, is_symbolic: bool) -> bool:
        return self._count("link_if_absent").link_if_absent(source, target, is_symbolic=is_symbolic)

    def delete(self, path: str) -> bool:
        return self._count("delete").delete(path)


class MeteredKeys(MeteredStorage):
    """The same for ports.KeyedFiles."""

    def discard(self, path: str) -> None:
        discard(self._count("discard"), path)

    def info_of_file(self, path: str) -> FileInfo | None:
        return info_of_file(self._count("info_of_file"), path)

    def discard_tree(self, directory: str) -> None:
        remove_tree(self._count("discard_tree"), directory)


def metered(storage: Storage, cost: Cost) -> MeteredStorage:
    return (MeteredKeys if isinstance(storage, KeyedFiles) else MeteredStorage)(storage, cost)


@contextmanager
def requests_counted(cost: Cost) -> Iterator[None]:
    """Counts the requests to S3, Google, Azure and HDFS within the block."""
    call_s3: Any = S3FileSystem.call_s3
    call_google: Any = GCSFileSystem.call
    send_azure = AioHttpTransport.send

    def counted_s3(client: S3FileSystem, operation: str, **arguments: Any) -> Any:
        answer = call_s3(client, operation, **arguments)
        received = answer["ContentLength"] if operation == "get_object" else 0
        cost.request(received, len(arguments.get("Body", b"")))
        return answer

    def counted_google(client: GCSFileSystem, method: str, path: str, *names: str, **parts: Any) -> Any:
        answer, data = call_google(client, method, path, *names, **parts), parts.get("data")
        cost.request(len(answer[1]) if parts.get("alt") == "media" else 0, 0 if data is None else len(data.getvalue()))
        return answer

    async def counted_azure(transport: Any, request: Any, **more: Any) -> Any:
        answer = await send_azure(transport, request, **more)
        is_data = request.method == "GET" and "comp=" not in request.url
        cost.request(int(answer.headers.get("Content-Length", 0)) if is_data else 0, len(request.data or b""))
        return answer

    class CountedHdfs(HTTPConnection):
        is_data, sent = False, 0

        def request(self, method: str, url: str, body: Any = None, headers: Any = None, **_: Any) -> None:
            self.is_data, self.sent = method == "GET" and "op=OPEN" in url, int(headers.get("Content-Length", 0))
            super().request(method, url, body, headers)

        def getresponse(self) -> HTTPResponse:
            answer = super().getresponse()
            is_data = self.is_data and answer.status == 200
            cost.request(int(answer.headers["Content-Length"]) if is_data else 0, self.sent)
            return answer

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(S3FileSystem, "call_s3", counted_s3)
        patch.setattr(GCSFileSystem, "call", counted_google)
        patch.setattr(AioHttpTransport, "send", counted_azure)
        patch.setattr("eventide_adapters.storage.hdfs.webhdfs.HTTPConnection", CountedHdfs)
        yield
