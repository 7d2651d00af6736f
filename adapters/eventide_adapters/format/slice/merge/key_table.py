"""Numbers the distinct record keys of a slice's log files, and finds the places of others among them.

It is a hash table that is built once and searched for each base batch. Arrow's own lookup (`index_in`) builds its table
again on each call. If the table is large and the base file has many batches, that costs several times as much as the
lookups.

1. Each key has a fingerprint of 64 bits, from its length and its first bytes.
2. The fingerprints are in slots, of which at most half are filled. Each is in the first free slot from its hash position on.
3. A lookup finds the first equal fingerprint from that position on, up to a free slot. Then it compares the keys themselves.
4. If two keys share a fingerprint, or very many share a position, Arrow's lookup is used. So a weak fingerprint costs time,
   but never gives a wrong result.

The same slots number many keys that may repeat, which takes Arrow's own encoding twice the memory: of the keys that want a
free slot, the first gets it, and every later one with its fingerprint repeats it.
"""

from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from eventide_adapters.format.encoding.columns.arrow_numpy import (
    ArrowArray,
    ArrowChunks,
    Flags,
    Numbers,
    to_arrow,
    to_numbers,
)

Prints = npt.NDArray[np.uint64]
TablePlaces = npt.NDArray[np.int32]

_ASKED_SHARE_MAX: Final = 4  # if more keys are requested, building Arrow's table each time costs little in comparison
_STEPS_MAX: Final = 64  # with half of the slots free, different fingerprints take a dozen steps
_WORD_BYTES: Final = 8
_WORDS_MAX: Final = 64
_NUMBERED_BY_ARROW_MAX: Final = 1 << 14  # fewer keys take less time, and their memory doesn't matter
_FACTOR: Final = np.uint64(0x9E3779B97F4A7C15)  # 2**64 by the golden ratio, odd: spreads neighbours far apart
_SHIFT: Final = np.uint64(29)
# For each number of remaining bytes of a key, the mask of its bytes in a word.
_MASKS: Final = np.array([(1 << (8 * left)) - 1 for left in range(_WORD_BYTES + 1)], np.uint64)


@dataclass(slots=True)
class KeyTable:
    """An index of strings that are distinct and not null.

    The number of a key is its place in `keys`, an Arrow array in order of first appearance.
    """

    keys: ArrowArray
    _table: "_Slots | None" = field(default=None, init=False)
    _is_exact_only: bool = field(default=False, init=False)

    @classmethod
    def numbered(cls, keys: ArrowChunks) -> "tuple[KeyTable, Numbers]":
        """An index of the distinct ones of these keys, in order of their first appearance, and each key's place in it.

        The keys are not null.
        """
        if len(keys) > _NUMBERED_BY_ARROW_MAX:
            prints = np.concatenate([_prints_of(chunk) for chunk in keys.chunks])
            built = _Slots.with_first(prints)
            if built is not None:
                table, first = built
                is_first = first == np.arange(len(first))
                repeats = np.flatnonzero(~is_first)
                if pc.all(pc.equal(keys.take(to_arrow(repeats)), keys.take(to_arrow(first[repeats])))).as_py():
                    number = np.cumsum(is_first) - 1
                    index = cls(keys.filter(to_arrow(is_first)).combine_chunks())
                    index._table = table.renumbered(number, len(index.keys))
                    return index, number[first]
        encoded: Any = keys.combine_chunks().dictionary_encode()
        return cls(encoded.dictionary), to_numbers(encoded.indices).astype(np.int64)

    def find(self, keys: ArrowArray) -> TablePlaces:
        """The place of each of these keys in the index; -1 for a missing key and for null."""
        if not self._is_exact_only and 0 < len(keys) < _ASKED_SHARE_MAX * len(self.keys):
            if self._table is None:
                self._table = _Slots.of(_prints_of(self.keys))
                self._is_exact_only = self._table is None
            places = None if self._table is None else self._table.find(_prints_of(keys))
            if places is not None and self._are_same(keys, places):
                return places
        exact: Any = pc.index_in(keys, value_set=self.keys)
        return to_numbers(exact, -1)

    def _are_same(self, keys: ArrowArray, places: TablePlaces) -> bool:
        rows = np.flatnonzero(places >= 0)
        is_same: Any = pc.equal(keys.take(to_arrow(rows)), self.keys.take(to_arrow(places[rows])))
        return bool(is_same.true_count == len(rows))


