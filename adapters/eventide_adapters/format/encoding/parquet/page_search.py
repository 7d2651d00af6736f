"""Searches pages of texts for values before Arrow decodes them.

A plain text in a page is its length in four bytes and its UTF-8. A page without these bytes doesn't have the text, and the
search takes a fraction of the time that Arrow needs to decode the page. Bytes that are found may belong to two texts, so a
page with them may have the text. Pages of numbers of a dictionary may have it if the dictionary may. Any other encoding may.
"""

from collections.abc import Collection
from typing import Any, Final

import pyarrow as pa
from isal import isal_zlib

from eventide_adapters.format.encoding.parquet import field_ids as ids
from eventide_adapters.format.encoding.parquet.inflated_pages import inflated_page, page_header, stated
from eventide_adapters.format.encoding.parquet.thrift_compact import fields, integer

SEARCHED_VALUES_MAX: Final = 8  # each is a search of its own

_PLAIN, _PLAIN_DICTIONARY, _RLE_DICTIONARY = 0, 2, 8
_CODECS: Final[dict[int, Any]] = {0: None, 1: "snappy", 2: "gzip", 6: "zstd"}


class PageSearch:
    """A search in the pages of one column chunk. `dictionary` is the chunk's dictionary page; empty if it has none."""

    def __init__(self, values: Collection[bytes], codec: int, dictionary: bytes) -> None:
        """Raises KeyError for an unknown codec, and what `may_have` raises."""
        self._wanted = [len(value).to_bytes(4, "little") + value for value in values]
        self._codec = _CODECS[codec]
        self._is_in_dictionary = bool(dictionary) and self.may_have(dictionary)

    def may_have(self, page: bytes) -> bool:
        """Whether the page may have one of the values. Raises OSError or ValueError for a damaged page."""
        parsed = page_header(memoryview(page), "the page")
        if parsed is None:
            raise ValueError("a page that ends within its header")
        header, length = parsed
        kind = integer(page, header[ids.PAGE_KIND][0])[0]
        place = {ids.KIND_DATA: ids.PAGE_DATA, ids.KIND_DICTIONARY: ids.PAGE_DICTIONARY}.get(kind)
        if place is None:
            return True
        encoding = integer(page, fields(page, header[place][0])[0][ids.DATA_ENCODING][0])[0]
        if kind == ids.KIND_DATA and encoding in (_PLAIN_DICTIONARY, _RLE_DICTIONARY):
            return self._is_in_dictionary
        if encoding not in (_PLAIN, _PLAIN_DICTIONARY):
            return True
        values = self._body(memoryview(page), header, length)
        return any(one in values for one in self._wanted)

    def _body(self, page: memoryview, header: Any, length: int) -> bytes:
        place = "the page"
        size, inflated_size, checksum, levels, is_compressed = stated(page, header, place)
        body = page[length : length + size]
        if len(body) != size:
            raise ValueError("a page that ends early")
        if checksum is not None and isal_zlib.crc32(body) != checksum:
            raise ValueError("a page without its checksum")
        if self._codec in (None, "gzip"):
            return bytes(inflated_page(body, inflated_size, levels, is_compressed and self._codec is not None, place))
        codec: Any = pa.Codec(self._codec)
        inflated: bytes = codec.decompress(body, inflated_size, asbytes=True)
        return inflated
