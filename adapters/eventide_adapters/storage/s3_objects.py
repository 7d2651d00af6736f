"""The objects of one S3 bucket: reads, lists, and writes that report exactly whether they happened.

A create is a request with `If-None-Match: *`: PutObject, or the CompleteMultipartUpload of a multipart upload for
larger objects and for copies inside the store. The client library and this module repeat requests, so the response
"taken" may belong to the repeat of a request that succeeded and whose response was lost. Therefore, each create gives
its object a unique mark as metadata. If the response is "taken", or there is none, the mark is read: with the same
mark, this create succeeded; with another mark, the race is lost; without an object, nothing has happened.
"""

import os
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, BinaryIO, Final, cast

import s3fs
from botocore.exceptions import BotoCoreError, ClientError
from fsspec.asyn import sync
from s3fs.core import S3_RETRYABLE_ERRORS

from eventide_adapters.storage.objects import StoredObject
from eventide_adapters.storage.s3_config import S3Config
from eventide_adapters.storage.secret_texts import harmless, without_secrets
from eventide_core.errors import EventideError, StorageError

# Four of them take no more memory than one of `PART_BYTES`. S3 allows 10,000 parts.
UPLOAD_PART_BYTES: Final = 16 << 20
_PARTS_AT_ONCE: Final = 4
# The range that one request of a copy reads from its source. S3 allows 5 GiB.
COPY_PART_BYTES: Final = 1 << 30

_MARK: Final = "eventide-write"
_TAKEN: Final = frozenset({"PreconditionFailed", "412"})
_PAST_THE_END: Final = frozenset({"InvalidRange", "416"})
_CONFLICTS: Final = frozenset({"ConditionalRequestConflict", "409"})
_CONFLICT_TRIES: Final = 6
_CONNECT_TIMEOUT_SECONDS: Final = 10
# Each pause is longer than the previous one, to outlast a server that is unreachable for a few seconds.
_ATTEMPTS: Final = 5


