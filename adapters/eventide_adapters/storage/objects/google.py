"""The objects of one bucket in Google Cloud Storage, by the requests of its JSON API.

A create has the condition `ifGenerationMatch=0`, and a replacement names the generation that it replaces. gcsfs finds the
credentials, sends the requests, and repeats them.
"""

import json
import logging
import os
import uuid
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from typing import Any, BinaryIO, ClassVar, Final, cast

from gcsfs.core import GCSFileSystem, UnclosableBytesIO

from eventide_adapters.storage.objects.cloud import MARK, CloudObjects, opened
from eventide_adapters.storage.objects.contract import StoredObject
from eventide_adapters.storage.request_count import count_request
from eventide_core.errors import StorageError

# It logs each failed request with its trace, also the one behind the end of an object.
logging.getLogger("gcsfs").setLevel(logging.CRITICAL)

_OBJECT: Final = "b/{}/o/{}"
_PAST_THE_END: Final = (416, "416")
_ENDED: Final = (410, "410")
_NONE_YET: Final = "0"
# Of a request that isn't response in time.
_ATTEMPTS: Final = 3


class GoogleObjects(CloudObjects):
    """contract.VersionedObjects by generations."""

    __slots__ = ()
    scheme: ClassVar[str] = "gs"
    container: ClassVar[str] = "bucket"
    # No server that the tests can start keeps the condition of a copy inside the store (`rewriteTo`).
    has_server_copy = False

    @property
    def address(self) -> str:
        return str(opened(GCSFileSystem, self.settings, os.getpid())._location)

    def head(self, key: str) -> StoredObject | None:
        with self._answering("look at", key):
            try:
                return _object(self._call("GET", _OBJECT, self.bucket, key, json_out=True))
            except FileNotFoundError:
                return None

    def list_below(self, prefix: str, *, limit: int | None = None) -> tuple[tuple[StoredObject, ...], tuple[str, ...]]:
        objects: list[StoredObject] = []
        prefixes: list[str] = []
        for answer in self._listed(prefix, limit, delimiter="/"):
            objects += [_object(entry) for entry in answer.get("items", ())]
            prefixes += answer.get("prefixes", ())
        return tuple(objects), tuple(dict.fromkeys(prefixes))

    def keys_below(self, prefix: str) -> tuple[str, ...]:
        return tuple(entry["name"] for answer in self._listed(prefix) for entry in answer.get("items", ()))

    def _listed(self, prefix: str, limit: int | None = None, **more: str) -> Iterator[dict[str, Any]]:
        """The pages of a listing; with a limit, the first one alone."""
        page: str | None = None
        with self._answering("list", prefix):
            while True:
                asked = {"prefix": prefix or None, **more, "maxResults": limit, "pageToken": page}
                try:
                    answer = self._call("GET", "b/{}/o", self.bucket, json_out=True, **asked)
                except FileNotFoundError:
                    raise self._no_bucket() from None
                yield answer
                page = answer.get("nextPageToken")
                if limit or not page:
                    return

    def delete(self, key: str) -> None:
        with self._answering("delete", key):
            try:
                self._call("DELETE", _OBJECT, self.bucket, key)
            except FileNotFoundError:
                return

    def replace(self, key: str, data: bytes) -> None:
        with self._answering("write", key):
            self._put(key, data, {}, None)

    def replace_version(self, key: str, data: bytes, version: str) -> bool:
        """Replaces the object. Returns False if it is absent or has another generation.

        A version that isn't a generation is sent as one that never existed, so that a store that ignores it shows itself.
        """
        with self._answering("write", key):
            try:
                self._put(key, data, {}, version if version.isdigit() and version != _NONE_YET else "1")
            except FileExistsError:
                return False
        return True

    def create(self, key: str, data: bytes, *, is_conditional: bool = True) -> bool:
        condition = _NONE_YET if is_conditional else None
        return self._create(key, lambda mark: self._put(key, data, mark, condition))

    def upload(self, key: str) -> "GoogleUpload":
        return GoogleUpload(self, key)

    def _is_taken(self, failure: Exception, stored: StoredObject | None) -> bool:
        # An upload that lost the race has ended, so its repeat finds no upload.
        has_ended = isinstance(failure, FileNotFoundError) or getattr(failure, "code", None) in _ENDED
        return isinstance(failure, FileExistsError) or (has_ended and stored is not None)

    def _read(self, key: str, offset: int = 0, length: int | None = None) -> tuple[bytes, str] | None:
        end = "" if length is None else offset + length - 1
        headers = {"Range": f"bytes={offset}-{end}"} if offset or length is not None else {}
        with self._answering("read", key):
            try:
                response, data = self._call("GET", _OBJECT, self.bucket, key, headers=headers, alt="media")
            except FileNotFoundError:
                return None
            except Exception as failure:
                if getattr(failure, "code", None) in _PAST_THE_END:
                    return b"", ""
                raise
            return bytes(data), str(response.get("X-Goog-Generation", ""))

    def _put(self, key: str, data: bytes, mark: dict[str, str], generation: str | None) -> None:
        """One request with metadata and content, on the condition of the current generation unless it is None."""
        about = json.dumps({"name": key, "metadata": mark})
        # Not one that the content can contain.
        border = uuid.uuid4().hex
        head = f"--{border}\r\nContent-Type: application/json; charset=UTF-8\r\n\r\n{about}\r\n--{border}\r\n"
        content = b"".join(
            (head.encode(), b"Content-Type: application/octet-stream\r\n\r\n", data, f"\r\n--{border}--".encode())
        )
        self._call(
            "POST",
            f"{self.address}/upload/storage/v1/b/{{}}/o",
            self.bucket,
            uploadType="multipart",
            headers={"Content-Type": f'multipart/related; boundary="{border}"'},
            data=UnclosableBytesIO(content),
            ifGenerationMatch=generation,
        )

    def _call(self, method: str, path: str, *names: str, **parts: Any) -> Any:
        client = opened(GCSFileSystem, self.settings, os.getpid())
        for _ in range(_ATTEMPTS - 1):
            count_request()
            # gcsfs repeats a request after every other failure of a connection.
            with suppress(TimeoutError):
                return client.call(method, path, *names, **parts)
            if "data" in parts:
                parts["data"].seek(0)
        count_request()
        return client.call(method, path, *names, **parts)


