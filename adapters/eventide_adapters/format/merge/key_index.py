"""Where record keys lie among a slice's: a table of hashes that is made once and searched for each batch of the base.

Arrow's own lookup (`index_in`) makes its table again each time it is asked: that costs several times the asking where
the table is large and the base comes in many batches.

1. Each key has a print of 64 bits, of its length and its first bytes.
2. The prints lie in slots, at most half of them filled, each in the first free one from where its own bits say.
3. Looked for is the first equal print from there on, up to a free slot. Then the keys themselves are compared.
4. Where two keys share a print, or very many a place, Arrow's lookup answers. So a print may be weak, never wrong.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Prints = npt.NDArray[np.uint64]
Places = npt.NDArray[np.int32]
Numbers = npt.NDArray[np.int64]

_ASKED_SHARE_MAX: Final = 4  # where more keys are requested, to make Arrow's table each time is the least of it
_STEPS_MAX: Final = 64  # with half of the slots free, prints that differ take a dozen
_WORDS_MAX: Final = 64  # of eight bytes
_FACTOR: Final = np.uint64(0x9E3779B97F4A7C15)  # 2**64 by the golden ratio, odd: spreads neighbours far apart
_SHIFT: Final = np.uint64(29)
# The bytes of a word that belong to a key of which so many are left.
_MASKS: Final = np.array([(1 << (8 * left)) - 1 for left in range(9)], np.uint64)


@dataclass(slots=True)
class KeyIndex:
    """Strings, no two alike and none null."""

    keys: pa.Array[Any]
    _table: _Table | None = field(default=None, init=False)
    _is_exact_only: bool = field(default=False, init=False)

    def find(self, keys: pa.Array[Any]) -> Places:
        """The place of each of these keys among those of the index; -1 for one that is none of them, and for null."""
        if not self._is_exact_only and 0 < len(keys) < _ASKED_SHARE_MAX * len(self.keys):
            if self._table is None:
                self._table = _Table.of(_prints_of(self.keys))
                self._is_exact_only = self._table is None
            found = None if self._table is None else self._table.find(_prints_of(keys))
            if found is not None and self._are_same(keys, found):
                return found
        exact: Any = pc.index_in(keys, value_set=self.keys)
        return np.asarray(exact.fill_null(-1).to_numpy(zero_copy_only=False), np.int32)

    def _are_same(self, keys: pa.Array[Any], found: Places) -> bool:
        rows = np.flatnonzero(found >= 0)
        is_same: Any = pc.equal(keys.take(rows), self.keys.take(found[rows]))
        return bool(is_same.true_count == len(rows))


@dataclass(frozen=True, slots=True)
class _Table:
    """Slots, a power of two: the print in each, and its place among the keys, -1 where the slot is free."""

    prints: Prints
    places: Places

    @classmethod
    def of(cls, prints: Prints) -> _Table | None:
        """None if very many want the same slots."""
        count = 1 << (2 * len(prints) - 1).bit_length()
        places = np.full(count, -1, np.int32)
        waiting, slot = np.arange(len(prints), dtype=np.int32), _first_slots(prints, count)
        for _ in range(_STEPS_MAX):
            is_free = places[slot] < 0
            places[slot[is_free]] = waiting[is_free]  # of several the last one stays
            is_left = places[slot] != waiting
            waiting, slot = waiting[is_left], (slot[is_left] + 1) & (count - 1)
            if len(waiting) == 0:
                return cls(prints[places], places)  # a free slot's print is never requested
        return None

    def find(self, prints: Prints) -> Places | None:
        """The place of the first key with each print, -1 for none; None if that takes too long."""
        slot = _first_slots(prints, len(self.places))
        found = self.places[slot]
        other = np.flatnonzero((self.prints[slot] != prints) & (found >= 0))
        for _ in range(_STEPS_MAX):
            if len(other) == 0:
                return found
            slot[other] = (slot[other] + 1) & (len(self.places) - 1)
            found[other] = self.places[slot[other]]
            goes_on = (self.prints[slot[other]] != prints[other]) & (found[other] >= 0)
            other = other[goes_on]
        return None


def _first_slots(prints: Prints, count: int) -> Numbers:
    """Where each print is looked for first: its upper bits, which every byte of the key has moved."""
    return (prints >> np.uint64(65 - count.bit_length())).astype(np.int64)


def _prints_of(keys: pa.Array[Any]) -> Prints:
    _, bounds, data = (memoryview(b"" if buffer is None else buffer) for buffer in keys.buffers())
    offsets = np.frombuffer(bounds, np.int32)[keys.offset : keys.offset + len(keys) + 1].astype(np.int64)
    starts, lengths = offsets[:-1] - offsets[0], np.diff(offsets)
    content = np.zeros(int(offsets[-1] - offsets[0]) + 8, np.uint8)
    content[:-8] = np.frombuffer(data, np.uint8)[offsets[0] : offsets[-1]]
    # Every position as the start of a number: unaligned views that overlap.
    words = np.ndarray((len(content) - 7,), "<u8", content, strides=(1,))
    prints: Prints = lengths.astype(np.uint64) * _FACTOR
    rows: Any = slice(None)
    for word in range(min(_WORDS_MAX, -(-int(lengths.max(initial=0)) // 8))):
        left = lengths - 8 * word
        if (left <= 0).any():
            rows = np.flatnonzero(left > 0)
        mixed = (prints[rows] ^ (words[starts[rows] + 8 * word] & _MASKS[np.minimum(left[rows], 8)])) * _FACTOR
        prints[rows] = mixed ^ (mixed >> _SHIFT)
    return prints
