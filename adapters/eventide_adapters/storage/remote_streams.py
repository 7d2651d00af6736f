"""Files of a remote storage that are being read or written: reads are ranges, writes are whole files or parts of them."""

import io
import itertools
import tempfile
from collections.abc import Callable
from typing import BinaryIO

from eventide_adapters.storage.objects.contract import PART_BYTES, Upload
from eventide_core.access.threads import Threads
from eventide_core.table.files.read_ahead import RangeStream, ReadRange

# A request costs a round trip, whatever its size, and most reads of a log file or a Parquet footer are smaller than
# this.
_READ_AHEAD_BYTES = 256 << 10

# Larger content waits on the local disk.
_MEMORY_BYTES = 32 << 20

# One connection to an object store delivers about 80 MB/s. S3 recommends ranges of 8 to 16 MB, several at a time.
_PIECE_BYTES = 8 << 20
_PIECES_AT_ONCE = 8


def in_pieces(read: ReadRange, offset: int, length: int, *, piece_bytes: int = _PIECE_BYTES) -> bytes:
    """The range. Reads a large one by several concurrent requests, all of which have ended when this returns or raises.

    Raises the error of the first piece that fails, and sends no further requests.
    """
    count = -(-length // piece_bytes)
    if count <= 1:
        return read(offset, length)
    borders = [offset + length * place // count for place in range(count + 1)]
    starts, sizes = borders[:-1], [end - start for start, end in itertools.pairwise(borders)]
    with Threads(min(count, _PIECES_AT_ONCE)) as threads:
        try:
            asked = [threads.submit(read, *piece) for piece in zip(starts, sizes, strict=True)]
            pieces = [piece.result() for piece in asked]
        except BaseException:
            threads.shutdown(cancel_futures=True)
            raise
    # Nothing follows the end of the file, or a piece that the end has shortened.
    whole = next((place for place in range(count) if len(pieces[place]) < sizes[place]), count)
    return b"".join(pieces[: whole + 1])


def open_ranges(size: int, read_range: ReadRange) -> BinaryIO:
    """A seekable stream over a file of that size."""
    return _Ranges(RangeStream(size, read_range))


class _Ranges(io.BufferedReader):
    """Small reads share a request through the buffer. A large read is a request for exactly its own bytes."""

    def __init__(self, ranges: "RangeStream") -> None:
        super().__init__(ranges, _READ_AHEAD_BYTES)
        self._ranges = ranges

    def read(self, size: int | None = -1, /) -> bytes:
        if size is None or size < _READ_AHEAD_BYTES:
            return super().read(size)
        # The inherited method reads twice: everything except the end, then a buffer full from there on.
        data = self._ranges.read_at(self.tell(), size)
        self.seek(len(data), io.SEEK_CUR)
        return data


class SpooledOutput:
    """ports.OutputFile. Collects the content until `publish` gets all of it with its size.

    So a failed upload can start again, and nobody sees a part of a file.
    """

    def __init__(self, publish: Callable[[BinaryIO, int], bool]) -> None:
        self._publish = publish
        self._file = tempfile.SpooledTemporaryFile(max_size=_MEMORY_BYTES)  # noqa: SIM115  # closed by commit or abort

    def write(self, data: bytes | memoryview, /) -> int:
        assert not self._file.closed, "the output is closed"
        return self._file.write(data)

    def commit(self) -> bool:
        assert not self._file.closed, "the output is closed"
        with self._file as file:
            size = file.tell()
            file.seek(0)
            return self._publish(file, size)  # type: ignore[arg-type]  # it reads and seeks as a BinaryIO does

    def abort(self) -> None:
        self._file.close()


class StreamedOutput:
    """ports.OutputFile. Sends a file of more than one part in parts while it is written.

    `begin` starts the upload; it returns None if the storage needs the whole file. `publish` gets the whole content, and the
    upload to complete, if there is one. The content also waits on the local disk, because a store may require that an upload
    is repeated. Memory holds one part, and those that are being sent.
    """

    def __init__(self, begin: Callable[[], Upload | None], publish: Callable[[BinaryIO, Upload | None], bool]) -> None:
        self._begin, self._publish = begin, publish
        self._file = tempfile.SpooledTemporaryFile(max_size=PART_BYTES)  # noqa: SIM115  # closed by commit or abort
        self._part = bytearray()
        self._upload: Upload | None = None
        self._is_whole = False

    def write(self, data: bytes | memoryview, /) -> int:
        assert not self._file.closed, "the output is closed"
        count = self._file.write(data)
        if not self._is_whole:
            self._part += data
            try:
                self._send_full_parts()
            except BaseException:
                self.abort()
                raise
        return count

    def _send_full_parts(self) -> None:
        """Keeps the last part, so that none is empty, and a small file needs no upload."""
        while len(self._part) > PART_BYTES:
            self._upload = self._upload or self._begin()
            if self._upload is None:
                self._is_whole = True
                self._part.clear()
                return
            part = bytes(memoryview(self._part)[:PART_BYTES])
            del self._part[:PART_BYTES]
            self._upload.send(part)

    def commit(self) -> bool:
        assert not self._file.closed, "the output is closed"
        try:
            if self._upload is not None:
                self._upload.send(bytes(self._part))
            self._file.seek(0)
            return self._publish(self._file, self._upload)  # type: ignore[arg-type]  # it reads and seeks as a BinaryIO does
        finally:
            self.abort()

    def abort(self) -> None:
        if self._upload is not None:
            self._upload.abort()
        self._part.clear()
        self._file.close()
