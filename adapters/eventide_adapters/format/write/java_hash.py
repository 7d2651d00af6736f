"""Java's hash codes of whole columns of texts, and the buckets that Hudi's index derives from them."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eventide_core.table.files.bucket import INT_MAX, java_hash

Hashes = npt.NDArray[np.uint32]

_SPREAD: Final = np.uint64(0x9E3779B97F4A7C15)  # Knuth's multiplier: adjacent hashes get distant numbers


def java_hashes(texts: "pa.Array[Any]") -> Hashes:
    """`String.hashCode` of each text, as an unsigned number. The column has no nulls."""
    count = len(texts)
    if count == 0:
        return np.zeros(0, np.uint32)
    buffers: list[Any] = texts.buffers()
    offsets = np.frombuffer(buffers[1], np.int32)[texts.offset : texts.offset + count + 1].astype(np.int64)
    data = np.frombuffer(buffers[2] or b"", np.uint8)[offsets[0] : offsets[-1]]
    if bool((data >= 0x80).any()):
        # Java hashes UTF-16, but Arrow stores UTF-8 bytes.
        decoded: list[Any] = texts.to_pylist()
        return np.array([java_hash(text) for text in decoded], np.uint32)
    lengths = np.diff(offsets)
    powers = np.cumprod(np.concatenate([[1], np.full(max(int(lengths.max()) - 1, 0), 31)]).astype(np.uint32))
    ends = np.repeat(offsets[1:] - offsets[0], lengths)
    terms = data.astype(np.uint32) * powers[ends - 1 - np.arange(len(data))]
    hashes = np.zeros(count, np.uint32)
    filled = lengths > 0
    if len(data):
        hashes[filled] = np.add.reduceat(terms, (offsets[:-1] - offsets[0])[filled], dtype=np.uint32)
    return hashes


def buckets_of(columns: "Sequence[pa.Array[Any]]", buckets: int) -> npt.NDArray[np.int64]:
    """The bucket of each row, as `eventide_core.table.files.bucket` computes it; one column for each hashed field."""
    hashes = np.ones(len(columns[0]), np.uint32)
    for column in columns:
        hashes = np.uint32(31) * hashes + java_hashes(column)
    return (hashes & np.uint32(INT_MAX)).astype(np.int64) % buckets


def index_groups_of(keys: "pa.Array[Any]", file_groups: int) -> npt.NDArray[np.int64]:
    """The file group of the metadata table that has the record of each key, in a partition with that many file groups."""
    return np.abs(java_hashes(keys).view(np.int32).astype(np.int64)) % file_groups


def shares_of(keys: "pa.Array[Any]") -> npt.NDArray[np.uint64]:
    """A number for each key, independent of its bucket, that distributes records among file groups."""
    return (java_hashes(keys).astype(np.uint64) * _SPREAD) >> np.uint64(33)