@dataclass(frozen=True, slots=True)
class S3Objects:
    """objects.Objects by S3's own requests."""

    bucket: str
    config: S3Config

    @property
    def where(self) -> str:
        return f"the store at {self.config.endpoint or 'the default endpoint'}"

    @property
    def has_server_copy(self) -> bool:
        return True

    @property
    def allows_unsafe_writes(self) -> bool:
        return self.config.allows_unsafe_writes

    def head(self, key: str) -> StoredObject | None:
        with self._answering("look at", key):
            try:
                found = self._call("head_object", Key=key)
            except FileNotFoundError:
                return None
            return _object(key, found["ContentLength"], found, found.get("Metadata", {}).get(_MARK))

    def read(self, key: str, offset: int = 0, length: int | None = None) -> bytes | None:
        """The object, or a range of it, which is shorter if the object ends before; None if it is absent."""
        end = "" if length is None else offset + length - 1
        with self._answering("read", key):
            try:
                found = self._get(key, Range=f"bytes={offset}-{end}")
            except OSError as failure:
                if _code(failure) in _PAST_THE_END:
                    return b""
                raise
            return None if found is None else found[0]

    def read_version(self, key: str) -> tuple[bytes, str] | None:
        """The object and its ETag; None if it is absent."""
        with self._answering("read", key):
            return self._get(key)

    def list_below(self, prefix: str, *, limit: int | None = None) -> tuple[tuple[StoredObject, ...], tuple[str, ...]]:
        """The objects directly below a prefix that ends with `/` or is empty, and the prefixes below it."""
        objects: list[StoredObject] = []
        prefixes: list[str] = []
        page: dict[str, Any] = {"MaxKeys": limit} if limit else {}
        with self._answering("list", prefix):
            while True:
                found = self._call("list_objects_v2", Prefix=prefix, Delimiter="/", **page)
                objects += [_object(entry["Key"], entry["Size"], entry) for entry in found.get("Contents", ())]
                prefixes += [entry["Prefix"] for entry in found.get("CommonPrefixes", ())]
                if limit or not found.get("IsTruncated"):
                    return tuple(objects), tuple(prefixes)
                page = {"ContinuationToken": found["NextContinuationToken"]}

    def delete(self, key: str) -> None:
        with self._answering("delete", key):
            self._call("delete_object", Key=key)

    def replace(self, key: str, data: bytes) -> None:
        with self._answering("write", key):
            self._call("put_object", Key=key, Body=data)

    def replace_version(self, key: str, data: bytes, etag: str) -> bool:
        """Replaces the object.

        Returns False if it is absent or has another ETag, even if only a repeated request caused that.
        """
        with self._answering("write", key):
            try:
                self._call("put_object", Key=key, Body=data, IfMatch=etag)
            except FileNotFoundError:
                return False
            except (OSError, BotoCoreError) as failure:
                if _code(failure) in _TAKEN | _CONFLICTS:
                    return False
                raise
        return True

    def create(self, key: str, data: bytes, *, is_conditional: bool = True) -> bool:
        """Creates a small object. Returns False if the key is taken."""
        condition = {"IfNoneMatch": "*"} if is_conditional else {}
        return self._create(key, lambda mark: self._call("put_object", Key=key, Body=data, Metadata=mark, **condition))

    def create_large(self, key: str, stream: BinaryIO, *, is_conditional: bool = True) -> bool:
        """Creates an object in parts. Returns False if the key is taken."""

        def send(mark: dict[str, str]) -> None:
            stream.seek(0)
            with self._parts(key, mark, is_conditional) as (upload, etags):
                etags += self._upload(iter(lambda: stream.read(UPLOAD_PART_BYTES), b""), upload)

        return self._create(key, send)

    def _upload(self, parts: Iterator[bytes], upload: dict[str, str]) -> list[str]:
        """Uploads parts, several at once, and returns their ETags in order. No request outlasts this call."""

        def send(number: int, part: bytes) -> str:
            return cast(str, self._call("upload_part", Body=part, PartNumber=number, **upload)["ETag"])

        etags: list[str] = []
        waiting: deque[Future[str]] = deque()
        with ThreadPoolExecutor(_PARTS_AT_ONCE) as threads:
            for number, part in enumerate(parts, start=1):
                waiting.append(threads.submit(send, number, part))
                if len(waiting) == _PARTS_AT_ONCE:
                    etags.append(waiting.popleft().result())
            etags += [found.result() for found in waiting]
        return etags

    def copy(self, source: StoredObject, key: str, *, is_conditional: bool = True) -> bool:
        """Copies a source that is not empty inside the store. Returns False if the key is taken.

        Copies in parts, whatever the size: stores keep the condition at the end of a multipart upload, but few do for
        CopyObject.
        """
        if not is_conditional:
            with self._answering("write", key):
                self._call("copy_object", Key=key, CopySource={"Bucket": self.bucket, "Key": source.key})
            return True

        def send(mark: dict[str, str]) -> None:
            with self._parts(key, mark, True) as (upload, etags):
                for start in range(0, source.size, COPY_PART_BYTES):
                    end = min(start + COPY_PART_BYTES, source.size) - 1
                    part = self._call(
                        "upload_part_copy",
                        CopySource={"Bucket": self.bucket, "Key": source.key},
                        CopySourceIfMatch=source.etag,
                        CopySourceRange=f"bytes={start}-{end}",
                        PartNumber=len(etags) + 1,
                        **upload,
                    )
                    etags.append(part["CopyPartResult"]["ETag"])

        return self._create(key, send)

    def _create(self, key: str, send: Callable[[dict[str, str]], object]) -> bool:
        mark = uuid.uuid4().hex
        with self._answering("write", key):
            for attempt in range(_CONFLICT_TRIES):
                try:
                    send({_MARK: mark})
                except (OSError, BotoCoreError) as failure:
                    code = _code(failure)
                    found = self.head(key)
                    if found is not None and found.mark == mark:
                        return True
                    if code in _TAKEN or isinstance(failure, FileExistsError):
                        return False
                    if code not in _CONFLICTS:
                        raise
                    # Another create of the key was in progress. S3 requires a repeat after that has ended.
                    time.sleep(0.05 * 2**attempt)
                else:
                    return True
        raise StorageError(f"{key!r} in the bucket {self.bucket} was used by other writers each time; try again")

    @contextmanager
    def _parts(
        self, key: str, mark: dict[str, str], is_conditional: bool
    ) -> Iterator[tuple[dict[str, str], list[str]]]:
        """A multipart upload, completed at the end of the block, or aborted if something failed."""
        upload = {"Key": key, "UploadId": self._call("create_multipart_upload", Key=key, Metadata=mark)["UploadId"]}
        etags: list[str] = []
        try:
            yield upload, etags
            parts = [{"PartNumber": number, "ETag": etag} for number, etag in enumerate(etags, start=1)]
            condition = {"IfNoneMatch": "*"} if is_conditional else {}
            self._call("complete_multipart_upload", MultipartUpload={"Parts": parts}, **upload, **condition)
        except BaseException:
            # It is already gone if only the response to its completion was lost. The store's own expiry removes other
            # remains.
            with suppress(OSError, BotoCoreError):
                self._call("abort_multipart_upload", **upload)
            raise

    def _get(self, key: str, **part: str) -> tuple[bytes, str] | None:
        """The current content, and its ETag."""
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                found = self._call("get_object", Key=key, **part)
            except FileNotFoundError:
                return None
            try:
                return self._read_body(found["Body"]), found["ETag"]
            except S3_RETRYABLE_ERRORS:
                # The connection was interrupted within the content.
                if attempt == _ATTEMPTS:
                    raise
        raise AssertionError("the last attempt answers or raises")

    def _read_body(self, body: Any) -> bytes:
        try:
            return cast(bytes, sync(_client(self.config, os.getpid()).loop, body.read))
        finally:
            body.close()

    def _call(self, operation: str, **arguments: Any) -> dict[str, Any]:
        client = _client(self.config, os.getpid())
        return cast(dict[str, Any], client.call_s3(operation, Bucket=self.bucket, **arguments))

    @contextmanager
    def _answering(self, verb: str, key: str) -> Iterator[None]:
        try:
            yield
        except EventideError:
            raise
        except (OSError, BotoCoreError, ClientError, TimeoutError) as failure:
            where = self.config.endpoint or "the default endpoint"
            shown = without_secrets(str(failure), self.config.secrets)
            raise StorageError(f"cannot {verb} {key!r} in the bucket {self.bucket} at {where}: {shown}") from harmless(
                failure, self.config.secrets
            )


