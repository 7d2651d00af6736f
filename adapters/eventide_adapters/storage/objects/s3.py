"""The objects of one S3 bucket: reads, lists, and writes that report exactly whether they happened.

A create is a request with `If-None-Match: *`: PutObject, or the CompleteMultipartUpload of a multipart upload for
larger objects and for copies inside the store. The client library and this module repeat requests, so the response
"taken" may belong to the repeat of a request that succeeded and whose response was lost. Therefore, each create gives
its object a unique mark as metadata. If the response is "taken", or there is none, the mark is read: with the same
mark, this create succeeded; with another mark, the race is lost; without an object, nothing has happened.
"""

import logging
import os
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, BinaryIO, Final, cast

import s3fs
from botocore.exceptions import BotoCoreError, ClientError
from botocore.httpsession import get_cert_path
from fsspec.asyn import sync
from s3fs.core import S3_RETRYABLE_ERRORS

from eventide_adapters.storage.certificates import why_untrusted
from eventide_adapters.storage.objects.contract import PART_BYTES, StoredObject
from eventide_adapters.storage.objects.s3_config import S3Config
from eventide_adapters.storage.objects.s3_upload import MultipartUpload, aborted_on_failure, send_all
from eventide_adapters.storage.refusals import storage_error
from eventide_adapters.storage.request_count import count_request
from eventide_adapters.storage.secret_texts import harmless, without_secrets
from eventide_core.errors import EventideError, StorageAccessError, StorageError

# It logs each failed renewal of credentials with its trace; the error says why.
logging.getLogger("aiobotocore.credentials").setLevel(logging.ERROR)

# The range that one request of a copy reads from its source. S3 allows 5 GiB.
COPY_PART_BYTES: Final = 1 << 30

_MARK: Final = "eventide-write"
_TAKEN: Final = frozenset({"PreconditionFailed", "412"})
_PAST_THE_END: Final = frozenset({"InvalidRange", "416"})
# There is no such bucket, or not in this region.
_NO_BUCKET: Final = frozenset(
    {
        "NoSuchBucket",
        "InvalidBucketName",
        "PermanentRedirect",
        "AuthorizationHeaderMalformed",
        "IllegalLocationConstraintException",
    }
)
_CONFLICTS: Final = frozenset({"ConditionalRequestConflict", "409"})
_CONFLICT_TRIES: Final = 6
_CONNECT_TIMEOUT_SECONDS: Final = 10
# Each pause is longer than the previous one, to outlast a server that is unreachable for a few seconds.
_ATTEMPTS: Final = 5


@dataclass(frozen=True, slots=True)
class S3Objects:
    """contract.Objects by S3's own requests to one `bucket`, which is a name without a scheme."""

    bucket: str
    config: S3Config
    has_server_copy = True

    @property
    def where(self) -> str:
        return f"the store at {self.config.endpoint or 'the default endpoint'}"

    @property
    def address(self) -> str:
        client: Any = _client(self.config, os.getpid()).s3
        return str(client.meta.endpoint_url)

    @property
    def allows_unsafe_writes(self) -> bool:
        return self.config.allows_unsafe_writes

    def head(self, key: str) -> StoredObject | None:
        with self._answering("look at", key):
            try:
                answer = self._call("head_object", Key=key)
            except FileNotFoundError:
                return None
            return _object(key, answer["ContentLength"], answer, answer.get("Metadata", {}).get(_MARK))

    def read(self, key: str, offset: int = 0, length: int | None = None) -> bytes | None:
        """The object, or a range of it, which is shorter if the object ends before; None if it is absent."""
        end = "" if length is None else offset + length - 1
        with self._answering("read", key):
            try:
                content = self._get(key, Range=f"bytes={offset}-{end}")
            except OSError as failure:
                if _code(failure) in _PAST_THE_END:
                    return b""
                raise
            return None if content is None else content[0]

    def read_version(self, key: str) -> tuple[bytes, str] | None:
        """The object and its ETag; None if it is absent."""
        with self._answering("read", key):
            return self._get(key)

    def list_below(self, prefix: str, *, limit: int | None = None) -> tuple[tuple[StoredObject, ...], tuple[str, ...]]:
        """The objects directly below a prefix that ends with `/` or is empty, and the prefixes below it."""
        objects: list[StoredObject] = []
        prefixes: list[str] = []
        for answer in self._listed(prefix, limit, Delimiter="/"):
            objects += [_object(entry["Key"], entry["Size"], entry) for entry in answer.get("Contents", ())]
            prefixes += [entry["Prefix"] for entry in answer.get("CommonPrefixes", ())]
        return tuple(objects), tuple(prefixes)

    def keys_below(self, prefix: str) -> tuple[str, ...]:
        return tuple(entry["Key"] for answer in self._listed(prefix) for entry in answer.get("Contents", ()))

    def _listed(self, prefix: str, limit: int | None = None, **asked: str) -> Iterator[dict[str, Any]]:
        """The pages of a listing; with a limit, the first one alone."""
        page: dict[str, Any] = {"MaxKeys": limit} if limit else {}
        with self._answering("list", prefix):
            while True:
                answer = self._call("list_objects_v2", Prefix=prefix, **asked, **page)
                yield answer
                if limit or not answer.get("IsTruncated"):
                    return
                page = {"ContinuationToken": answer["NextContinuationToken"]}

    def delete(self, key: str) -> None:
        with self._answering("delete", key):
            self._call("delete_object", Key=key)

    def replace(self, key: str, data: bytes) -> None:
        with self._answering("write", key):
            self._call("put_object", Key=key, Body=data)

    def replace_version(self, key: str, data: bytes, version: str) -> bool:
        """Replaces the object.

        Returns False if it is absent or has another ETag, even if only a repeated request caused that.
        """
        with self._answering("write", key):
            try:
                self._call("put_object", Key=key, Body=data, IfMatch=version)
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

    def upload(self, key: str) -> "S3Upload":
        return S3Upload(self, key)

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
            with aborted_on_failure(MultipartUpload(self._call, key, mark)) as upload:
                for number, start in enumerate(range(0, source.size, COPY_PART_BYTES), start=1):
                    end = min(start + COPY_PART_BYTES, source.size) - 1
                    part = self._call(
                        "upload_part_copy",
                        CopySource={"Bucket": self.bucket, "Key": source.key},
                        CopySourceIfMatch=source.etag,
                        CopySourceRange=f"bytes={start}-{end}",
                        PartNumber=number,
                        **upload.place,
                    )
                    upload.add(part["CopyPartResult"]["ETag"])
                upload.complete(is_conditional=True)

        return self._create(key, send)

    def _create(self, key: str, send: Callable[[dict[str, str]], object], mark: str | None = None) -> bool:
        mark = mark or uuid.uuid4().hex
        with self._answering("write", key):
            for attempt in range(_CONFLICT_TRIES):
                try:
                    send({_MARK: mark})
                except (OSError, BotoCoreError) as failure:
                    code = _code(failure)
                    stored = self.head(key)
                    if stored is not None and stored.mark == mark:
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

    def _get(self, key: str, **part: str) -> tuple[bytes, str] | None:
        """The current content, and its ETag."""
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                answer = self._call("get_object", Key=key, **part)
            except FileNotFoundError:
                return None
            try:
                return self._read_body(answer["Body"]), answer["ETag"]
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
        count_request()
        try:
            return cast(dict[str, Any], client.call_s3(operation, Bucket=self.bucket, **arguments))
        except FileNotFoundError as failure:
            if failure.filename is None:
                raise
            # A file of this machine, not an object: botocore opens it as its credentials expire.
            raise StorageAccessError(
                f"{failure.filename}, from which the AWS tools get credentials, is not there: correct its path"
            ) from None

    @contextmanager
    def _answering(self, verb: str, key: str) -> Iterator[None]:
        try:
            yield
        except EventideError:
            raise
        except (OSError, BotoCoreError, ClientError, TimeoutError) as failure:
            where = self.config.endpoint or "the default endpoint"
            shown = without_secrets(str(failure), self.config.secrets)
            message = f"cannot {verb} {key!r} in the bucket {self.bucket} at {where}: {shown}"
            if _code(failure) in _NO_BUCKET:
                raise StorageAccessError(
                    f"{message}; check the bucket in the table's URI, the endpoint and the region"
                ) from harmless(failure, self.config.secrets)
            raise storage_error(message, failure) from harmless(failure, self.config.secrets)


