"""Java's hash codes of whole columns of texts, and the buckets and file groups that Hudi's indexes derive from them."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from eventide_adapters.format.columns.arrow_numpy import to_flags
from eventide_core.table.files.bucket import INT_MAX, java_hash

Hashes = npt.NDArray[np.uint32]

_SPREAD: Final = np.uint64(0x9E3779B97F4A7C15)  # Knuth's multiplier: adjacent hashes get distant numbers


def java_hashes(texts: "pa.Array[Any]") -> Hashes:
    """`String.hashCode` of each text, as an unsigned number. The column has no nulls."""
    _, bounds, content = (memoryview(b"" if buffer is None else buffer) for buffer in texts.buffers())
    data = np.frombuffer(content, np.uint8)
    offsets = np.frombuffer(bounds, np.int32, len(texts) + 1, 4 * texts.offset) if len(texts) else np.zeros(1, np.int32)
    lengths = np.diff(offsets)
    hashes, longer, place = np.zeros(len(texts), np.uint32), np.flatnonzero(lengths), 0
    while len(longer):
        hashes[longer] = hashes[longer] * np.uint32(31) + data[offsets[longer] + place]
        place += 1
        longer = longer[lengths[longer] > place]
    # Java hashes UTF-16, but Arrow stores UTF-8 bytes.
    for row in np.flatnonzero(~to_flags(pc.string_is_ascii(texts))).tolist():
        hashes[row] = java_hash(texts[row].as_py())
    return hashes


def buckets_of(columns: "Sequence[pa.Array[Any]]", buckets: int) -> npt.NDArray[np.int64]:
    """The bucket of each row, as `eventide_core.table.files.bucket` computes it; one column for each hashed field."""
    hashes = np.ones(len(columns[0]), np.uint32)
    for column in columns:
        hashes = np.uint32(31) * hashes + java_hashes(column)
    return (hashes & np.uint32(INT_MAX)).astype(np.int64) % buckets


def file_group_numbers(keys: "pa.Array[Any]", file_groups: int) -> npt.NDArray[np.int64]:
    """The file group of the metadata table that has the record of each key, in a partition with that many file groups."""
    return np.abs(java_hashes(keys).view(np.int32).astype(np.int64)) % file_groups


def shares_of(keys: "pa.Array[Any]") -> npt.NDArray[np.uint64]:
    """A number for each key, independent of its bucket, that distributes records among file groups."""
    return (java_hashes(keys).astype(np.uint64) * _SPREAD) >> np.uint64(33)
