"""Measures the cost of an operation on a storage: calls of the port, requests and bytes."""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, BinaryIO

import pytest
from azure.core.pipeline.transport import AioHttpTransport

from eventide_adapters.storage.hdfs.webhdfs import WebHdfs
from eventide_adapters.storage.objects.google import GoogleObjects
from eventide_adapters.storage.objects.s3 import S3Objects
from eventide_core.access.files import discard
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


def metered(storage: Storage, cost: Cost) -> MeteredStorage:
    return (MeteredKeys if isinstance(storage, KeyedFiles) else MeteredStorage)(storage, cost)


@contextmanager
def requests_counted(cost: Cost) -> Iterator[None]:
    """Counts the requests to S3, Google, Azure and HDFS within the block."""
    call, exchange = S3Objects._call, WebHdfs._exchange
    call_google, send_azure = GoogleObjects._call, AioHttpTransport.send

    def counted_call(objects: S3Objects, operation: str, **arguments: Any) -> dict[str, Any]:
        answer = call(objects, operation, **arguments)
        received = answer["ContentLength"] if operation == "get_object" else 0
        cost.request(received, len(arguments.get("Body", b"")))
        return answer

    def counted_google(objects: GoogleObjects, method: str, path: str, *names: str, **parts: Any) -> Any:
        answer, data = call_google(objects, method, path, *names, **parts), parts.get("data")
        cost.request(len(answer[1]) if parts.get("alt") == "media" else 0, 0 if data is None else len(data.getvalue()))
        return answer

    async def counted_azure(transport: Any, request: Any, **more: Any) -> Any:
        answer = await send_azure(transport, request, **more)
        is_data = request.method == "GET" and "comp=" not in request.url
        cost.request(int(answer.headers.get("Content-Length", 0)) if is_data else 0, len(request.data or b""))
        return answer

    def counted_exchange(web: WebHdfs, method: str, url: str, content: BinaryIO | None, size: int) -> Any:
        answer = exchange(web, method, url, content, size)
        is_data = method == "GET" and answer.location is None and "op=OPEN" in url
        cost.request(len(answer.body) if is_data else 0, size)
        return answer

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(S3Objects, "_call", counted_call)
        patch.setattr(GoogleObjects, "_call", counted_google)
        patch.setattr(AioHttpTransport, "send", counted_azure)
        patch.setattr(WebHdfs, "_exchange", counted_exchange)
        yield
