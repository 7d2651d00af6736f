"""Finds where the records of an Avro block are, many at once.

Each record's length states where the next record is. So the records form a chain, which can only be followed one by one. But
most records of a block begin with the same bytes, such as the instant of their commit:

1. Every few kilobytes, look for the next place where a record seems to begin.
2. Follow the chains from all these places together, a record of each chain at a time.
3. If each chain meets the place where the next one begins, all of them are parts of the chain of the first record. If not,
   nothing is known.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

# A step of NumPy takes as long as following ten records in Python, so few chains would gain nothing.
_CHAINS_MIN: Final = 64
_CHAIN_BYTES: Final = 4 * 1024
_CHAIN_RECORDS_MAX: Final = 256
_BEGIN_BYTES: Final = 16


def record_chain(content: bytes, position: int, count: int) -> tuple[npt.NDArray[np.int64], int]:
    """The positions of the lengths of the first records, and that of the next length. Finds nearly all, or none.

    `position` is that of the first length, a big-endian number of four bytes. There are at most `count` records.
    """
    none = np.empty(0, np.int64), position
    begin = content[position + 4 : position + 4 + _BEGIN_BYTES]
    if len(content) < _CHAINS_MIN * _CHAIN_BYTES or len(begin) < _BEGIN_BYTES:
        return none
    sought = range(position + 4, len(content), _CHAIN_BYTES)
    seeming = {content.find(begin, start, start + _CHAIN_BYTES + _BEGIN_BYTES) - 4 for start in sought}
    heads = np.array(sorted(head for head in seeming if head >= position), np.int64)
    lengths = np.ndarray((len(content) - 3,), ">i4", content, strides=(1,))
    at, goals, steps = heads[:-1], heads[1:], list[npt.NDArray[np.int64]]()
    while (at < goals).any():
        steps.append(at)
        after = np.minimum(at + lengths[at] + 4, heads[-1])
        if len(steps) == _CHAIN_RECORDS_MAX or (after < at).any():
            return none
        at = after
    places, ends = np.array([*steps, at]).T, goals[:, np.newaxis]
    starts, is_met = places[places < ends], (places == ends).any(axis=1)
    return (starts, int(heads[-1])) if is_met.all() and len(starts) <= count else none
