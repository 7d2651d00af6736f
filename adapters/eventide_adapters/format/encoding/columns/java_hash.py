"""Java's hash codes of whole columns of texts, and the buckets and file groups that Hudi's indexes derive from them."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from eventide_adapters.format.encoding.columns.arrow_numpy import ArrowArray, to_flags
from eventide_core.table.files.bucket import INT_MAX

Hashes = npt.NDArray[np.uint32]

_MODULUS: Final = 1 << 32
_POWERS: Final = np.array([pow(31, exponent, _MODULUS) for exponent in reversed(range(4096))], np.uint32)
_SPREAD: Final = np.uint64(0x9E3779B97F4A7C15)  # Knuth's multiplier: adjacent hashes get distant numbers


def java_hashes(texts: ArrowArray) -> Hashes:
    """`String.hashCode` of each text, as an unsigned number. The column has no nulls."""
    _, bounds, content = (memoryview(b"" if buffer is None else buffer) for buffer in texts.buffers())
    offsets = np.frombuffer(bounds, np.int32, len(texts) + 1, 4 * texts.offset) if len(texts) else np.zeros(1, np.int32)
    hashes = _hashes(np.frombuffer(content, np.uint8), offsets)
    others = np.flatnonzero(~to_flags(pc.string_is_ascii(texts)))
    if len(others):  # Java hashes UTF-16, but Arrow stores UTF-8 bytes.
        spelled: list[Any] = texts.take(others).to_pylist()
        encoded = [text.encode("utf-16-le") for text in spelled]
        ends = np.cumsum([0, *(len(units) // 2 for units in encoded)])
        hashes[others] = _hashes(np.frombuffer(b"".join(encoded), "<u2"), ends)
    return hashes


def _hashes(units: Any, offsets: Any) -> Hashes:
    """The hash of each text, whose units are between two offsets.

    1. Each step takes one unit of every text that has so many, as long as more texts have than steps were taken.
    2. The few that are longer are hashed one by one, so that the steps stay linear in the number of units.
    """
    lengths = np.diff(offsets)
    hashes, longer, place = np.zeros(len(lengths), np.uint32), np.flatnonzero(lengths), 0
    while len(longer) > place:
        hashes[longer] = hashes[longer] * np.uint32(31) + units[offsets[longer] + place]
        place += 1
        longer = longer[lengths[longer] > place]
    for row in longer.tolist():
        hashes[row] = _hash(units[offsets[row] : offsets[row + 1]])
    return hashes


def _hash(units: Any) -> int:
    """The hash of one text's units, by blocks. The sum of a block overflows as Java's does."""
    code = 0
    for begin in range(0, len(units), len(_POWERS)):
        block = units[begin : begin + len(_POWERS)]
        summed = np.dot(block.astype(np.uint32), _POWERS[len(_POWERS) - len(block) :])
        code = (code * pow(31, len(block), _MODULUS) + int(summed)) % _MODULUS
    return code


def buckets_of(columns: Sequence[ArrowArray], buckets: int) -> npt.NDArray[np.int64]:
    """The bucket of each row, as `eventide_core.table.files.bucket` computes it; one column for each hashed field."""
    hashes = np.ones(len(columns[0]), np.uint32)
    for column in columns:
        hashes = np.uint32(31) * hashes + java_hashes(column)
    return (hashes & np.uint32(INT_MAX)).astype(np.int64) % buckets


def file_group_numbers(keys: ArrowArray, file_groups: int) -> npt.NDArray[np.int64]:
    """The file group of the metadata table that has the record of each key, in a partition with that many file groups."""
    return np.abs(java_hashes(keys).view(np.int32).astype(np.int64)) % file_groups


def shares_of(keys: ArrowArray) -> npt.NDArray[np.uint64]:
    """A number for each key, independent of its bucket, that distributes records among file groups."""
    return (java_hashes(keys).astype(np.uint64) * _SPREAD) >> np.uint64(33)