class GoogleUpload:
    """contract.Upload by a resumable upload, in order. Google removes an unfinished one after a week."""

    def __init__(self, objects: GoogleObjects, key: str) -> None:
        self._objects, self._key, self._mark = objects, key, uuid.uuid4().hex
        self._sent_bytes = 0
        # The last part states the size of the object, so each part waits for the next one.
        self._part: bytes | None = None
        self._address: str | None = None
        self._is_taken = False

    def send(self, part: bytes) -> None:
        if self._part is not None and not self._is_taken:
            with self._objects._answering("write", self._key):
                try:
                    self._send(self._part, is_last=False)
                except FileExistsError:
                    self._is_taken = True
        self._part = part

    def complete(self, content: BinaryIO, *, is_conditional: bool = True) -> bool:  # noqa: ARG002
        part, self._part = self._part or b"", None
        return not self._is_taken and self._objects._create(
            self._key, lambda _: self._send(part, is_last=True), self._mark
        )

    def abort(self) -> None:
        self._part = None

    def _send(self, part: bytes, *, is_last: bool) -> None:
        """Sends a part. Google checks the condition when the upload begins, and when it ends."""
        end = self._sent_bytes + len(part)
        size = str(end) if is_last else "*"
        headers = {"Content-Range": f"bytes {self._sent_bytes}-{end - 1}/{size}"}
        _, answer = self._objects._call("PUT", self._begun(), headers=headers, data=UnclosableBytesIO(part))
        self._sent_bytes = end
        made = json.loads(answer) if is_last else {}
        if is_last and int(made["size"]) != end:
            place = (self._objects.bucket, self._key)
            self._objects._call("DELETE", _OBJECT, *place, ifGenerationMatch=made["generation"])
            raise StorageError(
                f"{self._objects.where} kept a part of {self._key!r} twice, so it was removed; try again"
            )

    def _begun(self) -> str:
        """The address of the upload."""
        if self._address is None:
            headers, _ = self._objects._call(
                "POST",
                f"{self._objects.address}/upload/storage/v1/b/{{}}/o",
                self._objects.bucket,
                uploadType="resumable",
                json={"name": self._key, "metadata": {MARK: self._mark}},
                ifGenerationMatch=None if self._objects.allows_unsafe_writes else _NONE_YET,
            )
            self._address = str(headers["Location"])
        return self._address


def _object(entry: dict[str, Any]) -> StoredObject:
    modified = datetime.fromisoformat(cast(str, entry["updated"]))
    return StoredObject(
        entry["name"],
        int(entry["size"]),
        int(modified.timestamp() * 1000),
        str(entry["generation"]),
        entry.get("metadata", {}).get(MARK),
    )
