"""The text of a source as UTF-8: decompressed by its first bytes, whatever its name, and decoded."""

import codecs
import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import pyarrow as pa

from eventide.sources.source import Source
from eventide_core.errors import ConfigError, EventideError

_COMPRESSIONS: Final[dict[bytes, Any]] = {b"\x1f\x8b": "gzip", b"\x28\xb5": "zstd"}
_BYTE_ORDER_MARKS: Final = (  # the longer ones first: the mark of UTF-32 begins as UTF-16's
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_WIDE: Final = {(False, True): "utf-16-le", (True, False): "utf-16-be"}
"""Whether the first two bytes of a text are zero, where it has no mark and begins with a character of ASCII."""
_CALL_IT: Final = "name the encoding that it was written in, such as --encoding latin-1 or utf-16"


def decompressed(stream: Any, name: str) -> Any:
    """The stream's content. Its start is read; raises ConfigError for a compressed stream that cannot be read."""
    head = stream.read(2)
    stream.seek(0)
    compression = _COMPRESSIONS.get(head)
    if compression is None:
        return stream
    with readable(name):
        return pa.input_stream(stream, compression=compression)


@contextmanager
def readable(name: str) -> Iterator[None]:
    """Raises ConfigError, which names the source, for what Arrow raises where it cannot read."""
    try:
        yield
    except EventideError:
        raise
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"source {name!r}: its bytes {error.object[error.start : error.end]!r} aren't {error.encoding}: {_CALL_IT}"
        ) from None
    except UnicodeError as error:  # utf-16 without a mark
        raise ConfigError(f"source {name!r}: {error}: {_CALL_IT}-le") from None
    except (pa.ArrowException, OSError, EOFError) as error:
        text = " ".join(str(error).split())
        is_torn = "compressed stream" in text or "inflate failed" in text or "ZSTD" in text
        hint = ": it is damaged or was not copied completely; copy it again" if is_torn else ""
        raise ConfigError(f"source {name!r} cannot be read: {text}{hint}") from None


def known_encoding(encoding: str) -> str:
    """The encoding. Raises ConfigError for one that Python does not have, or that does not decode a stream to text."""
    try:
        io.TextIOWrapper(io.BytesIO(), encoding=encoding)
        codecs.getincrementaldecoder(encoding)().decode(pa.py_buffer(b"a"))
    except (LookupError, UnicodeError, AttributeError):  # the last one by punycode, which takes no buffer
        raise ConfigError(f"--encoding {encoding!r} is unknown: use such as utf-8, latin-1, cp1252 or utf-16") from None
    return encoding


@contextmanager
def text_of(source: Source, encoding: str | None) -> Iterator[Any]:
    """A stream over the source's text in UTF-8, from its first line that is not empty, and with a newline at its end."""
    with source.open() as raw:
        content = decompressed(raw, source.name)
        with readable(source.name):
            if encoding is not None:
                file = content if isinstance(content, pa.NativeFile) else pa.PythonFile(content, mode="r")
                content = pa.transcoding_input_stream(file, encoding, "utf8")
            yield _Text(content, source.name)


class _Text(io.RawIOBase):
    """A binary stream. It raises an error for a text of another encoding."""

    def __init__(self, content: Any, name: str) -> None:
        self._content = content
        self._name = name
        self._last = b""

    def read(self, size: int = -1) -> bytes:
        data: bytes = self._next(size)
        if not self._last and data:
            self._refuse_wide(data)
            data = data.removeprefix(codecs.BOM_UTF8).lstrip(b"\r\n")
            while b"\n" not in data and (more := self._next(size)):  # Arrow finds the names in the first block
                data = (data + more).lstrip(b"\r\n")
            if data and b"\n" not in data:
                data += b"\n"
        if not data and self._last not in (b"", b"\n"):
            data = b"\n"
        if data:
            self._last = data[-1:]
        return data

    def _next(self, size: int) -> bytes:
        data: bytes = self._content.read() if size < 0 else self._content.read(size)
        return data

    def _refuse_wide(self, start: bytes) -> None:
        wide = next((name for mark, name in _BYTE_ORDER_MARKS if start.startswith(mark)), None)
        if wide is None and len(start) > 1:
            wide = _WIDE.get((start[0] == 0, start[1] == 0))
        if wide is not None:
            raise ConfigError(f"source {self._name!r} is in {wide[:6].upper()}: add --encoding {wide}")

    def readable(self) -> bool:
        return True
