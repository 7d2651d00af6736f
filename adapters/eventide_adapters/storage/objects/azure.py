"""The blobs of one container in Azure's Blob Storage, as block blobs.

A create has the condition `If-None-Match: *`, and a replacement `If-Match` with the replaced ETag. A larger file is sent
in blocks, which nobody sees before the list of them is committed on the same condition. adlfs finds the credentials.
Azure's library sends the requests, and repeats them.
"""

import os
import socket
import uuid
from collections import deque
from collections.abc import Awaitable, Callable
from functools import lru_cache
from typing import Any, BinaryIO, ClassVar, Final
from urllib.parse import urlsplit
from urllib.request import getproxies

from adlfs import AzureBlobFileSystem
from azure.core import MatchConditions
from azure.core.exceptions import HttpResponseError, ResourceNotFoundError
from azure.storage.blob import BlobBlock
from azure.storage.blob.aio import BlobPrefix
from fsspec.asyn import sync

from eventide_adapters.storage.objects.cloud import MARK, CloudObjects, opened
from eventide_adapters.storage.objects.contract import StoredObject
from eventide_adapters.storage.request_count import count_request
from eventide_core.access.threads import Future, Threads
from eventide_core.errors import StorageAccessError, StorageError

_TAKEN: Final = ("BlobAlreadyExists", "ConditionNotMet")
# Another upload of the same name was committed, which removes the blocks of all others.
_BLOCKS_GONE: Final = "InvalidBlockList"
_PAST_THE_END: Final = 416
_BLOCKS_AT_ONCE: Final = 4
_CONNECT_SECONDS: Final = 20  # as in Azure's library
_UNREACHED: Final = "check the address and the network, and whether the store runs"


class AzureObjects(CloudObjects):
    """contract.VersionedObjects by ETags."""

    __slots__ = ()
    scheme: ClassVar[str] = "abfs"
    container: ClassVar[str] = "container"
    # A copy inside the store may be visible before it is complete, or its source needs a signature.
    has_server_copy = False

    @property
    def address(self) -> str:
        return str(self._client().service_client.url)

    def head(self, key: str) -> StoredObject | None:
        with self._answering("look at", key):
            properties = self._answer(key, lambda blob: blob.get_blob_properties())
            return None if properties is None or _is_folder(properties) else _object(properties)

    def list_below(self, prefix: str, *, limit: int | None = None) -> tuple[tuple[StoredObject, ...], tuple[str, ...]]:
        objects: list[StoredObject] = []
        prefixes: list[str] = []
        listed = self._listed(
            prefix,
            lambda container: container.walk_blobs(name_starts_with=prefix, delimiter="/", results_per_page=limit),
            is_one_page=limit is not None,
        )
        for entry in listed:
            if isinstance(entry, BlobPrefix):
                prefixes.append(entry.name)
            else:
                objects.append(_object(entry))
        return tuple(objects), tuple(prefixes)

    def keys_below(self, prefix: str) -> tuple[str, ...]:
        listed = self._listed(prefix, lambda c: c.list_blobs(name_starts_with=prefix, include=["metadata"]))
        return tuple(entry.name for entry in listed if not _is_folder(entry))

    def _listed(self, prefix: str, begin: Callable[[Any], Any], *, is_one_page: bool = False) -> list[Any]:
        """The entries of a listing, which `begin` begins with the client of the container."""
        entries: list[Any] = []

        async def walk(container: Any) -> None:
            async for page in begin(container).by_page():
                count_request()
                entries.extend([entry async for entry in page])
                if is_one_page:
                    return

        with self._answering("list", prefix):
            client = self._client()
            try:
                sync(client.loop, walk, client.service_client.get_container_client(self.bucket))
            except ResourceNotFoundError:
                raise self._no_bucket() from None
        return entries

    def delete(self, key: str) -> None:
        with self._answering("delete", key):
            self._answer(key, lambda blob: blob.delete_blob(delete_snapshots="include"))

    def replace(self, key: str, data: bytes) -> None:
        with self._answering("write", key):
            self._ask(key, lambda blob: blob.upload_blob(data, overwrite=True))

    def replace_version(self, key: str, data: bytes, version: str) -> bool:
        """Replaces the blob. Returns False if it is absent or has another ETag."""
        condition = {"etag": version, "match_condition": MatchConditions.IfNotModified}
        with self._answering("write", key):
            try:
                self._ask(key, lambda blob: blob.upload_blob(data, overwrite=True, **condition))
            except HttpResponseError as failure:
                if self._is_taken(failure, None) or _code(failure) == "BlobNotFound":
                    return False
                raise
        return True

    def create(self, key: str, data: bytes, *, is_conditional: bool = True) -> bool:
        def send(mark: dict[str, str]) -> None:
            self._ask(key, lambda blob: blob.upload_blob(data, overwrite=not is_conditional, metadata=mark))

        return self._create(key, send)

    def upload(self, key: str) -> "AzureUpload":
        return AzureUpload(self, key)

    def _is_taken(self, failure: Exception, stored: StoredObject | None) -> bool:
        code = _code(failure)
        return code in _TAKEN or (code == _BLOCKS_GONE and stored is not None)

    def _read(self, key: str, offset: int = 0, length: int | None = None) -> tuple[bytes, str] | None:
        async def download(blob: Any) -> tuple[bytes, str]:
            stream = await blob.download_blob(offset=offset, length=length)
            return await stream.readall(), stream.properties.etag

        with self._answering("read", key):
            try:
                content: tuple[bytes, str] | None = self._answer(key, download)
            except HttpResponseError as failure:
                if failure.status_code == _PAST_THE_END:
                    return b"", ""
                raise
            return content

    def _answer(self, key: str, request: Callable[[Any], Awaitable[Any]]) -> Any:
        """The response to a request; None if the blob is absent."""
        try:
            return self._ask(key, request)
        except ResourceNotFoundError as failure:
            if _code(failure) == "ContainerNotFound":
                raise self._no_bucket() from None
            return None

    def _ask(self, key: str, request: Callable[[Any], Awaitable[Any]]) -> Any:
        client = self._client()
        count_request()
        return sync(client.loop, request, client.service_client.get_blob_client(self.bucket, key))

    def _client(self) -> Any:
        client = opened(AzureBlobFileSystem, self.settings, os.getpid())
        _check_address(client.service_client.url, os.getpid())
        return client


