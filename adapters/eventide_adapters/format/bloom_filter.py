"""The bloom filter of record keys that Hudi keeps in a base file's footer, bit for bit as Hudi builds it.

    SIMPLE      := head  bits
    DYNAMIC_V0  := head  i32 nr  i32 current  i32 rows  rows x (head  bits)
    head        := i32 -1  i32 hash count  i8 1 (murmur)  i32 bit count          bits: the least significant bit first

All numbers are big-endian, and the whole is written as base64. A dynamic filter begins a new row after `nr` keys; once
it has room for `max_entries` keys the rest go round-robin over the rows that there are. The hash is Hadoop's Murmur2
over the key's UTF-8 bytes, seeded with 0 and then each time with the hash before.

An index that finds no such filter in a base file fails (BLOOM), so that every base file carries one.
"""

from __future__ import annotations

import base64
import binascii
import math
import struct
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from eventide_core.errors import CorruptBaseFileError

FOOTER_KEY = "org.apache.hudi.bloomfilter"
TYPE_FOOTER_KEY = "hoodie_bloom_filter_type_code"
SIMPLE = "SIMPLE"
DYNAMIC = "DYNAMIC_V0"

_HEAD = struct.Struct(">iibi")
_DYNAMIC_HEAD = struct.Struct(">iii")
_VERSION = -1
_MURMUR = 1
_HASHES_AT_ONCE = 1 << 16  # keys hashed in one go: some megabytes of scratch memory

Words = npt.NDArray[np.uint32]


@dataclass(frozen=True, slots=True)
class BloomParameters:
    """How a filter is laid out. `row_entries` is the count of keys a row takes, meaningless for a SIMPLE filter."""

    type_code: str
    hash_count: int
    bit_count: int
    row_entries: int
    max_entries: int = 100_000  # hoodie.bloom.index.filter.dynamic.max.entries; no filter says its own

    @classmethod
    def for_entries(cls, entries: int, false_positive_rate: float, type_code: str = DYNAMIC) -> BloomParameters:
        """The layout that Hudi chooses for that many keys and that rate of false positives."""
        bit_count = math.ceil(entries * (-math.log(false_positive_rate) / (math.log(2) * math.log(2))))
        hash_count = math.ceil(math.log(2) * bit_count / entries)
        return cls(type_code, hash_count, bit_count, entries)

    @classmethod
    def parse(cls, type_code: str, text: str | bytes, path: str) -> BloomParameters:
        """The layout of an existing filter. Raises CorruptBaseFileError naming `path`."""
        try:
            data = base64.b64decode(text, validate=True)
            version, hash_count, hash_type, bit_count = _HEAD.unpack_from(data)
            entries = _DYNAMIC_HEAD.unpack_from(data, _HEAD.size)[0] if type_code == DYNAMIC else 0
        except (binascii.Error, struct.error):
            raise CorruptBaseFileError(f"base file {path}: its footer's {FOOTER_KEY} is no bloom filter") from None
        known = version == _VERSION and hash_type == _MURMUR and type_code in (SIMPLE, DYNAMIC)
        if not known or hash_count <= 0 or bit_count <= 0 or (type_code == DYNAMIC and entries <= 0):
            raise CorruptBaseFileError(
                f"base file {path}: its footer's {FOOTER_KEY} is a {type_code} filter of an unknown layout (version "
                f"{version}, hash type {hash_type}, {hash_count} hashes, {bit_count} bits)"
            )
        return cls(type_code, hash_count, bit_count, entries)


# hoodie.index.bloom.num_entries and hoodie.index.bloom.fpp
DEFAULT_PARAMETERS = BloomParameters.for_entries(60_000, 1e-9)


