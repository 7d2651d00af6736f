"""The checksum of a file: the CRC-32 of the whole content, in eight hexadecimal digits.

It finds every error of up to three bits, and every burst of up to 32 bits.
"""

import zlib
from typing import BinaryIO, Final

_PIECE_BYTES: Final = 4 * 1024 * 1024


class RunningChecksum:
    """The checksum of a content that passes in pieces."""

    def __init__(self) -> None:
        self._value = 0

    def add(self, piece: bytes | memoryview) -> None:
        self._value = zlib.crc32(piece, self._value)

    def __str__(self) -> str:
        return f"{self._value:08x}"


def checksum_of_stream(stream: BinaryIO, size: int) -> str | None:
    """The checksum of the first `size` bytes; None if there are fewer."""
    checksum = RunningChecksum()
    while size > 0:
        piece = stream.read(min(size, _PIECE_BYTES))
        if not piece:
            return None
        checksum.add(piece)
        size -= len(piece)
    return str(checksum)