@lru_cache(maxsize=32)
def _check_address(url: str, process: int) -> None:  # noqa: ARG001  # a failure is not cached
    """Connects once. Azure's library tries an account that does not exist for a minute and a half.

    Raises StorageAccessError if there is no such host, and StorageError if it accepts no connection.
    """
    address = urlsplit(url)
    if getproxies() or address.hostname is None:  # a proxy may know hosts that this machine doesn't
        return
    port = address.port or (443 if address.scheme == "https" else 80)
    try:
        socket.create_connection((address.hostname, port), _CONNECT_SECONDS).close()
    except socket.gaierror as failure:
        if failure.errno == socket.EAI_NONAME:
            raise StorageAccessError(
                f"there is no host {address.hostname!r}: check the account in the table's URI, and the endpoint"
            ) from None
        raise StorageError(f"host {address.hostname!r} cannot be resolved: {failure.strerror}; {_UNREACHED}") from None
    except OSError as failure:
        raise StorageError(f"cannot connect to {address.hostname}:{port}: {failure}; {_UNREACHED}") from None


class AzureUpload:
    """contract.Upload by blocks. Azure removes those that nobody commits after a week, or when their name is created."""

    def __init__(self, objects: AzureObjects, key: str) -> None:
        self._objects, self._key, self._mark = objects, key, uuid.uuid4().hex
        self._blocks: list[str] = []
        self._waiting: deque[Future[None]] = deque()
        self._threads = Threads(_BLOCKS_AT_ONCE)

    def send(self, part: bytes) -> None:
        if len(self._waiting) == _BLOCKS_AT_ONCE:
            self._waiting.popleft().result()
        # All names of blocks of one blob must be of the same length.
        block = f"{self._mark}-{len(self._blocks):05d}"
        self._blocks.append(block)
        self._waiting.append(self._threads.submit(self._stage, block, part))

    def complete(self, content: BinaryIO, *, is_conditional: bool = True) -> bool:  # noqa: ARG002
        condition = {"match_condition": MatchConditions.IfMissing} if is_conditional else {}

        def commit(blob: Any, mark: dict[str, str]) -> Awaitable[Any]:
            blocks = [BlobBlock(block) for block in self._blocks]
            committed: Awaitable[Any] = blob.commit_block_list(blocks, metadata=mark, **condition)
            return committed

        def send(mark: dict[str, str]) -> None:
            while self._waiting:
                self._waiting.popleft().result()
            self._objects._ask(self._key, lambda blob: commit(blob, mark))

        return self._objects._create(self._key, send, self._mark)

    def abort(self) -> None:
        self._threads.shutdown(cancel_futures=True)

    def _stage(self, block: str, part: bytes) -> None:
        with self._objects._answering("write", self._key):
            self._objects._ask(self._key, lambda blob: blob.stage_block(block, part))


def _code(failure: Exception) -> str | None:
    """Azure's name of the error."""
    return getattr(failure, "error_code", None)


def _is_folder(properties: Any) -> bool:
    """Accounts with a hierarchical namespace have blobs for directories."""
    return (properties.metadata or {}).get("hdi_isfolder") == "true"


def _object(blob: Any) -> StoredObject:
    mark = (blob.metadata or {}).get(MARK)
    return StoredObject(blob.name, blob.size, int(blob.last_modified.timestamp() * 1000), blob.etag, mark)
