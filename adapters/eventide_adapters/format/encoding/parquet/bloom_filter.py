"""The bloom filter of record keys in a base file's footer, byte for byte as Hudi builds it.

    SIMPLE      := head  bits
    DYNAMIC_V0  := head  i32 nr  i32 current  i32 rows  rows x (head  bits)
    head        := i32 -1  i32 hash count  i8 1 (murmur)  i32 bit count          bits: the least significant bit first

All numbers are big-endian, and the whole filter is encoded as base64. A dynamic filter begins a new row after `nr`
keys. When its rows have room for `max_entries` keys, further keys are distributed round-robin over the existing rows.
The hash is Hadoop's Murmur2 of the key's UTF-8 bytes. The first seed is 0; each later seed is the previous hash.

Hudi's BLOOM index fails if it finds no filter in a base file, so every base file has one.
"""

import base64
import binascii
import math
import string
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eventide_adapters.format.encoding.columns.arrow_numpy import ArrowArray, ArrowChunks, Numbers
from eventide_core.errors import CorruptBaseFileError

FOOTER_KEY = "org.apache.hudi.bloomfilter"
TYPE_FOOTER_KEY = "hoodie_bloom_filter_type_code"
SIMPLE = "SIMPLE"
DYNAMIC = "DYNAMIC_V0"