@dataclass(frozen=True, slots=True)
class _Slots:
    """Slots, their number a power of two: the fingerprint in each, and its place among the keys, -1 if the slot is free."""

    prints: Prints
    places: TablePlaces

    @classmethod
    def of(cls, prints: Prints) -> "_Slots | None":
        """The table of these fingerprints; None if too many need the same slots."""
        built = cls.with_first(prints)
        return None if built is None else built[0]

    @classmethod
    def with_first(cls, prints: Prints) -> "tuple[_Slots, TablePlaces] | None":
        """The table of the distinct ones of these fingerprints, each at its first place, and the first place of each.

        None if too many need the same slots.
        """
        count = _slots_for(len(prints))
        places, first = np.full(count, -1, np.int32), np.empty(len(prints), np.int32)
        waiting, slot = np.arange(len(prints), dtype=np.int32), _first_slots(prints, count)
        for _ in range(_STEPS_MAX):
            # If several want the same slot, the last one stays, so the first key comes last.
            free = np.flatnonzero(places[slot] < 0)[::-1]
            places[slot[free]] = waiting[free]
            holder = places[slot]
            is_found = prints[holder] == prints[waiting]
            first[waiting[is_found]] = holder[is_found]
            waiting, slot = waiting[~is_found], (slot[~is_found] + 1) & (count - 1)
            if len(waiting) == 0:
                return cls(prints[places], places), first  # a free slot's print is never requested
        return None

    def renumbered(self, number: Numbers, count: int) -> "_Slots | None":
        """The table of `count` keys with these numbers for their places; None if it were larger than theirs need be."""
        if len(self.places) > _slots_for(count):
            return None
        return _Slots(self.prints, np.where(self.places < 0, -1, number[self.places]).astype(np.int32))

    def find(self, prints: Prints) -> TablePlaces | None:
        """The place of the first key with each fingerprint, -1 for none; None if that takes too many steps."""
        slot = _first_slots(prints, len(self.places))
        places = self.places[slot]
        other = np.flatnonzero((self.prints[slot] != prints) & (places >= 0))
        for _ in range(_STEPS_MAX):
            if len(other) == 0:
                return places
            slot[other] = (slot[other] + 1) & (len(self.places) - 1)
            places[other] = self.places[slot[other]]
            goes_on = (self.prints[slot[other]] != prints[other]) & (places[other] >= 0)
            other = other[goes_on]
        return None


def last_of_keys(codes: Numbers, key_count: int, is_wanted: Flags | None = None) -> Numbers:
    """The place of each key's last wanted version, -1 if there is none. `codes` are the numbers of the versions' keys."""
    places = np.arange(len(codes)) if is_wanted is None else np.flatnonzero(is_wanted)
    last = np.full(key_count, -1, np.int64)
    last[codes[places]] = places  # of several assignments to a key, the last one stays
    return last


def first_of_keys(codes: Numbers, key_count: int, is_wanted: Flags | None = None) -> Numbers:
    """The place of each key's first wanted version, one beyond the last place if there is none."""
    last = last_of_keys(codes[::-1], key_count, None if is_wanted is None else is_wanted[::-1])
    return np.where(last < 0, len(codes), len(codes) - 1 - last)


def _slots_for(count: int) -> int:
    return 1 << (2 * count - 1).bit_length()


def _first_slots(prints: Prints, count: int) -> Numbers:
    """The first slot for each fingerprint: its upper bits, which depend on every hashed byte of the key."""
    return (prints >> np.uint64(65 - count.bit_length())).astype(np.int64)


def _prints_of(keys: ArrowArray) -> Prints:
    _, bounds, data = (memoryview(b"" if buffer is None else buffer) for buffer in keys.buffers())
    offsets = np.frombuffer(bounds, np.int32)[keys.offset : keys.offset + len(keys) + 1].astype(np.int64)
    lengths = np.diff(offsets)
    longest = int(lengths.max(initial=0))
    if longest >= _WORD_BYTES and longest == lengths.min():
        return _prints_of_same_length(data[offsets[0] : offsets[-1]], len(keys), longest)
    starts = offsets[:-1] - offsets[0]
    content = np.zeros(int(offsets[-1] - offsets[0]) + _WORD_BYTES, np.uint8)
    content[:-_WORD_BYTES] = np.frombuffer(data, np.uint8)[offsets[0] : offsets[-1]]
    # Unaligned, overlapping views: each byte position is the start of a number.
    words = np.ndarray((len(content) - _WORD_BYTES + 1,), "<u8", content, strides=(1,))
    prints: Prints = lengths.astype(np.uint64) * _FACTOR
    rows: Any = slice(None)
    for word in range(min(_WORDS_MAX, -(-longest // _WORD_BYTES))):
        left = lengths - _WORD_BYTES * word
        if (left <= 0).any():
            rows = np.flatnonzero(left > 0)
        masks = _MASKS[np.minimum(left[rows], _WORD_BYTES)]
        prints[rows] = _mixed(prints[rows], words[starts[rows] + _WORD_BYTES * word] & masks)
    return prints


def _prints_of_same_length(content: memoryview, count: int, length: int) -> Prints:
    """The fingerprints of keys of `length` bytes each, such as UUIDs, in a sixth of the time."""
    prints = np.full(count, length, np.uint64) * _FACTOR
    for at in range(0, min(_WORDS_MAX * _WORD_BYTES, length), _WORD_BYTES):
        # The last number ends with the key, and loses what it repeats.
        repeated = max(0, at + _WORD_BYTES - length)
        words: Prints = np.ndarray((count,), "<u8", content, at - repeated, (length,))
        prints = _mixed(prints, words >> np.uint64(8 * repeated) if repeated else words)
    return prints


def _mixed(prints: Prints, words: Prints) -> Prints:
    mixed = (prints ^ words) * _FACTOR
    return mixed ^ (mixed >> _SHIFT)
