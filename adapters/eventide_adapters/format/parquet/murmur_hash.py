"""Hadoop's Murmur2 over many keys at once, in rounds: the seed of each round is the hash of the previous round.

The contribution of a key's bytes does not depend on the seed, so it is computed once for all rounds. Keys are processed
in chunks whose contributions fit in the processor's cache; keys of the same length are processed together.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eventide_adapters.format.columns.arrow_numpy import Numbers

Words = npt.NDArray[np.uint32]

_FACTOR: Final = np.uint32(0x5BD1E995)
_KEYS_AT_ONCE: Final = 1 << 14
_FEW_KEYS: Final = 16
"""For fewer keys, a step of plain Python for each word of each key costs less than one of NumPy for each word."""


def murmur_rounds(keys: "pa.Array[Any]", rounds: int) -> Iterator[tuple[Numbers, Words]]:
    """Hashes of strings that are not null: the positions of some keys, with their hashes after one more round.

    Yields each key `rounds` times; the first seed is 0. The arrays are valid until the next ones are requested.
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
