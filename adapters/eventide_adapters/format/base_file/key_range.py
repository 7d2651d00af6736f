"""The least and the greatest record key of a base file, which its footer states."""

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

MIN_KEY_FOOTER: Final = "hoodie_min_record_key"
MAX_KEY_FOOTER: Final = "hoodie_max_record_key"


def least_and_greatest(keys: "pa.Array[Any]") -> tuple[str, str]:
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