def _object(key: str, size: int, found: dict[str, Any], mark: str | None = None) -> StoredObject:
    return StoredObject(key, size, int(found["LastModified"].timestamp() * 1000), found["ETag"], mark)


def _code(failure: BaseException) -> str | None:
    """The store's error code: s3fs keeps the response as the error's cause."""
    answer = failure.__cause__ if isinstance(failure.__cause__, ClientError) else failure
    return answer.response.get("Error", {}).get("Code") if isinstance(answer, ClientError) else None


@lru_cache(maxsize=32)
def _client(config: S3Config, process: int) -> s3fs.S3FileSystem:  # noqa: ARG001  # a fork must not use its parent's
    """One client per process, for all copies of a storage."""
    settings: dict[str, Any] = {
        "endpoint_url": config.endpoint,
        "key": config.access_key,
        "secret": config.secret_key,
        "token": config.session_token,
        "client_kwargs": {"region_name": config.region} if config.region else {},
        "config_kwargs": {
            "connect_timeout": min(_CONNECT_TIMEOUT_SECONDS, config.timeout_seconds),
            "read_timeout": config.timeout_seconds,
            "retries": {"mode": "standard", "max_attempts": _ATTEMPTS},
            "s3": {"addressing_style": "path" if config.has_path_style else "auto"},
        },
        # A cached listing would not show later writes of other processes.
        "use_listings_cache": False,
        "skip_instance_cache": True,
    }
    if config.profile:
        settings["profile"] = config.profile
    client = s3fs.S3FileSystem(**settings)
    client.retries = 1  # the library below repeats requests, and knows better which ones
    return client