class BloomFilter:
    """A filter as it stands in a footer. Says of a key that it is not there, or that it may be."""

    def __init__(self, type_code: str, text: str, path: str) -> None:
        """Raises CorruptBaseFileError naming `path`."""
        self._parameters = BloomParameters.parse(type_code, text, path)
        data = base64.b64decode(text)
        row_bytes = -(-self._parameters.bit_count // 8)
        position, count = 0, 1
        if type_code == DYNAMIC:
            position = _HEAD.size + _DYNAMIC_HEAD.size
            count = _DYNAMIC_HEAD.unpack_from(data, _HEAD.size)[2]
        if count < 1 or len(data) < position + count * (_HEAD.size + row_bytes):
            raise CorruptBaseFileError(f"base file {path}: its footer's {FOOTER_KEY} ends before its last row")
        self._rows: list[npt.NDArray[np.uint8]] = []
        for _ in range(count):
            position += _HEAD.size
            packed = np.frombuffer(data, np.uint8, row_bytes, position)
            self._rows.append(np.unpackbits(packed, bitorder="little"))
            position += row_bytes

    def may_contain(self, keys: pa.Array[Any]) -> npt.NDArray[np.bool_]:
        """Of each key (strings, none null or empty) whether it may be there."""
        found = np.zeros(len(keys), np.bool_)
        any_keys: Any = keys
        lengths = pc.binary_length(any_keys).to_numpy(zero_copy_only=False)
        for length in np.unique(lengths):
            group = np.nonzero(lengths == length)[0]
            words, tail = _words(keys.take(group), int(length))
            hits = np.ones((len(self._rows), len(group)), np.bool_)
            hashed = np.zeros(len(group), np.uint32)
            for _ in range(self._parameters.hash_count):
                hashed = _murmur(words, tail, int(length), hashed)
                bits = np.abs(hashed.view(np.int32).astype(np.int64)) % self._parameters.bit_count
                for row, filled in enumerate(self._rows):
                    hits[row] &= filled[bits].astype(np.bool_)
            found[group] = hits.any(axis=0)
        return found


class BloomFilterBuilder:
    """Collects record keys, and gives the filter's text at the end."""

    def __init__(self, parameters: BloomParameters) -> None:
        self._parameters = parameters
        self._rows = [self._empty_row()]
        self._added = 0

    def add(self, keys: pa.Array[Any] | pa.ChunkedArray[Any]) -> None:
        """Adds keys (strings, none null or empty) in the order of the file's records."""
        chunks = keys.chunks if isinstance(keys, pa.ChunkedArray) else [keys]
        for chunk in chunks:
            for offset in range(0, len(chunk), _HASHES_AT_ONCE):
                self._add_chunk(chunk.slice(offset, _HASHES_AT_ONCE))

    def text(self) -> str:
        """The filter as it stands in a footer."""
        shape = self._parameters
        head = _HEAD.pack(_VERSION, shape.hash_count, _MURMUR, shape.bit_count)
        rows = [head + np.packbits(row, bitorder="little").tobytes() for row in self._rows]
        if shape.type_code == DYNAMIC:
            # Rows before the last are full, and the count goes on growing once there is no new row to begin.
            current = self._added - (len(self._rows) - 1) * shape.row_entries
            rows.insert(0, head + _DYNAMIC_HEAD.pack(shape.row_entries, current, len(self._rows)))
        return base64.b64encode(b"".join(rows)).decode()

    def _add_chunk(self, keys: pa.Array[Any]) -> None:
        if len(keys) == 0:
            return
        rows = self._rows_of(np.arange(self._added, self._added + len(keys)))
        while len(self._rows) <= rows.max():
            self._rows.append(self._empty_row())
        any_keys: Any = keys  # the stubs know no array that may be of any type
        lengths = pc.binary_length(any_keys).to_numpy(zero_copy_only=False)
        for length in np.unique(lengths):
            group = np.nonzero(lengths == length)[0]
            words, tail = _words(keys.take(group), int(length))
            hashed = np.zeros(len(group), np.uint32)
            group_rows = rows[group]
            for _ in range(self._parameters.hash_count):
                hashed = _murmur(words, tail, int(length), hashed)
                bits = np.abs(hashed.view(np.int32).astype(np.int64)) % self._parameters.bit_count
                for row in np.unique(group_rows):
                    self._rows[row][bits[group_rows == row]] = True
        self._added += len(keys)

    def _rows_of(self, numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The row that the key of each number (counted from 0) goes to."""
        shape = self._parameters
        if shape.type_code == SIMPLE:
            return np.zeros_like(numbers)
        full_rows = max(1, -(-shape.max_entries // shape.row_entries))
        beyond = numbers - full_rows * shape.row_entries
        # The first key beyond goes to row 0, and the round begins with the one after it.
        return np.where(beyond < 0, numbers // shape.row_entries, np.maximum(beyond - 1, 0) % full_rows)

    def _empty_row(self) -> npt.NDArray[np.bool_]:
        return np.zeros(self._parameters.bit_count, np.bool_)


def _words(keys: pa.Array[Any], length: int) -> tuple[list[Words], Words]:
    """Keys of one length as columns of little-endian words, and what the bytes after the last whole word make."""
    data: Any = keys.buffers()[2]
    assert keys.offset == 0
    matrix = np.frombuffer(data, np.uint8, count=len(keys) * length).reshape(-1, length)
    whole = length // 4
    columns = [np.ascontiguousarray(matrix[:, 4 * i : 4 * i + 4]).view("<u4").reshape(-1) for i in range(whole)]
    tail = np.zeros(len(keys), np.uint32)
    for i in range(1, length % 4 + 1):
        # Java's bytes have a sign, which spreads over the bits above.
        tail ^= matrix[:, length - i].view(np.int8).astype(np.int32).view(np.uint32) << np.uint32(8 * (i - 1))
    return columns, tail


def _murmur(words: list[Words], tail: Words, length: int, seed: Words) -> Words:
    factor = np.uint32(0x5BD1E995)
    hashed = seed ^ np.uint32(length)
    for word in words:
        mixed = word * factor
        mixed ^= mixed >> np.uint32(24)
        mixed *= factor
        hashed *= factor
        hashed ^= mixed
    if length % 4:
        hashed ^= tail
        hashed *= factor
    hashed ^= hashed >> np.uint32(13)
    hashed *= factor
    hashed ^= hashed >> np.uint32(15)
    return hashed
