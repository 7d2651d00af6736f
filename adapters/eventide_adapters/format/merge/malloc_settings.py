"""Keeps memory that was freed for what comes next, where the C library would give it back to the kernel each time.

The footer of the smallest base file holds half a megabyte of bloom filter, of which Arrow makes one copy after the other
while a file is read and the next one written. At first glibc asks the kernel for each piece of more than 128 KiB, and gives
the end of its heap back when as much is free there; the kernel clears every page anew. It learns from what is freed
(mallopt(3), M_MMAP_THRESHOLD): pieces up to the largest of these then come out of the heap, and twice as much may lie free
at its end. So a piece is freed that nobody has touched. To other C libraries it is just that.
"""

from functools import cache
from typing import Final

_PIECE_BYTES: Final = 4 * 1024 * 1024  # half of what a slice of few rows takes beside Arrow's own pool, each thread


@cache
def apply_malloc_settings() -> None:
    """Once a process is enough."""
    bytes(_PIECE_BYTES)
