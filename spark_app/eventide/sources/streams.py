"""The text of a source as UTF-8: decompressed by what its first bytes say, whatever its name, and decoded."""

import codecs
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import pyarrow as pa

from eventide.sources.source import Source
from eventide_core.errors import ConfigError, EventideError

_COMPRESSIONS: Final[dict[bytes, Any]] = {b"\x1f\x8b": "gzip", b"\x28\xb5": "zstd"}
_UTF_16: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


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
            f"source {name!r}: its bytes {error.object[error.start : error.end]!r} are no {error.encoding}: name the "
            "encoding that it was written in, such as --encoding latin-1 or utf-16"
        ) from None
    except (pa.ArrowException, OSError, EOFError) as error:
        text = " ".join(str(error).split())
        is_torn = "compressed stream" in text or "inflate failed" in text or "ZSTD" in text
        hint = ": it is damaged or was not copied completely; copy it again" if is_torn else ""
        raise ConfigError(f"source {name!r} cannot be read: {text}{hint}") from None


def known_encoding(encoding: str) -> str:
    """The encoding. Raises ConfigError for one that Python does not have."""
    try:
        codecs.lookup(encoding)
    except LookupError:
        raise ConfigError(f"--encoding {encoding!r} is unknown: use such as utf-8, latin-1, cp1252 or utf-16") from None
    return encoding


@contextmanager
def text_of(source: Source, encoding: str | None) -> Iterator[Any]:
    """A stream over the source's text in UTF-8, without a byte order mark."""
    with source.open() as raw:
        content = decompressed(raw, source.name)
        with readable(source.name):
            if encoding is not None:
                content = pa.transcoding_input_stream(_python_file(content), encoding, "utf8")
            yield _Text(content, source.name)


def _python_file(content: Any) -> Any:
    return content if isinstance(content, pa.NativeFile) else pa.PythonFile(content, mode="r")


class _Text:
    """A binary stream that Arrow can read. It also counts the quotes, and says if the text is UTF-16."""

    def __init__(self, content: Any, name: str) -> None:
        self._content = content
        self._name = name
        self._is_at_start = True
        self.quote = b""
        self.quotes = 0
        self.closed = False

    def read(self, size: int = -1) -> bytes:
        data: bytes = self._content.read() if size < 0 else self._content.read(size)
        if self._is_at_start and data:
            self._is_at_start = False
            if data[:2] in _UTF_16:
                raise ConfigError(f"source {self._name!r} is in UTF-16: add --encoding utf-16")
            data = data.removeprefix(codecs.BOM_UTF8) or self._content.read(size)
        if self.quote:
            self.quotes += data.count(self.quote)
        return data

    def close(self) -> None:
        self.closed = True

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False