_HEAD = struct.Struct(">iibi")
_DYNAMIC_HEAD = struct.Struct(">iii")
# Base64 encodes three bytes as four letters. This is the number of letters that encode both heads.
_HEAD_LETTERS = 4 * -(-(_HEAD.size + _DYNAMIC_HEAD.size) // 3)
_LETTERS = (string.ascii_letters + string.digits + "+/").encode()
_VERSION = -1
_MURMUR = 1
Words = npt.NDArray[np.uint32]
_FACTOR: Final = np.uint32(0x5BD1E995)
_KEYS_AT_ONCE: Final = 1 << 14
_FEW_KEYS: Final = 16
"""For fewer keys, a step of plain Python for each word of each key costs less than one of NumPy for each word."""


@dataclass(frozen=True, slots=True)
class BloomParameters:
    """The layout of a filter.

    `type_code` is Hudi's name of the kind, SIMPLE or DYNAMIC, which the footer states beside the filter. Each key sets up to
    `hash_count` of the `bit_count` bits of a row. `row_entries` is the number of keys in a row, and `max_entries` the number
    up to which a dynamic filter begins new rows; neither has a meaning for a SIMPLE filter. A stored filter doesn't state
    `max_entries`, which is Hudi's default then.
    """

    type_code: str
    hash_count: int
    bit_count: int
    row_entries: int
    max_entries: int = 100_000  # hoodie.bloom.index.filter.dynamic.max.entries; filters don't state it

    @classmethod
    def for_entries(cls, entries: int, false_positive_rate: float, type_code: str = DYNAMIC) -> "BloomParameters":
        """The layout that Hudi chooses for this number of keys and this rate of false positives."""
        bit_count = math.ceil(entries * (-math.log(false_positive_rate) / (math.log(2) * math.log(2))))
        hash_count = math.ceil(math.log(2) * bit_count / entries)
        return cls(type_code, hash_count, bit_count, entries)

    @classmethod
    def parse(cls, type_code: str, data: bytes, path: str) -> "BloomParameters":
        """The layout in the head of a filter. Raises CorruptBaseFileError, which names `path`."""
        try:
            version, hash_count, hash_type, bit_count = _HEAD.unpack_from(data)
            entries = _DYNAMIC_HEAD.unpack_from(data, _HEAD.size)[0] if type_code == DYNAMIC else 0
        except struct.error:
            raise _no_filter(path) from None
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
    """A filter in a footer. States for a key that it is absent, or that it may be present."""

    def __init__(self, type_code: str, text: str | bytes, path: str) -> None:
        """Raises CorruptBaseFileError naming `path`.

        The text has half a megabyte, whatever the file contains. Only the filter's head is decoded until a key is
        looked up.
        """
        self.text = text.encode() if isinstance(text, str) else text
        size = _decoded_size(self.text, path)
        head = _decoded(self.text[:_HEAD_LETTERS], path)
        self.parameters = BloomParameters.parse(type_code, head, path)
        self._path, self._row_bytes = path, -(-self.parameters.bit_count // 8)
        self._begin, current, self._row_count = 0, 0, 1
        if type_code == DYNAMIC:
            self._begin = _HEAD.size + _DYNAMIC_HEAD.size
            _, current, self._row_count = _DYNAMIC_HEAD.unpack_from(head, _HEAD.size)
        if self._row_count < 1 or size < self._begin + self._row_count * (_HEAD.size + self._row_bytes):
            raise CorruptBaseFileError(f"base file {path}: its footer's {FOOTER_KEY} ends before its last row")
        self.key_count = None if type_code == SIMPLE else current + (self._row_count - 1) * self.parameters.row_entries
        """The number of keys that were added to the filter; None for a SIMPLE filter, which doesn't state it."""

    @cached_property
    def rows(self) -> list[npt.NDArray[np.bool_]]:
        """The bits of each row. Decoded on demand, because most compactions add no key and don't need them."""
        data, bit_count = _decoded(self.text, self._path), self.parameters.bit_count
        starts = (self._begin + _HEAD.size + row * (_HEAD.size + self._row_bytes) for row in range(self._row_count))
        packed = [np.frombuffer(data, np.uint8, self._row_bytes, start) for start in starts]
        return [np.unpackbits(row, count=bit_count, bitorder="little").view(np.bool_) for row in packed]

    def may_contain(self, keys: ArrowArray) -> npt.NDArray[np.bool_]:
        """Whether each key may be present. Keys are strings, none null or empty."""
        hits = np.ones((len(self.rows), len(keys)), np.bool_)
        for places, bits in _bits_of(keys, self.parameters):
            for row, filled in enumerate(self.rows):
                hits[row, places] &= filled[bits]
        return np.asarray(hits.any(axis=0), np.bool_)


class BloomFilterBuilder:
    """Collects record keys and builds the filter's text."""

    def __init__(self, parameters: BloomParameters) -> None:
        self._parameters = parameters
        self._rows: list[npt.NDArray[np.bool_]] = []  # created with the first key, because each takes some megabytes
        self._added = 0
        self._earlier: BloomFilter | None = None  # until a key is added to it

    @classmethod
    def extending(cls, earlier: BloomFilter) -> Self:
        """Includes the keys of an earlier filter, with their number `key_count`."""
        assert earlier.key_count is not None
        builder = cls(earlier.parameters)
        builder._earlier = earlier
        builder._added = earlier.key_count
        return builder

    @property
    def type_code(self) -> str:
        return self._parameters.type_code

    def add(self, keys: ArrowArray | ArrowChunks) -> None:
        """Adds keys (strings, none null or empty) in the order of the file's records."""
        for chunk in keys.chunks if isinstance(keys, pa.ChunkedArray) else [keys]:
            if len(chunk):
                self._add_chunk(chunk)

    def text(self) -> bytes:
        """The filter's text, as stored in a footer."""
        if self._earlier is not None:
            return self._earlier.text
        shape = self._parameters
        head = _HEAD.pack(_VERSION, shape.hash_count, _MURMUR, shape.bit_count)
        rows = [head + np.packbits(row, bitorder="little").tobytes() for row in self._rows or [self._empty_row()]]
        if shape.type_code == DYNAMIC:
            # All rows before the last one are full. After the last row has been created, only `current` continues to
            # grow.
            current = self._added - (len(rows) - 1) * shape.row_entries
            rows.insert(0, head + _DYNAMIC_HEAD.pack(shape.row_entries, current, len(rows)))
        return base64.b64encode(b"".join(rows))

    def _add_chunk(self, keys: ArrowArray) -> None:
        if self._earlier is not None:
            self._rows, self._earlier = [row.copy() for row in self._earlier.rows], None
        rows = self._rows_of(np.arange(self._added, self._added + len(keys)))
        while len(self._rows) <= rows.max():
            self._rows.append(self._empty_row())
        of_row = [(filled, rows == number) for number, filled in enumerate(self._rows) if (rows == number).any()]
        for places, bits in _bits_of(keys, self._parameters):
            for filled, is_chosen in of_row:
                filled[bits if len(of_row) == 1 else bits[is_chosen[places]]] = True
        self._added += len(keys)

    def _rows_of(self, numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The row that the key of each number (counted from 0) goes to."""
        shape = self._parameters
        if shape.type_code == SIMPLE:
            return np.zeros_like(numbers)
        full_rows = max(1, -(-shape.max_entries // shape.row_entries))
        beyond = numbers - full_rows * shape.row_entries
        # The first key beyond the limit goes to row 0, and the round-robin begins with the key after it.
        return np.where(beyond < 0, numbers // shape.row_entries, np.maximum(beyond - 1, 0) % full_rows)

    def _empty_row(self) -> npt.NDArray[np.bool_]:
        return np.zeros(self._parameters.bit_count, np.bool_)


def _decoded(text: bytes, path: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise _no_filter(path) from None


def _decoded_size(text: bytes, path: str) -> int:
    """The number of bytes that a base64 text encodes. Checks the whole text."""
    padding = text.translate(None, _LETTERS)
    if len(text) % 4 or padding not in (b"", b"=", b"==") or not text.endswith(padding):
        raise _no_filter(path)
    return len(text) // 4 * 3 - len(padding)


def _no_filter(path: str) -> CorruptBaseFileError:
    return CorruptBaseFileError(f"base file {path}: its footer's {FOOTER_KEY} is not a bloom filter")


def _bits_of(keys: ArrowArray, parameters: BloomParameters) -> Iterator[tuple[npt.NDArray[np.int64], Words]]:
    """Positions of some keys, with one bit position for each. Yields each key once per hash."""
    bit_count = np.uint32(parameters.bit_count)
    for places, hashed in murmur_rounds(keys, parameters.hash_count):
        # The absolute value of the lowest number is also correct, because it is read as unsigned. NumPy vectorizes the
        # division, but not the remainder.
        amounts = np.abs(hashed.view(np.int32)).view(np.uint32)
        amounts -= amounts // bit_count * bit_count
        yield places, amounts


def murmur_rounds(keys: ArrowArray, rounds: int) -> Iterator[tuple[Numbers, Words]]:
    """Hashes of strings that are not null: the positions of some keys, with their hashes after one more round.

    That is Hadoop's Murmur2 over many keys at once; the seed of each round is the hash of the round before, and the first
    one is 0. The contribution of a key's bytes does not depend on the seed, so it is computed once for all rounds. Keys are
    processed in chunks whose contributions fit in the processor's cache; keys of the same length are processed together.

    Yields each key `rounds` times. The arrays are valid until the next ones are requested.
    """
    if len(keys) == 0:
        return
    _, bounds, data = (memoryview(b"" if buffer is None else buffer) for buffer in keys.buffers())
    offsets = np.frombuffer(bounds, np.int32)[keys.offset : keys.offset + len(keys) + 1]
    content = np.frombuffer(data, np.uint8)
    for first in range(0, len(keys), _KEYS_AT_ONCE):
        starts = offsets[first : first + _KEYS_AT_ONCE + 1].astype(np.int64)
        lengths = np.diff(starts)
        for length in np.unique(lengths).tolist():
            group = np.flatnonzero(lengths == length)
            if len(group) == len(lengths):
                matrix = content[starts[0] : starts[-1]].reshape(-1, length)
            else:
                matrix = content[starts[group, None] + np.arange(length)]
            for hashed in _rounds(matrix, rounds):
                yield first + group, hashed


def _rounds(matrix: npt.NDArray[np.uint8], rounds: int) -> Iterator[Words]:
    count, length = matrix.shape
    whole = length // 4
    words = np.array(np.ascontiguousarray(matrix[:, : 4 * whole]).view("<u4").T, np.uint32, order="C")  # a copy
    words *= _FACTOR
    words ^= words >> np.uint32(24)
    words *= _FACTOR
    tail = np.zeros(count, np.uint32)
    for place in range(1, length % 4 + 1):
        # Java's bytes are signed, and the sign extends over the higher bits.
        tail ^= matrix[:, length - place].view(np.int8).astype(np.int32).view(np.uint32) << np.uint32(8 * (place - 1))
    hashed, shifted = np.zeros(count, np.uint32), np.empty(count, np.uint32)
    for _ in range(rounds):
        hashed ^= np.uint32(length)
        if count < _FEW_KEYS:
            hashed[:] = [_mixed(code, own.tolist()) for code, own in zip(hashed.tolist(), words.T, strict=True)]
        else:
            for word in words:
                hashed *= _FACTOR
                hashed ^= word
        if length % 4:
            hashed ^= tail
            hashed *= _FACTOR
        for shift in (13, 15):
            np.right_shift(hashed, np.uint32(shift), out=shifted)
            hashed ^= shifted
            if shift == 13:
                hashed *= _FACTOR
        yield hashed


def _mixed(code: int, words: Iterable[int]) -> int:
    """One key's hash, after its words."""
    for word in words:
        code = code * 0x5BD1E995 & 0xFFFFFFFF ^ word
    return code