class S3Upload:
    """contract.Upload by a multipart upload."""

    def __init__(self, objects: S3Objects, key: str) -> None:
        self._objects, self._key, self._mark = objects, key, uuid.uuid4().hex
        with objects._answering("write", key):
            self._parts: MultipartUpload | None = self._begin()

    def send(self, part: bytes) -> None:
        assert self._parts is not None, "the upload has ended"
        with self._objects._answering("write", self._key):
            self._parts.send(part)

    def complete(self, content: BinaryIO, *, is_conditional: bool = True) -> bool:
        def send(_: dict[str, str]) -> None:
            parts, self._parts = self._parts, None
            is_repeat = parts is None
            with aborted_on_failure(parts or self._begin()) as upload:
                if is_repeat:
                    send_all(upload, content, PART_BYTES)
                upload.complete(is_conditional=is_conditional)

        return self._objects._create(self._key, send, self._mark)

    def abort(self) -> None:
        parts, self._parts = self._parts, None
        if parts is not None:
            parts.abort()

    def _begin(self) -> MultipartUpload:
        return MultipartUpload(self._objects._call, self._key, {_MARK: self._mark})


def _object(key: str, size: int, entry: dict[str, Any], mark: str | None = None) -> StoredObject:
    return StoredObject(key, size, int(entry["LastModified"].timestamp() * 1000), entry["ETag"], mark)


def _code(failure: BaseException) -> str | None:
    """The store's error code: s3fs keeps the response as the error's cause."""
    answer = failure.__cause__ if isinstance(failure.__cause__, ClientError) else failure
    return answer.response.get("Error", {}).get("Code") if isinstance(answer, ClientError) else None


@lru_cache(maxsize=32)
def _client(config: S3Config, process: int) -> s3fs.S3FileSystem:  # noqa: ARG001  # a fork must not use its parent's
    """One client per process, for all copies of a storage."""
    authorities = os.environ.get("AWS_CA_BUNDLE") or str(get_cert_path(True))
    is_untrusted = why_untrusted(config.endpoint or "", authorities) is not None
    settings: dict[str, Any] = {
        "endpoint_url": config.endpoint,
        "key": config.access_key,
        "secret": config.secret_key,
        "token": config.session_token,
        "client_kwargs": {"region_name": config.region} if config.region else {},
        "config_kwargs": {
            "connect_timeout": min(_CONNECT_TIMEOUT_SECONDS, config.timeout_seconds),
            "read_timeout": config.timeout_seconds,
            "retries": {"mode": "standard", "max_attempts": 1 if is_untrusted else _ATTEMPTS},
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
    try:
        client.connect()
    except (OSError, ValueError) as failure:
        raise StorageAccessError(
            f"cannot make a client of S3: {failure}; correct the endpoint, and the configuration of the AWS tools"
        ) from None
    return client
