"""Threads beside the caller's, for pages that are compressed and row groups that are encoded.

With the caller, there are as many as Arrow has processors. Spark states that number for its Python workers
(OMP_NUM_THREADS), the operating system for a process that is bound to some processors.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa


def threads_at_most(count: int) -> ThreadPoolExecutor | None:
    """So many threads, or one for each processor but the caller's; None if there is no other.

    Each starts with its first work.
    """
    others = pa.cpu_count() - 1
    return ThreadPoolExecutor(min(count, others)) if others else None
