"""One multipart upload to S3: parts are sent while later ones are made, several at a time.

Nobody sees the object until the upload is complete. If anything fails, the upload is aborted. If its process ends without
that, the store's own expiry removes the remains.
"""

from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, BinaryIO, Final, Protocol, cast

from botocore.exceptions import BotoCoreError

from eventide_core.access.threads import Future, Threads

PARTS_AT_ONCE: Final = 4


class S3Call(Protocol):
    """A request of an operation of S3 with these arguments."""

    def __call__(self, operation: str, **arguments: Any) -> dict[str, Any]: ...


class MultipartUpload:
    """The parts of one object, in order. Memory holds at most PARTS_AT_ONCE of them."""

    def __init__(self, call: S3Call, key: str, mark: Mapping[str, str]) -> None:
        self._call = call
        begun = call("create_multipart_upload", Key=key, Metadata=mark)
        self.place: dict[str, str] = {"Key": key, "UploadId": begun["UploadId"]}
        self._etags: list[str] = []
        self._waiting: deque[Future[str]] = deque()
        self._threads = Threads(PARTS_AT_ONCE)

    def send(self, part: bytes) -> None:
        """Begins to send the next part. Waits while as many as allowed are being sent, and raises what failed of them."""
        if len(self._waiting) == PARTS_AT_ONCE:
            self._etags.append(self._waiting.popleft().result())
        number = len(self._etags) + len(self._waiting) + 1
        self._waiting.append(self._threads.submit(self._send, number, part))

    def _send(self, number: int, part: bytes) -> str:
        return cast(str, self._call("upload_part", Body=part, PartNumber=number, **self.place)["ETag"])

    def add(self, etag: str) -> None:
        """Adds a part that has been sent otherwise."""
        self._etags.append(etag)

    def complete(self, *, is_conditional: bool) -> None:
        """Publishes the object."""
        while self._waiting:
            self._etags.append(self._waiting.popleft().result())
        parts = [{"PartNumber": number, "ETag": etag} for number, etag in enumerate(self._etags, start=1)]
        condition = {"IfNoneMatch": "*"} if is_conditional else {}
        self._call("complete_multipart_upload", MultipartUpload={"Parts": parts}, **self.place, **condition)
        self._threads.shutdown()

    def abort(self) -> None:
        """Removes the parts. No request outlasts this call."""
        self._threads.shutdown(cancel_futures=True)
        # It is already gone if only the response to its completion was lost.
        with suppress(OSError, BotoCoreError):
            self._call("abort_multipart_upload", **self.place)


@contextmanager
def aborted_on_failure(upload: MultipartUpload) -> Iterator[MultipartUpload]:
    try:
        yield upload
    except BaseException:
        upload.abort()
        raise


def send_all(upload: MultipartUpload, content: BinaryIO, part_bytes: int) -> None:
    """Sends the whole content in parts."""
    content.seek(0)
    for part in iter(lambda: content.read(part_bytes), b""):
        upload.send(part)
