"""What a base file's footer states of its record keys: the least and the greatest one, and their bloom filter."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide_adapters.format.encoding.columns.arrow_numpy import ArrowArray
from eventide_adapters.format.encoding.parquet.bloom_filter import FOOTER_KEY, SIMPLE, TYPE_FOOTER_KEY, BloomFilter
from eventide_core.errors import CorruptBaseFileError

MIN_KEY_FOOTER: Final = "hoodie_min_record_key"
MAX_KEY_FOOTER: Final = "hoodie_max_record_key"


def least_and_greatest(keys: ArrowArray) -> tuple[str, str]:
    """The lowest and the highest key in Java's order of strings."""
    data: Any = keys.buffers()[2]
    # The order of bytes is Java's order of strings, except for characters beyond 16 bits. Their UTF-8 begins with 0xF0
    # or more.
    if data is not None and bool((np.frombuffer(data, np.uint8) >= 0xF0).any()):
        texts: list[Any] = keys.to_pylist()
        return min(texts, key=java_order), max(texts, key=java_order)
    ends: Any = pc.min_max(keys).as_py()
    return ends["min"], ends["max"]


def java_order(text: str) -> bytes:
    """The sort key of Java's string comparison: UTF-16 code units."""
    return text.encode("utf-16-be", "surrogatepass")


def bloom_filter_in(pairs: Mapping[bytes, bytes], path: str) -> BloomFilter | None:
    """The bloom filter in a footer of these pairs; None if there is none. Raises CorruptBaseFileError naming `path`."""
    text = pairs.get(FOOTER_KEY.encode())
    type_code = pairs.get(TYPE_FOOTER_KEY.encode(), SIMPLE.encode())
    return None if text is None else BloomFilter(type_code.decode(errors="replace"), text, path)


def range_in(pairs: Mapping[bytes, bytes], path: str) -> tuple[bytes, bytes] | None:
    """The least and the greatest key that a footer of these pairs states, in Java's order; None if it states none.

    Raises CorruptBaseFileError naming `path`.
    """
    ends = [pairs.get(key.encode()) for key in (MIN_KEY_FOOTER, MAX_KEY_FOOTER)]
    try:
        least, greatest = (end if end is None else java_order(end.decode()) for end in ends)
    except UnicodeDecodeError as error:
        raise CorruptBaseFileError(
            f"base file {path} cannot be read: the range of keys in its footer isn't text ({error}); restore it, or roll "
            "back the commit that wrote it"
        ) from error
    return None if least is None or greatest is None else (least, greatest)


def may_have_one(pairs: Mapping[bytes, bytes], keys: Sequence[str], path: str) -> bool:
    """Whether one of the keys may be in a file with this footer, by its range of keys and its filter, if it has them."""
    stated = range_in(pairs, path)
    if stated is not None:
        low, high = stated
        keys = [key for key in keys if low <= java_order(key) <= high]
    bloom = bloom_filter_in(pairs, path) if keys and "" not in keys else None
    return bool(keys) if bloom is None else bool(bloom.may_contain(pa.array(keys, pa.string())).any())
