"""A stream that gives a few bytes at a time, as a pipe does."""

import io


class Trickle(io.BytesIO):
    """Gives at most `most` bytes a read."""

    def __init__(self, data: bytes, most: int) -> None:
        super().__init__(data)
        self._most = most

    def read(self, size: int | None = -1, /) -> bytes:
        return super().read(self._most if size is None or size < 0 else min(size, self._most))
